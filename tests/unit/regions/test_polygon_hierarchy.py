"""Polygons as regions: the rule of assignment, boxes, levels, and what is refused."""

import dataclasses
import itertools
from itertools import product

import geopandas as gpd
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import psd
from psd.errors import DomainError, ParameterError, ReleaseFormatError
from psd.regions.hierarchy import RegionHierarchy, RegionLevel, id_texts
from psd.regions.kinds.polygons import overlapping_pairs
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.space.boundary import Boundary
from psd.space.even_odd import EdgeIndex
from support.forged_releases import with_value
from support.small_regions import cells_of, checked_places, read_again
from support.tables import refused

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(64, 64))
HALVES = [shapely.box(0, 0, 4, 8), shapely.box(4, 0, 8, 8)]


def table(shapes=HALVES, crs="EPSG:3857", **columns):
    columns = columns or {"ward": [f"w{i}" for i in range(len(shapes))]}
    return gpd.GeoDataFrame(columns, geometry=list(shapes), crs=crs)


def test_whole_numbers_are_ids_without_a_fraction():
    assert id_texts([11, 12.0, "13a"], "WARD") == ["11", "12", "13a"]


def columns_of(size, far=8):
    """Columns of the plane."""
    edges = np.linspace(0, far, size + 1)
    return [shapely.box(a, 0, b, 8) for a, b in itertools.pairwise(edges)]


def hierarchy(tables, domain=PLANE, ids="ward", **options):
    return hierarchy_from_polygons(tables, domain, ids=ids, **options)


def test_tables_and_ids_that_are_refused(subtests):
    two, first = table(), HALVES[0]
    for words, made, options in (
        (r"ids must be a column .*\(ward\)", two, {"ids": "WARD"}),
        ("gaps must be one of refuse, elsewhere", two, {"gaps": "drop"}),
        ("tolerance must be a length", two, {"tolerance": -1}),
        ("parents must be another column", two, {"parents": ["x"]}),
        ("parents must be another column", two, {"parents": ["ward"]}),
        ("or a table of each level", [two, two], {"parents": ["x"]}),
    ):
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            hierarchy(made, **options)
    overlap = r"must not overlap by more than 8e-06, but 'w0' and 'w1' do \(1 such pairs\)"
    crossing, flat = [(4, 0), (8, 8), (8, 0), (4, 8)], [(4, 0), (8, 0), (4, 0)]
    tables = [
        ("or a table of each level", []),
        ("must be 1 to 262,144 polygons, got 0", two.iloc[:0]),
        ("region 'w1' must be a polygon, got Point", table([first, shapely.Point(1, 1)])),
        *(
            ("region 'w1' is not valid", table([first, shapely.Polygon(c)]))
            for c in (crossing, flat)
        ),
        (overlap, table([first, shapely.box(3.5, 0, 8, 8)])),
        ("must cover the bounds, got 12.50% of the area in no region", table(columns_of(2, far=7))),
    ]
    refused(subtests, ParameterError, tables, hierarchy)
    outside = table([first, shapely.box(8, 0, 9, 8)])
    tables = [
        ("regions have no CRS", table(crs=None)),
        (r"region 'w1' lies outside the bounds \(1 of 2 do\)", outside),
    ]
    refused(subtests, DomainError, tables, hierarchy)
    assert hierarchy(table(ward=[7, 12])).levels[0].ids == ("7", "12")
    assert hierarchy(table(ward=[7.0, 12.5])).levels[0].ids == ("7", "12.5")
    table_of_ids = [
        ("must be unique, got 'a' twice", ["a", "a"]),
        ("region 2 of level ward must have an id, got blanks", ["a", ""]),
        ("must have an id, got blanks", ["a", "  "]),
        ("region 2 must have an id in column ward, got a missing", ["a", None], [1.0, np.nan]),
        (r"must be printable, got 'b\\x1b\[0m' in region 2", ["a", "b\x1b[0m"]),
        ("at most 200 characters, got 1,048,576 in region 2", ["a", "b" * 2**20]),
    ]
    refused(subtests, ParameterError, table_of_ids, lambda ids: hierarchy(table(ward=ids)))


