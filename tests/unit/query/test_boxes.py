"""Box queries: the table that comes back, the errors in it, and what is refused."""

import math
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest

import psd
import psd.query.boxes as module
from psd.errors import ParameterError
from psd.privacy.loss import NANO
from psd.query.totals import QueryTotals
from psd.release.post_processing import PostProcessing
from psd.space.box_tree import Tree
from support.trees import grid_release, random_tree, release_of

COLUMNS = [
    "id",
    "estimate",
    "perturbation_error",
    "nonuniformity_error",
    "error",
    "lower",
    "upper",
    "relative_perturbation_error",
    "relative_nonuniformity_error",
    "relative_error",
    "reliable",
    "quality",
]


@pytest.fixture
def release():
    return grid_release(np.arange(16).reshape(4, 4) * 10)


# --- the worked example -------------------------------------------------------------------

TRUE = [[0, 2, 2], [3, 3, 5], [2, 3, 1]]
NOISY = [[2, 6, 1], [3, 4, 3], [0, 1, 2]]
GRIDS = {
    "the usual lattice": {"bounds": (126.4, 37.0, 127.6, 38.0), "crs": "EPSG:4326"},
    "a lattice of 3 x 3": {"bounds": (0, 0, 3, 3), "crs": "EPSG:3857", "lattice": (3, 3)},
}


def worked_example(rows, grid):
    """Release of the 3 x 3 grid, rows from north to south, and the box over its upper two."""
    domain = psd.Domain(**GRIDS[grid])
    tree = psd.decompositions.grid_tree(domain, 3)
    draft = psd.Release.from_counts(tree, np.arange(9), "1", domain=domain)
    places = draft.to_geopandas().geometry.bounds
    column = places.minx.rank(method="dense").astype(int) - 1
    row = places.maxy.rank(method="dense", ascending=False).astype(int) - 1
    release = psd.Release.from_counts(tree, np.array(rows)[row, column], "1", domain=domain)
    cells = release.to_geopandas()
    upper = cells[row < 2].total_bounds
    assert len(cells) == 9
    assert (row < 2).sum() == 6
    return release, upper


@pytest.mark.parametrize("grid", GRIDS)
def test_worked_example_answers_19_for_15(grid):
    noisy, upper = worked_example(NOISY, grid)
    exact, _ = worked_example(TRUE, grid)
    answer, real = (release.query([upper]).table.loc[0, "estimate"] for release in (noisy, exact))
    assert answer == pytest.approx(19, abs=1e-9)
    assert real == pytest.approx(15, abs=1e-9)
    assert f"{abs(real - answer) / real:.1%}" == "26.7%"
    assert noisy.query([upper]).table.loc[0, "nonuniformity_error"] == 0
    assert noisy.total == pytest.approx(22, abs=1e-9)
    assert exact.total == pytest.approx(21, abs=1e-9)


# --- the table ----------------------------------------------------------------------------


def test_columns_their_order_and_their_kinds(release):
    table = release.query([(0, 0, 1.5, 2), (1, 1, 3, 3)]).table
    assert list(table.columns) == COLUMNS
    assert table["id"].tolist() == [1, 2]
    assert all(table[name].dtype == float for name in COLUMNS[1:-2])
    assert table["reliable"].dtype == bool
    assert not table.isna().any(axis=None)


def test_ways_to_give_a_box(release, subtests):
    ways = {
        "one tuple": (0, 0, 1, 2),
        "list of tuples": [(0, 0, 1, 2)],
        "array of whole numbers": np.array([[0, 0, 1, 2]]),
        "array of short floats": np.array([[0.0, 0, 1, 2]], np.float32),
        "table, whatever the order": pd.DataFrame(
            {"north": [2], "east": [1], "west": [0], "south": [0]}
        ),
    }
    for name, regions in ways.items():
        with subtests.test(name):
            assert release.query(regions)["estimate"].tolist() == pytest.approx([40])


