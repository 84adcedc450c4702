"""Squares, hexagons and map tiles as regions: which holds a record, codes, levels and limits."""

import dataclasses
import itertools
import re
import sys
from fractions import Fraction

import geopandas as gpd
import h3.api.basic_int as library
import numpy as np
import pyarrow as pa
import pytest
import shapely

import psd
from psd.errors import DomainError, MissingExtraError, ParameterError, ReleaseFormatError
from psd.regions.hierarchy import RegionHierarchy
from psd.regions.kinds import h3
from psd.regions.kinds.grid_cells import hierarchy_from_grid, parse_sizes
from psd.regions.kinds.h3 import hierarchy_from_h3
from psd.regions.kinds.tiles import hierarchy_from_tiles
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.space.boundary import Boundary
from support.small_regions import cells_of, checked_places, read_again
from support.tables import refused

EUROPE = psd.Domain(bounds=(4_310_000, 2_668_400, 4_337_500, 2_700_000), crs="EPSG:3035")
PLANE = psd.Domain(bounds=(-3, -2.5, 8, 8.5), crs="EPSG:3857", lattice=(64, 37))
DEGREES = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0), lattice=(1000, 700))
SEOUL = psd.Domain(bounds=(126.7, 37.4, 127.3, 37.8), lattice=(1000, 700))
NORWAY = psd.Domain(bounds=(4, 58, 31, 71), lattice=(2**20, 2**20))
TOWN = psd.Domain(bounds=(14_070_000, 4_480_000, 14_200_000, 4_560_000), crs="EPSG:3857")


def points(domain, number):
    west, south, east, north = domain.bounds
    rng = np.random.default_rng(1)
    return rng.uniform(west, east, number), rng.uniform(south, north, number)


def test_cells_have_the_codes_of_inspire():
    found = hierarchy_from_grid("1km,10km", EUROPE)
    assert [level.name for level in found.levels] == ["10km", "1km"]
    region = int(found.assign(np.array([4_337_499.0]), np.array([2_689_000.0]))[0])
    assert found.levels[1].ids[region] == "CRS3035RES1000mN2689000E4337000"
    assert found.levels[0].ids[found.levels[1].parent[region]] == "CRS3035RES10000mN2680000E4330000"
    assert len(set(found.levels[1].ids)) == found.size == 28 * 32
    assert list(found.levels[0].ids[:2]) == [found.levels[0].ids[0], found.levels[0].ids[1]]
    # Cells that the bounds cut say what is outside.
    found = hierarchy_from_grid("1km", EUROPE)
    region = found.assign(np.array([4_337_200.0]), np.array([2_668_700.0]))
    assert found.part_outside[region].tolist() == [1 - 0.5 * 0.6]
    bounds = [4_337_000, 2_668_400, 4_337_500, 2_669_000]
    assert shapely.bounds(found.shapes())[region].tolist() == [bounds]


@pytest.mark.parametrize("domain", [PLANE, DEGREES, EUROPE])
@pytest.mark.parametrize("resolution", [None, "0.25", "0.1", "3"])
def test_records_lie_in_their_cells_and_boxes(domain, resolution):
    if resolution == "3" and domain is DEGREES:
        resolution = "0.3"
    if resolution is not None:
        domain = psd.Domain(bounds=domain.bounds, crs=domain.crs, coordinate_resolution=resolution)
    size = {"EPSG:3035": "500", "EPSG:4326": "0.1"}.get(domain.crs, "2")
    found = hierarchy_from_grid(f"{size}", domain)
    west, south, east, north = domain.bounds
    x, y = points(domain, 4000)
    x[:2000], y[1000:3000] = x[:2000].round(1), y[1000:3000].round(1)
    x[-3:], y[-3:] = [west, east, east], [south, north, south]
    x, y = x.clip(west, east), y.clip(south, north)
    region, cells = checked_places(found, x, y), cells_of(domain, x, y)
    assert (region >= 0).all()
    box = shapely.bounds(found.shapes())[region]
    if resolution is None:
        assert ((box[:, 0] <= x) & ((x < box[:, 2]) | (x == east))).all()
        assert ((box[:, 1] <= y) & ((y < box[:, 3]) | (y == north))).all()
        assert (found.clipped_area(region, cells) >= 0).all()
    else:
        values = domain.centres(0, cells[:, 0]), domain.centres(1, cells[:, 1])
        expected = [np.floor(np.round(v / float(size), 6)) for v in values]
        inner = (values[0] < east) & (values[1] < north)
        lines = found.geometry.grid.ranges
        for axis, own in enumerate((found.geometry.columns, found.geometry.rows)):
            assert np.array_equal((own[region] + lines[axis][0])[inner], expected[axis][inner])


