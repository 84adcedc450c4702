"""Regions that are polygons: the rule of assignment, point by point, and their boxes."""

import dataclasses

import geopandas as gpd
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import psd
from psd.space.even_odd import SideIndex
from psd.space.polygon_hierarchy import hierarchy_from_polygons
from psd.space.region_cover import overlapping_pairs
from psd.space.region_hierarchy import RegionHierarchy

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(64, 64))


def hierarchy(*shapes, domain=PLANE, **options):
    table = gpd.GeoDataFrame(
        {"ward": [f"w{i}" for i in range(len(shapes))]}, geometry=list(shapes), crs="EPSG:3857"
    )
    return hierarchy_from_polygons(table, domain, ids="ward", **options)


def voronoi(number, seed, size=8.0):
    """Cells of random points that tile a square, by overlays, whose vertices do not all agree."""
    points = np.random.default_rng(seed).uniform(0, size, (number, 2))
    square = shapely.box(0, 0, size, size)
    cells = shapely.voronoi_polygons(shapely.multipoints(points), extend_to=square)
    return shapely.intersection(np.array(shapely.get_parts(cells)), square)


def first_containing(shapes, x, y):
    """First polygon whose interior holds each point, -1 for none; one point at a time."""
    region = np.full(len(x), -1)
    for point, (a, b) in enumerate(zip(x, y, strict=True)):
        for number, shape in enumerate(shapes):
            if shape.contains(shapely.Point(a, b)):
                region[point] = number
                break
    return region


@pytest.mark.deep
@pytest.mark.parametrize(("number", "seed"), [(1, 0), (7, 1), (60, 2), (300, 3)])
def test_points_are_assigned_as_by_geos_point_by_point(number, seed):
    shapes = voronoi(number, seed)
    x, y = np.random.default_rng(seed).uniform(0, 8, (2, 3000))
    found = hierarchy(*shapes)
    assert np.array_equal(found.assign(x, y), first_containing(shapes, x, y))


@pytest.mark.deep
@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(0, 8)] * 2), min_size=4, max_size=20, unique=True),
    st.sampled_from([0.25, 0.5, 1.0]),
)
def test_each_point_on_edges_and_corners_is_in_one_region(corners, step):
    corners = [*corners, (0, 0), (8, 0), (0, 8), (8, 8)]
    shapes = shapely.get_parts(shapely.delaunay_triangles(shapely.multipoints(corners)))
    found = hierarchy(*shapes)
    assert found.geometry.margin == 0.0
    x, y = (side.ravel() for side in np.meshgrid(*[np.arange(0, 8 + step, step)] * 2))
    region = found.assign(x, y)
    assert (region >= 0).all()
    assert shapely.intersects_xy(shapes[region], x, y).all()
    # Just east of the point, and a little north.
    aside = np.where(x < 8, x + 1e-9, x - 1e-9), np.where(y < 8, y + 1e-12, y - 1e-12)
    inner = (x < 8) & (y < 8)
    assert shapely.contains_xy(shapes[region], *aside)[inner].all()


def test_shuffled_points_and_single_points_get_the_same_regions():
    found = hierarchy(*voronoi(40, 5))
    x, y = np.random.default_rng(5).uniform(0, 8, (2, 500)).round(1)
    region, order = found.assign(x, y), np.random.default_rng(6).permutation(500)
    assert np.array_equal(found.assign(x[order], y[order]), region[order])
    single = [found.assign(x[i : i + 1], y[i : i + 1])[0] for i in range(100)]
    assert single == region[:100].tolist()


def test_holes_islands_and_regions_of_several_parts():
    lake = shapely.box(2, 2, 4, 4)
    island = shapely.box(2.5, 2.5, 3, 3)
    land = shapely.union(shapely.box(0, 0, 8, 8).difference(lake), island)
    found = hierarchy(land, lake.difference(island))
    x, y = np.random.default_rng(7).uniform(0, 8, (2, 4000))
    inside_lake = shapely.contains_xy(lake.difference(island), x, y)
    assert np.array_equal(found.assign(x, y), inside_lake.astype(int))


def test_overlaps_within_the_tolerance_belong_to_the_first_region():
    shapes = shapely.box(0, 0, 4.00001, 8), shapely.box(4, 0, 8, 8)
    found = hierarchy(*shapes, tolerance=1e-4)
    assert overlapping_pairs(found.geometry.polygons).tolist() == [[0, 1]]
    x = np.array([3.0, 4.000005, 4.00002])
    assert found.assign(x, np.full(3, 4.0)).tolist() == [0, 0, 1]
    turned = hierarchy(*shapes[::-1], tolerance=1e-4)
    assert turned.assign(x, np.full(3, 4.0)).tolist() == [1, 0, 0]


def test_a_region_that_covers_a_cell_of_the_raster_is_found_under_an_overlap():
    """The first region pokes into a cell which the second covers without an outline there."""
    poke = shapely.Polygon([(0, 0), (4, 0), (4, 3), (4.05, 4), (4, 5), (4, 8), (0, 8)])
    found = hierarchy(poke, shapely.box(4, 0, 8, 8), tolerance=0.2)
    x, y = np.meshgrid(np.linspace(3.9, 4.2, 200), np.linspace(3, 5, 100))
    region = found.assign(x.ravel(), y.ravel())
    assert np.array_equal(
        region == 0,
        SideIndex.from_polygons(np.array([poke])).contains(
            np.zeros(x.size, int), x.ravel(), y.ravel()
        ),
    )
    assert set(region.tolist()) == {0, 1}


