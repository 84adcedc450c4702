"""Counts of odd rows, cell by cell, against a count in plain Python.

The cell of a coordinate is looked up by comparing it with the published edges, one by one. The
records come by files, tables and saved tallies, with and without users and slices.
"""

import bisect
from collections import Counter, defaultdict

import numpy as np
import pandas as pd
import pytest

import psd
import psd.ingest.tally_builder
from oracle.test_marks_naive import KEY, naive_mark
from psd.curator.curator import Curator
from psd.errors import InputDataError
from psd.ingest.partial_tally import merge
from psd.ingest.quadrant_codes import CodeRanks, QuadrantCodes, QuadrantOrder
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Tally
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.unit import PrivacyUnit
from psd.publish.tally_parts import TallyRequest, tally_rows
from psd.testing import SeededSampler

BOUNDS = (-1.0, 0.0, 2.0, 1.5)
DOMAINS = {
    "default": psd.Domain(bounds=BOUNDS),
    "uneven": psd.Domain(bounds=BOUNDS, lattice=(90_001, 7_000)),
    "wide": psd.Domain(bounds=BOUNDS, lattice=(2**13, 2**20)),
    "rounded": psd.Domain(bounds=BOUNDS, coordinate_resolution="0.0001"),
    "array": psd.Domain(bounds=BOUNDS, lattice=(900, 70)),
}
SLICES = psd.TimeSlices.parse("day", "2024-01-01,2024-01-02", "UTC")


