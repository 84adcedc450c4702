"""Squares of statistical grids: which one holds a record, their codes, levels and limits."""

import dataclasses
from fractions import Fraction

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pytest
import shapely

import psd
from psd.errors import ParameterError, ReleaseFormatError
from psd.space.boundary import Boundary
from psd.space.polygon_hierarchy import hierarchy_from_polygons
from psd.space.region_hierarchy import RegionHierarchy
from psd.space.region_kinds.grid_cells import hierarchy_from_grid, parse_sizes
from support.tables import refused

EUROPE = psd.Domain(bounds=(4_310_000, 2_668_400, 4_337_500, 2_700_000), crs="EPSG:3035")
PLANE = psd.Domain(bounds=(-3, -2.5, 8, 8.5), crs="EPSG:3857", lattice=(64, 37))
DEGREES = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0), lattice=(1000, 700))


def test_cells_have_the_codes_of_inspire():
    found = hierarchy_from_grid("1km,10km", EUROPE)
    assert [level.name for level in found.levels] == ["10km", "1km"]
    region = int(found.assign(np.array([4_337_499.0]), np.array([2_689_000.0]))[0])
    assert found.levels[1].ids[region] == "CRS3035RES1000mN2689000E4337000"
    assert found.levels[0].ids[found.levels[1].parent[region]] == "CRS3035RES10000mN2680000E4330000"
    assert len(set(found.levels[1].ids)) == found.size == 28 * 32
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
    rng = np.random.default_rng(1)
    x, y = rng.uniform(west, east, 4000), rng.uniform(south, north, 4000)
    x[:2000], y[1000:3000] = x[:2000].round(1), y[1000:3000].round(1)
    x, y = np.append(x, [west, east, east]).clip(west, east), np.append(y, [south, north, south])
    y = y.clip(south, north)
    region = found.assign(x, y)
    assert (region >= 0).all()
    columns, rows, _ = domain.quantise(x, y)
    cells = np.stack([columns, rows, columns + 1, rows + 1], axis=1)
    assert found.meets(region, cells).all()
    assert (found.boxes[region, :2] <= cells[:, :2]).all()
    assert (found.boxes[region, 2:] >= cells[:, 2:]).all()
    box = shapely.bounds(found.shapes())[region]
    if resolution is None:
        assert ((box[:, 0] <= x) & ((x < box[:, 2]) | (x == east))).all()
        assert ((box[:, 1] <= y) & ((y < box[:, 3]) | (y == north))).all()
        assert (found.clipped_area(region, cells) >= 0).all()
    else:
        values = domain.centres(0, columns), domain.centres(1, rows)
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


def test_areas_add_up_to_the_lattice():
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
    again = RegionHierarchy.from_table(domain, found.parameters(), found.to_table())
    assert again.digest == found.digest != full.digest
    assert np.array_equal(again.assign(x, y), region)


def test_a_release_has_the_same_cells_by_parameters_alone():
    found = hierarchy_from_grid("1km,5km", EUROPE)
    assert found.to_table() is None
    stated = {"kind": "grid-cells", "levels": ["5km", "1km"], "sizes": ["5000", "1000"]}
    assert found.parameters() == stated
    again = RegionHierarchy.from_table(EUROPE, found.parameters(), None)
    assert again.digest == found.digest
    assert list(again.levels[1].ids) == list(found.levels[1].ids)


def test_sizes_that_are_refused(subtests):
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
    forged = [({**base, **change}, None) for change in (*changes, {"more": 1})]
    columns = [[0, 2**40], [-1, 0], [3, 2], [0, None], pa.array([], pa.int64()), [1.5]]
    tables = [{"cell": column} for column in columns] + [{"number": [1]}]
    for case in (*forged, *((base, pa.table(table)) for table in tables)):
        with subtests.test(case=case), pytest.raises(ReleaseFormatError):
            RegionHierarchy.from_table(EUROPE, *case)
    assert RegionHierarchy.from_table(EUROPE, base, None).size == 28 * 32
