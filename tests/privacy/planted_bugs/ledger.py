"""Planted bugs of the ledger, each to be caught by a test that sound code passes."""

from __future__ import annotations

import contextlib
import itertools
import secrets
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import psd.ledger.account
import psd.ledger.entries
import psd.ledger.file
import psd.ledger.ledger
import psd.ledger.regions
import psd.publish.build
from privacy.planted_bugs.mutant import Mutant, replaced
from psd.curator.contribution_choice import BoundChoice
from psd.errors import BudgetError, LedgerError
from psd.ledger import state as ledger_state
from psd.ledger.account import Account
from psd.ledger.entries import entry, replay_entries
from psd.ledger.file import append, exclusive, rows
from psd.ledger.ledger import Ledger
from psd.ledger.regions import BY_FIELDS, Region, spent_within
from psd.ledger.state import ChargeRequest, LedgerState
from psd.mechanisms.laplace import LaplaceMechanism
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import NANO
from psd.privacy.unit import PrivacyUnit
from psd.publish.charging import PendingCharge
from psd.space.domain import Domain

SQUARE = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
TABLE = pd.DataFrame({"lon": [0.5, 1.5], "lat": [0.5, 2.5], "user": ["a", "b"]})
USER = PrivacyUnit(kind="user", max_contributions=2)

# Checks


def _ledger(folder, budget=1):
    made = Ledger.create(folder / "city.ledger")
    made.register("rows", budget)
    made.register("users", budget, unit="user")
    return made


def _claim(epsilon, unit=None, region=None):
    return ChargeRequest(epsilon=epsilon, unit=unit or PrivacyUnit(), what="try", region=region)


def _build(account, table=TABLE, **options):
    return psd.build(table, domain=SQUARE, epsilon="0.5", method="grid", account=account, **options)


def _granted(ledger, tries, epsilon):
    granted = 0
    for _ in range(tries):
        with contextlib.suppress(BudgetError):
            ledger.charge("rows", _claim(epsilon))
            granted += 1
    return granted


