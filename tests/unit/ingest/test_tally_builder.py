"""The tally: counts per occupied cell, and what it refuses."""

from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import psd
from psd.errors import DomainError, InputDataError, ResourceError
from psd.ingest.quadrant_codes import QuadrantOrder
from psd.ingest.tally import Batch, add_tallies
from psd.ingest.tally_builder import TallyBuilder, _split_codes, tally_batches
from psd.privacy.unit import PrivacyUnit
from psd.privacy.values import WEIGHT, Value
from psd.space.domain import Blocks

PLANE = psd.Domain(bounds=(0, 0, 4, 2), crs="EPSG:3857", lattice=(4, 2))
DAYS = psd.TimeSlices.parse("day", "2024-01-01..2024-01-03")
MOMENT = "datetime64[us]"
EARTH = psd.Domain(bounds=(-10, -10, 10, 10))
MODULE = "psd.ingest.tally_builder"
RECORD = PrivacyUnit()
UNITS = [RECORD, PrivacyUnit(kind="user", max_contributions=99)]
ONE, TWO, THREE, FOUR = (PrivacyUnit(kind="user", max_contributions=k) for k in (1, 2, 3, 4))
DAILY = PrivacyUnit(kind="user-day", max_contributions=1, time_zone="UTC")
PLACES = [(1, 1), (99, 99), (np.nan, 1)]  # inside, outside, nowhere


def batch(points, users=None, times=None):
    x, y = np.array(points, float).reshape(-1, 2).T
    users = None if users is None else pa.array(users, pa.string())
    return Batch(x=x, y=y, user=users, time=None if times is None else np.array(times, MOMENT))


def cells(counted):
    return np.stack([counted.columns, counted.rows, counted.counts], axis=1).tolist()


def test_counts_stand_in_order_of_rows_then_columns():
    batches = [batch([(3.5, 1.5), (0, 0), (3.5, 0.5)]), batch([(0.9, 0.9), (4, 2)])]
    counted = tally_batches(batches, PLANE)
    assert cells(counted) == [[0, 0, 2], [3, 0, 1], [3, 1, 2]]
    assert (counted.columns.dtype, counted.counts.dtype) == (np.int32, np.int64)
    assert counted.contributions == 1
    points = [(1, 1), (1, 1), (1, 1), (9, 9), (np.nan, 1), (np.nan, 9)]
    counted = tally_batches([batch(points, ["a"] * 6)], PLANE, unit=TWO)
    left = {"without coordinates": 2, "outside": 1, "over the limit": 1}
    assert counted.report == {"read": 6, **left, "kept": 2}
    assert counted.contributions == 2


def test_rows_of_which_none_is_inside_are_an_empty_tally():
    nowhere, outside = batch([(np.nan, 1), (1, np.nan)]), batch([(11.25, 0), (0, 22.5)], ["a", "b"])
    weighted = PrivacyUnit(kind="user", weight=1000)
    for batches, units, found in [
        ([], (RECORD, THREE), (0, 0, 0)),
        ([batch([], [])], (RECORD, THREE), (0, 0, 0)),
        ([nowhere], (RECORD,), (2, 2, 0)),
        ([outside], (RECORD, FOUR, weighted), (2, 0, 2)),
    ]:
        for unit in units:
            counted = tally_batches(batches, EARTH, unit=unit)
            assert cells(counted) == []
            names = ("read", "without coordinates", "outside", "kept")
            assert counted.report.pop("over the limit", 0) == 0
            assert counted.report == dict(zip(names, (*found, 0), strict=True))


def test_a_limit_refuses_cells_unless_it_is_not_to():
    points = np.random.default_rng(4).uniform(-10, 10, (3_000, 2))
    builder = TallyBuilder(EARTH, unit=RECORD, memory=60_000, limits_cells=False)
    builder.add_batch(batch(points))
    assert builder.build().counts.sum() == len(points)
    builder = TallyBuilder(EARTH, unit=RECORD, memory=60_000)
    with pytest.raises(ResourceError, match="memory limit"):
        builder.add_batch(batch(points))


