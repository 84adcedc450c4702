"""Plans that a newcomer to the library guesses; see `tests/contract/test_guessed_calls.py`."""

import geopandas as gpd
import pytest
import shapely

import psd

FAST = {"runs": 1, "density": "uniform"}


def test_30_polygons_as_the_area():
    edges = [(900_000, 1_900_000), (960_000, 1_900_000)]
    shapes = [shapely.box(x, y, x + 60_000, y + 100_000) for x, y in edges]
    wards = gpd.GeoDataFrame({"name": ["west", "east"]}, geometry=shapes, crs=5179)
    plan = psd.plan(area=wards, count=100_000, epsilon=1, **FAST)
    assert plan.area_km2 == pytest.approx(12_000, rel=0.01)


def test_31_a_method():
    bounds = (126.5, 37.1, 127.5, 37.9)
    plan = psd.plan(bounds=bounds, count=100_000, epsilon=1, method="quadtree", **FAST)
    assert set(plan.table["method"]) == {"quadtree"}


def test_32_a_table():
    table = psd.plan(area=605, count=100_000, epsilon=[0.1, 1], **FAST).to_frame()
    assert set(table["epsilon"]) == {"0.1", "1"}
