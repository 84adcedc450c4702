"""Entries of a ledger as they are written, and what is read of them."""

import json
import math
import re
from hashlib import blake2b

import pytest

from psd.errors import LedgerError
from psd.ledger import entries as journal
from psd.ledger.charges import Charge
from psd.ledger.entries import entry, replay_entries
from psd.ledger.extents import Region
from psd.ledger.file import validate_entry
from psd.privacy.loss import Loss
from support.ledger_entries import CHARGE, DATASET, REGION

FIRST = "2024-01-01T00:00:00+00:00"


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    monkeypatch.setattr(journal, "_now", lambda: FIRST)


def chained(*entries):
    """Rows of a chain that is right, whatever its entries say."""
    rows = []
    for kind, body in entries:
        rows.append(entry(tuple(row[4] for row in rows), kind, body))
    return rows


REGISTERED = [("create", {"id": "me"}), ("register", DATASET)]


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
    open_ = {**CHARGE, "id": "d", "region": None, "files": []}
    raised = ("raise", {"name": "visits", "budget": 2_500_000_000})
    again = ("raise", {"name": "visits", "budget": 2_500_000_001})
    done = ("done", {"id": "c", "digest": "ef"})
    rows = chained(*REGISTERED, ("charge", CHARGE), ("charge", open_), raised, again, done)
    state = replay_entries(rows)
    columns = ("reader=csv", "x=lon")
    place = Region(bounds=(0, 1, 2, 3), crs="EPSG:4326", columns=columns, lattice=(8, 4))
    common = {**CHARGE, "time": FIRST, "loss": Loss.pure(CHARGE["epsilon"])}
    for name in ("epsilon", "rho", "delta"):
        del common[name]
    assert state.charges == {
        "c": Charge(**{**common, "region": place, "files": ("ab", "cd")}, done=True, digest="ef"),
        "d": Charge(**{**common, "id": "d", "region": None, "files": ()}),
    }
    assert (state.id, state.hashes) == ("me", tuple(row[4] for row in rows))
    assert state.datasets["visits"].raised == (f"{FIRST} from 0.00000001", f"{FIRST} from 2.5")
    assert state.datasets["visits"].budget == 2_500_000_001


def test_a_region_that_may_be_that_of_a_geometry_is_everywhere():
    for columns in ([], ["x=lon", "y=lat"], ["x=lon", "y=lat", "geometry=g"]):
        regions = ({**REGION, "bounds": [w, 1, w + 1, 3], "columns": columns} for w in (0, 5))
        charges = [("charge", {**CHARGE, "id": str(n), "region": r}) for n, r in enumerate(regions)]
        state = replay_entries(chained(*REGISTERED, *charges))
        assert [charge.region for charge in state.charges.values()] == [None, None]
        assert state.spent("visits") == 14


READING = {"x": "lon", "y": "lat"}
OF_NO_USER = {**DATASET, "unit": "user", "reading": READING}
PAID = [*REGISTERED, ("charge", CHARGE)]
SLICE = ("slice", {"id": "c", "slice": "mon", "draw": "ab", "digests": []})
DONE = ("done", {"id": "c", "digest": None})
NONSENSE = {
    "nothing": ([], 1),
    "no beginning": (REGISTERED[1:], 1),
    "two beginnings": ([*REGISTERED, REGISTERED[0]], 3),
    "an unknown kind": ([*REGISTERED, ("refund", {"id": "c"})], 3),
    "a budget that stays": ([*REGISTERED, ("raise", {"name": "visits", "budget": 10})], 3),
    "a budget that falls": ([*REGISTERED, ("raise", {"name": "visits", "budget": 9})], 3),
    "a budget of nothing": ([*REGISTERED, ("raise", {"name": "roads", "budget": 11})], 3),
    "an end twice": ([*PAID, DONE, DONE], 5),
    "a delta of no dataset": ([*REGISTERED, ("charge", {**CHARGE, "rho": 1, "delta": "1e-6"})], 3),
    "an end of nothing": ([*REGISTERED, ("done", {"id": "c", "digest": None})], 3),
    "a slice twice": ([*PAID, SLICE, SLICE], 5),
    "a slice of nothing": ([*REGISTERED, SLICE], 3),
    "a fault of nothing": ([*REGISTERED, ("fault", {"name": "roads"})], 3),
    "no such dataset": ([*REGISTERED, ("charge", {**CHARGE, "dataset": "other"})], 3),
    "a dataset a second time": ([*REGISTERED, ("register", {**DATASET, "budget": 10**10})], 3),
    "columns of no user": ([REGISTERED[0], ("register", OF_NO_USER)], 2),
    "a body that is none": ([*REGISTERED, ("charge", {})], 3),
}