def test_a_row_without_id_is_refused_wherever_it_lies():
    for place, point in product((0, 1), PLACES):
        users, points = ["a", "b", "c"], [(1, 1)] * 3
        users[place], points[place] = None, point
        with pytest.raises(InputDataError, match="have no user id"):
            tally_batches([batch(points, users)], PLANE, unit=FOUR)


def test_a_row_without_time_is_refused_wherever_it_lies():
    for point, times in product(PLACES, (None, ["2024-01-01", "NaT"])):
        rows = batch([(1, 1), point], ["a", "a"], times)
        for unit, slices in ((RECORD, DAYS), (DAILY, None)):
            with pytest.raises(InputDataError, match="have no time"):
                tally_batches([rows], PLANE, unit=unit, slices=slices)


def test_a_builder_knows_its_cells_and_whether_a_record_was_read(monkeypatch):
    for points, is_read in (([], False), ([(1, 1)], True), ([(99, 99)], True)):
        builder = TallyBuilder(PLANE, unit=RECORD)
        builder.add_batch(batch(points))
        assert builder.has_read == is_read
        assert builder.report["read"] == len(points)
    asked = []
    monkeypatch.setattr(f"{MODULE}.cell_counter", lambda *limits: asked.append(limits))
    for slices in (None, DAYS):
        TallyBuilder(PLANE, unit=RECORD, slices=slices)
    TallyBuilder(PLANE, unit=RECORD, values=FARES, memory=6_400)
    assert asked == [(8, None), (3 * 8, None), *[(8, 6_400)] * 3]


def rows_kept(users):
    return tally_batches([batch([(1, 1)] * len(users), users)], PLANE, unit=ONE).counts.sum()


def test_spellings_that_nobody_tells_apart_are_one_user():
    assert rows_kept(["Zoe\u0301", "Zo\u00e9", " Zo\u00e9", "Zo\u00e9\ufeff"]) == 1


def test_ids_that_look_like_numbers_are_text():
    assert rows_kept(["007", "7", "7.0", "9007199254740993", "9007199254740992"]) == 5


def test_each_day_is_bounded_by_itself_with_a_fresh_key():
    days = ["2024-02-28T23:59", "2024-02-29T00:00", "2024-02-29T23:59"]
    rows = batch([(1, 1)] * 3, ["a"] * 3, days)
    assert tally_batches([rows], PLANE, unit=DAILY).counts.tolist() == [2]
    rows = batch([(column + 0.5, row + 0.5) for column in range(4) for row in range(2)], ["u"] * 8)
    choices = {str(cells(tally_batches([rows], PLANE, unit=FOUR))) for _ in range(30)}
    assert len(choices) > 1  # 70 choices: all the same with a chance below 1e-50


def test_a_share_of_nothing_occupies_no_cell():
    """A user with more rows than there are shares leaves no trace, in either way of counting."""
    rows = batch([(0.5, 0.5)] * 5 + [(1.5, 0.5), (2.5, 0.5)], ["many"] * 5 + ["few"] * 2)
    for lattice in ((4, 2), (2**14, 2**14)):
        plane = replace(PLANE, lattice=lattice)
        counted = tally_batches([rows], plane, unit=PrivacyUnit(kind="user", weight=4))
        assert counted.counts.tolist() == [2, 2]
        assert counted.report["kept"] == 2


def test_records_of_users_are_kept_by_the_rules_of_the_builder():
    points = [(3.5, 1.5), (0.5, 0.5), (2.5, 1.5), (1.5, 0.5)]
    times = ["2024-01-01"] * 3 + ["2024-01-02"]
    for unit, kept in ((FOUR, 4), (PrivacyUnit(kind="user-slice", max_contributions=2), 3)):
        made = []
        for key in (b"sixteen bytes ok", b"another key of 16"):
            builder = TallyBuilder(PLANE, unit=unit, slices=DAYS)
            builder.add_batch(batch(points, ["ann"] * 4, times))
            made.append(builder.user_rows(key))
        rows, again = made
        assert (rows.names.to_pylist(), len(rows.users)) == (["ann"], kept)
        found = set(zip(rows.columns.tolist(), rows.rows.tolist(), strict=True))
        assert len(found) == kept
        assert found <= {(3, 1), (0, 0), (2, 1), (1, 0)}
        assert again.hashes.tolist() != rows.hashes.tolist()


