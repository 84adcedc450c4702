"""Slices of streams that a ledger has as drawn, and faults of additions that nothing pays for."""

import sqlite3
from contextlib import closing
from dataclasses import replace

import pandas as pd
import pytest

import psd
from psd.errors import LedgerError
from psd.ledger import file as ledger_file
from psd.ledger.account import Account
from psd.ledger.charges import DrawnSlice
from psd.ledger.ledger import Ledger
from psd.privacy.loss import NANO, Loss
from psd.release.file import slice_digest
from support.ledger_columns import request_for

TERMS = {"counter": "tree", "slices": "7"}
FIRST, SECOND = DrawnSlice(draw="a1", digests=("x", "y")), DrawnSlice(draw="b2", digests=("z",))
KEPT = {"mon": "a1"}


def made_ledger(path):
    """A ledger with the charge of a stream, and its id."""
    ledger = Ledger.create(path)
    ledger.register("rows", 1)
    return ledger, ledger.charge("rows", request_for(5, terms=TERMS))


@pytest.fixture
def paid(tmp_path):
    return made_ledger(tmp_path / "city.ledger")


def entries(ledger):
    return len(ledger.state().hashes)


def test_each_slice_is_recorded_once_with_its_draw_by_a_state_that_has_all_others(paid):
    ledger, charge = paid
    assert ledger.state().charges[charge].terms == TERMS
    ledger.draw_slice(charge, "mon", FIRST, {})
    ledger.draw_slice(charge, "tue", SECOND, KEPT)
    both = {"mon": FIRST, "tue": SECOND}
    assert ledger.state().charges[charge].drawn == both
    before = entries(ledger)
    ledger.draw_slice(charge, "mon", FIRST, {**KEPT, "tue": "b2"})  # the same one again
    for kept in ({}, KEPT, {**KEPT, "tue": "c3"}):
        with pytest.raises(LedgerError, match="was drawn, as the ledger says"):
            ledger.draw_slice(charge, "wed", FIRST, kept)
    with pytest.raises(LedgerError, match="is not in"):
        ledger.draw_slice("0" * 32, "wed", FIRST, {})
    assert entries(ledger) == before
    assert ledger.state().charges[charge].drawn == both


def test_a_ledger_is_read_anew_if_its_last_entry_is_another(paid, tmp_path, monkeypatch):
    ledger, charge = paid
    opened = ledger.state()
    with monkeypatch.context() as patch:
        patch.setattr("psd.ledger.ledger.replay_entries", lambda _: pytest.fail("read again"))
        ledger.draw_slice(charge, "mon", FIRST, {}, opened)
    with pytest.raises(LedgerError, match="slice mon was drawn"):
        ledger.draw_slice(charge, "tue", SECOND, {}, opened)
    # Another ledger has as many entries, and other ones.
    other, theirs = made_ledger(tmp_path / "other.ledger")
    assert entries(other) == len(opened.hashes)
    with pytest.raises(LedgerError, match="is not in"):
        other.draw_slice(charge, "mon", FIRST, {}, opened)
    other.draw_slice(theirs, "mon", FIRST, {}, opened)
    assert other.verify().charges[theirs].drawn == {"mon": FIRST}


def test_a_file_without_entries_has_no_last_one():
    with closing(sqlite3.connect(":memory:")) as database:
        database.executescript(ledger_file._SCHEMA)
        assert (ledger_file.last_number(database), ledger_file.last_hash(database)) == (0, "")


def test_a_fault_that_costs_nothing_is_noted_where_nothing_is_left(paid):
    ledger, _ = paid
    ledger.register("others", 1)
    for name, left in (("rows", NANO - 5), ("others", NANO)):
        ledger.charge(name, request_for(left))
    before = ledger.state().charges
    ledger.charge_fault("rows", request_for(5))
    assert ledger.state().faults == {}
    for name in ("rows", "others", "rows"):
        ledger.charge_fault(name, request_for(Loss.pure(0)))
    assert ledger.state().faults == {"rows": 2, "others": 1}
    assert ledger.state().charges == before


class StreamAccount(Account):
    """An account whose builds are charged as the slices of streams are."""

    def charge(self, request):
        return super().charge(replace(request, terms=TERMS))


def test_releases_are_compared_with_the_slices_that_were_recorded(tmp_path):
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("rows", 1)
    account = StreamAccount(ledger, "rows")
    points = pd.DataFrame({"lon": [1.0], "lat": [1.0]})
    domain = psd.Domain(bounds=(0, 0, 4, 4))
    release = psd.build(points, domain=domain, epsilon="0.1", method="grid", account=account)
    release.save(tmp_path / "mon.psd.parquet")
    with pytest.raises(LedgerError, match="another content than ledger"):
        ledger.verify(releases=tmp_path)
    drawn = DrawnSlice(draw="a1", digests=(slice_digest("mon", release.tree),))
    ledger.draw_slice(account.last, "mon", drawn, {})
    ledger.verify(releases=tmp_path)
