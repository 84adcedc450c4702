"""Errors along the sides of polygons: those of boxes, side by side and leaf by leaf."""

import itertools

import geopandas as gpd
import numpy as np
import pytest
import shapely
from unit.estimation.test_lines import points, release_of_points

from oracle.test_line_errors import boxes_of
from psd.query.constants import SLANTING_SHIFT
from psd.query.joint import nonuniformity_covariance
from psd.release.post_processing import PostProcessing
from support.releases import changed

pytestmark = pytest.mark.deep


@pytest.fixture(scope="module", params=[1, 4])
def release(request):
    made = release_of_points(np.round(points(20_000), 2), side=256, columns=request.param)
    return changed(made, post_processing=PostProcessing(estimate="posterior", density="smooth"))


def series(release, shapes):
    return gpd.GeoSeries(list(shapes), crs=release.domain.crs)


def naive_variance(release, shape):
    """Sides one by one and leaves one by one; those of one line err together."""
    leaves = np.flatnonzero(release.tree.is_leaf)
    cells = release.domain.from_lattice(release.tree.boxes[leaves])
    errors = {}
    for polygon in shapely.get_parts(shape):
        polygon = shapely.geometry.polygon.orient(polygon)
        for ring, axis in itertools.product((polygon.exterior, *polygon.interiors), (0, 1)):
            line, of_first = (), None
            for start, stop in itertools.pairwise(np.array(ring.coords)):
                across, along = np.abs(stop - start)[[axis, 1 - axis]]
                sign = np.sign((stop - start)[1 - axis]) * (1 if axis == 0 else -1)
                if across == 0:
                    line, weight = (axis, round(start[axis], 9)), 1
                elif along == 0:
                    line, of_first = (), of_first or ()
                    continue
                else:
                    weight = SLANTING_SHIFT
                    if line[:2] != (axis, f"slanting {sign}"):
                        line = (axis, f"slanting {sign}", len(errors))
                inside = shapely.intersection(
                    shapely.linestrings([start, stop]), shapely.box(*cells.T)
                )
                bounds = np.nan_to_num(shapely.bounds(inside))
                size = cells[:, 2:] - cells[:, :2]
                at = (bounds[:, axis] + bounds[:, axis + 2]) / 2
                share = np.clip((at - cells[:, axis]) / size[:, axis], 0, 1)
                part = (bounds[:, 3 - axis] - bounds[:, 1 - axis]) / size[:, 1 - axis]
                deviation = release.index.fit.line_deviation[axis, leaves]
                cut = deviation * np.sqrt(share * (1 - share))
                if weight == 1:
                    width = np.diff(release.tree.boxes[leaves][:, [axis, axis + 2]]).ravel()
                    count = np.maximum(release.index.fit.estimates.count[leaves], 0)
                    cut = np.hypot(cut, count / width * abs(share * width - np.rint(share * width)))
                error = weight * sign * (cut * part).sum()
                errors[line] = errors.get(line, 0.0) + error
                of_first = line if of_first is None else of_first
            if of_first != line and of_first[:2] == line[:2] and len(line) == 3:
                errors[of_first] += errors.pop(line)  # the ring begins within a side
    return sum(value**2 for value in errors.values())


def test_a_rectangle_has_the_error_of_a_box(release):
    boxes = boxes_of(release, 60)
    rectangles = series(release, shapely.box(*boxes.T))
    of_boxes, of_polygons = release.query(boxes).table, release.query(rectangles).table
    for column in ("estimate", "nonuniformity_error", "lower", "upper"):
        assert of_polygons[column].to_numpy() == pytest.approx(of_boxes[column], rel=1e-6, abs=1e-6)
    assert release.query(rectangles).areas.totals(release.index).line_variance.mean() > 0


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
    totals = release.query(series(release, shapes)).areas.totals(release.index)
    whole = shapely.box(*release.domain.bounds)
    clipped = [shapely.intersection(shape, whole) for shape in shapes]
    expected = [naive_variance(release, shape) for shape in clipped]
    assert totals.line_variance == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert min(expected) > 0


def test_a_side_in_pieces_is_one_side(release):
    west, south, *_ = release.domain.bounds
    box = shapely.box(west + 0.1031, south + 0.1047, west + 0.7013, south + 0.6029)
    for shape in (box, shapely.affinity.rotate(box, 20)):
        both = series(release, [shape, shapely.segmentize(shape, 0.01)])
        whole, divided = release.query(both).areas.totals(release.index).line_variance
        assert whole > 0
        # A slanting cut changes its share of a cell from piece to piece.
        assert divided == pytest.approx(whole, rel=1e-6 if shape is box else 0.05)


def test_a_side_that_hardly_slants_is_upright(release):
    west, south, *_ = release.domain.bounds
    square = shapely.box(west + 0.2031, south + 0.2047, west + 0.6013, south + 0.6029)
    turned = [shapely.affinity.rotate(square, degrees) for degrees in (0, 0.01, 45)]
    upright, nearly, slanting = (
        release.query(series(release, turned)).areas.totals(release.index).line_variance
    )
    assert nearly == pytest.approx(upright, rel=0.1)
    assert 0 < slanting != pytest.approx(upright, rel=0.05)


def test_joint_answers_have_the_errors_of_queries(release):
    shapes = series(release, shapely.box(*boxes_of(release, 12).T))
    covariance = nonuniformity_covariance(
        release.index.fit, release.query(shapes).areas.overlaps(release.index.fit)
    )
    errors = release.query(shapes)["nonuniformity_error"]
    assert np.sqrt(np.diagonal(covariance)) == pytest.approx(errors.to_numpy(), rel=1e-6)
    boxes = release.query(boxes_of(release, 12)).areas.overlaps(release.index.fit)
    of_boxes = nonuniformity_covariance(release.index.fit, boxes)
    assert np.abs(covariance - of_boxes).max() < 1e-6 * of_boxes.max()


def test_neighbours_err_in_opposite_directions_along_their_common_line(release):
    west, south, east, north = release.domain.bounds
    middle = west + 0.5031 * (east - west)
    halves = [(west, south, middle, north), (middle, south, east, north)]
    joint = release.query(series(release, [shapely.box(*half) for half in halves])).joint()
    both = joint.nonuniformity_covariance
    assert both.sum() == pytest.approx(0, abs=1e-6 * both[0, 0])
    assert both[0, 0] > 0


def test_an_explanation_has_the_error_of_the_answer(release):
    shape = series(release, [shapely.box(*boxes_of(release, 1)[0])])
    told = release.query(shape).explain()[0].remedies["nonuniformity_error"].iloc[0]
    assert told == pytest.approx(release.query(shape)["nonuniformity_error"].iloc[0], rel=1e-9)
