"""Rows on their way to a tally, against a twin in plain Python."""

import os
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import psd
from oracle.test_marks_naive import KEY, naive_mark
from psd.errors import DomainError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import TallyBuilder, tally_batches
from psd.privacy.unit import PrivacyUnit

COLUMNS, ROWS, STEP = 7, 4, (2, 3)
NAMES = ["7", "007", "Ann", "é", "서울", "a b"]
DOMAIN = psd.Domain(bounds=(0, 0, COLUMNS, ROWS), crs="EPSG:3857", lattice=(COLUMNS, ROWS))
DAYS = psd.TimeSlices.parse("day", "1969-12-30,1970-01-01,1970-01-02", "UTC")
MONTHS = psd.TimeSlices.parse("month", "1969-12,1970-01", "UTC")


class Below:
    """What lies under a slope."""

    def contains(self, x, y):
        return x + 2 * y < 11


def table(seed, size=300):
    """Rows (user, x, y, moment), some outside, some without coordinates, many alike."""
    random = np.random.default_rng(seed)
    x = random.integers(-1, COLUMNS + 1, size) + 0.5
    y = random.integers(-1, ROWS + 1, size) + 0.25
    x[::17], y[::13] = np.nan, np.nan
    hours = np.datetime64("1969-12-29T23", "us") + random.choice(
        [0, 1, 5, 47, 49, 73, 74, 97], size
    ) * (np.timedelta64(1, "h"))
    return random.integers(0, len(NAMES), size), x, y, hours


def parts(rows, timed):
    """Batches of different sizes; the last one lies elsewhere."""
    users, x, y, time = rows
    ids = pa.array([NAMES[user] for user in users])
    for low, high in ((0, 0), (0, 120), (120, len(x)), (1, 3)):
        here = slice(low, high)
        far = (low, high) == (1, 3)
        yield Batch(
            x=x[here] + 100 * far, y=y[here], user=ids[here], time=time[here] if timed else None
        )