def test_cells_are_counted_together_on_a_fine_lattice(subtests):
    """Cells of one metre, too many for an array; the smallest cell has 2 x 2 of them."""
    sizes = (2**14, 2**13), (2**14 + 1, 2**13 + 1)
    steps = (1, 1), (2, 1), (1, 2), (2, 2), (4, 2)
    for unit, lattice, step in product(UNITS, sizes, steps):
        domain = psd.Domain(bounds=(0, 0, *lattice), crs="EPSG:3857", lattice=lattice, min_cell=2)
        assert domain.cell_step == (2, 2)
        points = np.random.default_rng(3).integers(0, 9, (40, 2)) + 0.5
        points[:9] = np.array(lattice) - points[:9]
        rows = batch(points, ["u"] * len(points))
        counted = tally_batches([rows], domain, unit=unit, step=step)
        lines = points.astype(int) // step * step
        found = Counter(map(tuple, lines.tolist()))
        expected = [[*cell, number] for cell, number in found.items()]
        with subtests.test(unit=str(unit), lattice=lattice, step=step):
            assert cells(counted) == sorted(expected, key=lambda cell: (cell[1], cell[0]))
            blocks, found = domain.blocks, Counter()
            for column, row, number in expected:
                found[blocks.to_blocks(column, 0).item(), blocks.to_blocks(row, 1).item()] += number
            assert {(c, r): n for c, r, n in cells(counted.in_blocks(blocks))} == found


class Bands:
    size = 4

    def assign(self, x, y, value=None, /):
        return np.minimum(x, 3).astype(np.int32)


def test_each_record_is_counted_in_its_region_and_slice(subtests):
    points = [(3.25, 0.5), (0.25, 0.5), (3.75, 1.5), (1.25, 1.5)]
    times = ["2024-01-02"] * 3 + ["2024-01-01"]
    for unit, lattice, slices in product(UNITS, ((8, 2), (2**14, 2**11)), (None, DAYS)):
        rows = batch(points, ["u"] * 4, times if slices else None)
        domain = replace(PLANE, lattice=lattice)
        counted = tally_batches([rows], domain, unit=unit, slices=slices, strata=Bands())
        days = [1, 1, 1, 0] if slices else [0] * 4
        width, height = lattice[0] // 4, lattice[1] // 2
        expected = [
            (day, int(x), int(y * height), int(x * width))
            for day, (x, y) in zip(days, points, strict=True)
        ]
        with subtests.test(unit=str(unit), lattice=lattice, slices=slices is not None):
            found_days = [0] * 4 if slices is None else counted.slice.tolist()
            found = (v.tolist() for v in (counted.region, counted.rows, counted.columns))
            assert list(zip(found_days, *found, strict=True)) == sorted(expected)
            assert counted.counts.tolist() == [1] * 4
            assert slices is None or counted.slice.dtype == np.int64