def test_a_chain_that_is_right_and_says_nonsense_is_refused(subtests):
    for what, (entries, number) in NONSENSE.items():
        words = f"^entry {number} of the ledger"
        with subtests.test(what), pytest.raises(LedgerError, match=words):
            replay_entries(chained(*entries))


# What an entry may say: one field at a time is left out, added or wrong


PLACE = {**REGION, "lattice": [8, 2**30]}

SLICES = {
    "column": "seen", "time_zone": "Asia/Seoul", "rules": "ab", "by": "day",
    "spans": [["2026-01-01T00", "2026-01-31T23"], ["2026-02-02T00", "2026-02-02T23"]],
}  # fmt: skip

RHO, TERMS = {"rho": 5, "delta": "2.5e-9"}, {"counter": "tree"}

# One sound body of each kind.
SOUND = {
    "create": {"id": "me"},
    "register": {**DATASET, "delta": "1e-6", "reading": READING, "inputs": ["ab"]},
    "inputs": {"name": "visits", "inputs": ["ab", "cd"]},
    "raise": {"name": "visits", "budget": 10},
    "charge": {**CHARGE, **RHO, "region": PLACE, "slices": SLICES, "terms": TERMS},
    "slice": {"id": "c", "slice": "mon", "draw": "ab", "digests": ["cd"]},
    "fault": {"name": "visits"},
    "done": {"id": "c", "digest": None},
}

MOST = 10**12  # epsilon 1,000
NAMES = (["a", "x" * 100], ["", " a", "a ", "a\n", "\u200b", "x" * 101, None, 1, ["a"], {"a": 1}])
PRICES = ([1, MOST], [0, -1, MOST + 1, 1.0, True, "1", None, [1]])
BOUNDS = ([None, 1, 10**9], [0, 10**9 + 1, 1.0, True, "1", [1]])
TEXTS = ([[], ["", "a"]], [None, "a", ["a", 1], [None], ("a",), {"a": 1}])
READINGS = ([READING, {**READING, "k": "v"}], [None, {}, "x", {"x": "lon"}, {**READING, "k": 1}])

DELTAS = (
    [None, "1e-6", "9.9e-4", "1e-300"],
    ["", "1e-06", "0.000001", "1e-3", "0e0", "-1e-6", "nan", 1e-6, 1, ["1e-6"]],
)
INPUTS = ([[], ["a", "b"]], [None, "a", [""], ["a", 1], {"a": 1}])


def or_none(sound, wrong):
    return [*sound, None], [value for value in wrong if value is not None]


# What each field may be, and what it may not be.
VALUES = {
    **dict.fromkeys(
        [
            *(("create", "id"), ("register", "name"), ("inputs", "name")),
            *(("raise", "name"), ("charge", "id"), ("charge", "dataset"), ("charge", "what")),
            *(("slice", "id"), ("slice", "slice"), ("slice", "draw"), ("fault", "name")),
            ("done", "id"),
        ],
        NAMES,
    ),
    **dict.fromkeys([("register", "budget"), ("raise", "budget"), ("charge", "epsilon")], PRICES),
    **dict.fromkeys([("register", "bound"), ("charge", "bound")], BOUNDS),
    **dict.fromkeys([("register", "delta"), ("charge", "delta")], DELTAS),
    ("register", "reading"): READINGS,
    **dict.fromkeys([("register", "inputs"), ("inputs", "inputs"), ("slice", "digests")], INPUTS),
    ("register", "unit"): (["record", "user"], ["rows", "user-slice", "", None, 1, ["record"]]),
    ("register", "time_zone"): ([None], ["UTC", "", 1, ["UTC"]]),
    ("register", "caps"): (
        [{}, {"ann": 1, "bob": MOST}],
        [None, [], ["ann"], "ann", {"ann": 0}, {"ann": 1, "bob": 1.5}, {"": 1}, {"ann": None}],
    ),
    ("charge", "analyst"): or_none(*NAMES),
    ("charge", "rho"): ([None, 1, 10**15], [0, -1, 10**15 + 1, 1.0, True, "1"]),
    ("charge", "region"): ([None, PLACE], [[], "all", {}, list(PLACE), {**PLACE, "more": 1}]),
    ("charge", "slices"): ([None, SLICES], [[], "all", {}, list(SLICES), {**SLICES, "more": 1}]),
    ("charge", "files"): TEXTS,
    ("charge", "terms"): (
        [{}, TERMS],
        [None, [], "a", {"": "b"}, {"a": ""}, {**TERMS, "a": 1}, {"a": None}, {"a": ["b"]}],
    ),
    ("done", "digest"): ([None, "", "ef"], [1, b"ef", ["ef"]]),
}

