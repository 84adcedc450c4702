"""Regions and candidates of a choice, from files."""

import geopandas as gpd
import pytest
import shapely

from psd.apps.choosing.files import read_catchments, read_order, read_public_regions
from psd.errors import InputDataError, ParameterError
from support.layers import read_layers, two_layers


@pytest.fixture
def zones(tmp_path):
    """Two regions, and a gap north of the second one."""
    shapes = [shapely.box(0, 0, 4, 4), shapely.box(4, 0, 8, 3)]
    path = tmp_path / "zones.gpkg"
    gpd.GeoDataFrame({"id": ["b", "a"]}, geometry=shapes, crs="EPSG:3857").to_file(path)
    return str(path)


def test_the_bounds_are_those_of_the_polygons(zones, tmp_path):
    regions = read_public_regions(zones, crs="EPSG:3857")
    assert regions.domain.bounds == pytest.approx((0, 0, 8, 4))
    assert sorted(regions.levels[-1].ids) == ["a", "b"]
    inside = read_public_regions(zones, crs="EPSG:3857", bounds=(1, 1, 6, 2)).domain.bounds
    assert inside == (1, 1, 6, 2)
    with pytest.raises(ParameterError, match="ids"):
        read_public_regions(zones, crs="EPSG:3857", ids="name")
    with pytest.raises(InputDataError, match="does not exist"):
        read_public_regions(str(tmp_path / "none.gpkg"), crs="EPSG:3857")


def ordered(path):
    return read_order(str(path), "order", read_public_regions(str(path), crs="EPSG:3857"))


READERS = {
    "public regions": lambda path: read_public_regions(str(path), crs="EPSG:3857").domain.bounds,
    "an order": ordered,
    "candidates": lambda path: read_catchments(path, crs="EPSG:3857").ids,
}


@pytest.mark.parametrize("what", READERS)
def test_a_layer_is_chosen_wherever_a_file_is_read(tmp_path, what):
    first, second = read_layers(READERS[what], two_layers(tmp_path / "city.gpkg"))
    assert first != second