def four_at_once_get_the_budget(_, folder):
    ledger = _ledger(folder, "0.18")  # which four that keep step do not meet
    with ThreadPoolExecutor(4) as spenders:
        granted = spenders.map(lambda _: _granted(ledger, 10, NANO // 100), range(4))
    assert sum(granted) == 18


def three_tenths_are_three(_, folder):
    assert _granted(_ledger(folder, "0.3"), 4, NANO // 10) == 3


def a_failed_build_stays_charged(_, folder):
    ledger = _ledger(folder)

    def fail(*question):
        raise MemoryError

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(MemoryError):
        patch.setattr(SecureSampler, "draw", fail)
        _build(Account(ledger, "rows"))
    assert Ledger(folder / "city.ledger").state().spent("rows") == NANO // 2


def done_is_what_was_given_out(_, folder):
    ledger = _ledger(folder)
    _build(Account(ledger, "rows"))
    (charge,) = ledger.state().charges.values()
    assert not charge.done


@dataclass(frozen=True)
class Paid:
    """Every draw finds its charge on the disk, and the rows are read before."""

    chosen: bool = False

    def __call__(self, _, folder):
        ledger, seen = _ledger(folder), []
        options = {"user": "user", "max_contributions": BoundChoice()} if self.chosen else {}
        with pytest.MonkeyPatch.context() as patch:
            draw = SecureSampler.draw

            def watching(*question):
                seen.append(len(ledger.state().charges))
                return draw(*question)

            patch.setattr(SecureSampler, "draw", watching)
            account = Account(ledger, "users" if self.chosen else "rows")
            account.finish = lambda *_: None
            _build(account, **options)
        assert seen
        assert set(seen) == {1}


def heads_know_no_rows(_, folder):
    """Two data sets, the same answers, moments and ids."""
    heads = set()
    for number in range(1, 3):
        ids = map("id {}".format, itertools.count())
        (folder / str(number)).mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(psd.ledger.entries, "_now", lambda: "2024-01-01T00:00:00+00:00")
            patch.setattr(psd.ledger.ledger, "_random_id", lambda ids=ids: next(ids))
            patch.setattr(LaplaceMechanism, "sample", lambda self: np.zeros_like(self.true))
            ledger = _ledger(folder / str(number))
            _build(Account(ledger, "rows"), TABLE[:number])
            heads.add(ledger.state().head)
    assert len(heads) == 1


def touching_regions_overlap(*_):
    regions = [
        Region(bounds=bounds, crs="EPSG:4326", columns=(BY_FIELDS, "x=lon"))
        for bounds in ((0, 0, 1, 1), (1, 0, 2, 1))
    ]
    assert spent_within([(regions[0], 5), (regions[1], 5)], None) == 10


def users_add_up_over_regions(_, folder):
    ledger = _ledger(folder)
    for west in (0, 5):
        bounds = (west, 0, west + 1, 1)
        region = Region(bounds=bounds, crs="EPSG:4326", columns=(BY_FIELDS, "x=lon"))
        ledger.charge("users", _claim(NANO // 2, USER, region))
    assert ledger.state().spent("users") == NANO


def one_unit_for_each_dataset(_, folder):
    ledger = _ledger(folder)
    with contextlib.suppress(LedgerError):
        ledger.charge("rows", _claim(1, USER))
    assert not ledger.state().charges


def a_missing_ledger_is_not_made(_, folder):
    path: Path = folder / "gone.ledger"
    with contextlib.suppress(LedgerError):
        Ledger(path).charge("rows", _claim(1))
    assert not path.exists()


def a_changed_entry_is_found(_, folder):
    ledger = _ledger(folder)
    ledger.charge("rows", _claim(NANO))
    with contextlib.closing(sqlite3.connect(ledger.path)) as file:
        file.executescript(
            "DROP TRIGGER kept; UPDATE entry SET body = replace(body, '1000000000', '1')"
        )
    try:
        spent = ledger.verify().spent("rows")
    except LedgerError:
        return
    raise AssertionError(f"the ledger says that {spent} was spent")


def nothing_is_read_that_cannot_be_paid(_, folder):
    account, looked = Account(_ledger(folder, "0.1"), "rows"), []

    def look(*_, **__):
        looked.append(1)
        raise MemoryError

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(BudgetError, MemoryError):
        patch.setattr(psd.publish.build, "count_rows", look)
        _build(account)
    assert not looked


# Bugs


def check_then_act():
    """The balance is looked at in one transaction, and the charge written in another."""
    all_looked = threading.Barrier(4, timeout=10)

    def charge(self, name, claim, *, analyst=None):
        self.check(name, claim, analyst=analyst)
        try:
            all_looked.wait()
        except threading.BrokenBarrierError:  # processes cannot meet, so each gives the others time
            time.sleep(0.05)
        body = {"id": secrets.token_hex(16), "dataset": name, "analyst": analyst}
        with exclusive(self.path) as ledger:
            state = replay_entries(rows(ledger))
            append(ledger, entry(state.hashes, "charge", body | psd.ledger.ledger._body(claim)))
        return body["id"]

    return replaced(Ledger, "charge", charge)


@contextlib.contextmanager
def refund_on_failure():
    """A build that fails gets its charge back, though somebody has seen a draw."""
    original, charge, paid = psd.publish.build.release_of, Account.charge, []

    def remembering(self, claim):
        paid.append(self.ledger.path)
        return charge(self, claim)

    def release_of(*arguments, **options):
        try:
            return original(*arguments, **options)
        except BaseException:
            with contextlib.closing(sqlite3.connect(paid[-1])) as ledger:
                ledger.executescript("DROP TRIGGER held; DELETE FROM entry WHERE kind = 'charge'")
            raise

    with (
        replaced(psd.publish.build, "release_of", release_of),
        replaced(Account, "charge", remembering),
    ):
        yield


def float_epsilon():
    """Balances are floating-point sums."""

    def check(self, name, claim, analyst):
        spent = sum(charge.epsilon / NANO for charge in self.charges_of(name))
        if spent + claim.epsilon / NANO > self.datasets[name].budget / NANO:
            raise BudgetError("too much")

    return replaced(LedgerState, "check", check)


@contextlib.contextmanager
def chain_over_a_fingerprint():
    """What is charged says which rows it was charged for."""
    count, body, seen = psd.publish.build.count_rows, psd.ledger.ledger._body, []

    def count_rows(*arguments, **options):
        counted = count(*arguments, **options)
        seen.append(blake2b(counted.tally.counts.tobytes(), digest_size=8).hexdigest())
        return counted

    def with_fingerprint(claim):
        return {**body(claim), "what": f"{claim.what} of {seen[-1]}"}

    with (
        replaced(psd.publish.build, "count_rows", count_rows),
        replaced(psd.ledger.ledger, "_body", with_fingerprint),
    ):
        yield


def done_before_write():
    """A release is noted as given out when it is paid."""
    original = Account.charge

    def charge(self, claim):
        receipt = original(self, claim)
        self.ledger.finish(self.last)
        return receipt

    return replaced(Account, "charge", charge)


@contextlib.contextmanager
def draw_before_commit():
    """The charge is written when the release is."""
    finish, charge = Account.finish, PendingCharge.charge

    def late(self):
        self._account.later = self
        return {}

    def at_last(self, path=None):
        charge(self.later)
        finish(self, path)

    with replaced(PendingCharge, "charge", late), replaced(Account, "finish", at_last):
        yield


def choice_before_commit():
    """The charge is written after reading, and something was drawn while reading."""
    spend = Budget.spend

    def late(self, amount):
        if self._parent is None:
            spend(self, amount)
        else:
            self._spent += amount

    return replaced(Budget, "spend", late)


def touching_regions_are_apart():
    """Regions that share an edge are taken to have no row in common."""

    def deepest(charges, within):
        boxes = {(w, s, e - 1e-9, n - 1e-9): nano for (w, s, e, n), nano in charges.items()}
        return original(boxes, within)

    original = psd.ledger.regions._largest_sum
    return replaced(psd.ledger.regions, "_largest_sum", deepest)


def regions_for_users():
    """Users are taken to have all their rows in one region."""

    def spent(self, name, region=None, analyst=None):
        charges = self.charges_of(name, analyst)
        return psd.ledger.regions.spent_within([(c.region, c.epsilon) for c in charges], region)

    return replaced(LedgerState, "spent", spent)


def ledger_made_where_missing():
    """Whoever names a ledger that is gone gets a fresh one."""
    original = psd.ledger.file._existing

    def existing(path):
        if not Path(path).exists():
            Ledger.create(path).register("rows", 1)
        return original(path)

    return replaced(psd.ledger.file, "_existing", existing)


def units_are_not_compared():
    return replaced(ledger_state, "_check_unit", lambda dataset, claim: None)


def entries_without_a_chain():
    return replaced(psd.ledger.entries, "_hash", lambda *fields: "00" * 32)


def balance_after_reading():
    """The balance is looked at when the charge is made, and not before."""
    return replaced(Account, "check", lambda self, claim: None)


PROTOCOL = "tests/privacy/test_ledger_protocol.py::"
UNIT = "tests/unit/ledger/test_ledger.py::"
DRAWS = PROTOCOL + "test_every_draw_finds_its_charge_on_the_disk"
APART = "disjointness on somebody's word"

MUTANTS = (
    Mutant(
        id="check-then-act",
        wrong="the balance is looked at in one transaction, and the charge written in another",
        like="342 of 100 tries granted to four processes by a file that is replaced",
        plant=check_then_act,
        check=four_at_once_get_the_budget,
        test="tests/robustness/test_ledger_survives.py::test_four_processes_are_granted_exactly_the_budget",
    ),
    Mutant(
        id="refund",
        wrong="a build that fails gets its charge back, though somebody has seen a draw",
        like="automatic refunds",
        plant=refund_on_failure,
        check=a_failed_build_stays_charged,
        test=PROTOCOL + "test_a_build_that_fails_after_its_charge_stays_charged",
    ),
    Mutant(
        id="float-balances",
        wrong="balances are floating-point sums",
        like="budgets in floats",
        plant=float_epsilon,
        check=three_tenths_are_three,
        test=UNIT + "test_exactly_the_budget_is_granted",
    ),
    Mutant(
        id="chain-over-a-fingerprint",
        wrong="the chain of a ledger runs over a fingerprint of the rows",
        like="hashes of private data, which confirm a guessed row",
        plant=chain_over_a_fingerprint,
        check=heads_know_no_rows,
        test=PROTOCOL + "test_ledgers_differ_in_nothing_but_the_answers",
    ),
    Mutant(
        id="done-before-write",
        wrong="a release is noted as given out when it is paid",
        like="the order of the ledger's steps",
        plant=done_before_write,
        check=done_is_what_was_given_out,
        test=PROTOCOL + "test_a_release_that_cannot_be_written_is_charged_and_not_finished",
    ),
    Mutant(
        id="charge-after-draw",
        wrong="the charge is written with the release, after the draws",
        like="the order of the ledger's steps",
        plant=draw_before_commit,
        check=Paid(),
        test=DRAWS,
    ),
    Mutant(
        id="charge-after-choice",
        wrong="the charge is written after reading, and a bound was drawn while reading",
        like="the order of the ledger's steps",
        plant=choice_before_commit,
        check=Paid(chosen=True),
        test=DRAWS,
    ),
    Mutant(
        id="balance-after-reading",
        wrong="rows are read before anybody knows whether they can be paid for",
        like="the order of the ledger's steps",
        plant=balance_after_reading,
        check=nothing_is_read_that_cannot_be_paid,
        test=PROTOCOL + "test_the_balance_is_looked_at_before_the_rows",
    ),
    Mutant(
        id="touching-regions-apart",
        wrong="regions that share an edge are accounted as if no row were in both",
        like=APART,
        plant=touching_regions_are_apart,
        check=touching_regions_overlap,
        test="tests/unit/ledger/test_regions.py::test_only_regions_without_a_common_point_are_apart",
    ),
    Mutant(
        id="regions-of-users-apart",
        wrong="releases of two regions, each bounded by itself, are parallel for users",
        like=APART,
        plant=regions_for_users,
        check=users_add_up_over_regions,
        test=UNIT + "test_regions_apart_for_rows_and_never_for_users",
    ),
    Mutant(
        id="units-mixed",
        wrong="epsilons per row and per user are added in one dataset",
        like="mixed units in one ledger",
        plant=units_are_not_compared,
        check=one_unit_for_each_dataset,
        test=UNIT + "test_one_unit_for_each_dataset",
    ),
    Mutant(
        id="ledger-made-where-missing",
        wrong="a ledger that is missing is made, with nothing spent",
        like="databases that are created when they are opened",
        plant=ledger_made_where_missing,
        check=a_missing_ledger_is_not_made,
        test=UNIT + "test_what_is_no_ledger_is_refused_in_a_sentence_and_left_as_it_is",
    ),
    Mutant(
        id="entries-without-a-chain",
        wrong="an entry that was changed by hand is believed",
        like="rollback and edits of the ledger",
        plant=entries_without_a_chain,
        check=a_changed_entry_is_found,
        test=UNIT + "test_the_first_entry_that_was_changed_is_named_and_nothing_is_granted",
    ),
)
