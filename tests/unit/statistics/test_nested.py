"""Nested regions: rings, hierarchies, and what is refused."""

import geopandas as gpd
import pandas as pd
import pytest
import shapely

from psd.errors import ParameterError
from psd.release.post_processing import PostProcessing
from support.trees import SOUTH_UP, grid_release

CHAIN = [(1, 1, 2, 2), (1, 1, 3, 3), (0, 0, 3, 3)]


@pytest.mark.deep
def test_rings_of_a_chain():
    release = grid_release(SOUTH_UP)
    table = release.query(CHAIN).nested()
    assert table.estimate.tolist() == pytest.approx([50, 280, 450])
    assert table.ring.tolist() == pytest.approx([50, 230, 170])
    variance = release.index.fit.estimates.variance[-1]
    assert (table.ring_error**2).tolist() == pytest.approx([variance, 3 * variance, 5 * variance])
    assert "joint_lower" not in table


@pytest.mark.deep
def test_a_hierarchy_by_ids_and_by_numbers():
    boxes = pd.DataFrame(
        [(0, 0, 3, 3), (0, 0, 1, 3), (1, 0, 3, 2), (0, 0, 1, 1)],
        columns=["west", "south", "east", "north"],
    ).assign(id=["all", "west", "east", "corner"], parent=["", "all", "all", "west"])
    release = grid_release(SOUTH_UP)
    table = release.query(boxes).nested()
    assert table.ring.tolist() == pytest.approx([170, 110, 160, 10])
    numbered = release.query(boxes.drop(columns="parent")).nested(parents=[-1, 0, 0, 1])
    assert numbered.ring.tolist() == table.ring.tolist()
    shapes = gpd.GeoDataFrame(
        boxes[["id", "parent"]], geometry=shapely.box(*boxes.iloc[:, :4].T.to_numpy()), crs=3857
    )
    assert release.query(shapes).nested().ring.tolist() == pytest.approx(table.ring.tolist())


def test_rings_are_not_negative_where_cells_are():
    release = grid_release([[9, -30, 4], [-8, 50, -9], [2, 3, -20]])
    release = release.replace(post_processing=PostProcessing(estimate="signed"))
    assert release.query([CHAIN[1]]).table.estimate[0] < release.query([CHAIN[0]]).table.estimate[0]
    table = release.query(CHAIN).nested()
    assert (table.ring >= 0).all()
    assert table.estimate.is_monotonic_increasing
    assert table.ring.cumsum().tolist() == pytest.approx(table.estimate.tolist())
    assert table.estimate[2] == release.total


REFUSED = {
    "order": (CHAIN[::-1], None, "region 1 does not lie inside region 2"),
    "beside": ([(0, 0, 2, 2), (1, 1, 3, 3)], None, "does not lie inside"),
    "overlap": ([(0, 0, 2, 2), (1, 1, 3, 3)], [-1, -1], "1 and 2 overlap"),
    "circle": (CHAIN, [1, 0, -1], "must not form a circle"),
    "own parent": (CHAIN, [0, 1, 2], "must not form a circle"),
    "below a circle": (CHAIN, [1, 2, 1], r"circle; region [23] is in one"),
    "beyond": (CHAIN, [1, 2, 3], "parents"),
    "too few": (CHAIN, [1, 2], "parents"),
    "names": (CHAIN, ["b", "c", ""], "parents"),
}


def test_nesting_that_is_refused(subtests):
    release = grid_release(SOUTH_UP)
    for name, (regions, parents, word) in REFUSED.items():
        with subtests.test(name), pytest.raises(ParameterError, match=word):
            release.query(regions).nested(parents=parents)
    table = pd.DataFrame(CHAIN, columns=["west", "south", "east", "north"])
    for ids, parents, word in (
        (["a", "a", "b"], ["b", "b", ""], "without duplicates"),
        (["a", "b", "c"], ["b", "d", ""], "parent must be the id of a region, got d"),
    ):
        with subtests.test(word), pytest.raises(ParameterError, match=word):
            release.query(table.assign(id=ids, parent=parents)).nested()
