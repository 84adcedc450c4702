"""No sequence of operations spends more than a budget, and none that fits is refused."""

import itertools
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from psd.errors import BudgetError, LedgerError
from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.ledger.regions import BY_FIELDS, Region
from psd.privacy.epsilon import NANO
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from support.ledger_columns import columns_of, readings_of

POINTS = list(itertools.product(range(5), repeat=2))
SIDES = st.sampled_from([(0, 1), (1, 2), (2, 4), (0, 4), (3, 4)])
REGIONS = st.none() | st.builds(
    lambda x, y: Region(bounds=(x[0], y[0], x[1], y[1]), crs="EPSG:4326", columns=(BY_FIELDS,)),
    SIDES,
    SIDES,
)
READINGS = st.sampled_from(
    [{}, {}, {}, {"x": "home_lon"}, {"delimiter": ";"}, {"time": "t"}, {"user": "device"},
     {"user": None}, {"ids": "nfc-2"}]
)  # fmt: skip
EPSILONS = st.sampled_from([1, NANO // 10, NANO // 3, NANO // 2, NANO - 1, NANO])
CAPS = {"ann": NANO, "bob": NANO // 2}
UNITS = {"rows": PrivacyUnit(), "users": PrivacyUnit(kind="user", max_contributions=3)}


class Spending(RuleBasedStateMachine):
    """A ledger, and the charges that were granted, kept apart."""

    charges = Bundle("charges")

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.ledger = Ledger.create(Path(self.folder.name) / "l")
        self.ledger.register("rows", "1")
        self.ledger.register(
            "users", "1", unit="user", caps={"ann": "1", "bob": "0.5"}, columns=columns_of("user")
        )
        self.granted = {"rows": [], "users": []}
        self.open, self.first = set(), self.ledger.verify().head

    def teardown(self):
        self.folder.cleanup()

    def most(self, name, charges):
        """Largest sum at a point, by looking at all points; users are everywhere."""
        sums = [0]
        for x, y in POINTS:
            here = [
                nano
                for place, nano, _ in charges
                if name == "users"
                or place is None
                or (
                    place.bounds[0] <= x <= place.bounds[2]
                    and place.bounds[1] <= y <= place.bounds[3]
                )
            ]
            sums.append(sum(here))
        return max(sums)

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
        region=REGIONS,
        nano=EPSILONS,
        analyst=st.sampled_from(["ann", "bob"]),
        changes=READINGS,
    )
    def charge(self, name, region, nano, analyst, changes):
        unit = UNITS[name]
        (registered,) = readings_of(unit)
        read = {key: text for key, text in {**registered, **changes}.items() if text is not None}
        wanted = ChargeRequest(
            loss=Loss.pure(nano), unit=unit, what="build", region=region, readings=(read,)
        )
        if any(read.get(key) != registered.get(key) for key in ("user", "ids", "delimiter")):
            with pytest.raises(LedgerError):
                self.ledger.charge(name, wanted, analyst=analyst)
            return None
        region = region if read == registered else None
        try:
            made = self.ledger.charge(name, wanted, analyst=analyst)
        except BudgetError:
            assert not self.fits(name, (region, nano, analyst))
            return None
        assert self.fits(name, (region, nano, analyst))
        self.granted[name].append((region, nano, analyst))
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


TestSpending = Spending.TestCase
TestSpending.settings = settings(max_examples=25, stateful_step_count=15, deadline=None)
