"""Folders in which commands run."""

import geopandas as gpd
import pytest
import shapely

from support.cli_runner import three_by_three


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder, and the working one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def release(here):
    """The worked example in the working folder."""
    three_by_three().save(here / "r.psd.parquet")
    return here / "r.psd.parquet"


@pytest.fixture
def wards(here):
    """Four wards in two boroughs in the working folder."""
    columns = {
        "ward": list("abcd"),
        "borough": ["west", "west", "east", "east"],
        "people": [100, 200, 300, 5_000],
        "bad": [100, -2, 300, 5_000],
        "gaps": [100.0, None, 300.0, 5_000.0],
        "seats": [3, 2, 1, 4],
    }
    shapes = [shapely.box(x, -4, x + 2, 4) for x in (-4, -2, 0, 2)]
    gpd.GeoDataFrame(columns, geometry=shapes, crs="EPSG:4326").to_file("wards.gpkg")
    return here