def group_of(unit, user, moment, slice_):
    """Whose rows are bounded together."""
    return user, {"user-day": moment // 86_400_000_000, "user-slice": slice_}.get(unit.kind)


def naive(rows, unit, *, area, slices):
    """Counts by (slice, row, column), and how many rows are inside."""
    groups, seen = defaultdict(list), Counter()
    for number, (user, x, y, time) in enumerate(zip(*rows, strict=True)):
        slice_ = None if slices is None else int(slices.index(np.array([time]))[0])
        moment = time.astype(np.int64).item() if slices or unit.kind == "user-day" else 0
        if not (0 <= x < COLUMNS and 0 <= y < ROWS) or slice_ == -1:
            continue
        if area is not None and x + 2 * y >= 11:
            continue
        column, row = int(x), int(y)
        cell = (slice_, row // STEP[1] * STEP[1], column // STEP[0] * STEP[0])
        occurrence = seen[user, column, row, moment]
        seen[user, column, row, moment] += 1
        mark = naive_mark(NAMES[user], column, row, moment, occurrence)
        order = (mark, column, row, moment, occurrence)
        whose = number if unit.kind == "record" else group_of(unit, user, moment, slice_)
        groups[whose].append((order, cell))
    counts = Counter()
    for own in groups.values():
        for _, cell in sorted(own)[: len(own) if unit.weight else unit.max_contributions]:
            counts[cell] += unit.weight // len(own) if unit.weight else 1
    return counts, sum(map(len, groups.values()))


UNITS = [
    PrivacyUnit(),
    PrivacyUnit(kind="user", max_contributions=3),
    PrivacyUnit(kind="user", weight=60),
    PrivacyUnit(kind="user-day", max_contributions=2, time_zone="UTC"),
    PrivacyUnit(kind="user-slice", max_contributions=2),
]


@pytest.mark.parametrize("memory", [None, 30_000])
@pytest.mark.parametrize("area", [None, Below()], ids=["whole", "area"])
@pytest.mark.parametrize("slices", [None, DAYS, MONTHS], ids=["once", "days", "months"])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_what_is_counted(unit, slices, area, memory):
    rows = table(len(str(unit)))
    timed = slices is not None or unit.kind == "user-day"
    found = tally_batches(
        parts(rows, timed), DOMAIN, unit=unit, key=KEY, step=STEP, area=area, slices=slices,
        memory=memory,
    )  # fmt: skip
    counts, inside = naive(rows, unit, area=area, slices=slices)
    counts = {cell: count for cell, count in counts.items() if count}
    number = [None] * len(found.counts) if found.slice is None else found.slice.tolist()
    cells = zip(number, found.rows.tolist(), found.columns.tolist(), strict=True)
    assert dict(zip(cells, found.counts.tolist(), strict=True)) == counts
    assert (found.slice is None) == (slices is None)
    assert {array.dtype for array in (found.columns, found.rows)} == {np.dtype(np.int32)}
    missing = int((np.isnan(rows[1]) | np.isnan(rows[2])).sum())
    strays = parts(rows, timed=True)
    *_, last = strays
    lost = int((np.isnan(last.x) | np.isnan(last.y)).sum())
    expected = {"read": 302, "without coordinates": missing + lost}
    expected["outside"] = 302 - missing - lost - inside
    expected["kept"] = inside if unit.weight else sum(counts.values())
    if unit.has_user and not unit.weight:
        expected["over the limit"] = inside - expected["kept"]
    assert found.report == expected
    assert found.contributions == unit.contributions


@pytest.mark.parametrize("memory", [None, 30_000])
@pytest.mark.parametrize("unit", [UNITS[1], UNITS[3]], ids=str)
def test_rows_of_units_can_be_asked_for_before_they_are_counted(unit, memory):
    rows = table(5)
    builder = TallyBuilder(DOMAIN, unit=unit, step=STEP, memory=memory)
    for batch in parts(rows, timed=unit.kind == "user-day"):
        builder.add_batch(batch)
    counts, inside = naive(rows, unit, area=None, slices=None)
    assert builder.rows_per_unit().sum() == inside
    assert builder.rows_per_unit().dtype == np.int64
    tally = builder.build(KEY)
    cells = zip(tally.rows.tolist(), tally.columns.tolist(), strict=True)
    assert dict(zip(cells, tally.counts.tolist(), strict=True)) == {
        cell[1:]: count for cell, count in counts.items()
    }


def test_times_of_any_precision_are_the_same_times():
    _, x, y, time = table(7)
    rows = Batch(x=x, y=y, user=pa.array(["a"] * len(x)), time=time)
    coarse = replace(rows, time=time.astype("datetime64[s]"))
    found, again = (
        tally_batches([made], DOMAIN, unit=UNITS[3], key=KEY) for made in (rows, coarse)
    )
    assert found.counts.tolist() == again.counts.tolist()
    assert found.columns.tolist() == again.columns.tolist()


def test_the_finest_lattice_is_exact():
    side = 2**30
    fine = psd.Domain(bounds=(0, 0, side, side), crs="EPSG:3857", lattice=(side, side))
    x, y = np.array([side - 1, side - 2, 12_345_677.0]), np.array([side - 1.0, side - 1, 7])
    for unit in (PrivacyUnit(), PrivacyUnit(kind="user", max_contributions=3)):
        found = tally_batches([Batch(x=x, y=y, user=pa.array(["a"] * 3))], fine, unit=unit)
        assert found.columns.tolist() == [12_345_677, side - 2, side - 1]
        assert found.rows.tolist() == [7, side - 1, side - 1]


def test_cells_and_slices_have_62_bits():
    side = 2**30
    fine = psd.Domain(bounds=(0, 0, side, side), crs="EPSG:3857", lattice=(side, side))
    slices = psd.TimeSlices.parse("day", "2024-01-01..2024-01-05")
    TallyBuilder(
        fine, unit=PrivacyUnit(), slices=psd.TimeSlices.parse("day", "2024-01-01..2024-01-04")
    )
    with pytest.raises(DomainError, match="too fine for 5 slices"):
        TallyBuilder(fine, unit=PrivacyUnit(), slices=slices)
    TallyBuilder(fine, unit=PrivacyUnit(), slices=slices, step=(2, 1))


@pytest.mark.parametrize("unit", UNITS[1:2] + UNITS[3:], ids=str)
def test_no_rows_have_no_sizes(unit):
    found = TallyBuilder(DOMAIN, unit=unit, slices=DAYS).rows_per_unit()
    assert (found.tolist(), found.dtype) == ([], np.int64)


def test_a_step_has_two_widths():
    with pytest.raises(ValueError, match="zip"):
        TallyBuilder(DOMAIN, unit=PrivacyUnit(), step=(1, 1, 1))


GIGA = 2**30


@pytest.mark.parametrize(
    ("processors", "memory", "workers"),
    [(4, None, 4), (None, None, 1), (4, 100, 1), (4, GIGA + 100, 2), (4, 9 * GIGA, 4)],
)
def test_memory_bounds_what_is_worked_on_at_once(processors, memory, workers, monkeypatch):
    """Each worker takes the rows of one part; rows of users have a third of the memory."""
    asked, together, shelves, counters = [], [], [], []

    class Pool(ThreadPoolExecutor):
        def __init__(self, number):
            asked.append(number)
            super().__init__(number)

        def map(self, function, few):
            together.append(len(few))
            return super().map(function, few)

    class UserPartitions(psd.ingest.user_partitions.UserPartitions):
        def __init__(self, memory):
            shelves.append(memory)
            super().__init__(3_000)  # small parts

    def counter(cells, memory):
        counters.append((cells, memory))
        return psd.ingest.quadrant_codes.cell_counter(cells)

    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    monkeypatch.setattr("psd.ingest.tally_builder.ThreadPoolExecutor", Pool)
    monkeypatch.setattr("psd.ingest.tally_builder.UserPartitions", UserPartitions)
    monkeypatch.setattr("psd.ingest.tally_builder.cell_counter", counter)
    tally_batches(
        parts(table(1), timed=True), DOMAIN, unit=UNITS[1], step=STEP, slices=DAYS, memory=memory
    )
    assert asked == [workers]
    assert 0 < max(together) <= workers
    assert sum(together) > 2
    assert shelves == [None if memory is None else memory // 3]
    assert counters == [(3 * 4 * 2, memory)]


def test_keys_that_are_not_given_have_128_bits(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "psd.ingest.tally_builder.secrets.token_bytes", lambda n: asked.append(n) or bytes(n)
    )
    tally_batches(parts(table(1), timed=False), DOMAIN, unit=UNITS[1])
    assert [n for n in asked if n != 8] == [16]  # 8 bytes name a folder
