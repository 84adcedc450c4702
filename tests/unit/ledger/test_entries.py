"""Entries of a ledger as they are written, and what is read of them."""

import json
import re
from hashlib import blake2b

import pytest

from psd.errors import LedgerError
from psd.ledger import entries as journal
from psd.ledger.charges import Charge
from psd.ledger.entries import entry, replay_entries
from psd.ledger.regions import BY_FIELDS, Region
from psd.privacy.loss import Loss

FIRST = "2024-01-01T00:00:00+00:00"
DATASET = {"name": "visits", "budget": 10, "unit": "record", "time_zone": None, "bound": None}
REGION = {
    "bounds": [0, 1, 2, 3],
    "crs": "EPSG:4326",
    "columns": [BY_FIELDS, "x=lon"],
    "lattice": [8, 4],
}
CHARGE = {
    "id": "c",
    "dataset": "visits",
    "analyst": None,
    "what": "build",
    "epsilon": 7,
    "bound": 1,
    "region": REGION,
    "files": ["ab", "cd"],
}


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(journal, "_now", lambda: FIRST)


def chained(*entries):
    """Rows of a chain that is right, whatever its entries say."""
    rows = []
    for kind, body in entries:
        rows.append(entry(tuple(row[4] for row in rows), kind, body))
    return rows


REGISTERED = [("create", {"id": "me"}), ("register", {**DATASET, "caps": {}})]


def test_the_text_and_the_chain_are_the_same_in_every_version():
    """By another program, which knows what the format says and nothing of this one."""
    before, bodies = "", [{"z": 1, "a": "\u00e9"}, {"b": [1, None]}, {}]
    texts = ['{"a":"\\u00e9","z":1}', '{"b":[1,null]}', "{}"]
    rows = chained(*(("k\u00e9", body) for body in bodies))
    for number, (row, text) in enumerate(zip(rows, texts, strict=True), 1):
        hashed = f'["{before}", {number}, "{FIRST}", "k\\u00e9", {json.dumps(text)}]'
        before = blake2b(hashed.encode("ascii"), digest_size=32).hexdigest()
        assert row == (number, FIRST, "k\u00e9", text, before)


def test_the_clock_is_that_of_greenwich(monkeypatch):
    monkeypatch.undo()
    time = entry((), "create", {})[1]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", time)


def test_what_was_written_is_read():
    open_ = {**CHARGE, "id": "d", "region": None}
    del open_["files"]  # as entries were before there were marks
    raised = ("raise", {"name": "visits", "budget": 2_500_000_000})
    again = ("raise", {"name": "visits", "budget": 2_500_000_001})
    done = ("done", {"id": "c", "digest": "ef"})
    rows = chained(*REGISTERED, ("charge", CHARGE), ("charge", open_), raised, again, done)
    state = replay_entries(rows)
    columns = ("reader=csv", "x=lon")
    place = Region(bounds=(0, 1, 2, 3), crs="EPSG:4326", columns=columns, lattice=(8, 4))
    common = {**CHARGE, "time": FIRST, "loss": Loss.pure(CHARGE["epsilon"])}
    del common["epsilon"]
    assert state.charges == {
        "c": Charge(**{**common, "region": place, "files": ("ab", "cd")}, done=True, digest="ef"),
        "d": Charge(**{**common, "id": "d", "region": None, "files": ()}),
    }
    assert (state.id, state.hashes) == ("me", tuple(row[4] for row in rows))
    assert state.datasets["visits"].raised == (f"{FIRST} from 0.00000001", f"{FIRST} from 2.5")
    assert state.datasets["visits"].budget == 2_500_000_001


@pytest.mark.parametrize("columns", [[], ["x=lon", "y=lat"], ["x=lon", "y=lat", "geometry=g"]])
def test_a_region_that_may_be_that_of_a_geometry_is_everywhere(columns):
    regions = ({**REGION, "bounds": [w, 1, w + 1, 3], "columns": columns} for w in (0, 5))
    charges = [("charge", {**CHARGE, "id": str(n), "region": r}) for n, r in enumerate(regions)]
    state = replay_entries(chained(*REGISTERED, *charges))
    assert [charge.region for charge in state.charges.values()] == [None, None]
    assert state.spent("visits") == 14


NONSENSE = {
    "nothing": ([], 1),
    "no beginning": (REGISTERED[1:], 1),
    "two beginnings": ([*REGISTERED, REGISTERED[0]], 3),
    "an unknown kind": ([*REGISTERED, ("refund", {"id": "c"})], 3),
    "a budget that stays": ([*REGISTERED, ("raise", {"name": "visits", "budget": 10})], 3),
    "a budget that falls": ([*REGISTERED, ("raise", {"name": "visits", "budget": 9})], 3),
    "a budget of nothing": ([*REGISTERED, ("raise", {"name": "roads", "budget": 11})], 3),
    "an end of nothing": ([*REGISTERED, ("done", {"id": "c", "digest": None})], 3),
    "a body that is none": ([*REGISTERED, ("charge", {})], 3),
}


@pytest.mark.parametrize("what", NONSENSE)
def test_a_chain_that_is_right_and_says_nonsense_is_refused(what):
    entries, number = NONSENSE[what]
    with pytest.raises(LedgerError, match=f"^entry {number} of the ledger"):
        replay_entries(chained(*entries))