@pytest.mark.parametrize("lattice", [(2**20, 2**20), (10_001, 9_000)], ids=str)
@pytest.mark.parametrize("unit", [RECORD, TWO, PrivacyUnit(kind="user", weight=12)], ids=str)
def test_slices_that_are_divided_together_have_the_same_counts(lattice, unit):
    """The form of the tally is another one; smallest cells that are left over join the last."""
    domain = replace(EARTH, lattice=lattice, min_cell=300)
    random = np.random.default_rng(3)
    points = random.uniform(-11, 11, (400, 2)) // 0.5 * 0.5
    times = np.datetime64("2024-01-01", "us") + random.integers(0, 4 * 86400, 400) * 10**6
    made = batch(points, [str(number % 90) for number in range(400)], times)
    step = domain.cell_step
    assert step != (1, 1)
    builders = [
        TallyBuilder(domain, unit=unit, slices=DAYS, step=step, **options)
        for options in ({}, {"is_cube": True})
    ]
    for builder in builders:
        builder.add_batch(made)
    plain, of_codes = (builder.build(bytes(16)) for builder in builders)
    order = QuadrantOrder(domain.blocks.coarse_lattice)
    assert plain.in_blocks(domain.blocks).sliced_codes(order) is None
    blocks = of_codes.in_blocks(domain.blocks)
    codes = blocks.sliced_codes(order)
    assert codes is not None
    assert of_codes.sliced_codes(order) is None  # whose cells are blocks of the lattice
    assert blocks.sliced_codes(QuadrantOrder(lattice)) is None
    assert (plain.slices_below, blocks.slices_below) == (3, 3)
    assert plain.report == of_codes.report
    for tally in (plain, blocks):  # with a bound that was chosen after they were counted
        bound = tally.with_contributions(7)
        assert (bound.contributions, bound.report) == (7, tally.report)
        assert bound.counts.tolist() == tally.counts.tolist()
        assert bound.sliced_codes(order) is tally.sliced_codes(order)
    other = Blocks(lattice=lattice, step=(2 * step[0], step[1]))
    coarser = [add_tallies([tally.in_blocks(other)]) for tally in (plain, of_codes)]
    for name in ("slice", "rows", "columns", "counts"):
        assert len({tuple(getattr(tally, name).tolist()) for tally in coarser}) == 1
    merged = add_tallies([plain.in_blocks(domain.blocks)])
    for name in ("slice", "rows", "columns", "counts"):
        found = getattr(blocks, name)
        assert found.tolist() == getattr(merged, name).tolist()
        assert found.dtype == getattr(plain, name).dtype
    plane = add_tallies([replace(merged, slice=None)])
    found = blocks.quadrant_codes(order).by_row()[:3]
    for name, values in zip(("columns", "rows", "counts"), found, strict=True):
        assert values.tolist() == getattr(plane, name).tolist()


def test_codes_that_have_no_room_for_slices_are_of_other_cells():
    """A square around the lattice with 20 slices has more cells than a code can state."""
    domain, days = replace(PLANE, lattice=(2**30, 8)), "2024-01-01..2024-01-20"
    slices = psd.TimeSlices.parse("day", days)
    made = batch([(3.5, 1.5), (0.5, 0.5)], times=["2024-01-20", "2024-01-13"])
    builder = TallyBuilder(domain, unit=RECORD, slices=slices, is_cube=True)
    builder.add_batch(made)
    counted = builder.build()
    assert counted.slice.tolist() == [12, 19]
    assert cells(counted) == [[2**27, 2, 1], [7 * 2**27, 6, 1]]


def test_a_lattice_must_leave_room_for_its_regions_also_in_coarse_cells(monkeypatch):
    domain, step = replace(PLANE, lattice=(2**30, 2**28)), (2**25, 2**25)
    monkeypatch.setattr(Bands, "size", 16)
    TallyBuilder(domain, unit=RECORD, step=step, strata=Bands())
    monkeypatch.setattr(Bands, "size", 17)
    with pytest.raises(DomainError, match="is too fine for 17 slices times regions"):
        TallyBuilder(domain, unit=RECORD, step=step, strata=Bands())


def test_codes_are_split_in_parts(monkeypatch):
    monkeypatch.setattr(f"{MODULE}._CODES_PER_CHUNK", 3)
    parts = _split_codes(np.arange(30), (5, 2, 3), (4, 7))
    expected = [(c * 4, r * 7, n, 0) for n in range(3) for r in range(2) for c in range(5)]
    assert list(zip(*(part.tolist() for part in parts), strict=True)) == expected


FARES = Value("fare", 0, 8), Value("tip", -1, 1)


def priced(points, fares, *rest):
    """A batch of records with a fare, and a tip that is at its upper bound."""
    values = np.stack([np.array(fares, float), np.full(len(points), 5.0)], axis=1)
    return replace(batch(points, *rest), values=values)


