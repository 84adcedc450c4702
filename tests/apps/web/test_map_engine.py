"""Answers of the map page are those of the library: boxes, polygons and unions, for every kind."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

from psd.estimation.density import SmoothDensity
from psd.query.answer_table import QUALITIES
from psd.space.time_slices import TimeWindow
from psd.testing.data import release_from_counts
from support.cubes import SLICES, cube, of_labels, of_rush, town
from support.map_engine import (
    COLUMNS,
    KINDS,
    box_of,
    cube_of_wards,
    joint_totals,
    of_zooms,
    polygon_of,
    random_boxes,
    random_polygons,
    random_strips,
    run_cube,
    run_engine,
    stated,
    viewed,
)

pytestmark = pytest.mark.deep

BOXES, POLYGONS, UNIONS = 600, 300, 100


def difference(found, expected):
    """Largest difference, relative to the answer, or to 1 where that is larger.

    An error of nearly 0 is the root of a rounding error: it may also be near by its square.
    """
    scale = np.maximum(np.abs(expected), 1)
    of_values = np.abs(found - expected) / scale
    of_squares = np.abs(found**2 - expected**2) / scale**2
    is_error = [name.endswith("_error") or name == "error" for name in COLUMNS]
    return float(np.where(is_error, np.minimum(of_values, of_squares), of_values).max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_answers_are_those_of_the_library(kind, tmp_path):
    release, random = KINDS[kind](), np.random.default_rng(5)
    boxes = random_boxes(release, BOXES, random)
    polygons = random_polygons(release, POLYGONS, random)
    strips = [random_strips(release, box, random) for box in boxes[:UNIONS]]
    queries = [[box_of(box)] for box in boxes] + [[polygon_of(each)] for each in polygons]
    queries += [[box_of(box) for box in union] for union in strips]
    found, result = run_engine(tmp_path, release, queries)
    expected = [
        stated(release.query(boxes).table),
        stated(release.query(polygons, crs=release.domain.crs).table),
        joint_totals(release, strips),
    ]
    assert difference(found, np.concatenate(expected)) < 1e-9
    errors = np.sqrt(release.index.fit.noise_covariance.variance)
    assert np.abs(np.array(result["errors"]) - errors).max() < 1e-9
    density = release.index.fit.density
    if isinstance(density, SmoothDensity):  # its sums are in the same order: equal to the last bit
        shares = np.array(result["shares"]).reshape(density.share.shape)
        np.testing.assert_array_equal(shares, density.share)


@pytest.mark.parametrize("kind", ["auto", "covariate", "resolution", "streets"])
def test_polygons_that_cut_the_same_cells_have_the_joint_answer(kind, tmp_path):
    release, random = KINDS[kind](), np.random.default_rng(6)
    unions = []
    for polygon in random_polygons(release, 30, random):
        half = shapely.box(-1e9, -1e9, polygon.centroid.x, 1e9)
        parts = [polygon.intersection(half), polygon.difference(half)]
        parts = [part for both in parts for part in shapely.get_parts(both) if part.area > 0]
        bounds = shapely.box(*release.domain.bounds)
        inside = [p for p in parts if p.intersection(bounds).area > 1e-9 * p.area]
        if len(inside) > 1:
            unions.append(inside)
    found, _ = run_engine(tmp_path, release, [[polygon_of(p) for p in each] for each in unions])
    expected = [
        stated(release.query(gpd.GeoSeries(each, crs=release.domain.crs)).joint().total())
        for each in unions
    ]
    assert len(unions) > 20
    assert difference(found, np.concatenate(expected)) < 1e-9


def test_overlaps_are_found_and_slivers_are_not(tmp_path):
    release = release_from_counts(np.full((4, 4), 50))
    star = shapely.Polygon([(0.5, 0.5), (3.5, 1), (1.5, 1.5), (2, 3.5)])
    corner = shapely.box(1.55, 1.6, 3.9, 3.9)
    pairs = [
        (box_of((0, 0, 2, 2)), box_of((1, 1, 3, 3)), True),
        (box_of((0, 0, 2, 2)), box_of((2, 0, 4, 2)), False),
        (polygon_of(star), polygon_of(corner), star.intersection(corner).area > 0),
        (polygon_of(star), box_of((3, 2, 4, 4)), False),
        (polygon_of(star), polygon_of(shapely.box(0, 0, 4, 4).difference(star)), False),
        (polygon_of(star), polygon_of(star.buffer(-0.1)), True),
    ]
    _, result = run_engine(tmp_path, release, [], [pair[:2] for pair in pairs])
    assert result["overlaps"] == [bool(expected) for *_, expected in pairs]


@pytest.mark.parametrize("kind", ["tiles", "wards"])
def test_polygons_that_are_unions_of_regions_are_answered_from_their_nodes(kind, tmp_path):
    release = KINDS[kind]()
    shapes = release.tree.region_shapes
    pairs = [shapely.union_all(shapes[[i, i + 1]]) for i in range(len(shapes) - 1)]
    unions = [each for each in [*shapes, *pairs] if each.geom_type == "Polygon"]
    # Their corners moved a little, by less than the tolerance.
    moved = [each.buffer(-1e-6 * np.sqrt(each.area)) for each in unions]
    found, _ = run_engine(tmp_path, release, [[polygon_of(each)] for each in moved])
    expected = stated(release.query(moved, crs=release.domain.crs).table)
    assert len(unions) > len(shapes)
    assert (expected[:, 2] == 0).all()  # without an error of cut cells
    assert difference(found, expected) < 1e-9


def test_named_nodes_have_the_answers_of_regions(tmp_path):
    release = of_zooms("9,10,11")
    for number, level in enumerate(release.levels):
        nodes = release.tree.named(number).tolist()
        queries = [[{"nodes": [node]}] for node in nodes] + [[{"nodes": [n]} for n in nodes]]
        found, _ = run_engine(tmp_path, release, queries)
        assert difference(found[:-1], stated(release.query(level=level).table)) < 1e-9
        total = release.query(level=level).joint().total()
        assert difference(found[-1:], stated(total)) < 1e-9


# Columns of a mean or a sum, and what the engine calls them.
ENDS = {"": "estimate", "_perturbation_error": "perturbation", "_error": "error",
        "_nonuniformity_error": "nonuniformity", "_lower": "lower", "_upper": "upper"}  # fmt: skip
OF_VALUES = [kind for kind in KINDS if "values" in kind]


def value_columns(found, name, kind):
    """Columns of a mean or a sum of answers of the engine, (answers, 6)."""
    each = [next(value for value in answer if value["name"] == name)[kind] for answer in found]
    return np.array([[answer[key] for key in ENDS.values()] for answer in each])


@pytest.mark.parametrize("kind", OF_VALUES)
def test_means_and_sums_are_those_of_the_library(kind, tmp_path):
    release, random = KINDS[kind](), np.random.default_rng(8)
    boxes, polygons = random_boxes(release, 200, random), random_polygons(release, 100, random)
    strips = [random_strips(release, box, random) for box in boxes[:50]]
    queries = [[box_of(box)] for box in boxes] + [[polygon_of(each)] for each in polygons]
    queries += [[box_of(box) for box in union] for union in strips]
    _, result = run_engine(tmp_path, release, queries)
    names = [value.name for value in release.record.values]
    tables = [
        release.query(areas, mean=names, sum=names, **crs).table
        for areas, crs in ((boxes, {}), (polygons, {"crs": release.domain.crs}))
    ]
    for name, value in zip(names, release.record.values, strict=True):
        for of_value in ("mean", "sum"):
            columns = [f"{of_value}_{name}{end}" for end in ENDS]
            expected = np.concatenate([table[columns].to_numpy(float) for table in tables])
            found = value_columns(result["values"], name, of_value)
            scale = value.width * (1 if of_value == "mean" else max(release.total, 1))
            assert near(found[:300], expected, scale) < 1e-9
            # Boxes side by side have the estimate and the errors of the box that they make up, but
            # where cells are below 0: weights are not.
            whole = np.s_[:50, :4]
            assert (
                kind == "signed values" or near(found[300:][whole], expected[whole], scale) < 1e-7
            )
        quality = [QUALITIES[each["mean"]["quality"]] for each in of_name(result["values"], name)]
        expected = np.concatenate([table[f"mean_{name}_quality"] for table in tables])
        assert np.mean(np.array(quality[:300]) == expected) > 0.995  # but for rounding at a limit
        assert len(set(expected)) > 1
        for answer in of_name(result["values"], name):
            mean = answer["mean"]
            is_none = (mean["lower"], mean["upper"]) == (value.lower, value.upper)
            assert mean["hasInterval"] == (not is_none)


def of_name(found, name):
    """Answers of one value."""
    return [next(value for value in answer if value["name"] == name) for answer in found]


def near(found, expected, scale):
    """Largest difference in units of a scale; an error of nearly 0 is the root of rounding."""
    found, expected = found / scale, expected / scale
    by_square = np.sqrt(np.abs(found**2 - expected**2)) ** 2
    return float(np.minimum(np.abs(found - expected), by_square).max())


@pytest.mark.parametrize("kind", ["values", "values of a cascade, Gaussian", "signed values"])
def test_means_of_cells_are_those_of_the_table(kind, tmp_path):
    release = KINDS[kind]()
    _, result = run_engine(tmp_path, release, [])
    table = release.to_geopandas("all")
    for value, nodes in zip(release.record.values, result["nodes"], strict=True):
        for of_value in ("mean", "sum"):
            ends = ("", "_error", "_lower", "_upper")
            expected = table[[f"{of_value}_{value.name}{end}" for end in ends]].to_numpy()
            found = np.array([[each[of_value][ENDS[end]] for end in ends] for each in nodes])
            scale = value.width * (1 if of_value == "mean" else max(release.total, 1))
            some = (table["estimate"] > 0).to_numpy()  # the mean of no record may be any value
            assert near(found[some], expected[some], scale) < 1e-9
        quality = np.array([QUALITIES[each["mean"]["quality"]] for each in nodes])
        assert (quality == table[f"mean_{value.name}_quality"]).mean() > 0.995


@pytest.mark.parametrize("level", [None, 2])
@pytest.mark.parametrize("when", ["2024-01-01T08", "weekdays 07-09", "2024-01-01"])
def test_cells_of_a_window_of_a_cube_have_the_answers_of_the_library(when, level, tmp_path):
    release = cube()
    view = release[when]
    tree = view.tree
    nodes = np.arange(len(tree) if level is None else tree.levels[level].stop)
    queries = [[{"nodes": [int(node)]}] for node in nodes]
    found, result = run_engine(tmp_path, view, queries, level=level)
    boxes = release.domain.from_lattice(tree.boxes[nodes])
    expected = release.query(boxes, when=when).table
    assert difference(found, stated(expected)) < 1e-9
    assert np.abs(np.array(result["errors"]) - expected["error"]).max() < 1e-9
    ranks = [QUALITIES.index(each) for each in expected["quality"]]
    assert [each["quality"] for each in result["answers"]] == ranks


PURPOSE = {"category": "purpose", "labels": ["work", "home"], "other_labels": "drop"}

CUBES = {
    "hours": (cube, 1_000),
    "hours and categories": (of_labels, 500),
    "a cube for each category": (lambda: of_labels(epsilon=4), 500),
    "Gaussian": (
        lambda: cube(delta="1e-6", user="user", max_contributions=8, max_per_slice=2), 200
    ),
    "a boundary": (
        lambda: cube(boundary=gpd.GeoSeries([shapely.Point(8, 8).buffer(6)], crs=3857)), 200
    ),
    "signed": (lambda: viewed(cube(), estimate="signed"), 200),
    "least squares": (lambda: viewed(cube(), estimate="least-squares"), 200),
    "a layer of times": (of_rush, 500),
    "times of all categories": (lambda: of_rush(SLICES, epsilon=0.15, **PURPOSE), 200),
    "times of each category": (lambda: of_rush(epsilon=1, **PURPOSE), 200),
    "regions": (cube_of_wards, 500),
    "regions and a gap": (lambda: cube_of_wards(gaps="outside", data=town(600)), 200),
}  # fmt: skip


def random_window(release, random):
    """Slices, all of them, one, some in a row or any; and a label: its cells, and what asks it."""
    slices, category = release.record.slices, release.record.category
    size = len(slices)
    first = random.integers(size)
    some = [np.arange(size), [first], np.arange(first, random.integers(first, size) + 1)]
    some.append(np.flatnonzero(np.append(random.random(size - 1) < 0.3, True)))
    numbers = np.asarray(some[random.integers(4)])
    asked = {"when": TimeWindow(name="window", numbers=numbers)}
    if category is None:
        return [numbers], asked
    label = random.choice([None, *category.spans])
    span = (0, category.size) if label is None else category.spans[label]
    return [numbers, np.arange(*span)], {**asked, "category": label}


@pytest.mark.parametrize("kind", CUBES)
def test_a_thousand_windows_of_a_cube_have_the_answers_of_the_library(kind, tmp_path):
    make, number = CUBES[kind]
    release, random = make(), np.random.default_rng(3)
    boxes, polygons = (
        each(release, number // 5 * part, random)
        for each, part in ((random_boxes, 4), (random_polygons, 1))
    )
    areas = [[box] for box in boxes] + [gpd.GeoSeries([p], crs=3857) for p in polygons]
    shapes = [*map(box_of, boxes), *map(polygon_of, polygons)]
    windows = [random_window(release, random) for _ in areas]
    found, result = run_cube(
        tmp_path, release, [(s, axes) for s, (axes, _) in zip(shapes, windows, strict=True)]
    )
    expected = [
        stated(release.query(area, **asked).table)[0]
        for area, (_, asked) in zip(areas, windows, strict=True)
    ]
    assert difference(found, np.array(expected)) < 1e-9
    # Cells have at once what is answered to their boxes, unless counts may be negative.
    cells = release.record.cells.boxes
    if release.levels:
        return
    for (_, asked), counts in zip(windows[:10], result["counts"], strict=False):
        if kind == "signed":
            break
        answers = release.query(release.domain.from_lattice(cells), **asked)["estimate"]
        assert np.abs(np.maximum(counts, 0) - answers).max() < 1e-9 * max(answers.max(), 1)


@pytest.mark.parametrize("epsilon", [1, 4])
def test_regions_that_are_nodes_of_a_cube_have_the_answers_of_their_boxes(epsilon, tmp_path):
    release, random = of_labels(epsilon=epsilon), np.random.default_rng(4)
    nodes, boxes = np.arange(len(release.record.cells)), release.record.cells.boxes
    axes, asked = random_window(release, random)
    found, _ = run_cube(tmp_path, release, [({"nodes": [int(node)]}, axes) for node in nodes])
    answers = release.query(release.domain.from_lattice(boxes), **asked)
    assert difference(found, stated(answers.table)) < 1e-9


@pytest.mark.parametrize("gaps", ["elsewhere", "outside"])
def test_regions_of_a_cube_have_the_answers_of_the_library(gaps, tmp_path):
    release, random = cube_of_wards(gaps=gaps), np.random.default_rng(6)
    asked, queries, expected, nodes = [], [], [], []
    for window in range(40):
        level = release.levels[window % 2]
        axes, given = random_window(release, random)
        nodes.append(release.record.plane.tree.named(window % 2))
        asked.append(given)
        queries += [({"nodes": [int(node)]}, axes) for node in nodes[-1]]
        expected.append(stated(release.query(level=level, **given).table))
    found, result = run_cube(tmp_path, release, queries)
    assert difference(found, np.concatenate(expected)) < 1e-9
    # Estimates of all regions come at once, for the classes of colour.
    first = 0
    for of_window, answers in zip(nodes, expected, strict=True):
        counts = np.array(result["counts"][first])[of_window]
        assert np.abs(np.maximum(counts, 0) - answers[:, 0]).max() < 1e-9 * max(answers.max(), 1)
        first += len(of_window)