def odd_values(domain, axis):
    """Coordinates at lattice lines and bounds, beside them, and of values that are no cell."""
    cells = domain.lattice[axis]
    lines = np.array([0, 1, 2, cells // 3, cells // 2, cells - 1, cells])
    edges = domain.edges(axis, lines)
    beside = (np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf))
    centres = domain.centres(axis, lines[:-1])
    others = [0.0, -0.0, 5e-324, -5e-324, 0.1, 1 / 3, 1e300, -1e300, 180.0, np.nan]
    return np.concatenate([edges, *beside, centres, others])


def rows(domain, seed=0, size=900):
    """Odd points, many of them alike, with users and times."""
    random = np.random.default_rng(seed)
    x, y = (random.choice(odd_values(domain, axis), size) for axis in (0, 1))
    x[: size // 4], y[: size // 4] = x[0] if np.isfinite(x[0]) else 0.0, 0.25  # one cell
    users = random.choice(["7", "007", "é", "서울", "a b", "9" * 40, str(2**64), "x" * 300], size)
    days = np.array(["2023-12-31T23:59:59", "2024-01-01", "2024-01-02T12"], "datetime64[us]")
    return pd.DataFrame({"lon": x, "lat": y, "user": users, "time": random.choice(days, size)})


def naive_cell(domain, point):
    """Column and row of a point, or None if it is outside."""
    cell = []
    for axis, value in enumerate(point):
        low, high = domain.bounds[axis], domain.bounds[axis + 2]
        if not low <= value <= high:
            return None
        line = bisect.bisect_right(_Edges(domain, axis), value) - 1
        cell.append(min(line, domain.lattice[axis] - 1))
    return tuple(cell)


class _Edges:
    """Edges of an axis, as a sequence."""

    def __init__(self, domain, axis):
        self.domain, self.axis = domain, axis

    def __len__(self):
        return self.domain.lattice[self.axis] + 1

    def __getitem__(self, line):
        return float(self.domain.edges(self.axis, np.array([line]))[0])


def naive_counts(table, domain, unit, slices=None):
    """Counts by (slice, row, column)."""
    groups, seen, known = defaultdict(list), Counter(), {}
    for number, row in enumerate(table.itertuples()):
        point = (row.lon, row.lat)
        if point not in known:
            known[point] = naive_cell(domain, point)
        cell = known[point]
        moment = np.datetime64(row.time, "us")
        slice_ = 0 if slices is None else int(slices.index(np.array([moment]))[0])
        if cell is None or slice_ < 0:
            continue
        time = int(moment.astype(np.int64)) if slices is not None else 0
        record = (row.user, *cell, time)
        mark = naive_mark(*record, seen[record])
        order = (mark, *cell, time, seen[record])
        seen[record] += 1
        group = row.user if unit.has_user else number
        groups[group].append((order, (slice_, cell[1], cell[0])))
    counts = Counter()
    for records in groups.values():
        for _, cell in naive_choice(sorted(records), unit):
            counts[cell] += unit.weight // len(records) if unit.weight else 1
    return {cell: count for cell, count in counts.items() if count}


def naive_choice(records, unit):
    """The first k records of a user, of the first M in each slice."""
    if unit.weight:
        return records
    of_slice, first = Counter(), []
    for record in records:
        of_slice[record[1][0]] += 1
        if unit.max_per_slice is None or of_slice[record[1][0]] <= unit.max_per_slice:
            first.append(record)
    return first[: unit.max_contributions]


def counts_of(tally):
    """Counts of a tally by (slice, row, column), which are in this order."""
    slices = np.zeros_like(tally.counts) if tally.slice is None else tally.slice
    cells = [*zip(slices.tolist(), tally.rows.tolist(), tally.columns.tolist(), strict=True)]
    assert cells == sorted(cells)
    return dict(zip(cells, tally.counts.tolist(), strict=True))


UNITS = [
    PrivacyUnit(),
    PrivacyUnit(kind="user", max_contributions=1),
    PrivacyUnit(kind="user", max_contributions=60),
    PrivacyUnit(kind="user", weight=150),
]


@pytest.mark.parametrize("slices", [None, SLICES], ids=["once", "slices"])
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize(
    "name", ["array", *(pytest.param(n, marks=pytest.mark.deep) for n in DOMAINS if n != "array")]
)
def test_each_cell_has_its_records(name, unit, slices, tmp_path):
    domain = DOMAINS[name]
    table = rows(domain)
    expected = naive_counts(table, domain, unit, slices)
    assert len(expected) > 2
    path = tmp_path / "rows.csv"
    table.to_csv(path, index=False, na_rep="")
    columns = Columns(user="user", time="time" if slices else None)
    table.to_parquet(tmp_path / "rows.parquet")
    for data in (path, table, tmp_path / "rows.parquet"):
        tally = tally_batches(
            read(data, columns, domain), domain, unit=unit, key=KEY, slices=slices
        )
        assert counts_of(tally) == expected


@pytest.mark.parametrize("limits", [(1, 1), (9, 2), (30, 30), (30, 17)], ids=str)
def test_every_engine_keeps_the_same_records_of_each_slice(limits, tmp_path):
    """Files, tables, streams, carried users, and parts of them that are merged."""
    domain, (k, most) = DOMAINS["array"], limits
    unit = PrivacyUnit(kind="user", max_contributions=k, max_per_slice=most)
    table = rows(domain, seed=5)
    expected = naive_counts(table, domain, unit, SLICES)
    columns = Columns(user="user", time="time")
    table.to_csv(tmp_path / "rows.csv", index=False, na_rep="")
    table.to_parquet(tmp_path / "rows.parquet")
    import duckdb

    relation = duckdb.connect().sql(f"SELECT * FROM '{tmp_path / 'rows.parquet'}'")
    for data in (tmp_path / "rows.csv", tmp_path / "rows.parquet", table, relation):
        batches = read(data, columns, domain)
        tally = tally_batches(batches, domain, unit=unit, key=KEY, slices=SLICES, memory=10**6)
        assert counts_of(tally) == expected
    request = TallyRequest(
        domain=domain, unit=unit, columns=columns, slices=SLICES, key=KEY, carry=True
    )
    # No two parts have equal records of a user: parts are users, by the length of the id, and days.
    number = table["user"].str.len() % 2 * 2 + (table["time"] < pd.Timestamp("2024-01-02"))
    parts = [tally_rows(table[number == n], request, part=str(n)) for n in range(4)]
    merged = merge([merge(parts[:3]), parts[3]])
    assert counts_of(merged.tally) == expected
    assert merged.unit == unit


@pytest.mark.parametrize("memory", [None, 10**6])
@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_codes_may_be_counted_while_they_are_collected(unit, memory, monkeypatch):
    monkeypatch.setattr(psd.ingest.quadrant_codes, "_PENDING", 70)
    monkeypatch.setattr(psd.ingest.quadrant_codes, "_FIRST_BUFFER", 16)
    domain = DOMAINS["default"]
    table = rows(domain, 3)
    batches = (
        batch
        for start in range(0, len(table), 45)
        for batch in read(table[start : start + 45], Columns(user="user"), domain)
    )
    tally = tally_batches(batches, domain, unit=unit, key=KEY, memory=memory)
    assert counts_of(tally) == naive_counts(table, domain, unit)


@pytest.mark.deep
def test_infinite_coordinates_are_refused_wherever_the_others_lie(tmp_path):
    for text in ("inf", "-inf", "1e999", "-1e999", "1_0"):
        for first in ("0,0", "500,500", ","):
            path = tmp_path / "rows.csv"
            path.write_text(f"lon,lat\n{first}\n{text},1\n")
            with pytest.raises(InputDataError, match="plain decimal numbers"):
                list(read(path, Columns(), DOMAINS["default"]))


@pytest.mark.deep
@pytest.mark.parametrize("mark", ["", "NA", "nan", "null", " none ", "-"])
def test_marks_of_missing_coordinates_may_come_late(mark, tmp_path):
    """The text of a field is read in a second query, unless a field near the start is empty."""
    path, number = tmp_path / "rows.csv", 200_000
    lines = ["lon,lat", *["0.5,0.5"] * number, f"{mark},0.5", f"0.5,{mark}", "0.25,0.5"]
    path.write_text("\n".join(lines) + "\n")
    domain = DOMAINS["default"]
    tally = tally_batches(read(path, Columns(), domain), domain)
    assert sorted(tally.counts.tolist()) == [1, number]
    assert tally.report["without coordinates"] == 2
    path.write_text("\n".join([*lines, "0.25,north"]) + "\n")
    with pytest.raises(InputDataError, match=r"column 'lat' .* plain decimal numbers"):
        tally_batches(read(path, Columns(), domain), domain)


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("method", ["auto", "privtree", "kd-hybrid", "htf", "hilbert-rtree"])
def test_a_release_does_not_depend_on_the_form_of_its_counts(name, method, monkeypatch):
    """The same noise gives the same bytes for records, distinct codes, and cells in any order.

    Of records in any order, those of small cells alone are sorted.
    """
    monkeypatch.setattr("psd.ingest.quadrant_codes._FEW", 0)
    monkeypatch.setattr("psd.ingest.quadrant_codes._LARGEST_PART", 1)
    domain = DOMAINS[name]
    tally = tally_batches(read(rows(domain, 5), Columns(), domain), domain)
    order = QuadrantOrder(domain.lattice)
    records = np.repeat(order.codes(tally.columns, tally.rows), tally.counts)
    codes = QuadrantCodes.of_ascending(order, np.sort(records), None)
    shuffle = np.random.default_rng(0).permutation(len(tally.counts))
    shuffled = np.random.default_rng(1).permutation(records)
    entries = CodeRanks(shuffled, order.levels, is_sorted=False)
    in_any_order = QuadrantCodes(order=order, entries=entries, counts=None)
    forms = [
        tally,
        Tally.of_codes(in_any_order, contributions=1, report={}),
        Tally.of_codes(codes, contributions=1, report={}),
        Tally.of_codes(codes.distinct(), contributions=1, report={}),
        Tally(columns=tally.columns, rows=tally.rows, counts=tally.counts),
        Tally(
            columns=tally.columns[shuffle], rows=tally.rows[shuffle], counts=tally.counts[shuffle]
        ),
    ]
    trees = []
    for form in forms:
        curator = Curator(form, domain, budget=Budget(10**9), sampler=SeededSampler(11))
        trees.append(psd.decompositions.method(method).build(curator))
    for tree in trees[1:]:
        for field in ("boxes", "parent", "level", "count", "loss"):
            values = getattr(tree, field)
            assert values.tobytes() == getattr(trees[0], field).tobytes()