def test_gaps_within_the_tolerance_belong_to_the_nearest_region():
    shapes = shapely.box(0, 0, 4, 8), shapely.box(4.00001, 0, 8, 8)
    found = hierarchy(*shapes, tolerance=1e-4)
    assert found.geometry.margin == 1e-4
    x = np.array([4.000002, 4.000005, 4.000009])
    region = found.assign(x, np.full(3, 4.0))
    assert region[[0, 2]].tolist() == [0, 1]
    assert region[1] in (0, 1)


def test_the_rest_is_elsewhere_or_in_no_region():
    shapes = shapely.box(1, 1, 4, 4), shapely.box(4, 1, 6, 4)
    x, y = np.array([2.0, 5, 7, 6, 1]), np.array([2.0, 2, 2, 2, 1])
    assert hierarchy(*shapes, gaps="outside").assign(x, y).tolist() == [0, 1, -1, -1, 0]
    found = hierarchy(*shapes, gaps="elsewhere")
    assert found.levels[0].ids == ("w0", "w1", "elsewhere")
    assert found.assign(x, y).tolist() == [0, 1, 2, 2, 0]
    assert shapely.area(found.shapes()).sum() == pytest.approx(64)


@pytest.mark.parametrize("resolution", ["0.25", "0.1", "0.5", "3"])
def test_rounded_coordinates_decide_by_their_values(resolution):
    domain = psd.Domain(bounds=PLANE.bounds, crs=PLANE.crs, coordinate_resolution=resolution)
    shapes = [shapely.box(i, j, i + 2, j + 4) for j in (0, 4) for i in (0, 2, 4, 6)]
    found = hierarchy(*shapes, domain=domain)
    x, y = np.random.default_rng(8).uniform(0, 8, (2, 2000))
    columns, rows, _ = domain.quantise(x, y)
    cells = np.stack([columns, rows, columns + 1, rows + 1], axis=1)
    region = found.assign(x, y)
    west, south, east, north = domain.to_lattice(shapely.bounds(shapes))[region].T
    assert ((west <= columns) & (columns < east) & (south <= rows) & (rows < north)).all()
    assert found.meets(region, cells).all()


# --- boxes of the lattice -----------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"gaps": "elsewhere"}])
@pytest.mark.parametrize("lattice", [(64, 64), (37, 5), (2**20, 2**20)])
def test_no_record_of_a_region_lies_in_a_box_that_it_does_not_meet(lattice, options):
    domain = dataclasses.replace(PLANE, lattice=lattice)
    shapes = voronoi(30, 9)[: 20 if options else 30]
    found = hierarchy(*shapes, domain=domain, **options)
    x, y = np.random.default_rng(9).uniform(0, 8, (2, 3000))
    x[:1500], y[700:2000] = x[:1500].round(1), y[700:2000].round(1)
    region = found.assign(x, y)
    columns, rows, _ = domain.quantise(x, y)
    cells = np.stack([columns, rows, columns + 1, rows + 1], axis=1)
    assert found.meets(region, cells).all()
    low, far = found.boxes[region, :2], found.boxes[region, 2:]
    assert (low <= cells[:, :2]).all()
    assert (cells[:, 2:] <= far).all()


def test_regions_along_lines_of_the_lattice_meet_their_boxes_alone():
    shapes = [shapely.box(i, j, i + 2, j + 4) for j in (0, 4) for i in (0, 2, 4, 6)]
    found = hierarchy(*shapes)
    boxes = (shapely.bounds(shapes) * 8).astype(int)
    assert np.array_equal(found.boxes, boxes)
    region, box = (side.ravel() for side in np.meshgrid(np.arange(8), np.arange(8)))
    assert np.array_equal(found.meets(region, boxes[box]), region == box)
    assert found.clipped_area(0, boxes).tolist() == [16 * 32] + [0] * 7


def test_areas_of_clipped_cells_add_up_to_the_region():
    found = hierarchy(*voronoi(30, 10))
    side = np.arange(0, 64, 8)
    west, south = (each.ravel() for each in np.meshgrid(side, side))
    boxes = np.stack([west, south, west + 8, south + 8], axis=1)
    each = [found.clipped_area(region, boxes).sum() / 64 for region in range(30)]
    assert each == pytest.approx(shapely.area(found.shapes()).tolist())


def test_what_lies_beyond_the_bounds_is_stated():
    found = hierarchy(shapely.box(-8, 0, 4, 8), shapely.box(4, 0, 8, 8))
    assert found.part_outside.tolist() == pytest.approx([2 / 3, 0])
    assert shapely.bounds(found.shapes())[0].tolist() == [0, 0, 4, 8]
    assert found.boxes.tolist() == [[0, 0, 32, 64], [32, 0, 64, 64]]


def test_a_release_has_the_same_regions():
    found = hierarchy(*voronoi(12, 11)[:9], gaps="elsewhere")
    again = RegionHierarchy.from_table(PLANE, found.parameters(), found.to_table())
    assert again.digest == found.digest
    x, y = np.random.default_rng(11).uniform(0, 8, (2, 1000)).round(2)
    assert np.array_equal(again.assign(x, y), found.assign(x, y))
    assert np.array_equal(again.boxes, found.boxes)
