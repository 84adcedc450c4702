"""Two releases: changes, ratios, and what cannot be compared."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.errors import DomainError, ParameterError
from support.releases import changed
from support.trees import SOUTH_UP, grid_release


def test_two_releases():
    first, second = grid_release(SOUTH_UP * 3), grid_release(SOUTH_UP, epsilon=0.5)
    boxes = [(0, 0, 1, 1), (0, 0, 3, 3)]
    table = first.query(boxes, difference=second).table
    assert table.difference.tolist() == pytest.approx([20, 900])
    variances = [release.query(boxes).table.error ** 2 for release in (first, second)]
    assert (table.error**2).tolist() == pytest.approx((variances[0] + variances[1]).tolist())
    assert (table.upper - table.lower).tolist() == pytest.approx(
        (2 * 1.959964 * table.error).tolist()
    )
    ratio = first.query(boxes, difference=second, ratio=True).table
    assert ratio.ratio.tolist() == pytest.approx([3, 3])
    assert ((ratio.lower < 3) & (ratio.upper > 3)).all()
    assert ratio.error[1] < ratio.error[0]


def test_two_releases_with_polygons_keep_the_table():
    table = gpd.GeoDataFrame({"name": ["a"]}, geometry=[shapely.box(0, 0, 2, 2)], crs="EPSG:3857")
    first, second = grid_release(SOUTH_UP * 3), grid_release(SOUTH_UP)
    found = first.query(table, difference=second).table
    assert isinstance(found, gpd.GeoDataFrame)
    assert list(found.columns)[:4] == ["name", "geometry", "first", "second"]
    with pytest.raises(ParameterError, match="first"):
        first.query(table.assign(first=1), difference=second, ratio=True)


def test_releases_that_cannot_be_compared():
    first = grid_release(SOUTH_UP)
    for other in (
        grid_release(np.ones((4, 4), int)),
        changed(first, domain=psd.Domain(bounds=(0, 0, 3, 4), crs="EPSG:3857", lattice=(3, 3))),
        changed(first, domain=psd.Domain(bounds=(0, 0, 3, 3), crs="EPSG:3395", lattice=(3, 3))),
    ):
        for ratio in (False, True):
            with pytest.raises(DomainError, match="one domain"):
                first.query([(0, 0, 1, 1)], difference=other, ratio=ratio)
    with pytest.raises(ParameterError, match="the same release twice"):
        first.query([(0, 0, 1, 1)], difference=grid_release(SOUTH_UP))


def of_halves(ids=("west", "east"), *, side=4, level="ward", east=0):
    """A release of 300 records in the west and some in the east of a square, a region each."""
    shapes = [shapely.box(0, 0, side, 8), shapely.box(side, 0, 8, 8)]
    if ids[0] == "east":
        shapes.reverse()
    table = gpd.GeoDataFrame({level: ids}, geometry=shapes, crs="EPSG:3857")
    places = np.repeat([[1.0, 4.0], [7.0, 4.0]], [300, east], axis=0)
    domain = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857")
    options = {"regions": table, "region_id": level, "method": "none"}
    return psd.build(places, domain=domain, epsilon=50, **options)


def test_regions_are_compared_by_their_ids_whatever_their_order():
    first, second = of_halves(), of_halves(("east", "west"), east=100)
    for table in (
        first.query(difference=second).table,
        first.query(["west", "east"], difference=second).table,
    ):
        assert table["second"].round().tolist() == [300, 100]
        assert table["difference"].round().tolist() == [0, -100]
    table = first.query([["east", "west"], "east"], difference=second).table
    assert table["id"].tolist() == ["east + west", "east"]
    assert table["difference"].round().tolist() == [-100, -100]


def test_regions_of_other_names_or_outlines_cannot_be_compared():
    first = of_halves()
    for words, other in (
        ("ids must be those of level ward, got 'east'", of_halves(("west", "north"))),
        ("level must be one of quarter, got 'ward'", of_halves(level="quarter")),
        ("got two outlines of region 'west'; ask for --polygons", of_halves(side=3)),
    ):
        with pytest.raises(ParameterError, match=words):
            first.query(difference=other)
    almost = of_halves(side=4.001, east=9)  # as after rounding in another program
    assert first.query("west", difference=almost).table["difference"].round().tolist() == [0]
    without = psd.build(np.array([[1.0, 4.0]]), domain=first.domain, epsilon=50, method="quadtree")
    with pytest.raises(ParameterError, match="by name, got one without any; ask for --polygons"):
        first.query(difference=without)


def test_a_ratio_over_nothing_has_no_upper_end():
    first, second = grid_release(SOUTH_UP), grid_release(np.zeros((3, 3), int))
    row = first.query([(0, 0, 1, 1)], difference=second, ratio=True).table.loc[0]
    assert np.isnan(row["ratio"])
    assert row["error"] == row["upper"] == np.inf
    assert row["lower"] > 0