def test_levels_nest_by_area_or_by_the_one_parent_of_each_region(subtests):
    wards, boroughs = table(columns_of(4)), table([HALVES[1], HALVES[0]], borough=["east", "west"])
    found = hierarchy([boroughs, wards], ids=["borough", "ward"])
    assert found.levels[0].ids == ("east", "west")
    assert found.levels[1].ids == ("w2", "w3", "w0", "w1")
    assert found.levels[1].parent.tolist() == [0, 0, 1, 1]
    both = hierarchy([boroughs.rename(columns={"borough": "ward"}), wards])
    assert [level.name for level in both.levels] == ["ward 1", "ward 2"]
    rows = table(columns_of(4), ward=list("abcd"), borough=list("xxyy"), region=list("uuvv"))
    levels = hierarchy(rows, parents=["borough", "region"]).levels
    assert [len(level) for level in levels] == [2, 2, 4]
    rows["borough"] = list("xyxy")
    with pytest.raises(ParameterError, match="region 'x' of level borough must have one parent, "):
        hierarchy(rows, parents=["borough", "region"])
    schools = table(columns_of(3), school=["s0", "s1", "s2"])
    tables = [
        (r"but 's1' crosses from 'w0' into 'w1' \(1 of 3 regions cross\); make two", schools),
        ("'w1' must have a region of the level below, got none", table([HALVES[0]], school=["s"])),
    ]
    ids = ["ward", "school"]
    refused(subtests, ParameterError, tables, lambda low: hierarchy([table(), low], ids=ids))


def test_a_gap_is_found_beside_overlaps_of_a_larger_area():
    """Sums of areas alone would say that nothing is missing."""
    with_hole = shapely.box(4, 0, 8, 8) - shapely.box(6, 6, 6.5, 6.5)
    beyond = shapely.box(0, 0, 4, 9)
    for west, east, gap in (
        (HALVES[0], HALVES[1], False),
        (shapely.box(0, 0, 4.05, 8), HALVES[1], False),
        (shapely.box(0, 0, 4.05, 8), with_hole, True),
        (HALVES[0], with_hole, True),
        (beyond, with_hole, True),
        (beyond, HALVES[1], False),
        (shapely.box(0, 0, 3.95, 8), HALVES[1], False),
    ):
        if gap:
            with pytest.raises(ParameterError, match=r"cover the bounds, got 0\.39% of"):
                hierarchy(table([west, east]), tolerance=0.1)
        else:
            assert len(hierarchy(table([west, east]), tolerance=0.1).levels[-1]) == 2


def test_gaps_are_judged_inside_the_boundary_or_are_a_region_of_each_level():
    outline = gpd.GeoSeries([shapely.box(0, 0, 7, 8)], crs="EPSG:3857")
    boundary = Boundary.from_polygons(outline, PLANE)
    found = hierarchy(table(columns_of(2, far=7)), boundary=boundary)
    assert not found.geometry.elsewhere
    with pytest.raises(ParameterError, match=r"must cover the boundary, got 14\.29% of the area"):
        hierarchy(table(columns_of(2, far=6)), boundary=boundary)
    wards = table(columns_of(4, far=6), ward=list("abcd"), borough=list("xxyy"))
    found = hierarchy(wards, parents=["borough"], gaps="elsewhere")
    assert [level.ids[-1] for level in found.levels] == ["elsewhere"] * 2
    assert found.levels[1].parent.tolist() == [0, 0, 1, 1, 2]
    wards.loc[0, "ward"] = "elsewhere"
    with pytest.raises(ParameterError, match="must not be 'elsewhere'"):
        hierarchy(wards, gaps="elsewhere")


def test_polygons_in_another_crs_share_their_sides():
    domain = psd.Domain(bounds=(900_000, 1_900_000, 1_000_000, 2_000_000), crs="EPSG:5179")
    edges = np.linspace(126, 129, 12)
    plots = [shapely.box(a, 36, b, 39) for a, b in itertools.pairwise(edges)]
    numbers = [n for n, plot in enumerate(plots) if 126.5 < plot.centroid.x < 127.7]
    plots = table([plots[n] for n in numbers], crs="EPSG:4326")
    found = hierarchy(plots, domain=domain, gaps="outside")
    rng = np.random.default_rng(1)
    x, y = rng.uniform(900_000, 1_000_000, 5000), rng.uniform(1_900_000, 2_000_000, 5000)
    region = found.assign(x, y)
    lon = gpd.GeoSeries.from_xy(x, y, crs="EPSG:5179").to_crs("EPSG:4326").x.to_numpy()
    expected = np.searchsorted(edges, lon) - 1 - numbers[0]
    sure = np.abs(lon[:, None] - edges).min(axis=1) > 1e-6
    inside = (region >= 0) & sure
    assert inside.mean() > 0.8
    assert np.array_equal(region[inside], expected[inside])


