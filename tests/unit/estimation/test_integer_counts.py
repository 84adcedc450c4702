"""Integer counts: they add up, are near the counts, and are unbiased over digests."""

import hashlib

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.errors import ParameterError
from psd.estimation.least_squares import round_counts, rounding_variance, uniform_of_digest
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.release.post_processing import PostProcessing
from psd.testing.data import release_from_counts

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(256, 256))


def random_counts(seed, side=8):
    """A tree whose leaves have counts below 3, many of them 0; and the counts of all nodes."""
    random = np.random.default_rng(seed)
    tree = release_from_counts(np.zeros((side, side), np.int64)).tree
    count = np.where(tree.is_leaf & (random.random(len(tree)) < 0.7), random.random(len(tree)), 0)
    count *= 3
    for level in reversed(tree.levels[1:]):
        np.add.at(count, tree.parent[level], count[level])
    return tree, count


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("uniform", [0.0, 0.31, 0.999999])
def test_integers_are_the_counts_rounded_and_add_up(seed, uniform):
    tree, count = random_counts(seed)
    rounded = round_counts(tree, count, uniform)
    assert (rounded == np.rint(rounded)).all()
    assert (np.abs(rounded - count) < 1 + 1e-9).all()
    assert (rounded >= 0).all()
    assert (rounded[count == 0] == 0).all()
    sums = np.bincount(tree.parent[1:], rounded[1:], len(tree))
    np.testing.assert_array_equal(sums[~tree.is_leaf], rounded[~tree.is_leaf])


def test_integers_have_the_mean_and_the_variance_of_the_counts():
    tree, count = random_counts(9)
    uniforms = (np.arange(4_000) + 0.5) / 4_000
    draws = np.array([round_counts(tree, count, uniform) for uniform in uniforms])
    np.testing.assert_allclose(draws.mean(axis=0), count, atol=1e-3)
    np.testing.assert_allclose(draws.var(axis=0), rounding_variance(count), atol=1e-3)


def test_numbers_of_digests_are_uniform():
    digests = [hashlib.sha256(bytes([n % 256, n // 256])).hexdigest() for n in range(4_000)]
    uniform = np.sort([uniform_of_digest(digest) for digest in digests])
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert np.abs(uniform - np.arange(4_000) / 4_000).max() < 0.03


@pytest.fixture(scope="module")
def release():
    shapes = [shapely.box(x, y, x + 2, y + 2) for y in (0, 2, 4, 6) for x in (0, 2, 4, 6)]
    table = gpd.GeoDataFrame({"ward": [f"w{n}" for n in range(16)]}, geometry=shapes)
    table["borough"] = [f"b{n % 4}" for n in range(16)]
    regions = hierarchy_from_polygons(
        table.set_crs("EPSG:3857"), PLANE, ids="ward", parents=["borough"]
    )
    x, y = np.random.default_rng(2).normal(5, 2, (2, 900)).clip(0, 7.99)
    rows = pd.DataFrame({"x": x, "y": y})
    return psd.build(
        rows, regions=regions, epsilon="0.3", method="cascade", estimate="integer", x="x", y="y"
    )


def test_answers_of_regions_are_integers_that_add_up(release, tmp_path):
    wards, boroughs = release.query(level="ward").table, release.query(level="borough").table
    for table in (wards, boroughs):
        assert (table["estimate"] % 1 == 0).all()
        assert (table["estimate"] >= 0).all()
    parent = release.tree.regions.levels[1].parent
    sums = np.bincount(parent, wards["estimate"])
    assert sums.tolist() == boroughs["estimate"].tolist()
    assert sums.sum() == release.total
    path = tmp_path / "r.psd.parquet"
    release.save(path)
    pd.testing.assert_frame_equal(psd.load(path).query(level="ward").table, wards)


def test_errors_have_the_variance_of_rounding(release):
    real = release.replace(post_processing=PostProcessing(estimate="posterior"))
    added = rounding_variance(real.query()["estimate"].to_numpy())
    integer, plain = (r.query()["error"] ** 2 for r in (release, real))
    np.testing.assert_allclose(integer, plain + added)


def test_releases_without_regions_have_no_integers():
    release = release_from_counts([[5, 1], [0, 2]])
    with pytest.raises(ParameterError, match="integer"):
        release.replace(post_processing=PostProcessing(estimate="integer"))