def test_squares_as_polygons_get_the_same_records():
    grid = hierarchy_from_grid("2", PLANE)
    table = gpd.GeoDataFrame({"id": list(grid.levels[0].ids)}, geometry=grid.shapes(), crs=3857)
    polygons = hierarchy_from_polygons(table, PLANE, ids="id")
    x, y = np.random.default_rng(2).uniform(-2, 8, (2, 3000)).round(1)
    assert np.array_equal(grid.assign(x, y), polygons.assign(x, y))
    region, box = (side.ravel() for side in np.meshgrid(np.arange(grid.size), np.arange(3)))
    boxes = np.array([[0, 0, 64, 37], [10, 10, 11, 11], [20, 5, 40, 30]])[box]
    assert np.allclose(grid.clipped_area(region, boxes), polygons.clipped_area(region, boxes))
    assert np.array_equal(grid.meets(region, boxes), polygons.meets(region, boxes))
    assert np.array_equal(grid.boxes, polygons.boxes)
    # Areas add up to the lattice.
    sizes = ((PLANE, "3"), (DEGREES, "0.25"), (dataclasses.replace(EUROPE, lattice=(99, 7)), "1km"))
    for domain, size in sizes:
        found = hierarchy_from_grid(size, domain)
        area = found.clipped_area(np.arange(found.size), found.boxes)
        assert area.sum() == pytest.approx(domain.lattice[0] * domain.lattice[1])


def test_only_cells_of_the_boundary_are_regions():
    outline = gpd.GeoSeries([shapely.Point(2, 3).buffer(2.5)], crs="EPSG:3857")
    domain = dataclasses.replace(PLANE, lattice=(2**10, 2**10))
    boundary = Boundary.from_polygons(outline, domain)
    found = hierarchy_from_grid("0.5,2", domain, boundary=boundary)
    full = hierarchy_from_grid("0.5,2", domain)
    assert found.size < full.size / 3
    x, y = np.random.default_rng(3).uniform(-2, 8, (2, 5000))
    inside = boundary.contains(x, y)
    region = found.assign(x, y)
    assert (region[inside] >= 0).all()
    assert (region[~inside] < 0).any()
    ids = [found.levels[1].ids[i] for i in region[inside]]
    assert ids == [full.levels[1].ids[i] for i in full.assign(x[inside], y[inside])]
    again = read_again(found)
    assert again.digest == found.digest != full.digest
    assert np.array_equal(again.assign(x, y), region)
    outline = gpd.GeoSeries([shapely.Point(127, 37.6).buffer(0.1)], crs="EPSG:4326")
    boundary = Boundary.from_polygons(outline, SEOUL)
    found, full = hierarchy_from_h3("8", SEOUL, boundary=boundary), hierarchy_from_h3("8", SEOUL)
    assert found.size < full.size / 4
    x, y = points(SEOUL, 3000)
    inside = boundary.contains(x, y)
    assert (found.assign(x, y)[inside] >= 0).all()


def test_a_release_has_the_same_cells():
    squares, tiles = hierarchy_from_grid("1km,5km", EUROPE), hierarchy_from_tiles("8..12", TOWN)
    stated = {"kind": "grid-cells", "levels": ["5km", "1km"], "sizes": ["5000", "1000"]}
    assert squares.parameters() == stated
    assert squares.to_table() is tiles.to_table() is None  # by parameters alone
    for found in (squares, tiles, hierarchy_from_h3("5,7", SEOUL)):
        again, place = read_again(found), points(found.domain, 500)
        assert again.digest == found.digest
        assert np.array_equal(again.assign(*place), found.assign(*place))
        assert list(again.levels[1].ids) == list(found.levels[1].ids)