def squares():
    """Sixteen wards in four boroughs in two regions, in an order that does not nest."""
    places = list(product(range(4), range(4)))
    boxes = [shapely.box(2 * i, 2 * j, 2 * i + 2, 2 * j + 2) for j, i in places]
    names = {"ward": "w{0}{1}", "borough": "b{2}{3}", "region": "r{3}"}
    ids = {
        level: [name.format(j, i, j // 2, i // 2) for j, i in places]
        for level, name in names.items()
    }
    return hierarchy(table(boxes, **ids), parents=["borough", "region"])


def test_children_of_a_region_are_beside_each_other():
    found = squares()
    assert [level.name for level in found.levels] == ["region", "borough", "ward"]
    assert found.levels[0].ids == ("r0", "r1")
    assert found.levels[1].ids == ("b00", "b10", "b01", "b11")
    assert found.levels[1].parent.tolist() == [0, 0, 1, 1]
    assert found.levels[2].ids[:5] == ("w00", "w01", "w10", "w11", "w20")
    assert found.levels[2].parent.tolist() == [n // 4 for n in range(16)]
    assert found.ancestors(0).tolist() == [0] * 8 + [1] * 8
    assert repr(found) == "<RegionHierarchy of polygons: 2 region, 4 borough, 16 ward>"
    # Polygons of levels above are unions.
    assert shapely.area(found.shapes(0)).tolist() == [32, 32]
    assert shapely.area(found.shapes(1)).tolist() == [16] * 4
    assert shapely.equals(found.shapes(1)[1], shapely.box(0, 4, 4, 8))
    x, y = np.random.default_rng(1).uniform(0, 8, (2, 400))
    region = found.assign(x, y)
    assert shapely.contains_xy(found.shapes(0)[found.ancestors(0)[region]], x, y).all()
    # The digest is that of what decides.
    assert found.digest == squares().digest
    assert len(found.digest) == 64
    other = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(32, 64))
    again = RegionHierarchy.from_table(other, found.parameters(), found.to_table())
    assert again.digest != found.digest


def test_levels_that_do_not_fit_are_refused(subtests):
    geometry = hierarchy(table()).geometry

    def use(parents):
        levels = tuple(
            RegionLevel(name=f"l{n}", ids=list(map(str, range(len(own)))), parent=np.array(own))
            for n, own in enumerate(parents)
        )
        return RegionHierarchy(domain=PLANE, levels=levels, geometry=geometry)

    rows = [
        ("at least one level", ()),
        ("level l1 does not fit", ([0, 0], [0, 0]), ([0, 0], [1, 0]), ([0, 0], [0, 2])),
        ("level l0 does not fit", ([1, 0],)),
        ("regions must be 3", ([0, 0], [0, 1, 1])),
    ]
    refused(subtests, ParameterError, rows, use)


# A triangle with a vertex that is not a number.
NAN = (
    "010300000001000000040000000000000000000000000000000000000000000000000008400000000000000000"
    "000000000000f87f000000000000084000000000000000000000000000000000"
)
BOWTIE = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]).wkb


STATED = [
    *({"kind": kind} for kind in ("circles", 7)),
    *({"levels": names} for names in (["ward"], ["a", "b", "c\n"], [])),
    *({"margin": margin} for margin in (-1.0, float("nan"), True, ...)),
    *({"elsewhere": 1}, {"more": 1}),
]
ROWS = [
    *(("level", row, value) for row, value in ((0, 1), (21, 7), (2, -1))),
    *(("id", 3, value) for value in ("b00", "", "a\x07", "a" * 1000, None)),
    *(("parent", 3, value) for value in (2**31 - 1, -1, None)),
    *(("geometry", 21, value) for value in (None, b"POLYGON", BOWTIE, bytes.fromhex(NAN))),
    *(("geometry", 21, s.wkb) for s in (shapely.Point(1, 1), shapely.box(20, 20, 30, 30))),
]