def test_weights_of_values_are_summed_by_region_slice_and_cell(subtests):
    points = [(3.25, 0.5), (0.25, 0.5), (3.25, 0.5), (1.25, 1.5), (3.25, 0.5), (9, 9)]
    fares = [8, 2, 4, -1, 2, 8]
    days = ["2024-01-02", "2024-01-03", "2024-01-02", "2024-01-01", "2024-01-03", "2024-01-01"]
    limited = PrivacyUnit(kind="user", max_contributions=99, max_per_slice=50)
    for unit, lattice, slices, strata in product(
        (*UNITS, limited), ((8, 2), (2**14, 2**14)), (None, DAYS), (None, Bands())
    ):
        if unit is limited and slices is None:
            continue
        rows = priced(points, fares, ["u"] * 6, days if slices else None)
        domain = replace(PLANE, lattice=lattice)
        options = {"slices": slices, "strata": strata, "values": FARES}
        counted = tally_batches([rows, rows], domain, unit=unit, **options)
        expected = {}
        for (x, y), fare, day in zip(points[:5], fares, days, strict=False):
            cell = int(y * lattice[1] / 2), int(x * lattice[0] / 4)
            key = int(day[-1]) - 1 if slices else 0, int(x) if strata else 0, *cell
            number, total = expected.get(key, (0, 0))
            expected[key] = number + 2, total + 2 * max(fare, 0) * WEIGHT // 8
        with subtests.test(unit=str(unit), lattice=lattice, slices=slices, strata=strata):
            zeros = np.zeros_like(counted.counts)
            of_slices = zeros if slices is None else counted.slice
            of_strata = zeros if strata is None else counted.region
            keys = of_slices, of_strata, counted.rows, counted.columns
            found = zip(*(column.tolist() for column in keys), strict=True)
            assert list(found) == sorted(expected)
            numbers, totals = zip(*(expected[key] for key in sorted(expected)), strict=True)
            assert counted.counts.tolist() == list(numbers)
            assert counted.values.dtype == np.int64
            assert counted.values[:, 0].tolist() == list(totals)
            assert counted.values[:, 1].tolist() == [WEIGHT * number for number in numbers]
            assert counted.record_weight == WEIGHT
            assert counted.report["kept"] == 10


def test_kept_records_keep_their_values_in_any_order_of_the_rows():
    users = [f"user {number}" for number in range(20)] * 3
    fares = np.random.default_rng(2).permutation(60) / 8
    times = ["2024-01-01"] * 60
    limited = PrivacyUnit(kind="user", max_contributions=9, max_per_slice=1)
    for unit in (ONE, limited):
        slices, found = (DAYS if unit is limited else None), []
        for order in (np.arange(60), np.arange(60)[::-1]):
            rows = priced([(1, 1)] * 60, fares[order], np.array(users)[order].tolist(), times)
            counted = tally_batches(
                [rows], PLANE, unit=unit, key=b"k" * 16, slices=slices, values=FARES
            )
            assert counted.counts.tolist() == [20]
            assert counted.values[0, 1] == 20 * WEIGHT
            found.append(int(counted.values[0, 0]))
        assert found[0] == found[1]


def test_values_of_shares_are_rounded_by_the_key():
    """Two records of a user have two shares each; a third user has more records than shares."""
    unit = PrivacyUnit(kind="user", weight=4)
    points = [(0.5, 0.5), (1.5, 0.5)] * 2 + [(2.5, 0.5)] * 2 + [(3.5, 0.5)] * 5
    users = ["a", "a", "b", "b", "c", "c"] + ["many"] * 5
    rows = priced(points, [8, 0, 8, 0, 5, 5, *[8] * 5], users)
    found = set()
    for number in range(20):
        key = bytes([number]) * 16
        counted = tally_batches([rows], PLANE, unit=unit, key=key, values=FARES)
        assert counted.counts.tolist() == [4, 4, 4]
        assert counted.values[:, 1].tolist() == [4, 4, 4]
        assert counted.values[:2, 0].tolist() == [4, 0]
        found.add(int(counted.values[2, 0]))
        assert counted.record_weight == 1
    assert found == {2, 4}  # each of two alike is 2 * 5 / 8, rounded down or up
    builder = TallyBuilder(PLANE, unit=unit, values=list(FARES))
    assert builder.values == FARES