def test_ids_of_a_table_are_kept():
    boxes = pd.DataFrame(
        {"id": ["b", "a"], "west": 0, "south": 0, "east": [1, 2], "north": 1}, index=[7, 3]
    )
    table = grid_release([[1, 2], [3, 4]]).query(boxes).table
    assert table["id"].tolist() == ["b", "a"]
    assert table["estimate"].tolist() == pytest.approx([1, 3])


def test_no_box_gives_an_empty_table(release, subtests):
    sides = pd.DataFrame(columns=["west", "south", "east", "north"])
    for regions in ([], np.empty((0, 4)), sides):
        with subtests.test(type(regions).__name__):
            table = release.query(regions).table
            assert len(table) == 0
            given = getattr(regions, "columns", ())
            assert [name for name in table.columns if name not in given] == COLUMNS


def test_more_boxes_than_are_walked_down_at_once(release):
    rng = np.random.default_rng(2)
    corners = np.sort(rng.random((1300, 2, 2)) * 4, axis=1).reshape(-1, 4)
    together = release.query(corners).table
    assert together["id"].tolist() == list(range(1, 1301))
    for place in (0, 511, 512, 1023, 1024, 1299):
        alone = release.query(corners[place]).table
        assert together.iloc[place, 1:].tolist() == pytest.approx(alone.iloc[0, 1:].tolist())


@pytest.mark.parametrize("density", ["uniform", "smooth"])
def test_an_only_child_answers_like_its_parent_that_is_not_opened(density):
    quarters = [[0, 0, 32, 32], [32, 0, 64, 32], [0, 32, 32, 64], [32, 32, 64, 64]]
    tree = Tree(
        boxes=np.array([[0, 0, 64, 64], *quarters, *quarters]),
        parent=np.array([-1, 0, 0, 0, 0, 1, 2, 3, 4]),
        level=np.repeat([0, 1, 2], [1, 4, 4]),
        count=np.array([900, 300, 200, 100, 290, 310, 190, 120, 300]),
        loss=np.full(9, NANO),
    )
    made = release_of(tree)
    fit = made.replace(post_processing=PostProcessing(density=density)).index.fit
    boxes = np.sort(np.random.default_rng(2).uniform(0, 64, (20, 2, 2)), axis=1).reshape(-1, 4)
    fraction = module.box_fraction(fit, boxes)
    opened, closed = (
        module.traverse_within(fit.tree, len(boxes), fraction, math.inf, is_end)
        for is_end in (None, fit.tree.is_end)
    )
    pairs = [sum(len(level.node) for level in each.levels) for each in (opened, closed)]
    assert pairs[0] > pairs[1]
    for field in fields(QueryTotals):
        of_both = (
            getattr(module.query_totals(fit, each, boxes), field.name) for each in (opened, closed)
        )
        np.testing.assert_allclose(*of_both, rtol=1e-12, atol=1e-9, err_msg=field.name)


@pytest.mark.deep
@pytest.mark.parametrize("density", ["uniform", "smooth"])
@pytest.mark.parametrize(("pairs", "chunk"), [(1, 3), (50, 1), (300, 2**16)])
def test_boxes_that_meet_many_cells_are_walked_down_fewer_at_once(
    density, pairs, chunk, monkeypatch
):
    made = release_of(random_tree(np.random.default_rng(8), height=4))
    made = made.replace(post_processing=PostProcessing(density=density))
    west, south, east, north = made.domain.bounds
    share = np.sort(np.random.default_rng(2).random((40, 2, 2)), axis=1)
    low, size = np.array([west, south]), np.array([east - west, north - south])
    boxes = np.concatenate([low + size * share[:, 0], low + size * share[:, 1]], axis=1)
    together = made.query(boxes).table
    walked, original = [], module.traverse_within
    monkeypatch.setattr(module, "_PAIRS_PER_BATCH", pairs)
    monkeypatch.setattr("psd.query.box_parts._PAIRS_PER_CHUNK", chunk)

    def traverse_within(tree, queries, *others):
        walked.append(queries)
        return original(tree, queries, *others)

    monkeypatch.setattr(module, "traverse_within", traverse_within)
    assert made.query(boxes).table.equals(together)
    assert walked[0] == 40
    assert min(walked) < 40
    if pairs == 1:
        assert walked.count(1) == 40


