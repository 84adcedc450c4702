"""What an entry of a ledger may say: one field at a time is left out, added or wrong."""

import math

import pytest

from psd.ledger.entry_schema import validate_entry

REGION = {"bounds": [0, 1.5, 2, 3], "crs": "EPSG:4326", "columns": ["x=lon"], "lattice": [8, 2**30]}

SLICES = {
    "column": "seen", "time_zone": "Asia/Seoul", "rules": "ab", "by": "day",
    "spans": [["2026-01-01T00", "2026-01-31T23"], ["2026-02-02T00", "2026-02-02T23"]],
}  # fmt: skip

READING = {"x": "lon", "y": "lat"}

# One sound body of each kind.
SOUND = {
    "create": {"id": "me"},
    "register": {
        "name": "visits",
        "budget": 10,
        "unit": "record",
        "time_zone": None,
        "bound": None,
        "delta": "1e-6",
        "caps": {"ann": 3},
        "reading": READING,
        "inputs": ["ab"],
    },
    "inputs": {"name": "visits", "inputs": ["ab", "cd"]},
    "columns": {"name": "visits", "reading": READING},
    "raise": {"name": "visits", "budget": 10},
    "charge": {
        "id": "c",
        "dataset": "visits",
        "analyst": None,
        "what": "build",
        "epsilon": 7,
        "rho": 5,
        "delta": "2.5e-9",
        "bound": 1,
        "region": REGION,
        "slices": SLICES,
        "files": ["ab"],
    },
    "done": {"id": "c", "digest": None},
}

MOST = 10**12  # epsilon 1,000
NAMES = (["a", "x" * 100], ["", " a", "a\n", "x" * 101, None, 1, ["a"], {"a": 1}])
PRICES = ([1, MOST], [0, -1, MOST + 1, 1.0, True, "1", None, [1]])
BOUNDS = ([None, 1, 10**9], [0, 10**9 + 1, 1.0, True, "1", [1]])
TEXTS = ([[], ["", "a"]], [None, "a", ["a", 1], [None], ("a",), {"a": 1}])
READINGS = ([READING, {**READING, "k": "v"}], [None, {}, "x", {"x": "lon"}, {**READING, "k": 1}])

DELTAS = (
    [None, "1e-6", "9.9e-4", "1e-300"],
    ["", "1e-06", "0.000001", "1e-3", "0e0", "-1e-6", "nan", 1e-6, 1, ["1e-6"]],
)
INPUTS = ([[], ["a", "b"]], [None, "a", [""], ["a", 1], {"a": 1}])

# Fields that entries of older ledgers do not have.
OPTIONAL = [
    ("charge", "files"),
    ("charge", "slices"),
    ("charge", "rho"),
    ("charge", "delta"),
    ("register", "delta"),
    ("register", "reading"),
    ("register", "inputs"),
]


def or_none(sound, wrong):
    return [*sound, None], [value for value in wrong if value is not None]