@pytest.mark.deep
def test_too_many_cells_are_refused_with_the_finest_size_that_fits():
    with pytest.raises(ParameterError, match="got more of 1m; the finest that fits is 20m"):
        hierarchy_from_grid("1m", EUROPE)
    assert hierarchy_from_grid("20m", EUROPE).size == 1375 * 1580


def test_a_forged_release_is_refused(subtests):
    base = {"kind": "grid-cells", "levels": ["5km", "1km"], "sizes": ["5000", "1000"]}
    small, least = ["5", "1"], ["0.000000005", "0.000000001"]
    changes = [{"sizes": sizes} for sizes in (["1000"], ["1000", "5000"], "5000")]
    changes += [{"sizes": sizes, "levels": ["5m", "1m"]} for sizes in (small, least)]
    columns = [[0, 2**40], [-1, 0], [3, 2], [0, None], pa.array([], pa.int64()), [1.5]]
    tables = [{"cell": column} for column in columns] + [{"number": [1]}]
    cases = [(EUROPE, {**base, **change}, None) for change in (*changes, {"more": 1})]
    cases += [(EUROPE, base, pa.table(table)) for table in tables]
    found = hierarchy_from_h3("5,7", SEOUL)
    stated, table = found.parameters(), found.to_table()
    changes = [{"resolutions": numbers} for numbers in ([5, 8], ["5", "7"], [7, 5])]
    changes += [{"levels": ["a", "b"]}, {"more": 1}]
    cells = [pa.array(cells, pa.int64()) for cells in ([1, 2, 3], [], [-1], [None])]
    cases += [(SEOUL, {**stated, **change}, table) for change in changes]
    cases += [(SEOUL, stated, pa.table({"cell": column})) for column in cells]
    stated = hierarchy_from_tiles("8..12", TOWN).parameters()
    wrong = {"zooms": [8]}, {"zooms": "8..12"}, {"codes": "z"}, {"zooms": [40]}, {"x": 1}
    cases += [(TOWN, {**stated, **change}, None) for change in wrong]
    for case in cases:
        with subtests.test(case=case), pytest.raises(ReleaseFormatError):
            RegionHierarchy.from_table(*case)


ACROSS = [
    (psd.Domain(bounds=bounds), resolution)
    for bounds in ((170, -20, 180, -10), (-180, 60, -170, 70), (-180, -80, 180, 80))
    for resolution in (1, 2, 4)
    if resolution < 4 or bounds[2] - bounds[0] < 180
]
"""Bounds that end at longitude 180, which cells pass."""


@pytest.mark.parametrize(
    ("domain", "resolution"),
    [(SEOUL, 5), (SEOUL, 8), (NORWAY, 2), (NORWAY, 4), (SEOUL, 0), *ACROSS],
)
def test_records_are_in_the_cells_of_the_library(domain, resolution):
    found = hierarchy_from_h3(str(resolution), domain)
    x, y = points(domain, 4000)
    x[:3], y[:3] = domain.bounds[2], domain.bounds[1]
    region = checked_places(found, x, y)
    assert (region >= 0).all()
    for a, b, number in zip(x[:200], y[:200], region[:200], strict=True):
        assert found.levels[0].ids[number] == f"{library.latlng_to_cell(b, a, resolution):x}"


def test_hexagons_cover_the_bounds_and_have_the_parents_of_the_index():
    found = hierarchy_from_h3("7", SEOUL)
    assert shapely.area(found.shapes()).sum() == pytest.approx(0.6 * 0.4, rel=1e-4)
    assert (shapely.area(found.shapes()) > 0).all()
    assert found.part_outside.max() < 1
    area = found.clipped_area(np.arange(found.size), found.boxes)
    assert area.sum() == pytest.approx(1000 * 700, rel=1e-4)
    found = hierarchy_from_h3("4..8", SEOUL)
    assert [level.name for level in found.levels] == [f"resolution {r}" for r in range(4, 9)]
    for upper, lower, resolution in zip(found.levels, found.levels[1:], range(4, 8), strict=False):
        for text, parent in zip(lower.ids[:500], lower.parent[:500], strict=True):
            cell = library.cell_to_parent(library.str_to_int(text), resolution)
            assert upper.ids[parent] == library.int_to_str(cell)
    assert list(found.levels[-1].ids[:2]) == sorted(found.levels[-1].ids[:2])


