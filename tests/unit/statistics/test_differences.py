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


def test_a_ratio_over_nothing_has_no_upper_end():
    first, second = grid_release(SOUTH_UP), grid_release(np.zeros((3, 3), int))
    row = first.query([(0, 0, 1, 1)], difference=second, ratio=True).table.loc[0]
    assert np.isnan(row["ratio"])
    assert row["error"] == row["upper"] == np.inf
    assert row["lower"] > 0
