"""Polygons that are unions of regions up to a little area are answered from the nodes of these."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.query.region_nodes import TOLERANCE, find_unions
from psd.regions.polygon_hierarchy import hierarchy_from_polygons

DEGREES = psd.Domain(bounds=(126, 37, 128, 38), crs="EPSG:4326", lattice=(256, 256))
METRES = "EPSG:5179"


@pytest.fixture(scope="module")
def wards():
    """Eighteen wards with oblique sides; the east of the bounds is in none."""
    x, y = np.meshgrid(np.linspace(126.1, 127.5, 7), np.linspace(37.1, 37.9, 4))
    x = x + 0.02 * np.sin(9 * y)
    rings = [
        [(x[j, i], y[j, i]) for j, i in ((j, i), (j, i + 1), (j + 1, i + 1), (j + 1, i))]
        for j in range(3)
        for i in range(6)
    ]
    ids = [f"w{number:02d}" for number in range(18)]
    return gpd.GeoDataFrame(
        {"ward": ids}, geometry=[shapely.Polygon(ring) for ring in rings], crs="EPSG:4326"
    )


@pytest.fixture(scope="module", params=["cascade", "none"])
def release(request, wards):
    regions = hierarchy_from_polygons(wards, DEGREES, ids="ward", gaps="outside")
    x, y = np.random.default_rng(2).uniform((126, 37), (128, 38), (4_000, 2)).T
    rows = pd.DataFrame({"x": x, "y": y})
    return psd.build(rows, regions=regions, epsilon=2, method=request.param, x="x", y="y")


def assert_answered_as(release, polygons, ids):
    """Polygons have the answers of unions of regions, to the bit."""
    answers, named = release.query(polygons).table, release.query(ids).table
    for name in ("estimate", "error", "perturbation_error", "lower", "upper"):
        assert answers[name].tolist() == named[name].tolist()
    assert (answers["nonuniformity_error"] == 0).all()


UNIONS = [["w00"], ["w03", "w04"], ["w00", "w17"], [f"w{n:02d}" for n in range(18)]]


def unions(wards):
    shapes = wards.set_index("ward").geometry
    return gpd.GeoDataFrame(
        geometry=[shapely.union_all(shapes[ids].to_numpy()) for ids in UNIONS], crs=wards.crs
    )


def test_unions_of_another_crs_are_answered_from_nodes(release, wards):
    assert_answered_as(release, unions(wards).to_crs(METRES), UNIONS)
    rounded = unions(wards)
    rounded["geometry"] = shapely.set_precision(rounded.geometry.to_numpy(), 1e-5)
    assert_answered_as(release, rounded, UNIONS)


def test_what_lies_in_no_region_is_not_compared(release, wards):
    both = shapely.union_all(wards.geometry.to_numpy()[[5, 11]])
    wider = both.union(shapely.box(127.55, 37.1, 128, 37.9))
    assert_answered_as(release, gpd.GeoSeries([wider], crs=wards.crs), [["w05", "w11"]])


@pytest.mark.parametrize("share", [0.5, 0.9, 1.2, 3.0])
def test_the_tolerance_is_a_share_of_the_area(release, wards, share):
    [west, south, east, north] = shapely.bounds(wards.geometry[8])
    ward = wards.geometry[8]
    less = TOLERANCE * share * ward.area
    low, high = west - 1, east
    for _ in range(60):  # width at which the strip has this share of the ward
        middle = (low + high) / 2
        strip = shapely.box(west - 1, south - 1, middle, north + 1)
        low, high = (middle, high) if ward.intersection(strip).area < less else (low, middle)
    cut = np.array([ward.difference(strip)], dtype=object)
    is_union, _, region = find_unions(release.tree, cut)
    assert is_union.tolist() == [share < 1]
    assert region.tolist() == ([8] if share < 1 else [])


def test_a_small_polygon_inside_a_region_is_no_union(release, wards):
    spot = np.array([wards.geometry[4].centroid.buffer(1e-4)], dtype=object)
    is_union, *_ = find_unions(release.tree, spot)
    assert not is_union.any()
    answer = release.query(list(spot), crs=wards.crs).table
    assert answer["nonuniformity_error"].min() > 0


def test_a_polygon_without_a_region_has_no_records(release):
    [answer] = release.query([shapely.box(127.8, 37.2, 128, 37.4)], crs="EPSG:4326").table.to_dict(
        "records"
    )
    assert (answer["estimate"], answer["error"]) == (0, 0)
