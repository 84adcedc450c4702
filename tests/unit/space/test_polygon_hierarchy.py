"""Tables of polygons as hierarchies: ids, parents, gaps and overlaps, and what is refused."""

import itertools

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.errors import DomainError, ParameterError
from psd.space.boundary import Boundary
from psd.space.polygon_hierarchy import hierarchy_from_polygons
from support.tables import refused

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(64, 64))
HALVES = [shapely.box(0, 0, 4, 8), shapely.box(4, 0, 8, 8)]


def table(shapes=HALVES, crs="EPSG:3857", **columns):
    columns = columns or {"ward": [f"w{i}" for i in range(len(shapes))]}
    return gpd.GeoDataFrame(columns, geometry=list(shapes), crs=crs)


def columns_of(size, far=8):
    """Columns of the plane."""
    edges = np.linspace(0, far, size + 1)
    return [shapely.box(a, 0, b, 8) for a, b in itertools.pairwise(edges)]


def hierarchy(tables, domain=PLANE, ids="ward", **options):
    return hierarchy_from_polygons(tables, domain, ids=ids, **options)


def test_numbers_become_ids():
    assert hierarchy(table(ward=[7, 12])).levels[0].ids == ("7", "12")
    assert hierarchy(table(ward=[7.0, 12.5])).levels[0].ids == ("7", "12.5")


def test_ids_that_are_refused(subtests):
    table_of_ids = [
        ("must be unique, got 'a' twice", ["a", "a"]),
        ("region 2 of level ward must have an id, got blanks", ["a", ""]),
        ("must have an id, got blanks", ["a", "  "]),
        ("region 2 must have an id in column ward, got a missing", ["a", None], [1.0, np.nan]),
        (r"must be printable, got 'b\\x1b\[0m' in region 2", ["a", "b\x1b[0m"]),
        ("at most 200 characters, got 1,048,576 in region 2", ["a", "b" * 2**20]),
    ]
    refused(subtests, ParameterError, table_of_ids, lambda ids: hierarchy(table(ward=ids)))


def test_tables_that_are_refused(subtests):
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
        ("region 2 must be a polygon, got Point", table([first, shapely.Point(1, 1)])),
        *(("region 2 is not valid", table([first, shapely.Polygon(c)])) for c in (crossing, flat)),
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


def test_a_region_has_one_parent():
    rows = table(columns_of(4), ward=list("abcd"), borough=list("xxyy"), region=list("uuvv"))
    levels = hierarchy(rows, parents=["borough", "region"]).levels
    assert [len(level) for level in levels] == [2, 2, 4]
    rows["borough"] = list("xyxy")
    with pytest.raises(ParameterError, match="region 'x' of level borough must have one parent, "):
        hierarchy(rows, parents=["borough", "region"])


def test_a_file_of_each_level_nests_by_area():
    wards, boroughs = table(columns_of(4)), table([HALVES[1], HALVES[0]], borough=["east", "west"])
    found = hierarchy([boroughs, wards], ids=["borough", "ward"])
    assert found.levels[0].ids == ("east", "west")
    assert found.levels[1].ids == ("w2", "w3", "w0", "w1")
    assert found.levels[1].parent.tolist() == [0, 0, 1, 1]
    both = hierarchy([boroughs.rename(columns={"borough": "ward"}), wards])
    assert [level.name for level in both.levels] == ["ward 1", "ward 2"]


def test_levels_that_do_not_nest_are_refused_by_name(subtests):
    schools = table(columns_of(3), school=["s0", "s1", "s2"])
    tables = [
        (r"but 's1' crosses from 'w0' into 'w1' \(1 of 3 regions cross\); make two", schools),
        ("'w1' must have a region of the level below, got none", table([HALVES[0]], school=["s"])),
    ]
    ids = ["ward", "school"]
    refused(subtests, ParameterError, tables, lambda low: hierarchy([table(), low], ids=ids))


def test_gaps_are_judged_inside_the_boundary():
    outline = gpd.GeoSeries([shapely.box(0, 0, 7, 8)], crs="EPSG:3857")
    boundary = Boundary.from_polygons(outline, PLANE)
    found = hierarchy(table(columns_of(2, far=7)), boundary=boundary)
    assert not found.geometry.elsewhere
    with pytest.raises(ParameterError, match=r"must cover the boundary, got 14\.29% of the area"):
        hierarchy(table(columns_of(2, far=6)), boundary=boundary)


def test_what_is_elsewhere_is_a_region_of_each_level():
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
