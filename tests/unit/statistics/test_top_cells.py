"""Top cells and regions: exact probabilities, seeds, and what is refused."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

from psd.errors import ParameterError
from psd.statistics.top_cells import top_candidates, top_probability
from support.tables import refuses
from support.trees import EQUATOR_SCALE, SOUTH_UP, domain_of, grid_release, random_tree, release_of


def test_top_cells_that_are_sure():
    table = grid_release(SOUTH_UP).query(top=3).table
    assert table.estimate.round().tolist() == [90, 80, 70]
    assert (table.probability > 0.99).all()
    sides = table[["west", "south", "east", "north"]].to_numpy().tolist()
    assert sides == [[2, 2, 3, 3], [1, 2, 2, 3], [0, 2, 1, 3]]
    assert table["rank"].tolist() == [1, 2, 3]
    assert table.density.tolist() == pytest.approx((table.estimate * 1e6 / EQUATOR_SCALE).tolist())


def test_top_cells_that_are_a_coin_toss():
    table = grid_release(np.full((4, 4), 100)).query(top=8, draws=4000).table
    assert table.probability.to_numpy() == pytest.approx(np.full(8, 0.5), abs=0.05)
    assert grid_release(SOUTH_UP).query(top=9).table.probability.tolist() == [1] * 9


def test_top_is_the_same_again_and_depends_on_the_seed():
    release = grid_release(np.full((4, 4), 100))
    first, again, other = (release.query(top=5, draws=50, seed=seed).table for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_top_by_density_ranks_small_leaves_first():
    domain = domain_of((4, 4))
    release = release_of(random_tree(np.random.default_rng(8), lattice=(16, 16), top=500))
    assert domain.lattice == (4, 4)
    by_density = release.query(top=5, by="density").table.density
    assert by_density.is_monotonic_decreasing
    assert release.query(top=5).table.estimate.is_monotonic_decreasing
    assert by_density.iloc[0] >= release.query(top=5).table.density.max()


def test_top_regions_keep_their_table():
    shapes = [shapely.box(0, 0, 1, 1), shapely.box(2, 2, 3, 3), shapely.box(0, 2, 3, 3)]
    table = gpd.GeoDataFrame({"name": list("abc")}, geometry=shapes, crs="EPSG:3857")
    found = grid_release(SOUTH_UP).query(table, top=2).table
    assert list(found.columns) == ["rank", "name", "geometry", "estimate", "error", "probability"]
    assert found.name.tolist() == ["c", "b"]
    assert (found.probability > 0.99).all()
    boxes = grid_release(SOUTH_UP).query([(0, 0, 1, 1), (1, 1, 2, 2)], top=1).table
    assert boxes.id.tolist() == [2]


def test_top_refuses(subtests):
    rows = [
        *(({"top": k}, f"top must be an integer from 1 to .*, got {k}") for k in (0, 10, 2.0)),
        ({"top": 5, "size": (2, 2)}, "number of cells"),
        ({"top": 2, "areas": [(0, 0, 1, 1)]}, "number of regions"),
        ({"top": 1, "areas": [(0, 0, 1, 1)], "size": (2, 2)}, "size"),
        ({"top": 1, "by": "people"}, "by"),
        ({"top": 1, "draws": 0}, "draws"),
        ({"top": 1, "seed": -1}, "seed"),
    ]
    refuses(subtests, grid_release(SOUTH_UP).query, rows, ParameterError)


def test_candidates_lose_nothing():
    rng = np.random.default_rng(3)
    value, error = rng.normal(size=200) * 20, rng.random(200)
    some = top_candidates(value, error, 10)
    assert set(np.argsort(-value)[:10]) <= set(some)
    assert len(some) < 100
    drawn = value[:, None] + error[:, None] * rng.normal(size=(200, 3000))
    whole = top_probability([drawn], 200, 10, 3000)
    assert np.array_equal(whole[some], top_probability([drawn[some]], len(some), 10, 3000))
    assert whole.sum() == pytest.approx(10)