BAD_BOXES = [
    ((2, 0, 1, 1), r"\(2 0 1 1\).*west"),
    ((0, 2, 1, 1), r"\(0 2 1 1\).*south"),
    ((1, 0, 1, 1), r"\(1 0 1 1\).*west"),
    ((0, 1, 1, 1), r"\(0 1 1 1\).*south"),
    ((0, 0, math.nan, 1), r"\(0 0 nan 1\).*finite"),
    ((0, 0, math.inf, 1), r"\(0 0 inf 1\).*finite"),
    ((-math.inf, 0, 1, 1), r"\(-inf 0 1 1\).*finite"),
    ((5, 0, 6, 1), r"\(5 0 6 1\).*outside"),
    ((-2, 0, -1, 1), r"\(-2 0 -1 1\).*outside"),
    ((0, 4, 1, 5), r"\(0 4 1 5\).*outside"),
    ((0, -1, 1, 0), r"\(0 -1 1 0\).*outside"),
]
NO_BOXES = {
    "three numbers": ([(0, 0, 1)], r"shape \(1, 3\)"),
    "five numbers": ([0, 0, 1, 1, 1], r"shape \(1, 5\)"),
    "one axis too many": (np.zeros((2, 2, 4)), r"shape \(2, 2, 4\)"),
    "a number": (3.0, r"shape \(1, 1\)"),
    "text": ("everything", "cannot be read as GeoJSON or WKT"),
    "words": ([("a", "b", "c", "d")], "got regions by name; the release counts no regions"),
    "ragged": ([(0, 0, 1, 1), (0, 0)], "must be geometries, or boxes"),
    "dictionary": ({"west": 0}, "another object"),
    "no column": (pd.DataFrame({"west": [0], "south": 0, "north": 1}), "east"),
    "words in a table": (
        pd.DataFrame({"west": ["x"], "south": 0, "east": 1, "north": 1}),
        "must be geometries, or boxes",
    ),
    "ids": (
        pd.DataFrame({"id": ["here", "there"], "west": 0, "south": [0, 3], "east": 1, "north": 1}),
        r"box there \(0 3 1 1\)",
    ),
}
BAD_LEVELS = [
    *(("confidence", value, "between 0 and 1") for value in (0, 1, 95, math.nan)),
    *(("threshold", value, "above 0 and at most 1") for value in (0, 30, -0.3, math.nan)),
]


def test_bad_boxes_and_levels_are_refused_by_number_and_value(release, subtests):
    for box, says in BAD_BOXES:
        with subtests.test(box), pytest.raises(ParameterError, match=f"box 2 {says}"):
            release.query([(0, 0, 1, 1), box, (1, 1, 2, 2)])
    for name, (regions, says) in NO_BOXES.items():
        with subtests.test(name), pytest.raises(ParameterError, match=says):
            release.query(regions)
    for name, value, rule in BAD_LEVELS:
        hint = "; it is a relative error" if name == "threshold" else ""
        says = f"{name} must be {rule}, got {value}{hint}"
        with subtests.test(says), pytest.raises(ParameterError, match=says):
            release.query([(0, 0, 1, 1)], **{name: value})


def test_a_box_beyond_the_domain_is_answered_for_its_part_inside(release, subtests):
    for box, inside in (
        ((-5, -5, 2, 1.5), (0, 0, 2, 1.5)),
        ((1.5, 1, 1e9, 3), (1.5, 1, 4, 3)),
        ((-1e308, -1e308, 1e308, 1e308), (0, 0, 4, 4)),
    ):
        with subtests.test(box):
            assert release.query(box).table.equals(release.query(inside).table)


