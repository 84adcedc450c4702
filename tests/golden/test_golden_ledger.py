"""A ledger that was written once has the balances that it had, and keeps them when it grows.

`python tests/golden/test_golden_ledger.py` writes it again.
"""

import json
import shutil
from pathlib import Path

import pytest

from psd.errors import BudgetError
from psd.ingest.columns import reading_of
from psd.ingest.sources import Columns
from psd.ledger.charges import ChargeRequest
from psd.ledger.extents import Region
from psd.ledger.ledger import Ledger
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from support.cli_runner import passes

FILE = Path(__file__).parent / "city.ledger"

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
UNITS = {
    "visits": PrivacyUnit(),
    "people": PrivacyUnit(kind="user", max_contributions=4),
    "days": PrivacyUnit(kind="user-day", max_contributions=4, time_zone="Asia/Seoul"),
}
COLUMNS = {
    "visits": Columns(),
    "people": Columns(user="id"),
    "days": Columns(user="id", time="seen", time_zone="Asia/Seoul"),
}


def request(name, epsilon, where="everywhere"):
    """Request of a charge, whose records are read as the dataset registers."""
    bounds = None if where == "everywhere" else tuple(map(float, where.split()))
    columns = ("reader=csv", "x=lon", "y=lat")
    return ChargeRequest(
        loss=Loss.pure(round(float(epsilon) * 10**9)),
        unit=UNITS[name],
        what="build",
        readings=(reading_of(COLUMNS[name]),),
        region=bounds and Region(bounds=bounds, crs="EPSG:4326", columns=columns),
    )


def made_once(path):
    """Three datasets, and their charges."""
    ledger = Ledger.create(path)
    of_people = {"caps": {"ann": "1.5", "bob": "0.5"}, "max_contributions": 4}
    more = {"people": of_people, "days": {"time_zone": "Asia/Seoul"}}
    for name, (budget, *_) in BALANCES.items():
        options = {"unit": UNITS[name].kind, "columns": COLUMNS[name], **more.get(name, {})}
        ledger.register(name, budget, **options)
    for name, analyst, epsilon, where in CHARGES:
        ledger.charge(name, request(name, epsilon, where), analyst=analyst or None)


@pytest.fixture
def ledger(tmp_path):
    """A copy, since an opened file may be changed."""
    path = tmp_path / "city.ledger"
    shutil.copy(FILE, path)
    path.chmod(0o600)
    return Ledger(path)


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


def test_a_new_entry_continues_the_chain(ledger):
    before, one = ledger.state(), request("visits", "0.1")
    ledger.charge("visits", one)
    assert balances(ledger) == {**BALANCES, "visits": ("1", "1", "0", "")}
    assert ledger.verify(head=before.head_text).hashes[:-1] == before.hashes
    with pytest.raises(BudgetError):
        ledger.charge("visits", one)


if __name__ == "__main__":
    FILE.unlink(missing_ok=True)
    made_once(FILE)
