"""Errors along the sides of polygons: those of boxes, side by side and leaf by leaf."""

import itertools

import geopandas as gpd
import numpy as np
import pytest
import shapely
from unit.estimation.test_lines import points, release_of_points

from oracle.test_line_errors import boxes_of
from psd.query.covariance import nonuniformity_covariance
from psd.query.polygon_sides import find_sides
from psd.query.polygons import polygon_totals
from psd.query.region_overlaps import prepare_regions
from psd.release.post_processing import PostProcessing
from support.releases import changed


@pytest.fixture(scope="module")
def release():
    made = release_of_points(np.round(points(20_000), 2), side=256)
    return changed(made, post_processing=PostProcessing(estimate="posterior", density="smooth"))


def series(release, shapes):
    return gpd.GeoSeries(list(shapes), crs=release.domain.crs)


def naive_variance(release, shape):
    """Sides one by one and leaves one by one; those on one line err together."""
    leaves = np.flatnonzero(release.tree.is_leaf)
    cells = release.domain.from_lattice(release.tree.boxes[leaves])
    inside = {}
    for polygon in shapely.get_parts(shape):
        polygon = shapely.geometry.polygon.orient(polygon)
        for ring in (polygon.exterior, *polygon.interiors):
            corners = np.array(ring.coords)
            for (x0, y0), (x1, y1) in itertools.pairwise(corners):
                if x0 == x1:
                    axis, at, low, high, sign = 0, x0, *sorted((y0, y1)), np.sign(y1 - y0)
                elif y0 == y1:
                    axis, at, low, high, sign = 1, y0, *sorted((x0, x1)), np.sign(x0 - x1)
                else:
                    continue
                size = cells[:, axis + 2] - cells[:, axis]
                share = np.clip((at - cells[:, axis]) / size, 0, 1)
                begin, end = cells[:, 1 - axis], cells[:, 3 - axis]
                along = np.clip(np.minimum(high, end) - np.maximum(low, begin), 0, None)
                deviation = release.model.line_deviation[axis, leaves]
                error = deviation * np.sqrt(share * (1 - share)) * along / (end - begin)
                line = (axis, round(at, 9))
                inside[line] = inside.get(line, 0.0) + sign * error.sum()
    return sum(value**2 for value in inside.values())


def test_a_rectangle_has_the_error_of_a_box(release):
    boxes = boxes_of(release, 60)
    rectangles = series(release, shapely.box(*boxes.T))
    of_boxes, of_polygons = release.query(boxes), release.query(rectangles)
    for column in ("estimate", "nonuniformity_error", "lower", "upper"):
        assert of_polygons[column].to_numpy() == pytest.approx(of_boxes[column], rel=1e-6, abs=1e-6)
    assert polygon_totals(release.model, rectangles).line_variance.mean() > 0


def test_holes_parts_steps_and_slanting_sides_are_those_of_the_naive_way(release):
    west, south, east, north = release.domain.bounds
    at = [west, south, west, south] + np.array([0.1031, 0.1047, 0.7013, 0.6029]) * (east - west)
    box = shapely.box(*at)
    hole = shapely.box(
        *(0.7 * at + 0.3 * at[[2, 3, 2, 3]])[:2], *(0.4 * at + 0.6 * at[[2, 3, 2, 3]])[2:]
    )
    middle = shapely.Point(*at[:2]).buffer(0.08 * (east - west), quad_segs=2)
    steps = shapely.union_all(
        [shapely.box(at[0], at[1], at[0] + k * 0.0413, at[3] - k * 0.0317) for k in range(1, 9)]
    )
    beyond = shapely.box(west - 1, south + 0.2003 * (north - south), east + 1, north + 1)
    parts = shapely.MultiPolygon(
        [shapely.box(*at[:2], *at[:2] + 0.05), shapely.box(*at[2:], *at[2:] + 0.05)]
    )
    shapes = [box, box.difference(hole), middle, steps, beyond, parts, box.reverse()]
    totals = polygon_totals(release.model, series(release, shapes))
    whole = shapely.box(*release.domain.bounds)
    clipped = [shapely.intersection(shape, whole) for shape in shapes]
    expected = [naive_variance(release, shape) for shape in clipped]
    assert totals.line_variance == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert expected[2] == 0  # an octagon on a corner
    assert min(np.delete(expected, 2)) > 0


def test_a_side_in_pieces_is_one_side(release):
    west, south, *_ = release.domain.bounds
    box = shapely.box(west + 0.1031, south + 0.1047, west + 0.7013, south + 0.6029)
    pieces = shapely.segmentize(box, 0.01)
    whole, divided = (find_sides(np.array([shape]), release.domain) for shape in (box, pieces))
    assert len(divided) == len(whole) == 4
    totals = polygon_totals(release.model, series(release, [box, pieces]))
    assert totals.line_variance[0] == pytest.approx(totals.line_variance[1], rel=1e-6)


def test_a_turned_square_has_no_such_error(release):
    west, south, *_ = release.domain.bounds
    square = shapely.box(west + 0.2, south + 0.2, west + 0.6, south + 0.6)
    square = shapely.affinity.rotate(square, 30)
    assert len(find_sides(np.array([square]), release.domain)) == 0
    assert polygon_totals(release.model, series(release, [square])).line_variance[0] == 0


def test_joint_answers_have_the_errors_of_queries(release):
    shapes = series(release, shapely.box(*boxes_of(release, 12).T))
    covariance = nonuniformity_covariance(release.model, prepare_regions(release.model, shapes))
    errors = release.query(shapes)["nonuniformity_error"]
    assert np.sqrt(np.diagonal(covariance)) == pytest.approx(errors.to_numpy(), rel=1e-6)
    boxes = prepare_regions(release.model, boxes_of(release, 12))
    of_boxes = nonuniformity_covariance(release.model, boxes)
    assert np.abs(covariance - of_boxes).max() < 1e-6 * of_boxes.max()


def test_neighbours_err_in_opposite_directions_along_their_common_line(release):
    west, south, east, north = release.domain.bounds
    middle = west + 0.5031 * (east - west)
    halves = [(west, south, middle, north), (middle, south, east, north)]
    joint = release.joint(series(release, [shapely.box(*half) for half in halves]))
    both = joint.nonuniformity_covariance
    assert both.sum() == pytest.approx(0, abs=1e-6 * both[0, 0])
    assert both[0, 0] > 0


def test_an_explanation_has_the_error_of_the_answer(release):
    shape = series(release, [shapely.box(*boxes_of(release, 1)[0])])
    told = release.explain(shape)[0].remedies["nonuniformity_error"].iloc[0]
    assert told == pytest.approx(release.query(shape)["nonuniformity_error"].iloc[0], rel=1e-9)
