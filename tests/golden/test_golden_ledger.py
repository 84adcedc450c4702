"""A ledger of an earlier format has the balances that it had, and keeps them when it grows.

The file was written by the library of format 1, and the figures are those it showed.
"""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from psd.errors import BudgetError
from psd.ingest.reading import reading_of
from psd.ingest.sources import Columns
from psd.ledger.charges import ChargeRequest
from psd.ledger.file import FORMAT
from psd.ledger.ledger import Ledger
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from support.cli_runner import passes

FILE = Path(__file__).parent / "city.format-1.ledger"

# Budget, spent, left and left of caps.
BALANCES = {
    "visits": ("1", "0.9", "0.1", ""),
    "people": ("3", "1", "2", "ann 0.6, bob 0.4"),
    "days": ("1", "0.6", "0.4", ""),
}
# Dataset, analyst, epsilon and where.
CHARGES = [
    ("visits", "", "0.6", "0 0 1 1"),
    ("visits", "", "0.7", "2 0 3 1"),
    ("visits", "", "0.2", "everywhere"),
    ("people", "ann", "0.9", "everywhere"),
    ("people", "bob", "0.1", "everywhere"),
    ("days", "", "0.3", "everywhere"),
    ("days", "", "0.3", "everywhere"),
]


@pytest.fixture
def ledger(tmp_path):
    """A copy, since an opened file may be changed."""
    path = tmp_path / "city.ledger"
    shutil.copy(FILE, path)
    path.chmod(0o600)
    return Ledger(path)


def format_of(ledger):
    with closing(sqlite3.connect(ledger.path)) as file:
        return file.execute("PRAGMA user_version").fetchone()[0]


def balances(ledger):
    rows = json.loads(passes("ledger", "status", ledger.path, "--format", "json"))
    names = ("budget", "spent", "left", "left_of_caps")
    return {row["dataset"]: tuple(row[name] for name in names) for row in rows}


def test_balances_and_charges_are_what_they_were(ledger):
    assert balances(ledger) == BALANCES
    history = json.loads(passes("ledger", "history", ledger.path, "--format", "json"))
    names = ("dataset", "analyst", "epsilon", "where")
    assert [tuple(line[name] for name in names) for line in history] == CHARGES
    assert {line["when"] for line in history} == {"always"}
    ledger.verify()
    assert format_of(ledger) == 1


def test_a_new_entry_makes_it_a_ledger_of_the_newest_format(ledger):
    before = ledger.state()
    columns = Columns(time="seen", time_zone="Asia/Seoul")
    request = ChargeRequest(
        loss=Loss.pure(10**8), unit=PrivacyUnit(), what="ask", readings=(reading_of(columns),)
    )
    ledger.check("visits", request)
    assert format_of(ledger) == 1
    ledger.charge("visits", request)
    assert format_of(ledger) == FORMAT
    assert balances(ledger) == {**BALANCES, "visits": ("1", "1", "0", "")}
    assert ledger.verify(head=before.head_text).hashes[:-1] == before.hashes
    with pytest.raises(BudgetError):
        ledger.charge("visits", request)
