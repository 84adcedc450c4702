"""The tally: counts per occupied cell, and what it refuses."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import psd
from psd.errors import DomainError, InputDataError, ResourceError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import TallyBuilder, _split_codes, tally_batches
from psd.privacy.unit import PrivacyUnit

PLANE = psd.Domain(bounds=(0, 0, 4, 2), crs="EPSG:3857", lattice=(4, 2))
DAYS = psd.TimeSlices.parse("day", "2024-01-01..2024-01-03")
EARTH = psd.Domain(bounds=(-10, -10, 10, 10))


FOUR = PrivacyUnit(kind="user", max_contributions=4)


def batch(points, users=None):
    x, y = np.array(points, float).reshape(-1, 2).T
    return Batch(x=x, y=y, user=None if users is None else pa.array(users, pa.string()))


def cells(counted):
    return np.stack([counted.columns, counted.rows, counted.counts], axis=1).tolist()


def test_counts_stand_in_order_of_rows_then_columns():
    counted = tally_batches(
        [batch([(3.5, 1.5), (0, 0), (3.5, 0.5)]), batch([(0.9, 0.9), (4, 2)])], PLANE
    )
    assert cells(counted) == [[0, 0, 2], [3, 0, 1], [3, 1, 2]]
    assert (counted.columns.dtype, counted.counts.dtype) == (np.int32, np.int64)
    assert counted.contributions == 1


@pytest.mark.parametrize("batches", [[], [batch([])], [batch([(np.nan, 1), (1, np.nan)])]])
def test_no_rows(batches):
    counted = tally_batches(batches, PLANE)
    missing = counted.report["read"]
    assert cells(counted) == []
    report = {"read": missing, "without coordinates": missing, "outside": 0, "kept": 0}
    assert counted.report == report


def test_a_limit_refuses_cells_unless_it_is_not_to():
    points = np.random.default_rng(4).uniform(-10, 10, (3_000, 2))

    def counted(**limits):
        builder = TallyBuilder(EARTH, unit=PrivacyUnit(), **limits)
        builder.add_batch(batch(points))
        return builder.build()

    with pytest.raises(ResourceError, match="memory limit"):
        counted(memory=60_000)
    assert counted(memory=60_000, limits_cells=False).counts.sum() == len(points)


def test_no_rows_of_users():
    assert cells(tally_batches([], PLANE, unit=PrivacyUnit(kind="user", max_contributions=3))) == []
    assert (
        cells(
            tally_batches(
                [batch([], [])], PLANE, unit=PrivacyUnit(kind="user", max_contributions=3)
            )
        )
        == []
    )


@pytest.mark.parametrize(("slices", "number"), [(None, 1), (DAYS, 3)])
def test_it_counts_as_many_cells_as_there_are(slices, number, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "psd.ingest.tally_builder.cell_counter", lambda cells, _: asked.append(cells)
    )
    TallyBuilder(PLANE, unit=PrivacyUnit(), slices=slices)
    assert asked == [number * 8]


def test_report_adds_up():
    points = [(1, 1), (1, 1), (1, 1), (9, 9), (np.nan, 1), (np.nan, 9)]
    counted = tally_batches(
        [batch(points, ["a"] * 6)], PLANE, unit=PrivacyUnit(kind="user", max_contributions=2)
    )
    left = {"without coordinates": 2, "outside": 1, "over the limit": 1}
    assert counted.report == {"read": 6, **left, "kept": 2}
    assert counted.contributions == 2


def test_it_shows_nothing():
    counted = tally_batches([batch([(1, 1)])], PLANE)
    assert f"{counted!r} {counted}" == "<Tally: private> <Tally: private>"
    assert f"{batch([(1, 1)])!r}" == "<Batch: private>"


@pytest.mark.parametrize(
    "point",
    [(0, 90.1), (0, -91), (180.1, 0), (-181, 0), (1e6, 2e6), (200, 95), (np.inf, np.inf)],
)
def test_values_that_are_no_degrees_are_outside(point):
    metres = psd.Domain(bounds=(-10, -10, 10, 10), crs="EPSG:3857")
    for domain in (EARTH, metres):
        counted = tally_batches([batch([(1, 1)]), batch([point])], domain)
        left = {"read": 2, "without coordinates": 0, "outside": 1}
        assert counted.report == {**left, "kept": 1}


def test_the_ends_of_the_earth_are_degrees():
    ends = [batch([(180, 90)]), batch([]), batch([(-180, -90)]), batch([(1, 1)])]
    assert tally_batches(ends, EARTH).report["kept"] == 1


@pytest.mark.parametrize("unit", [PrivacyUnit(), FOUR, PrivacyUnit(kind="user", weight=1000)])
def test_rows_but_none_inside_are_an_empty_tally(unit):
    counted = tally_batches([batch([(11.25, 0), (0, 22.5)], ["a", "b"])], EARTH, unit=unit)
    assert cells(counted) == []
    assert counted.report["outside"] == counted.report["read"] == 2
    assert counted.report["kept"] == 0


@pytest.mark.parametrize("point", [(1, 1), (99, 99), (np.nan, 1)], ids=["in", "out", "nowhere"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_row_without_id_is_refused_wherever_it_lies(place, point):
    users, points = ["a", "b", "c"], [(1, 1)] * 3
    users[place], points[place] = None, point
    with pytest.raises(InputDataError, match="have no user id"):
        tally_batches([batch(points, users)], PLANE, unit=FOUR)


@pytest.mark.parametrize("point", [(1, 1), (99, 99), (np.nan, 1)], ids=["in", "out", "nowhere"])
@pytest.mark.parametrize("slices", [None, DAYS])
def test_a_row_without_time_is_refused_wherever_it_lies(slices, point):
    times = np.array(["2024-01-01", "NaT"], "datetime64[us]")
    x, y = np.array([(1, 1), point], float).T
    unit = PrivacyUnit() if slices else PrivacyUnit(kind="user-day", time_zone="UTC")
    rows = Batch(x=x, y=y, user=pa.array(["a", "b"]), time=times)
    with pytest.raises(InputDataError, match="have no time"):
        tally_batches([rows], PLANE, unit=unit, slices=slices)


def test_whether_a_record_was_read_does_not_depend_on_where_it_lies():
    for points, is_read in (([], False), ([(1, 1)], True), ([(99, 99)], True)):
        builder = TallyBuilder(PLANE, unit=PrivacyUnit())
        builder.add_batch(batch(points))
        assert builder.has_read == is_read
        assert builder.report["read"] == len(points)


def rows_kept(users):
    """Number of rows that are kept where each user keeps one."""
    made = batch([(1, 1)] * len(users), users)
    return tally_batches(
        [made], PLANE, unit=PrivacyUnit(kind="user", max_contributions=1)
    ).counts.sum()


def test_spellings_that_nobody_tells_apart_are_one_user():
    assert rows_kept(["Zoe\u0301", "Zo\u00e9", " Zo\u00e9", "Zo\u00e9\ufeff"]) == 1


def test_ids_that_look_like_numbers_are_text():
    assert rows_kept(["007", "7", "7.0", "9007199254740993", "9007199254740992"]) == 5


@pytest.mark.parametrize("time", [None, ["2024-01-01", "NaT"]], ids=["no column", "no value"])
def test_rows_without_a_time_are_refused_where_days_are_protected(time):
    made = batch([(1, 1), (1, 1)], ["a", "a"])
    made = replace(made, time=None if time is None else np.array(time, "datetime64[us]"))
    unit = PrivacyUnit(kind="user-day", max_contributions=1, time_zone="UTC")
    with pytest.raises(InputDataError, match="have no time"):
        tally_batches([made], PLANE, unit=unit)


def test_each_day_is_bounded_by_itself():
    days = np.array(["2024-02-28T23:59", "2024-02-29T00:00", "2024-02-29T23:59"], "datetime64[us]")
    made = replace(batch([(1, 1)] * 3, ["a"] * 3), time=days)
    unit = PrivacyUnit(kind="user-day", max_contributions=1, time_zone="UTC")
    assert tally_batches([made], PLANE, unit=unit).counts.tolist() == [2]


def test_the_key_is_fresh_each_time():
    rows = batch([(column + 0.5, row + 0.5) for column in range(4) for row in range(2)], ["u"] * 8)
    choices = {str(cells(tally_batches([rows], PLANE, unit=FOUR))) for _ in range(30)}
    assert len(choices) > 1  # 70 choices: all the same with a chance below 1e-50


@pytest.mark.parametrize("lattice", [(4, 2), (2**14, 2**14)])
def test_a_share_of_nothing_occupies_no_cell(lattice):
    """A user with more rows than there are shares leaves no trace, in either way of counting."""
    users = ["many"] * 5 + ["few"] * 2
    points = [(0.5, 0.5)] * 5 + [(1.5, 0.5), (2.5, 0.5)]
    plane = replace(PLANE, lattice=lattice)
    unit = PrivacyUnit(kind="user", weight=4)
    counted = tally_batches([batch(points, users)], plane, unit=unit)
    assert counted.counts.tolist() == [2, 2]
    assert counted.report["kept"] == 2


@pytest.mark.parametrize(
    ("unit", "kept"), [(FOUR, 4), (PrivacyUnit(kind="user-slice", max_contributions=2), 3)]
)
def test_records_of_users_are_kept_by_the_rules_of_the_builder(unit, kept):
    key, points = b"sixteen bytes ok", [(3.5, 1.5), (0.5, 0.5), (2.5, 1.5), (1.5, 0.5)]
    times = np.array(["2024-01-01", "2024-01-01", "2024-01-01", "2024-01-02"], "datetime64[us]")
    x, y = np.array(points).T
    builder = TallyBuilder(PLANE, unit=unit, slices=DAYS)
    builder.add_batch(Batch(x=x, y=y, user=pa.array(["ann"] * 4), time=times))
    rows = builder.user_rows(key)
    assert (rows.names.to_pylist(), len(rows.users)) == (["ann"], kept)
    found = set(zip(rows.columns.tolist(), rows.rows.tolist(), strict=True))
    assert len(found) == kept
    assert found <= {(3, 1), (0, 0), (2, 1), (1, 0)}
    again = TallyBuilder(PLANE, unit=unit, slices=DAYS)
    again.add_batch(Batch(x=x, y=y, user=pa.array(["ann"] * 4), time=times))
    assert again.user_rows(b"another key of 16").hashes.tolist() != rows.hashes.tolist()


# Cells of one metre, too many for an array; the smallest cell has 2 x 2 of them.
SIZES = {"even": (2**14, 2**13), "uneven": (2**14 + 1, 2**13 + 1)}


@pytest.mark.parametrize("step", [(1, 1), (2, 1), (1, 2), (2, 2), (4, 2)], ids=str)
@pytest.mark.parametrize("lattice", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit(kind="user", max_contributions=99)])
def test_cells_are_counted_together_on_a_fine_lattice(unit, lattice, step):
    domain = psd.Domain(bounds=(0, 0, *lattice), crs="EPSG:3857", lattice=lattice, min_cell=2)
    assert domain.cell_step == (2, 2)
    points = np.random.default_rng(3).integers(0, 9, (40, 2)) + 0.5
    points[:9] = np.array(lattice) - points[:9]
    rows = batch(points, ["u"] * len(points))
    counted = tally_batches([rows], domain, unit=unit, step=step)
    columns, lines = (points[:, axis].astype(int) for axis in (0, 1))
    found = Counter(zip(columns // step[0] * step[0], lines // step[1] * step[1], strict=True))
    expected = [[*cell, number] for cell, number in found.items()]
    assert cells(counted) == sorted(expected, key=lambda cell: (cell[1], cell[0]))
    found = Counter()
    for column, row, number in expected:
        found[
            domain.blocks.to_blocks(column, 0).item(), domain.blocks.to_blocks(row, 1).item()
        ] += number
    assert {(c, r): n for c, r, n in cells(counted.in_blocks(domain.blocks))} == found


class Bands:
    """A region for each metre of the plane from west to east."""

    size = 4

    def assign(self, x, y):
        return np.minimum(x, 3).astype(np.int32)


@pytest.mark.parametrize("slices", [None, DAYS], ids=["once", "days"])
@pytest.mark.parametrize("lattice", [(8, 2), (2**14, 2**11)], ids=str)
@pytest.mark.parametrize("unit", [PrivacyUnit(), FOUR])
def test_each_record_is_counted_in_its_region_and_slice(unit, lattice, slices):
    domain = replace(PLANE, lattice=lattice)
    points = [(3.25, 0.5), (0.25, 0.5), (3.75, 1.5), (1.25, 1.5)]
    times = np.array(["2024-01-02", "2024-01-02", "2024-01-02", "2024-01-01"], "datetime64[us]")
    rows = replace(batch(points, ["u"] * 4), time=times if slices else None)
    counted = tally_batches([rows], domain, unit=unit, slices=slices, regions=Bands())
    days = [1, 1, 1, 0] if slices else [0] * 4
    width, height = lattice[0] // 4, lattice[1] // 2
    expected = [
        (day, int(x), int(y * height), int(x * width))
        for day, (x, y) in zip(days, points, strict=True)
    ]
    found_days = [0] * 4 if slices is None else counted.slice.tolist()
    found = (found_days, *(v.tolist() for v in (counted.region, counted.rows, counted.columns)))
    assert list(zip(*found, strict=True)) == sorted(expected)
    assert counted.counts.tolist() == [1] * 4
    assert counted.slice is None if slices is None else counted.slice.dtype == np.int64


def test_a_lattice_must_leave_room_for_its_regions_also_where_cells_are_counted_together(
    monkeypatch,
):
    domain, step = replace(PLANE, lattice=(2**30, 2**28)), (2**25, 2**25)
    monkeypatch.setattr(Bands, "size", 16)
    TallyBuilder(domain, unit=PrivacyUnit(), step=step, regions=Bands())
    monkeypatch.setattr(Bands, "size", 17)
    with pytest.raises(DomainError, match="is too fine for 17 slices times regions"):
        TallyBuilder(domain, unit=PrivacyUnit(), step=step, regions=Bands())


def test_codes_are_split_in_parts(monkeypatch):
    monkeypatch.setattr("psd.ingest.tally_builder._CODES_PER_CHUNK", 3)
    parts = _split_codes(np.arange(30), (5, 2, 3), (4, 7))
    expected = [(c * 4, r * 7, n, 0) for n in range(3) for r in range(2) for c in range(5)]
    assert list(zip(*(part.tolist() for part in parts), strict=True)) == expected