def test_a_forged_release_is_refused(subtests):
    found = squares()
    stated, table = found.parameters(), found.to_table()
    assert RegionHierarchy.from_table(PLANE, stated, table).size == 16
    nothing = None, table.drop_columns(["id"]), table.slice(0, 0)
    changed = [{k: v for k, v in {**stated, **change}.items() if v is not ...} for change in STATED]
    for case in (
        *((parameters, table) for parameters in changed),
        *((stated, with_value(table, *change)) for change in ROWS),
        *((stated, other) for other in nothing),
    ):
        with subtests.test(case=case), pytest.raises(ReleaseFormatError):
            RegionHierarchy.from_table(PLANE, *case)


def regions_of(*shapes, **options):
    return hierarchy(table(shapes), **options)


def voronoi(number, seed, size=8.0):
    """Cells of random points that tile a square, by overlays, whose vertices do not all agree."""
    points = np.random.default_rng(seed).uniform(0, size, (number, 2))
    square = shapely.box(0, 0, size, size)
    cells = shapely.voronoi_polygons(shapely.multipoints(points), extend_to=square)
    return shapely.intersection(np.array(shapely.get_parts(cells)), square)


def first_containing(shapes, x, y):
    """First polygon whose interior holds a point, -1 for none."""
    point = shapely.Point(x, y)
    return next((number for number, shape in enumerate(shapes) if shape.contains(point)), -1)


@pytest.mark.deep
@pytest.mark.parametrize(("number", "seed"), [(1, 0), (7, 1), (60, 2), (300, 3)])
def test_points_are_assigned_as_by_geos_point_by_point(number, seed):
    shapes = voronoi(number, seed)
    x, y = np.random.default_rng(seed).uniform(0, 8, (2, 3000))
    expected = [first_containing(shapes, *point) for point in zip(x, y, strict=True)]
    assert regions_of(*shapes).assign(x, y).tolist() == expected


@pytest.mark.deep
@settings(derandomize=True, max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(0, 8)] * 2), min_size=4, max_size=20, unique=True),
    st.sampled_from([0.25, 0.5, 1.0]),
)
def test_each_point_on_edges_and_corners_is_in_one_region(corners, step):
    corners = [*corners, (0, 0), (8, 0), (0, 8), (8, 8)]
    shapes = shapely.get_parts(shapely.delaunay_triangles(shapely.multipoints(corners)))
    found = regions_of(*shapes)
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
    found = regions_of(*voronoi(40, 5))
    x, y = np.random.default_rng(5).uniform(0, 8, (2, 500)).round(1)
    region, order = found.assign(x, y), np.random.default_rng(6).permutation(500)
    assert np.array_equal(found.assign(x[order], y[order]), region[order])
    single = [found.assign(x[i : i + 1], y[i : i + 1])[0] for i in range(100)]
    assert single == region[:100].tolist()
    found = regions_of(*voronoi(12, 11)[:9], gaps="elsewhere")
    again = read_again(found)
    assert again.digest == found.digest
    x, y = np.random.default_rng(11).uniform(0, 8, (2, 1000)).round(2)
    assert np.array_equal(again.assign(x, y), found.assign(x, y))
    assert np.array_equal(again.boxes, found.boxes)


def test_overlaps_within_the_tolerance_belong_to_the_first_region_and_gaps_to_the_nearest():
    shapes = shapely.box(0, 0, 4.00001, 8), shapely.box(4, 0, 8, 8)
    found = regions_of(*shapes, tolerance=1e-4)
    assert overlapping_pairs(found.geometry.polygons).tolist() == [[0, 1]]
    x = np.array([3.0, 4.000005, 4.00002])
    assert found.assign(x, np.full(3, 4.0)).tolist() == [0, 0, 1]
    turned = regions_of(*shapes[::-1], tolerance=1e-4)
    assert turned.assign(x, np.full(3, 4.0)).tolist() == [1, 0, 0]
    # And gaps to the nearest.
    found = regions_of(shapely.box(0, 0, 4, 8), shapely.box(4.00001, 0, 8, 8), tolerance=1e-4)
    assert found.geometry.margin == 1e-4
    region = found.assign(np.array([4.000002, 4.000005, 4.000009]), np.full(3, 4.0))
    assert region[[0, 2]].tolist() == [0, 1]
    assert region[1] in (0, 1)
    # The first region pokes into a cell which the second covers without an outline there.
    poke = shapely.Polygon([(0, 0), (4, 0), (4, 3), (4.05, 4), (4, 5), (4, 8), (0, 8)])
    found = regions_of(poke, shapely.box(4, 0, 8, 8), tolerance=0.2)
    x, y = np.meshgrid(np.linspace(3.9, 4.2, 200), np.linspace(3, 5, 100))
    region = found.assign(x.ravel(), y.ravel())
    sides = EdgeIndex.from_polygons(np.array([poke]))
    inside = sides.contains(np.zeros(x.size, int), x.ravel(), y.ravel())
    assert np.array_equal(region == 0, inside)
    assert set(region.tolist()) == {0, 1}


