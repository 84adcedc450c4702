"""No sequence of charges for areas and slices exceeds a budget with a delta, at any point and time.

The naive rule adds up the charges of each record: its point, and its hour.
"""

import itertools
import tempfile
from fractions import Fraction
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from psd.accounting import pure_rho, rho_of
from psd.errors import BudgetError
from psd.ingest.reading import reading_of
from psd.ingest.sources import Columns
from psd.ledger.charged_slices import ChargedSlices
from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.ledger.regions import BY_FIELDS, Region
from psd.privacy.epsilon import NANO
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit

DELTA = Fraction(1, 10**6)
RHO = rho_of(NANO, DELTA)
COLUMNS = Columns(time="seen")
RECORDS = list(itertools.product(range(3), range(3), range(4)))

SIDES = st.sampled_from([(0, 0.5), (1, 2), (0, 2)])
REGIONS = st.none() | st.builds(
    lambda x, y: Region(bounds=(x[0], y[0], x[1], y[1]), crs="EPSG:4326", columns=(BY_FIELDS,)),
    SIDES,
    SIDES,
)
SPANS = st.sampled_from([((0, 0),), ((1, 2),), ((0, 0), (2, 3)), ((3, 3),)])
SLICES = st.none() | st.builds(
    lambda spans: ChargedSlices(column="seen", time_zone="UTC", rules="", by="hour", spans=spans),
    SPANS,
)
LOSSES = st.sampled_from(
    [
        *(Loss.pure(nano) for nano in (NANO // 50, NANO // 10, NANO // 2, NANO)),
        *(Loss.gaussian(NANO, DELTA, rho) for rho in (1, RHO // 3, RHO - 1, RHO)),
    ]
)


def holds(request, record):
    """Whether a charge is for a record."""
    x, y, hour = record
    if request.region is not None:
        west, south, east, north = request.region.bounds
        if not (west <= x <= east and south <= y <= north):
            return False
    return request.slices is None or any(a <= hour <= b for a, b in request.slices.spans)


def fits_by_epsilon(losses):
    """Whether the charges of one record are all pure, and their epsilons fit."""
    return all(loss.is_pure for loss in losses) and sum(loss.epsilon for loss in losses) <= NANO


def fits_by_rho(losses):
    """Whether the rhos of the charges of one record fit."""
    return sum(pure_rho(loss.epsilon) if loss.is_pure else loss.rho for loss in losses) <= RHO


def fits_all(records):
    """Whether one of the two sums fits all records of a charge."""
    return all(map(fits_by_epsilon, records)) or all(map(fits_by_rho, records))


class Spending(RuleBasedStateMachine):
    """A ledger, and the charges that were granted, kept apart."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = Ledger.create(Path(self.folder.name) / "l")
        self.ledger.register("rows", 1, delta="1e-6", columns=COLUMNS)
        self.granted = []

    def teardown(self):
        self.folder.cleanup()

    def losses(self, record):
        return [request.loss for request in self.granted if holds(request, record)]

    @rule(region=REGIONS, slices=SLICES, loss=LOSSES)
    def charge(self, region, slices, loss):
        request = ChargeRequest(
            loss=loss, unit=PrivacyUnit(), what="build", region=region, slices=slices,
            readings=(reading_of(COLUMNS),),
        )  # fmt: skip
        both = [[*self.losses(record), loss] for record in RECORDS if holds(request, record)]
        try:
            self.ledger.charge("rows", request)
        except BudgetError:
            assert not fits_all(both)
            return
        assert fits_all(both)
        self.granted.append(request)

    @invariant()
    def every_record_keeps_to_the_budget(self):
        for record in RECORDS:
            losses = self.losses(record)
            assert fits_by_epsilon(losses) or fits_by_rho(losses)
        assert len(self.ledger.verify().charges) == len(self.granted)


TestSpending = Spending.TestCase
TestSpending.settings = settings(
    max_examples=25,
    stateful_step_count=15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],  # a slow machine fails no test
)