# What each field may be, and what it may not be.
VALUES = {
    ("create", "id"): NAMES,
    ("register", "name"): NAMES,
    ("register", "budget"): PRICES,
    ("register", "unit"): (["record", "user"], ["rows", "user-slice", "", None, 1, ["record"]]),
    ("register", "time_zone"): ([None], ["UTC", "", 1, ["UTC"]]),
    ("register", "bound"): BOUNDS,
    ("register", "delta"): DELTAS,
    ("register", "caps"): (
        [{}, {"ann": 1, "bob": MOST}],
        [None, [], ["ann"], "ann", {"ann": 0}, {"ann": 1, "bob": 1.5}, {"": 1}, {"ann": None}],
    ),
    ("register", "reading"): READINGS,
    ("register", "inputs"): INPUTS,
    ("inputs", "name"): NAMES,
    ("inputs", "inputs"): INPUTS,
    ("columns", "name"): NAMES,
    ("columns", "reading"): READINGS,
    ("raise", "name"): NAMES,
    ("raise", "budget"): PRICES,
    ("charge", "id"): NAMES,
    ("charge", "dataset"): NAMES,
    ("charge", "analyst"): or_none(*NAMES),
    ("charge", "what"): NAMES,
    ("charge", "epsilon"): PRICES,
    ("charge", "rho"): ([None, 1, 10**15], [0, -1, 10**15 + 1, 1.0, True, "1"]),
    ("charge", "delta"): DELTAS,
    ("charge", "bound"): BOUNDS,
    ("charge", "region"): ([None, REGION], [[], "all", {}, list(REGION), {**REGION, "more": 1}]),
    ("charge", "slices"): ([None, SLICES], [[], "all", {}, list(SLICES), {**SLICES, "more": 1}]),
    ("charge", "files"): TEXTS,
    ("done", "id"): NAMES,
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


FIRST = "2026-01-01T00"
SPANS = [
    None, [], {}, "2026", [FIRST], [[FIRST]], [[FIRST, FIRST, FIRST]], [[FIRST, None]], [[1, 2]],
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
    own = [
        (kind, {**SOUND[kind], field: value})
        for (kind, field), values in VALUES.items()
        for value in values[position]
    ]
    regions = [
        ("charge", {**SOUND["charge"], "region": {**REGION, field: value}})
        for field, values in REGIONS.items()
        for value in values[position]
    ]
    slices = [
        ("charge", {**SOUND["charge"], "slices": {**SLICES, field: value}})
        for field, values in SLICES_FIELDS.items()
        for value in values[position]
    ]
    return own + regions + slices


def test_every_field_is_tried():
    assert set(VALUES) == {(kind, field) for kind, body in SOUND.items() for field in body}
    assert set(REGIONS) == set(REGION)
    assert set(SLICES_FIELDS) == set(SLICES)


def test_hours_need_not_be_whole_days_and_days_exist():
    hours = {**SLICES, "by": "hour", "spans": [[FIRST, "2026-01-01T05"]]}
    validate_entry("charge", {**SOUND["charge"], "slices": hours})
    february = {**hours, "spans": [["2026-02-30T00", "2026-02-30T05"]]}
    with pytest.raises(ValueError, match="2026-02-30T00"):
        validate_entry("charge", {**SOUND["charge"], "slices": february})


@pytest.mark.parametrize(("kind", "body"), cases(0))
def test_what_is_written_is_read(kind, body):
    validate_entry(kind, body)


@pytest.mark.parametrize(("kind", "body"), cases(1))
def test_what_is_not_written_is_refused(kind, body):
    with pytest.raises(
        ValueError, match=r"^a value that this library does not write$|^days without a time zone"
    ):
        validate_entry(kind, body)


@pytest.mark.parametrize(("kind", "field"), [key for key in VALUES if key not in OPTIONAL])
def test_a_field_that_is_missing(kind, field):
    body = {name: value for name, value in SOUND[kind].items() if name != field}
    with pytest.raises(ValueError, match=r"^fields that are missing or unknown$"):
        validate_entry(kind, body)


@pytest.mark.parametrize(("kind", "field"), OPTIONAL)
def test_entries_of_older_ledgers(kind, field):
    validate_entry(kind, {k: v for k, v in SOUND[kind].items() if k != field})


@pytest.mark.parametrize("kind", SOUND)
def test_a_field_that_no_entry_has(kind):
    with pytest.raises(ValueError, match=r"^fields that are missing or unknown$"):
        validate_entry(kind, {**SOUND[kind], "more": 1})


@pytest.mark.parametrize("kind", SOUND)
@pytest.mark.parametrize("body", [None, [], "", 1])
def test_a_body_that_is_none(kind, body):
    with pytest.raises(ValueError, match=r"^a body that is not an object$"):
        validate_entry(kind, body)


def test_an_entry_that_no_ledger_has():
    with pytest.raises(KeyError):
        validate_entry("refund", {})


@pytest.mark.parametrize("field", REGION)
def test_a_region_without_a_field(field):
    region = {name: value for name, value in REGION.items() if name != field}
    with pytest.raises(ValueError, match=r"^a value that this library does not write$"):
        validate_entry("charge", {**SOUND["charge"], "region": region})


def test_days_have_a_clock():
    days = {**SOUND["register"], "unit": "user-day", "time_zone": "UTC"}
    validate_entry("register", days)
    for wrong in ({**days, "time_zone": None}, {**days, "unit": "user"}):
        with pytest.raises(
            ValueError, match=r"^days without a time zone, or a time zone without days$"
        ):
            validate_entry("register", wrong)