def test_the_rest_is_elsewhere_or_in_no_region():
    shapes = shapely.box(1, 1, 4, 4), shapely.box(4, 1, 6, 4)
    x, y = np.array([2.0, 5, 7, 6, 1]), np.array([2.0, 2, 2, 2, 1])
    assert regions_of(*shapes, gaps="outside").assign(x, y).tolist() == [0, 1, -1, -1, 0]
    found = regions_of(*shapes, gaps="elsewhere")
    assert found.levels[0].ids == ("w0", "w1", "elsewhere")
    assert found.assign(x, y).tolist() == [0, 1, 2, 2, 0]
    assert shapely.area(found.shapes()).sum() == pytest.approx(64)
    lake = shapely.box(2, 2, 4, 4)
    island = shapely.box(2.5, 2.5, 3, 3)
    land = shapely.union(shapely.box(0, 0, 8, 8).difference(lake), island)
    found = regions_of(land, lake.difference(island))
    x, y = np.random.default_rng(7).uniform(0, 8, (2, 4000))
    inside_lake = shapely.contains_xy(lake.difference(island), x, y)
    assert np.array_equal(found.assign(x, y), inside_lake.astype(int))


BLOCKS = [shapely.box(i, j, i + 2, j + 4) for j in (0, 4) for i in (0, 2, 4, 6)]


@pytest.mark.parametrize("resolution", ["0.25", "0.1", "0.5", "3"])
def test_rounded_coordinates_decide_by_their_values(resolution):
    domain = psd.Domain(bounds=PLANE.bounds, crs=PLANE.crs, coordinate_resolution=resolution)
    x, y = np.random.default_rng(8).uniform(0, 8, (2, 2000))
    cells, region = cells_of(domain, x, y), checked_places(regions_of(*BLOCKS, domain=domain), x, y)
    box = domain.to_lattice(shapely.bounds(BLOCKS))[region]
    assert ((box[:, :2] <= cells[:, :2]) & (cells[:, :2] < box[:, 2:])).all()


# --- boxes of the lattice -----------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"gaps": "elsewhere"}])
@pytest.mark.parametrize("lattice", [(64, 64), (37, 5), (2**20, 2**20)])
def test_no_record_of_a_region_lies_in_a_box_that_it_does_not_meet(lattice, options):
    domain = dataclasses.replace(PLANE, lattice=lattice)
    shapes = voronoi(30, 9)[: 20 if options else 30]
    found = regions_of(*shapes, domain=domain, **options)
    x, y = np.random.default_rng(9).uniform(0, 8, (2, 3000))
    x[:1500], y[700:2000] = x[:1500].round(1), y[700:2000].round(1)
    checked_places(found, x, y)


def test_regions_along_lines_of_the_lattice_meet_their_boxes_alone():
    found, boxes = regions_of(*BLOCKS), (shapely.bounds(BLOCKS) * 8).astype(int)
    assert np.array_equal(found.boxes, boxes)
    region, box = (side.ravel() for side in np.meshgrid(np.arange(8), np.arange(8)))
    assert np.array_equal(found.meets(region, boxes[box]), region == box)
    assert found.clipped_area(0, boxes).tolist() == [16 * 32] + [0] * 7
    found = regions_of(shapely.box(-8, 0, 4, 8), shapely.box(4, 0, 8, 8))
    assert found.part_outside.tolist() == pytest.approx([2 / 3, 0])
    assert shapely.bounds(found.shapes())[0].tolist() == [0, 0, 4, 8]
    assert found.boxes.tolist() == [[0, 0, 32, 64], [32, 0, 64, 64]]
    found = regions_of(*voronoi(30, 10))
    side = np.arange(0, 64, 8)
    west, south = (each.ravel() for each in np.meshgrid(side, side))
    boxes = np.stack([west, south, west + 8, south + 8], axis=1)
    each = [found.clipped_area(region, boxes).sum() / 64 for region in range(30)]
    assert each == pytest.approx(shapely.area(found.shapes()).tolist())
