"""No sequence of operations spends more than a budget, and none that fits is refused.

The naive rule adds up the charges of each record, at every point and hour, and of each analyst.
"""

import itertools
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from psd.accounting import pure_rho, rho_of
from psd.errors import BudgetError, LedgerError
from psd.ingest.columns import reading_of
from psd.ingest.sources import Columns
from psd.ledger.charges import ChargeRequest
from psd.ledger.extents import BY_FIELDS, ChargedSlices, Region
from psd.ledger.ledger import Ledger
from psd.privacy.loss import NANO, Loss
from psd.privacy.unit import PrivacyUnit
from support.ledger_columns import columns_of, readings_of

pytestmark = pytest.mark.deep


def box(x, y):
    return Region(bounds=(x[0], y[0], x[1], y[1]), crs="EPSG:4326", columns=(BY_FIELDS,))


def regions(*sides):
    return st.none() | st.builds(box, st.sampled_from(sides), st.sampled_from(sides))


def holds(region, x, y):
    west, south, east, north = (0, 0, 9, 9) if region is None else region.bounds
    return west <= x <= east and south <= y <= north


class Spending(RuleBasedStateMachine):
    """A ledger, and the charges that were granted, kept apart."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = Ledger.create(Path(self.folder.name) / "l")

    def teardown(self):
        self.folder.cleanup()


POINTS = list(itertools.product(range(5), repeat=2))
READINGS = st.sampled_from(
    [{}, {}, {}, {"x": "home_lon"}, {"delimiter": ";"}, {"time": "t"}, {"user": "device"},
     {"user": None}, {"ids": "nfc-2"}]
)  # fmt: skip
EPSILONS = st.sampled_from([1, NANO // 10, NANO // 3, NANO // 2, NANO - 1, NANO])
CAPS = {"ann": NANO, "bob": NANO // 2}
UNITS = {"rows": PrivacyUnit(), "users": PrivacyUnit(kind="user", max_contributions=3)}


class SpendingOfAnalysts(Spending):
    """Charges of epsilon for areas, by analysts with caps."""

    charges = Bundle("charges")

    def __init__(self):
        super().__init__()
        self.ledger.register("rows", "1")
        caps = {"ann": "1", "bob": "0.5"}
        self.ledger.register("users", "1", unit="user", caps=caps, columns=columns_of("user"))
        self.granted = {"rows": [], "users": []}
        self.open, self.first = set(), self.ledger.verify().head

    def most(self, name, charges):
        """Largest sum at a point, by looking at all points; users are everywhere."""
        return max(
            sum(nano for place, nano, _ in charges if name == "users" or holds(place, x, y))
            for x, y in POINTS
        )

    def fits(self, name, charge):
        granted = self.granted[name]
        fits = self.most(name, [*granted, charge]) <= NANO
        if name == "users":
            own = [other for other in granted if other[2] == charge[2]]
            fits &= self.most(name, [*own, charge]) <= CAPS[charge[2]]
        return fits

    @rule(
        target=charges,
        name=st.sampled_from(["rows", "users"]),
        region=regions((0, 1), (1, 2), (2, 4), (0, 4), (3, 4)),
        nano=EPSILONS,
        analyst=st.sampled_from(["ann", "bob"]),
        changes=READINGS,
    )
    def charge(self, name, region, nano, analyst, changes):
        unit = UNITS[name]
        (registered,) = readings_of(unit)
        read = {key: text for key, text in {**registered, **changes}.items() if text is not None}
        loss = Loss.pure(nano)
        wanted = ChargeRequest(loss=loss, unit=unit, what="build", region=region, readings=(read,))
        if any(read.get(key) != registered.get(key) for key in ("user", "ids", "delimiter")):
            with pytest.raises(LedgerError):
                self.ledger.charge(name, wanted, analyst=analyst)
            return None
        charge = (region if read == registered else None, nano, analyst)
        try:
            made = self.ledger.charge(name, wanted, analyst=analyst)
        except BudgetError:
            assert not self.fits(name, charge)
            return None
        assert self.fits(name, charge)
        self.granted[name].append(charge)
        self.open.add(made)
        return made

    @rule(charge=charges)
    def finish(self, charge):
        if charge in self.open:
            self.ledger.finish(charge)
            self.open.remove(charge)
        elif charge is not None:
            with pytest.raises(LedgerError):
                self.ledger.finish(charge)

    @invariant()
    def balances_are_those_of_what_was_granted(self):
        state = self.ledger.verify(head=self.first)
        for name, granted in self.granted.items():
            assert state.spent(name) == self.most(name, granted) <= NANO
        assert {charge.id for charge in state.charges.values() if not charge.done} == self.open


DELTA = Fraction(1, 10**6)
RHO = rho_of(NANO, DELTA)
COLUMNS = Columns(time="seen")
RECORDS = list(itertools.product(range(3), range(3), range(4)))
SPANS = st.sampled_from([((0, 0),), ((1, 2),), ((0, 0), (2, 3)), ((3, 3),)])
CLOCK = {"column": "seen", "time_zone": "UTC", "rules": "", "by": "hour"}
SLICES = st.none() | SPANS.map(lambda spans: ChargedSlices(spans=spans, **CLOCK))
LOSSES = [Loss.pure(nano) for nano in (NANO // 50, NANO // 10, NANO // 2, NANO)]
LOSSES += [Loss.gaussian(NANO, DELTA, rho) for rho in (1, RHO // 3, RHO - 1, RHO)]


def fits_by_epsilon(losses):
    """Whether the charges of one record are all pure, and their epsilons fit."""
    return all(loss.is_pure for loss in losses) and sum(loss.epsilon for loss in losses) <= NANO


def fits_by_rho(losses):
    """Whether the rhos of the charges of one record fit."""
    return sum(pure_rho(loss.epsilon) if loss.is_pure else loss.rho for loss in losses) <= RHO


class SpendingWithDelta(Spending):
    """Charges of two measures for areas and slices: one of two sums fits all their records."""

    def __init__(self):
        super().__init__()
        self.ledger.register("rows", 1, delta="1e-6", columns=COLUMNS)
        self.granted = []

    def losses(self, record, *more):
        """Losses of the charges that are for a record."""
        x, y, hour = record
        return [
            request.loss
            for request in (*self.granted, *more)
            if holds(request.region, x, y)
            and (request.slices is None or any(a <= hour <= b for a, b in request.slices.spans))
        ]

    @rule(region=regions((0, 0.5), (1, 2), (0, 2)), slices=SLICES, loss=st.sampled_from(LOSSES))
    def charge(self, region, slices, loss):
        request = ChargeRequest(
            loss=loss, unit=PrivacyUnit(), what="build", region=region, slices=slices,
            readings=(reading_of(COLUMNS),),
        )  # fmt: skip
        before = [self.losses(record) for record in RECORDS]
        after = [self.losses(record, request) for record in RECORDS]
        changed = [new for old, new in zip(before, after, strict=True) if new != old]
        fits = all(map(fits_by_epsilon, changed)) or all(map(fits_by_rho, changed))
        try:
            self.ledger.charge("rows", request)
        except BudgetError:
            assert not fits
            return
        assert fits
        self.granted.append(request)

    @invariant()
    def every_record_keeps_to_the_budget(self):
        for losses in map(self.losses, RECORDS):
            assert fits_by_epsilon(losses) or fits_by_rho(losses)
        assert len(self.ledger.verify().charges) == len(self.granted)


TestSpendingOfAnalysts = SpendingOfAnalysts.TestCase
TestSpendingWithDelta = SpendingWithDelta.TestCase
LONG = settings(max_examples=25, stateful_step_count=15, deadline=None)
TestSpendingOfAnalysts.settings = TestSpendingWithDelta.settings = LONG
