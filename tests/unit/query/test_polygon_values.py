"""Answers over rounded coordinates against counts of values: boxes, polygons and rasters."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.query import polygons
from psd.release.post_processing import PostProcessing
from psd.statistics.raster import raster_overlay
from support.releases import changed

METRES = "EPSG:3857"
VIEW = PostProcessing(estimate="signed", density="uniform")
SMOOTH = PostProcessing(estimate="signed", density="smooth")
DOMAINS = {
    "values at the bounds": ((-1.0, 2.0, 1.0, 4.5), "0.1"),
    "values beside the bounds": ((-1.03, 1.98, 1.04, 4.57), "0.1"),
    "a large step": ((0, 0, 700, 900), "25"),
}


def measured(name, size=None, view=VIEW, seed=1):
    """Release with the exact count of every cell, the values of its records, and their counts."""
    bounds, step = DOMAINS[name]
    domain = psd.Domain(bounds=bounds, crs=METRES, coordinate_resolution=step)
    rng = np.random.default_rng(seed)
    count = rng.integers(0, 50, domain.lattice[::-1])
    tree = psd.decompositions.grid_tree(domain, size or domain.lattice)
    leaves = tree.boxes[tree.is_leaf]
    counts = [count[y0:y1, x0:x1].sum() for x0, y0, x1, y1 in leaves.tolist()]
    release = psd.Release.from_counts(tree, counts, 1000, domain=domain)
    x = domain.centres(0, np.arange(domain.lattice[0]))
    y = domain.centres(1, np.arange(domain.lattice[1]))
    points = [values.ravel() for values in np.meshgrid(x, y)]
    return changed(release, post_processing=view), points, count.ravel()


def random_boxes(domain, number=60, seed=3):
    """Boxes whose edges are values, half-way between values, bounds, or anywhere."""
    rng, sides = np.random.default_rng(seed), []
    for axis in (0, 1):
        low, high = domain.bounds[axis], domain.bounds[axis + 2]
        cells = rng.integers(0, domain.lattice[axis], (number, 2))
        edges = np.stack(
            [
                domain.centres(axis, cells),
                domain.edges(axis, cells),
                rng.uniform(low, high, cells.shape),
            ]
        )
        chosen = np.take_along_axis(edges, rng.integers(0, 3, (1, number, 2)), 0)[0]
        chosen[rng.random((number, 2)) < 0.1] = high
        chosen[rng.random((number, 2)) < 0.1] = low
        sides.append(np.sort(chosen, axis=1))
    boxes = np.stack([sides[0][:, 0], sides[1][:, 0], sides[0][:, 1], sides[1][:, 1]], axis=1)
    return boxes[(boxes[:, 0] < boxes[:, 2]) & (boxes[:, 1] < boxes[:, 3])]


def count_in_box(domain, points, count, box):
    """Records whose values are in a box: with its near edges, and the far bounds."""
    inside = np.ones(len(count), bool)
    for axis in (0, 1):
        far = (points[axis] < box[axis + 2]) | (box[axis + 2] >= domain.bounds[axis + 2])
        inside &= (points[axis] >= box[axis]) & far
    return count[inside].sum()


@pytest.mark.parametrize("name", DOMAINS)
def test_boxes_are_counted_exactly_where_every_value_is_measured(name):
    release, points, count = measured(name)
    boxes = random_boxes(release.domain)
    expected = [count_in_box(release.domain, points, count, box) for box in boxes]
    answers = release.query(boxes).table
    assert answers.estimate.to_numpy() == pytest.approx(np.array(expected, float), abs=1e-6)
    assert (answers.nonuniformity_error == 0).all()
    assert release.query(boxes, errors=False).arrays["estimate"] == pytest.approx(
        np.array(expected, float), abs=1e-6
    )
    # One at a time, without the compiled walk and the table of sums.
    for box, value in list(zip(boxes, expected, strict=True))[:5]:
        assert release.query([box]).table.estimate[0] == pytest.approx(value, abs=1e-6)


@pytest.mark.deep
@pytest.mark.parametrize("view", [VIEW, SMOOTH], ids=["uniform", "smooth"])
@pytest.mark.parametrize("size", [None, (3, 2)], ids=["every value", "coarse cells"])
@pytest.mark.parametrize("name", DOMAINS)
def test_a_polygon_that_is_a_box_has_the_answer_of_the_box(name, size, view):
    release, _, _ = measured(name, size, view)
    boxes = random_boxes(release.domain)
    west, south, east, north = boxes.T
    shapes = gpd.GeoSeries(shapely.box(west, south, east, north), crs=METRES)
    by_box, by_polygon = release.query(boxes).table, release.query(shapes).table
    for column in ("estimate", "perturbation_error", "nonuniformity_error"):
        assert by_polygon[column].to_numpy() == pytest.approx(
            by_box[column].to_numpy(), rel=1e-6, abs=1e-6
        )


def test_a_box_between_two_values_is_empty_without_an_error():
    release, _, _ = measured("values at the bounds")
    answer = release.query([(0.12, 2.0, 0.18, 4.0)]).table.iloc[0]
    assert (answer.estimate, answer.error, answer.lower, answer.upper) == (0, 0, 0, 0)
    thin = gpd.GeoSeries([shapely.box(0.12, 2.0, 0.18, 4.0)], crs=METRES)
    answer = release.query(thin).table.iloc[0]
    assert (answer.estimate, answer.error) == (0, 0)


def test_empty_boxes_are_explained_and_answered_jointly():
    release, _, _ = measured("values at the bounds", (5, 4))
    empty, filled = (0.12, 2.4, 0.18, 3.9), (-0.5, 2.3, 0.5, 4.0)
    explained = release.query([empty, filled]).explain()
    assert [len(found.inside) + len(found.cut) > 0 for found in explained] == [False, True]
    assert (explained[0].remedies.error == 0).all()
    joint = release.query([empty, filled]).joint()
    assert joint.covariance[0].tolist() == [0, 0]
    assert joint.total().estimate == pytest.approx(release.query([filled]).table.estimate[0])
    assert release.query([empty, filled]).nested().estimate[0] == 0


def test_releases_of_other_resolutions_are_not_compared():
    first, _, _ = measured("values at the bounds", (5, 4))
    domain = psd.Domain(bounds=first.domain.bounds, crs=METRES, coordinate_resolution="0.05")
    other = psd.Release.from_counts(psd.decompositions.grid_tree(domain, 1), [9], 1, domain=domain)
    with pytest.raises(
        psd.errors.DomainError, match=r"different coordinate resolution, 0\.1 and 0"
    ):
        first.query([(-0.5, 2.3, 0.5, 4.0)], difference=other)


@pytest.mark.parametrize("size", [None, (5, 4)], ids=["every value", "coarse cells"])
def test_polygons_that_tile_share_no_value(size):
    """Triangles along diagonals through the values, and a fan of any slope."""
    release, points, count = measured("values beside the bounds", size)
    west, south, east, north = release.domain.bounds
    inner = [(-0.7, 2.3), (0.8, 2.3), (0.8, 3.8), (-0.7, 3.8)]
    centre = (0.0, 3.0)
    outer = [(west, south), (east, south), (east, north), (west, north)]
    parts = [shapely.Polygon([centre, inner[n], inner[n - 3]]) for n in range(4)]
    parts += [shapely.Polygon([inner[n], outer[n], outer[n - 3], inner[n - 3]]) for n in range(4)]
    answers = release.query(gpd.GeoSeries(parts, crs=METRES)).table
    assert answers.estimate.sum() == pytest.approx(count.sum(), abs=1e-5)
    if size is None:
        clear = [shapely.contains_xy(shapely.buffer(p, -1e-3), *points) for p in parts]
        touched = [shapely.intersects_xy(shapely.buffer(p, 1e-3), *points) for p in parts]
        for estimate, low, high in zip(answers.estimate, clear, touched, strict=True):
            assert count[low].sum() - 1e-6 <= estimate <= count[high].sum() + 1e-6


def test_polygons_hold_the_values_inside_them():
    release, points, count = measured("a large step")
    rng = np.random.default_rng(5)
    shapes = [
        shapely.convex_hull(shapely.MultiPoint(rng.uniform((-50, -50), (750, 950), (6, 2))))
        for _ in range(40)
    ]
    answers = release.query(gpd.GeoSeries(shapes, crs=METRES)).table
    expected = [count[shapely.contains_xy(shape, *points)].sum() for shape in shapes]
    assert answers.estimate.to_numpy() == pytest.approx(np.array(expected, float), abs=1e-5)
    assert (answers.nonuniformity_error == 0).all()


def test_leaves_of_more_values_are_measured_by_area(monkeypatch):
    release, _, _ = measured("a large step", (3, 3))
    shape = gpd.GeoSeries([shapely.Polygon([(10, 10), (310, 50), (140, 500)])], crs=METRES)
    by_value = release.query(shape).table.estimate[0]
    monkeypatch.setattr(polygons, "MAX_VALUES", 10)
    by_area = release.query(shape).table.estimate[0]
    assert by_area != by_value
    assert by_area == pytest.approx(by_value, rel=0.2)


@pytest.mark.deep
def test_the_batches_do_not_change_an_answer(monkeypatch):
    release, _, _ = measured("values beside the bounds", (5, 4), SMOOTH)
    shape = gpd.GeoSeries(
        [shapely.Point(0, 3).buffer(0.8), shapely.Point(0, 3).buffer(0.3)], crs=METRES
    )
    together = release.query(shape).table
    monkeypatch.setattr(polygons, "_VALUES_PER_BATCH", 7)
    assert release.query(shape).table.estimate.to_numpy() == pytest.approx(
        together.estimate.to_numpy()
    )


@pytest.mark.deep
@pytest.mark.parametrize("view", [VIEW, SMOOTH], ids=["uniform", "smooth"])
@pytest.mark.parametrize("raster", [(7, 9), (21, 26), (64, 40)])
@pytest.mark.parametrize("size", [None, (5, 4)], ids=["every value", "coarse cells"])
@pytest.mark.parametrize("name", DOMAINS)
def test_cells_of_a_raster_are_what_queries_answer(name, size, raster, view):
    release, _, count = measured(name, size, view)
    overlay = raster_overlay(release.index.fit, *raster)
    west, south, east, north = release.domain.bounds
    x, y = np.linspace(west, east, raster[0] + 1), np.linspace(south, north, raster[1] + 1)
    row, column = np.divmod(np.arange(raster[0] * raster[1]), raster[0])
    boxes = np.stack([x[column], y[row], x[column + 1], y[row + 1]], axis=1)
    assert release.domain.from_lattice(overlay.boxes) == pytest.approx(boxes, rel=1e-9, abs=1e-9)
    answers, counts = release.query(boxes).table, overlay.counts()
    assert counts.sum() == pytest.approx(count.sum(), abs=1e-5)
    assert np.maximum(counts, 0) == pytest.approx(answers.estimate.to_numpy(), rel=1e-9, abs=1e-6)
    assert np.sqrt(overlay.perturbation_variance()) == pytest.approx(
        answers.perturbation_error.to_numpy(), rel=1e-6, abs=1e-9
    )
    assert np.sqrt(overlay.nonuniformity_variance()) == pytest.approx(
        answers.nonuniformity_error.to_numpy(), rel=1e-6, abs=1e-6
    )
