"""Points in polygons by the even-odd rule: against exact fractions, and against GEOS."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from psd.space import even_odd
from psd.space.even_odd import EdgeIndex
from psd.space.polygon_areas import clip_outlines

STAR = shapely.Polygon([(1, 1), (4, 2), (7, 1), (6, 4), (7, 7), (4, 6), (1, 7), (2, 4)])
RING = shapely.box(0, 0, 6, 6).difference(shapely.box(2, 2, 4, 4))


def index(*shapes):
    return EdgeIndex.from_polygons(np.array(shapes, dtype=object))


def oracle(shape, x, y):
    """Rays to the east, in fractions; a side holds its south end."""
    x, y, crossed = Fraction(x), Fraction(y), 0
    for ring in shapely.get_rings(shapely.get_parts(shape)):
        ends = [(Fraction(a), Fraction(b)) for a, b in shapely.get_coordinates(ring)]
        for (a, b), (c, d) in itertools.pairwise(ends):
            if min(b, d) <= y < max(b, d):
                crossed += a + (y - b) / (d - b) * (c - a) > x
    return crossed % 2 == 1


def polygons(size):
    """Polygons with vertices on a coarse grid, so that points and vertices coincide."""
    corner = st.tuples(*[st.integers(0, size)] * 2)
    return st.lists(corner, min_size=3, max_size=9, unique=True).map(
        lambda corners: shapely.make_valid(shapely.Polygon(corners), method="structure")
    )


@pytest.mark.deep
@settings(derandomize=True, max_examples=150, deadline=None)
@given(polygons(6), st.sampled_from([1.0, 0.1, 1 / 3]))
def test_each_point_is_decided_as_by_fractions(shape, step):
    if shape.geom_type not in ("Polygon", "MultiPolygon") or shape.is_empty:
        return
    shape = shapely.transform(shape, lambda vertices: vertices * step)
    x, y = (side.ravel() * step / 2 for side in np.meshgrid(np.arange(-1, 14), np.arange(-1, 14)))
    inside = index(shape).contains(np.zeros(len(x), int), x, y)
    assert inside.tolist() == [oracle(shape, *point) for point in zip(x, y, strict=True)]


@pytest.mark.parametrize("shape", [STAR, RING, shapely.union(STAR, shapely.box(8, 0, 9, 9))])
def test_points_off_the_outline_are_decided_as_by_geos(shape):
    x, y = np.random.default_rng(1).uniform(-1, 10, (2, 20_000))
    inside = index(shapely.box(0, 0, 1, 1), shape).contains(np.ones(len(x), int), x, y)
    assert np.array_equal(inside, shapely.contains_xy(shape, x, y))


def test_a_point_that_rounding_would_misjudge():
    """Beside a long side, nearer than the rounding of the product of its coordinates."""
    shape = shapely.Polygon([(0, 0), (3e8, 1e8 + 1), (3e8, 3e8), (0, 3e8)])
    x, y = np.array([3e8 / 2, 1.5e8]), np.array([(1e8 + 1) / 2, np.nextafter((1e8 + 1) / 2, 0)])
    inside = index(shape).contains(np.zeros(2, int), x, y)
    assert inside.tolist() == [oracle(shape, *point) for point in zip(x, y, strict=True)]


@pytest.mark.deep
def test_a_comb_with_many_tall_sides_needs_little_memory():
    teeth = np.arange(4000)
    top = np.stack([teeth, np.where(teeth % 2, 100.0, 1.0)], axis=1)
    comb = shapely.Polygon([*top, (3999, 0), (0, 0)])
    found = index(comb)
    assert len(found.entries) < 5 * len(found.owner)
    x, y = np.random.default_rng(4).uniform(0, 100, (2, 2000))
    assert np.array_equal(
        found.contains(np.zeros(2000, int), x, y), shapely.contains_xy(comb, x, y)
    )


# --- boxes --------------------------------------------------------------------------------


@pytest.mark.deep
@settings(derandomize=True, max_examples=150, deadline=None)
@given(polygons(6), st.integers(1, 3))
def test_boxes_meet_a_polygon_where_their_interiors_do(shape, width):
    vertices = shapely.get_coordinates(shape)
    if shape.area == 0 or (vertices % 1).any():  # only rounded vertices, GEOS may judge otherwise
        return
    x, y = (side.ravel() for side in np.meshgrid(np.arange(-1.0, 8), np.arange(-1.0, 8)))
    boxes = np.stack([x, y, x + width, y + 1], axis=1)
    rectangles = shapely.box(*boxes.T)
    met = index(shape).meets(np.zeros(len(x), int), boxes)
    assert np.array_equal(met, shapely.relate_pattern(rectangles, shape, "T********"))


@pytest.mark.parametrize("batch", [1, 7, 2**21])
def test_shares_of_boxes_are_those_of_geos(monkeypatch, batch):
    monkeypatch.setattr(even_odd, "_PAIRS_PER_BATCH", batch)
    rng = np.random.default_rng(5)
    corner, size = rng.uniform(-1, 8, (300, 2)), rng.uniform(0.01, 3, (300, 2))
    boxes, polygon = np.hstack([corner, corner + size]), rng.integers(0, 2, 300)
    shapes = np.array([STAR, RING], dtype=object)
    found = EdgeIndex.from_polygons(shapes)
    common = shapely.area(shapely.intersection(shapes[polygon], shapely.box(*boxes.T)))
    assert np.allclose(found.fractions(polygon, boxes), common / size.prod(axis=1), atol=1e-12)
    assert np.array_equal(found.meets(polygon, boxes), common > 0)
    middle = corner + size / 2
    assert np.array_equal(
        found.contains(polygon, *middle.T), shapely.contains_xy(shapes[polygon], *middle.T)
    )


@pytest.mark.parametrize("step", [1.0, 0.1])
def test_shares_of_boxes_on_lines_through_vertices_are_those_of_all_sides(step):
    """Sides that run along the edges of boxes, or end on them, are counted once."""
    rng = np.random.default_rng(6)
    corners = [shapely.Polygon(rng.integers(0, 7, (8, 2)) * step) for _ in range(200)]
    shapes = shapely.make_valid(corners, method="structure")
    shapes = shapes[np.isin(shapely.get_type_id(shapes), (3, 6)) & ~shapely.is_empty(shapes)]
    polygon = np.arange(len(shapes)).repeat(20)
    corner, size = rng.integers(-1, 7, (len(polygon), 2)), rng.integers(1, 4, (len(polygon), 2))
    boxes = np.hstack([corner, corner + size]) * step
    share = EdgeIndex.from_polygons(shapes).fractions(polygon, boxes)
    whole = clip_outlines(shapes[polygon], boxes).fraction
    assert np.allclose(share, whole, rtol=0, atol=1e-12)
    assert np.array_equal(share % 1 == 0, whole % 1 == 0)