EDGES = [
    None, [], [0, 1, 2], [0, 1, 2, 3, 4], (0, 1, 2, 3), "0123", [0, 1, 2, None], [0, 1, 2, "3"],
    [False, 1, 2, 3], [0, 1, 2, math.inf], [0, -math.inf, 2, 3], [0, 1, math.nan, 3],
    [2, 1, 2, 3], [3, 1, 2, 3], [0, 3, 2, 3], [0, 4, 2, 3], [1, 0, 1, 3],
]  # fmt: skip

# The same of each field of a region.
REGIONS = {
    "bounds": ([[0, 1, 2, 3], [-1.5, -2, -1, -1.75], [1, -9, 2, 0]], EDGES),
    "crs": (["", "EPSG:4326"], [None, 4326, ["EPSG:4326"]]),
    "columns": TEXTS,
    "lattice": (
        [[1, 1], [2**30, 2**30]],
        [None, [], [1], [1, 1, 1], (1, 1), [0, 1], [1, 0], [1, 2**30 + 1], [1.0, 1], [True, 1]],
    ),
}


HOUR = "2026-01-01T00"
SPANS = [
    None, [], {}, "2026", [HOUR], [[HOUR]], [[HOUR, HOUR, HOUR]], [[HOUR, None]], [[1, 2]],
    [["2026-01-01", "2026-01-02"]], [["2026-01-02T00", "2026-01-01T23"]],
    [["2026-01-01T00", "2026-01-01T22"]], [["2026-01-01T01", "2026-01-01T23"]],
    [["2026-01-01T00", "2026-01-01T23"]] * 2,
    [["2026-01-01T00", "2026-01-01T23"], ["2026-01-02T00", "2026-01-02T23"]],
]  # fmt: skip

# The same of each field of slices.
SLICES_FIELDS = {
    "column": (["", "x" * 1000], [None, 1, ["a"], "x" * 1001]),
    "time_zone": (["UTC"], [None, "", "Seoul (local)", 9]),
    "rules": (["", "ab"], [None, 1]),
    "by": (["month", "hour", "week"], [None, "year", "", 1]),
    "spans": ([[["2026-01-01T00", "2026-01-01T23"]]], SPANS),
}


def cases(position):
    """Kinds and bodies with each value of each field, of a region and of slices as well."""
    for (kind, field), values in VALUES.items():
        for value in values[position]:
            yield kind, {**SOUND[kind], field: value}
    for place, sound, fields in (
        ("region", PLACE, REGIONS),
        ("slices", SLICES, SLICES_FIELDS),
    ):
        for field, values in fields.items():
            for value in values[position]:
                yield "charge", {**SOUND["charge"], place: {**sound, field: value}}


def refused(kind, body, words):
    with pytest.raises(ValueError, match=words):
        validate_entry(kind, body)


def test_hours_need_not_be_whole_days_and_days_exist_and_have_a_clock():
    hours = {**SLICES, "by": "hour", "spans": [[HOUR, "2026-01-01T05"]]}
    validate_entry("charge", {**SOUND["charge"], "slices": hours})
    february = {**hours, "spans": [["2026-02-30T00", "2026-02-30T05"]]}
    refused("charge", {**SOUND["charge"], "slices": february}, "2026-02-30T00")
    days = {**SOUND["register"], "unit": "user-day", "time_zone": "UTC"}
    validate_entry("register", days)
    for wrong in ({**days, "time_zone": None}, {**days, "unit": "user"}):
        refused("register", wrong, WRONG_ZONE)


WRONG_VALUE = r"^a value that this library does not write$"
WRONG_ZONE = r"^days without a time zone, or a time zone without days$"
WRONG_FIELDS = r"^fields that are missing or unknown$"


def test_what_is_written_is_read_and_all_else_is_refused(subtests):
    assert set(VALUES) == {(kind, field) for kind, body in SOUND.items() for field in body}
    assert (set(REGIONS), set(SLICES_FIELDS)) == (set(PLACE), set(SLICES))
    for kind, body in cases(0):
        with subtests.test(kind, body=body):
            validate_entry(kind, body)
    for kind, body in cases(1):
        with subtests.test(kind, body=body):
            refused(kind, body, f"{WRONG_VALUE}|{WRONG_ZONE}")


def test_fields_that_are_missing_or_unknown(subtests):
    for kind, field in VALUES:
        body = {name: value for name, value in SOUND[kind].items() if name != field}
        with subtests.test(kind, field=field):
            refused(kind, body, WRONG_FIELDS)
    for kind, body in SOUND.items():
        with subtests.test(kind):
            refused(kind, {**body, "more": 1}, WRONG_FIELDS)
            for none in (None, [], "", 1):
                refused(kind, none, r"^a body that is not an object$")
    with pytest.raises(KeyError):
        validate_entry("refund", {})
    for field in PLACE:
        region = {name: value for name, value in PLACE.items() if name != field}
        refused("charge", {**SOUND["charge"], "region": region}, WRONG_VALUE)