def test_an_index_has_its_text_and_its_parent():
    cells = np.array([0x8928308280FFFFF])
    assert h3.H3Codes(cells)[0] == "8928308280fffff"
    assert h3.cell_parents(cells, 9, 8).tolist() == [0x8828308281FFFFF]


@pytest.mark.deep
def test_rounded_coordinates_decide_by_their_values():
    domain = psd.Domain(bounds=SEOUL.bounds, coordinate_resolution="0.01")
    found = hierarchy_from_h3("9", domain)
    x, y = points(domain, 500)
    assert np.array_equal(found.assign(x, y), found.assign(x.round(2), y.round(2)))


def test_bounds_that_end_where_a_refusal_says_are_accepted(subtests):
    for resolution, sign in itertools.product("0123", (1, -1)):
        with subtests.test(resolution=resolution, sign=sign):
            ends = sorted([60 * sign, 90 * sign])
            with pytest.raises(DomainError, match="around a pole") as refused:
                hierarchy_from_h3(resolution, psd.Domain(bounds=(0, ends[0], 10, ends[1])))
            told = float(re.search(r"latitude (-?[\d.]+)", str(refused.value))[1])
            ends = sorted([60 * sign, told])
            domain = psd.Domain(bounds=(0, ends[0], 10, ends[1]))
            found = hierarchy_from_h3(resolution, domain)
            assert (found.assign(*points(domain, 200)) >= 0).all()


def test_levels_and_bounds_that_are_refused(monkeypatch, subtests):
    table = [
        ("h3 must be", "", "16", "5..16", "9..5", "5,5", "-1", "a", "1.5"),
        ("got more of resolution 12; the finest that fits is 11", "12"),
    ]
    refused(subtests, ParameterError, table, lambda text: hierarchy_from_h3(text, SEOUL))
    small = dataclasses.replace(SEOUL, lattice=(8, 8))
    assert hierarchy_from_h3((5, 7), small).levels[1].ids[0]  # a tuple
    table = [
        ("h3 needs bounds in EPSG:4326, got EPSG:3857", PLANE),
        ("around a pole, .*; end them at latitude 8", psd.Domain(bounds=(170, 60, 180, 90))),
        ("around a pole, .*; end them at latitude -8", psd.Domain(bounds=(-180, -90, 180, 9))),
    ]
    refused(subtests, DomainError, table, lambda domain: hierarchy_from_h3("2", domain))
    monkeypatch.setitem(sys.modules, "h3.api.basic_int", None)
    with pytest.raises(MissingExtraError, match="in the folder of the source of psd"):
        h3.h3_library()
    table = [
        ("must be lengths such as 1km or 250m, got ''", ""),
        ("must be lengths", "0", "-1km", "1 mile", "nan"),
        ("must divide the next larger one, got 1000 and 1000", "1km,1km"),
        ("must divide the next larger one, got 1000 and 2500", "1km,2500m"),
        ("1 to 20 sizes, got 21", ["1km"] * 21),
    ]
    refused(subtests, ParameterError, table, lambda text: parse_sizes(text, EUROPE))
    assert parse_sizes("0.01,0.1", DEGREES) == (Fraction(1, 10), Fraction(1, 100))
    with pytest.raises(ParameterError, match="in units of EPSG:4326, which are not metres"):
        parse_sizes("1km", DEGREES)
    table = [
        ("tiles must be", "14..8", "8,8", "8..25", "1e3", "8;9", (), (9, 8), (8, 8), (-1, 3)),
        ("tiles must be zooms such as", "", "a", "8..", "-1", "1.5", "8,", "100", "8..100", "²"),
        ("must be ascending zooms from 0 to 24, got", (3, 25)),
        ("the finest zoom that fits is 19", "8..22"),
    ]
    refused(subtests, ParameterError, table, lambda text: hierarchy_from_tiles(text, TOWN))
    with pytest.raises(DomainError, match="tiles need bounds in EPSG:3857, got EPSG:4326"):
        hierarchy_from_tiles("8", psd.Domain(bounds=(126, 37, 127, 38)))
    with pytest.raises(ParameterError, match="codes must be one of quadkey, xyz"):
        hierarchy_from_tiles("8", TOWN, codes="zxy")


