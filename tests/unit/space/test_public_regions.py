"""Regions of a choice, from a file of polygons."""

import geopandas as gpd
import pytest
import shapely

from psd.errors import InputDataError, ParameterError
from psd.space.public_regions import read_public_regions

CRS = "EPSG:3857"


@pytest.fixture
def zones(tmp_path):
    """Two regions, and a gap north of the second one."""
    shapes = [shapely.box(0, 0, 4, 4), shapely.box(4, 0, 8, 3)]
    path = tmp_path / "zones.gpkg"
    gpd.GeoDataFrame({"id": ["b", "a"]}, geometry=shapes, crs=CRS).to_file(path)
    return str(path)


def test_the_bounds_are_those_of_the_polygons(zones):
    regions = read_public_regions(zones, crs=CRS)
    assert regions.domain.bounds == pytest.approx((0, 0, 8, 4))
    assert sorted(regions.levels[-1].ids) == ["a", "b"]
    inside = read_public_regions(zones, crs=CRS, bounds=(1, 1, 6, 2)).domain.bounds
    assert inside == (1, 1, 6, 2)


def test_wrong_regions_are_refused(zones, tmp_path):
    with pytest.raises(ParameterError, match="ids"):
        read_public_regions(zones, crs=CRS, ids="name")
    with pytest.raises(InputDataError, match="does not exist"):
        read_public_regions(str(tmp_path / "none.gpkg"), crs=CRS)