def test_a_box_that_goes_on_at_the_other_end_of_the_world_is_refused(subtests):
    """It would lose the records there; a polygon is cut at longitude 180 and keeps them."""
    points = pd.DataFrame({"lon": [179.5, -179.5], "lat": [-17.0, -17.0]})
    for bounds, refused, answered in (
        (
            (-180, -30, 180, 0),
            [(177, -20, 183, -16), (-183, -20, -177, -16), (0, -30, 360, 0)],
            [((-200, -40, 200, 10), 2), ((-180, -30, 0, 0), 1)],
        ),
        ((170, -30, 180, 0), [], [((170, -30, 190, 0), 1)]),  # nothing is counted beyond 180
    ):
        domain, grid = psd.Domain(bounds=bounds), psd.decompositions.Grid(size=2)
        release = psd.build(points, domain=domain, epsilon=1000, method=grid)
        for box in refused:
            says = "goes on beyond longitude 180, at the other end of the release"
            with subtests.test(box), pytest.raises(ParameterError, match=says):
                release.query([box])
        for box, count in answered:
            with subtests.test(box):
                assert release.query([box]).table.estimate.item() == pytest.approx(count, abs=0.1)


# --- errors -------------------------------------------------------------------------------


def test_errors_intervals_and_relative_errors_follow_from_the_two_parts(release):
    table = release.query([(0, 0, 1.5, 2.5), (0, 0, 4, 4), (1, 0, 1.5, 1)], confidence=0.9).table
    error = np.hypot(table.perturbation_error, table.nonuniformity_error)
    base = table.estimate
    assert list(table.error) == pytest.approx(error)
    assert ((table.lower >= 0) & (table.lower <= table.estimate)).all()
    assert (table.upper > table.estimate).all()
    assert list(table.relative_perturbation_error) == pytest.approx(table.perturbation_error / base)
    assert list(table.relative_nonuniformity_error) == pytest.approx(
        table.nonuniformity_error / base
    )
    assert list(table.relative_error) == pytest.approx(error / base)
    assert table.reliable.tolist() == (table.relative_error <= 0.3).tolist()
    assert set(table.reliable) == {True, False}


def test_reliable_is_at_or_under_the_threshold(release):
    box = (0, 0, 3.5, 4)
    relative = release.query(box).table.loc[0, "relative_error"]
    assert release.query(box, threshold=relative).table.loc[0, "reliable"]
    assert not release.query(box, threshold=np.nextafter(relative, 0)).table.loc[0, "reliable"]


def test_lower_is_never_below_zero_and_intervals_grow_with_confidence():
    release = grid_release([[0, -5], [-3, 1]], 0.1)
    widths = []
    for confidence in (1e-12, 0.5, 0.95, np.nextafter(1, 0)):
        table = release.query([(0, 0, 1, 1), (0, 0, 2, 2)], confidence=confidence).table
        assert (table.lower >= 0).all()
        assert (table.lower <= table.estimate).all()
        assert np.isfinite(table.upper).all()
        widths.append(table.loc[0, "upper"])
    assert widths == sorted(widths)


def test_the_relative_error_of_nothing_is_infinite():
    release = grid_release([[0, 0], [0, 0]], 1)
    signed = grid_release([[-40, 0], [0, 5_000_000]], 1)
    for each, box in ((release, (0, 0, 2, 2)), (signed, (0, 0, 1, 1))):
        answer = each.query([box]).table.iloc[0]
        assert answer.estimate == 0
        assert answer.error > 0
        assert np.isinf(answer.relative_error)
        assert np.isinf(answer.relative_perturbation_error)
        uneven = answer.nonuniformity_error
        assert answer.relative_nonuniformity_error == (np.inf if uneven else 0)
        assert not answer.reliable
        assert answer.quality == "poor"


def test_a_small_estimate_in_a_large_release_is_judged_by_itself():
    release = grid_release([[3, 0], [0, 5_000_000]], 1)
    answer = release.query([(0, 0, 1, 1)]).table.iloc[0]
    assert answer.relative_error == pytest.approx(answer.error / answer.estimate)
    assert answer.quality == "poor"


def test_the_whole_domain_is_the_root():
    release = release_of(random_tree(np.random.default_rng(5), height=4))
    table = release.query([(0, 0, 64, 64)]).table
    assert table.loc[0, "estimate"] == pytest.approx(release.total)
    deviation = math.sqrt(release.index.fit.estimates.variance[0])
    assert table.loc[0, "perturbation_error"] == pytest.approx(deviation)
    assert table.loc[0, "nonuniformity_error"] == 0