def tile_of(lon, lat, zoom):
    """Column and row of a tile by the formula of the OpenStreetMap wiki."""
    n = 2**zoom
    turned = np.arcsinh(np.tan(np.radians(lat)))
    return int((lon + 180) / 360 * n), int((1 - turned / np.pi) / 2 * n)


def test_tiles_are_those_of_web_maps():
    found = hierarchy_from_tiles("6..12", TOWN, codes="xyz")
    assert [level.name for level in found.levels] == [f"zoom {zoom}" for zoom in range(6, 13)]
    radius = 6_378_137.0
    for lon, lat in ((126.9, 37.5), (127.2, 37.4), (126.6, 37.7)):
        x, y = np.radians(lon) * radius, np.arcsinh(np.tan(np.radians(lat))) * radius
        region = int(found.assign(np.array([x]), np.array([y]))[0])
        for level in range(6, -1, -1):
            column, row = tile_of(lon, lat, 6 + level)
            assert found.levels[level].ids[region] == f"{6 + level}/{column}/{row}"
            region = int(found.levels[level].parent[region])
    found = hierarchy_from_tiles("12", TOWN)
    x, y = points(TOWN, 5000)
    region = found.assign(x, y)
    assert shapely.contains_xy(found.shapes()[region], x, y).all()
    assert shapely.area(found.shapes()).sum() == pytest.approx(130_000 * 80_000)


def test_a_quadkey_begins_with_that_of_its_parent():
    found = hierarchy_from_tiles((8, 11, 13), TOWN)
    assert {len(text) for text in found.levels[0].ids} == {8}
    for level in (1, 2):
        upper, lower = found.levels[level - 1 : level + 1]
        for text, parent in zip(lower.ids, lower.parent, strict=True):
            assert text.startswith(upper.ids[parent])
    assert len(set(found.levels[2].ids)) == found.size
    # Bing's example: tile 3, 5 of zoom 3 is 213.
    world = psd.Domain(bounds=(-2e7, -2e7, 2e7, 2e7), crs="EPSG:3857")
    codes = hierarchy_from_tiles("3", world), hierarchy_from_tiles("3", world, codes="xyz")
    assert codes[0].levels[0].ids[list(codes[1].levels[0].ids).index("3/3/5")] == "213"


@pytest.mark.parametrize(("domain", "resolution"), ACROSS)
def test_cells_across_longitude_180_have_a_part_at_each_end(domain, resolution):
    found = hierarchy_from_h3(str(resolution), domain)
    west, south, east, north = domain.bounds
    shapes, sides = found.shapes(), np.array(domain.bounds)
    assert shapely.is_valid(shapes).all()
    assert np.isin(shapely.get_type_id(shapes), (3, 6)).all()
    ends = shapely.bounds(shapes[~shapely.is_empty(shapes)])
    assert (ends[:, :2] >= sides[:2]).all()
    assert (ends[:, 2:] <= sides[2:]).all()
    whole = (east - west) * (north - south)
    assert shapely.area(shapes).sum() == pytest.approx(whole, rel=1e-2)
    area = found.clipped_area(np.arange(found.size), found.boxes) / np.prod(domain.lattice)
    assert area.sum() == pytest.approx(shapely.area(shapes).sum() / whole, rel=1e-6)
    assert (found.part_outside >= 0).all()
    assert (found.part_outside <= 1).all()
    across = shapely.get_num_geometries(shapes) > 1
    assert across.any() == (east - west == 360)
    x, y = points(domain, 3000)
    region = found.assign(x, y)
    column, row, _ = domain.quantise(x, y)
    boxes = np.stack([column, row, column + 1, row + 1], axis=1)
    assert found.meets(region, boxes).all()
    assert (boxes[:, :2] >= found.boxes[region][:, :2]).all()
    assert (boxes[:, 2:] <= found.boxes[region][:, 2:]).all()
    # Boxes of other records seldom meet a region, but where there are few.
    other = found.meets(np.roll(region, 7), boxes)
    assert other.mean() < 2 * len(np.unique(region)) ** -0.5
