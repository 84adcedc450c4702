"""Populations of regions: what is read, what is refused, and the records that are drawn."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.apps.planning import population
from psd.apps.planning.population import read_populations, region_populations
from psd.errors import InputDataError, ParameterError
from psd.regions.files import RegionFiles
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.space.boundary import Boundary
from psd.space.covariate import Covariate
from support.layers import read_layers, two_layers

DOMAIN = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857")


def wards(**columns):
    """Four wards in two boroughs, and 2 units in no ward."""
    shapes = [shapely.box(x, 0, x + 1.5, 8) for x in (0, 1.5, 3, 4.5)]
    rows = {"ward": list("abcd"), "borough": [1, 1, 2, 2], **columns}
    return gpd.GeoDataFrame(rows, geometry=shapes, crs="EPSG:3857")


@pytest.fixture
def files(tmp_path):
    def make(**columns):
        wards(**columns).to_file(tmp_path / "w.gpkg")
        return psd.regions.RegionFiles(
            paths=(str(tmp_path / "w.gpkg"),), ids=("ward",), gaps="elsewhere"
        )

    return make


def hierarchy(gaps="elsewhere"):
    return hierarchy_from_polygons(wards(), DOMAIN, ids="ward", parents=["borough"], gaps=gaps)


def test_a_column_is_read_by_id(files, tmp_path):
    numbers = read_populations(files(people=[10, 0, 30.5, "40"]), "people")
    assert numbers == {"a": 10, "b": 0, "c": 30.5, "d": 40}
    words = r"population must be numbers from 0 .* region 'c'"
    for value in (-1, None, float("nan"), "many", 1e13):
        with pytest.raises(ParameterError, match=words):
            read_populations(files(people=[1.0, 2.0, value, 4.0]), "people")
    with pytest.raises(ParameterError, match=r"a column of the regions \(ward, borough\), got"):
        read_populations(files(), "people")
    with pytest.raises(ParameterError, match="must be a column of files"):
        read_populations(psd.regions.CellRegions(kind="tiles", cells="3"), "people")
    gone = psd.regions.RegionFiles(paths=(str(tmp_path / "gone.gpkg"),), ids=("ward",))
    with pytest.raises(InputDataError):
        read_populations(gone, "people")


def test_populations_are_in_the_order_of_the_regions_and_a_sliver_has_its_records():
    stated = {"d": 4, "a": 1, "b": 2, "c": 3}
    assert region_populations(hierarchy(), stated, None).tolist() == [1, 2, 3, 4, 0]
    assert region_populations(hierarchy(), stated, 20).tolist() == [2, 4, 6, 8, 0]
    assert region_populations(hierarchy(), [1, 2, 3, 4, 0], 20).tolist() == [2, 4, 6, 8, 0]
    assert region_populations(hierarchy(), None, 20).tolist() == [4] * 5
    for populations, words in [
        (None, "count must be the expected number"),
        ({"a": 1}, "got none for 'b' .3 of 5 have none"),
        ([1, 2], "one number for each of 5 lowest regions"),
        ([0] * 5, "a sum above 0"),
        ([1, 2, 3, -4, 0], "got '-4' for region 'd'"),
    ]:
        with pytest.raises(ParameterError, match=words):
            region_populations(hierarchy(), populations, None)
    width = 1e-5
    shapes = [shapely.box(0, 0, 8, 8 - width), shapely.Polygon([(0, 8), (8, 8), (8, 8 - width)])]
    table = gpd.GeoDataFrame({"id": ["a", "b"]}, geometry=shapes, crs="EPSG:3857")
    regions = hierarchy_from_polygons(table, DOMAIN, ids="id", gaps="outside")
    tally = seeded(regions, np.array([5.0, 7.0]))
    assert np.bincount(tally.region, tally.counts).tolist() == [5, 7]


def seeded(regions, expected, k=1, **how):
    return population.draw_region_population(regions, expected, np.random.default_rng(1), k, **how)


@pytest.mark.parametrize("count", [3, 1_000, 50_000_000])
def test_records_are_in_their_regions(count):
    regions = hierarchy()
    expected = region_populations(regions, [1, 0, 3, 6, 0], count)
    tally = seeded(regions, expected, 4)
    counted = np.bincount(tally.region, tally.counts, 5)
    assert counted.tolist() == np.rint(expected).tolist()
    assert tally.contributions == 4
    x, y = DOMAIN.centres(0, tally.columns), DOMAIN.centres(1, tally.rows)
    assert (regions.assign(x, y) == tally.region).all()
    assert seeded(regions, expected, 4).columns.tolist() == tally.columns.tolist()


def test_records_follow_a_covariate_and_lie_inside_an_area():
    regions = hierarchy_from_polygons(wards(), DOMAIN, ids="ward", gaps="outside")
    expected = np.array([1_000.0, 0, 50, 7])
    raster = np.array([[1, 0], [3, 0]], np.uint16)  # nothing in the east, three in four north
    density = Covariate(domain=DOMAIN, raster=raster)
    south = Boundary.from_polygons(gpd.GeoSeries([shapely.box(0, 0, 8, 6)], crs=3857), DOMAIN)
    for covariate, area, share in (
        (density, None, 0.75),
        (None, south, 1 / 3),
        (density, south, 0.6),
    ):
        people = seeded(regions, expected, covariate=covariate, area=area)
        assert np.bincount(people.region, people.counts).tolist() == expected.tolist()
        y = DOMAIN.centres(1, people.rows)
        assert area is None or (y < 6).all()
        north = people.counts[(people.region == 0) & (y >= 4)].sum() / 1_000
        assert abs(north - share) < 0.06


def test_a_layer_of_a_file_is_chosen(tmp_path):
    first, second = read_layers(
        lambda path: read_populations(RegionFiles(paths=(str(path),), ids=("id",)), "n"),
        two_layers(tmp_path / "city.gpkg"),
    )
    assert first != second
