"""Rasters, top cells, class breaks, nested regions and two releases: exact cases and refusals."""

from dataclasses import replace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.errors import DomainError, MissingExtraError, ParameterError
from psd.release.post_processing import View
from psd.space.ground_areas import areas, unit_of_area
from psd.statistics.overlay import MAX_CELLS
from psd.statistics.quantiles import weighted_quantiles
from psd.statistics.top_cells import candidates, membership
from support.trees import domain_of, random_tree, release_of


def grid_release(counts, epsilon=1.0, crs="EPSG:3857"):
    """Release of a square grid of noisy counts, given from the south row up."""
    counts = np.asarray(counts)
    side = len(counts)
    domain = domain_of((side, side), crs)
    return psd.Release.from_counts(psd.grid_tree(domain, side), counts, epsilon, domain=domain)


SOUTH_UP = np.array([[10, 20, 30], [40, 50, 60], [70, 80, 90]])


def test_the_first_row_of_a_raster_is_the_north():
    raster = grid_release(SOUTH_UP).raster(3, 3)
    assert raster.count == pytest.approx(SOUTH_UP[::-1])
    assert raster.density == pytest.approx(SOUTH_UP[::-1] * 1e6)
    assert (raster.unit, raster.crs, raster.bounds) == ("km2", "EPSG:3857", (0, 0, 3, 3))
    assert raster.nonuniformity_error == pytest.approx(np.zeros((3, 3)))
    with pytest.raises(ValueError, match="read-only"):
        raster.count[0, 0] = 1


def test_a_coarser_and_a_finer_raster():
    release = grid_release(SOUTH_UP)
    assert release.raster(1, 1).count == pytest.approx(SOUTH_UP.sum())
    assert release.raster(1, 3).count[:, 0] == pytest.approx([240, 150, 60])
    finer = release.raster(6, 3)
    assert finer.count == pytest.approx(np.repeat(SOUTH_UP[::-1], 2, axis=1) / 2)
    assert (finer.nonuniformity_error > 0).all()
    assert (finer.error >= finer.perturbation_error).all()


@pytest.mark.parametrize("view", [View(), View(density="smooth"), View(estimate="signed")])
@pytest.mark.parametrize("size", [(1, 1), (7, 5), (200, 3)])
def test_a_raster_sums_to_the_total(view, size):
    release = replace(release_of(random_tree(np.random.default_rng(2), height=4)), view=view)
    raster = release.raster(*size)
    assert raster.count.shape == size[::-1]
    assert raster.count.sum() == pytest.approx(release.estimates.count[0], rel=1e-9)


@pytest.mark.parametrize(
    "size", [(0, 3), (3, -1), (2.5, 3), (True, 3), ("3", 3), (MAX_CELLS, 2), (MAX_CELLS + 1, 1)]
)
def test_sizes_that_are_refused(size):
    with pytest.raises(ParameterError, match="raster"):
        grid_release(SOUTH_UP).raster(*size)


def test_areas_on_the_ground():
    domain = psd.Domain(bounds=(126, 37, 127, 38), lattice=(10, 10))
    boxes = np.array([[0.0, 0, 10, 10], [0, 0, 10, 5], [0, 5, 10, 10]])
    from pyproj import Geod

    # Along parallels, so a polygon of many short sides.
    x = np.linspace(126, 127, 400)
    ring = np.concatenate([x, x[::-1]]), np.repeat([37.0, 38.0], 400)
    exact = abs(Geod(ellps="WGS84").polygon_area_perimeter(*ring)[0]) / 1e6
    found = areas(domain, boxes)
    assert found[0] == pytest.approx(exact, rel=1e-6)
    assert found[0] == pytest.approx(found[1] + found[2])
    assert found[1] > found[2]
    assert unit_of_area(domain) == "km2"


def test_areas_in_feet_and_in_no_unit():
    feet = psd.Domain(bounds=(1e6, 2e5, 1.1e6, 3e5), crs="EPSG:2263", lattice=(1, 1))
    box = np.array([[0.0, 0, 1, 1]])
    assert areas(feet, box) == pytest.approx(1e10 * (1200 / 3937) ** 2 / 1e6)
    nowhere = 'ENGCRS["hall",EDATUM["floor"],CS[Cartesian,2],AXIS["x",east],AXIS["y",north],'
    hall = psd.Domain(bounds=(0, 0, 5, 4), crs=nowhere + 'LENGTHUNIT["metre",1]]', lattice=(1, 1))
    assert areas(hall, box) == pytest.approx(20)
    assert unit_of_area(hall) == "square unit"


def test_geotiff_comes_back(tmp_path):
    rasterio = pytest.importorskip("rasterio")
    domain = psd.Domain(bounds=(9e5, 19e5, 10e5, 20e5), crs="EPSG:5179", lattice=(3, 3))
    tree = psd.grid_tree(domain, 3)
    release = psd.Release.from_counts(tree, SOUTH_UP, 1.0, domain=domain)
    release.export(tmp_path / "r.tif", size=(6, 9))
    expected = release.raster(6, 9)
    with rasterio.open(tmp_path / "r.tif") as image:
        assert image.descriptions == ("count", "density", "error")
        assert image.units == ("records", "records per km2", "records")
        assert np.array_equal(image.read(1), expected.count)
        assert np.array_equal(image.read(2), expected.density)
        assert np.array_equal(image.read(3), expected.error)
        assert tuple(image.bounds) == release.domain.bounds
        assert image.crs.to_epsg() == 5179
        assert np.isnan(image.nodata)
        assert image.read(1).sum() == pytest.approx(release.total, rel=1e-9)
        assert image.tags()["epsilon"] == "1"
        assert set(image.tags()) <= {
            "epsilon", "unit_of_privacy", "counts", "method", "library", "AREA_OR_POINT",
        }  # fmt: skip


def test_arrays_come_back(tmp_path):
    release = grid_release(SOUTH_UP)
    release.export(tmp_path / "r.npy", size=(3, 4))
    expected = release.raster(3, 4)
    found = np.load(tmp_path / "r.npy")
    assert np.array_equal(found, [expected.count, expected.density, expected.error])
    release.export(tmp_path / "default.npy")
    assert np.load(tmp_path / "default.npy").shape == (3, 256, 256)


def test_a_geotiff_without_rasterio(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "rasterio", None)
    with pytest.raises(MissingExtraError, match=r"psd-publisher\[raster\]"):
        grid_release(SOUTH_UP).export(tmp_path / "r.tif")
    assert not list(tmp_path.iterdir())


def test_rasters_and_tables_take_each_its_own_arguments(tmp_path):
    release = grid_release(SOUTH_UP)
    with pytest.raises(ParameterError, match="no size"):
        release.export(tmp_path / "r.csv", size=(3, 3))
    with pytest.raises(ParameterError, match="leaves"):
        release.export(tmp_path / "r.npy", cells="all")


def test_top_cells_that_are_sure():
    table = grid_release(SOUTH_UP).top(3)
    assert table.estimate.round().tolist() == [90, 80, 70]
    assert (table.probability > 0.99).all()
    assert table[["west", "south", "east", "north"]].to_numpy().tolist() == [
        [2, 2, 3, 3],
        [1, 2, 2, 3],
        [0, 2, 1, 3],
    ]
    assert table["rank"].tolist() == [1, 2, 3]
    assert table.density.tolist() == pytest.approx((table.estimate * 1e6).tolist())


def test_top_cells_that_are_a_coin_toss():
    table = grid_release(np.full((4, 4), 100)).top(8, draws=4000)
    assert table.probability.to_numpy() == pytest.approx(np.full(8, 0.5), abs=0.05)
    assert grid_release(SOUTH_UP).top(9).probability.tolist() == [1] * 9


def test_top_is_the_same_again_and_depends_on_the_seed():
    release = grid_release(np.full((4, 4), 100))
    first, again, other = (release.top(5, draws=50, seed=seed) for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_top_by_density_ranks_small_leaves_first():
    domain = domain_of((4, 4))
    release = release_of(random_tree(np.random.default_rng(8), lattice=(16, 16), top=500))
    assert domain.lattice == (4, 4)
    by_density = release.top(5, by="density").density
    assert by_density.is_monotonic_decreasing
    assert release.top(5).estimate.is_monotonic_decreasing
    assert by_density.iloc[0] >= release.top(5).density.max()


def test_top_regions_keep_their_table():
    shapes = [shapely.box(0, 0, 1, 1), shapely.box(2, 2, 3, 3), shapely.box(0, 2, 3, 3)]
    table = gpd.GeoDataFrame({"name": list("abc")}, geometry=shapes, crs="EPSG:3857")
    found = grid_release(SOUTH_UP).top(2, regions=table)
    assert list(found.columns) == ["rank", "name", "geometry", "estimate", "error", "probability"]
    assert found.name.tolist() == ["c", "b"]
    assert (found.probability > 0.99).all()
    boxes = grid_release(SOUTH_UP).top(1, regions=[(0, 0, 1, 1), (1, 1, 2, 2)])
    assert boxes.id.tolist() == [2]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"k": 0}, "k 0"),
        ({"k": 10}, "k 10"),
        ({"k": 2.0}, "k 2.0"),
        ({"k": 5, "size": (2, 2)}, "number of cells"),
        ({"k": 2, "regions": [(0, 0, 1, 1)]}, "number of regions"),
        ({"k": 1, "regions": [(0, 0, 1, 1)], "size": (2, 2)}, "size"),
        ({"k": 1, "by": "people"}, "by"),
        ({"k": 1, "draws": 0}, "draws"),
        ({"k": 1, "seed": -1}, "seed"),
    ],
)
def test_top_refuses(arguments, word):
    with pytest.raises(ParameterError, match=word):
        grid_release(SOUTH_UP).top(**arguments)


def test_candidates_lose_nothing():
    rng = np.random.default_rng(3)
    value, error = rng.normal(size=200) * 20, rng.random(200)
    some = candidates(value, error, 10)
    assert set(np.argsort(-value)[:10]) <= set(some)
    assert len(some) < 100
    drawn = value[:, None] + error[:, None] * rng.normal(size=(200, 3000))
    whole = membership([drawn], 200, 10, 3000)
    assert np.array_equal(whole[some], membership([drawn[some]], len(some), 10, 3000))
    assert whole.sum() == pytest.approx(10)


def test_weighted_quantiles_by_hand():
    values, weights = np.array([5.0, 1.0, 3.0]), np.array([1.0, 2.0, 1.0])
    shares = np.array([0.25, 0.5, 0.51, 0.75, 0.76])
    assert weighted_quantiles(values, weights, shares).tolist() == [1, 1, 3, 3, 5]
    assert weighted_quantiles(values, np.zeros(3), np.array([0.5])).tolist() == [3]


def test_breaks_of_known_densities():
    release = grid_release(SOUTH_UP * 10)
    table = release.quantiles(3, size=(3, 3))
    assert table.share.tolist() == pytest.approx([1 / 3, 2 / 3])
    assert table.density.tolist() == pytest.approx([300e6, 600e6], rel=0.01)
    assert (table.lower < table.density).all()
    assert (table.density < table.upper).all()
    # Half of the people live at 700 per cell or below.
    people = release.quantiles(2, size=(3, 3), weight="people")
    assert people.density.tolist() == pytest.approx([700e6], rel=0.01)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"classes": 1}, "classes"),
        ({"classes": 101}, "classes"),
        ({"weight": "money"}, "weight"),
        ({"confidence": 1}, "confidence"),
        ({"draws": 0}, "draws"),
        ({"size": (0, 1)}, "raster"),
    ],
)
def test_quantiles_refuse(arguments, word):
    with pytest.raises(ParameterError, match=word):
        grid_release(SOUTH_UP).quantiles(**arguments)


CHAIN = [(1, 1, 2, 2), (1, 1, 3, 3), (0, 0, 3, 3)]


def test_rings_of_a_chain():
    release = grid_release(SOUTH_UP)
    table = release.nested(CHAIN)
    assert table.estimate.tolist() == pytest.approx([50, 280, 450])
    assert table.ring.tolist() == pytest.approx([50, 230, 170])
    variance = release.estimates.variance[-1]
    assert (table.ring_error**2).tolist() == pytest.approx([variance, 3 * variance, 5 * variance])
    assert "joint_lower" not in table


def test_a_hierarchy_by_ids_and_by_numbers():
    boxes = pd.DataFrame(
        [(0, 0, 3, 3), (0, 0, 1, 3), (1, 0, 3, 2), (0, 0, 1, 1)],
        columns=["west", "south", "east", "north"],
    ).assign(id=["all", "west", "east", "corner"], parent=["", "all", "all", "west"])
    release = grid_release(SOUTH_UP)
    table = release.nested(boxes)
    assert table.ring.tolist() == pytest.approx([170, 110, 160, 10])
    numbered = release.nested(boxes.drop(columns="parent"), parents=[-1, 0, 0, 1])
    assert numbered.ring.tolist() == table.ring.tolist()
    shapes = gpd.GeoDataFrame(
        boxes[["id", "parent"]], geometry=shapely.box(*boxes.iloc[:, :4].T.to_numpy()), crs=3857
    )
    assert release.nested(shapes).ring.tolist() == pytest.approx(table.ring.tolist())


def test_rings_are_not_negative_where_cells_are():
    release = replace(
        grid_release([[9, -30, 4], [-8, 50, -9], [2, 3, -20]]), view=View(estimate="signed")
    )
    assert release.query([CHAIN[1]]).estimate[0] < release.query([CHAIN[0]]).estimate[0]
    table = release.nested(CHAIN)
    assert (table.ring >= 0).all()
    assert table.estimate.is_monotonic_increasing
    assert table.ring.cumsum().tolist() == pytest.approx(table.estimate.tolist())
    assert table.estimate[2] == release.total


@pytest.mark.parametrize(
    ("regions", "parents", "word"),
    [
        pytest.param(CHAIN[::-1], None, "region 1 does not lie inside region 2", id="order"),
        pytest.param([(0, 0, 2, 2), (1, 1, 3, 3)], None, "does not lie inside", id="beside"),
        pytest.param([(0, 0, 2, 2), (1, 1, 3, 3)], [-1, -1], "1 and 2 overlap", id="overlap"),
        pytest.param(CHAIN, [1, 0, -1], "lies in itself", id="circle"),
        pytest.param(CHAIN, [0, 1, 2], "lies in itself", id="own-parent"),
        pytest.param(CHAIN, [1, 2, 3], "parents", id="beyond"),
        pytest.param(CHAIN, [1, 2], "parents", id="too-few"),
        pytest.param(CHAIN, ["b", "c", ""], "parents", id="names"),
    ],
)
def test_nesting_that_is_refused(regions, parents, word):
    with pytest.raises(ParameterError, match=word):
        grid_release(SOUTH_UP).nested(regions, parents=parents)


@pytest.mark.parametrize(
    ("ids", "parents", "word"),
    [
        (["a", "a", "b"], ["b", "b", ""], "name of its own"),
        (["a", "b", "c"], ["b", "d", ""], "parent d"),
    ],
)
def test_hierarchies_that_are_refused(ids, parents, word):
    table = pd.DataFrame(CHAIN, columns=["west", "south", "east", "north"])
    with pytest.raises(ParameterError, match=word):
        grid_release(SOUTH_UP).nested(table.assign(id=ids, parent=parents))


def test_two_releases():
    first, second = grid_release(SOUTH_UP * 3), grid_release(SOUTH_UP, epsilon=0.5)
    boxes = [(0, 0, 1, 1), (0, 0, 3, 3)]
    table = psd.difference(first, second, boxes)
    assert table.difference.tolist() == pytest.approx([20, 900])
    variances = [release.query(boxes).error ** 2 for release in (first, second)]
    assert (table.error**2).tolist() == pytest.approx((variances[0] + variances[1]).tolist())
    assert (table.upper - table.lower).tolist() == pytest.approx(
        (2 * 1.959964 * table.error).tolist()
    )
    ratio = psd.ratio(first, second, boxes)
    assert ratio.ratio.tolist() == pytest.approx([3, 3])
    assert ((ratio.lower < 3) & (ratio.upper > 3)).all()
    assert ratio.error[1] < ratio.error[0]


def test_two_releases_with_polygons_keep_the_table():
    table = gpd.GeoDataFrame({"name": ["a"]}, geometry=[shapely.box(0, 0, 2, 2)], crs="EPSG:3857")
    first, second = grid_release(SOUTH_UP * 3), grid_release(SOUTH_UP)
    found = psd.difference(first, second, table)
    assert isinstance(found, gpd.GeoDataFrame)
    assert list(found.columns)[:4] == ["name", "geometry", "first", "second"]
    with pytest.raises(ParameterError, match="first"):
        psd.ratio(first, second, table.assign(first=1))


def test_releases_that_cannot_be_compared():
    first = grid_release(SOUTH_UP)
    for other in (
        grid_release(np.ones((4, 4), int)),
        replace(first, domain=psd.Domain(bounds=(0, 0, 3, 4), crs="EPSG:3857", lattice=(3, 3))),
        replace(first, domain=psd.Domain(bounds=(0, 0, 3, 3), crs="EPSG:3395", lattice=(3, 3))),
    ):
        for verb in (psd.difference, psd.ratio):
            with pytest.raises(DomainError, match="one domain"):
                verb(first, other, [(0, 0, 1, 1)])
    with pytest.raises(ParameterError, match="one and the same"):
        psd.difference(first, grid_release(SOUTH_UP), [(0, 0, 1, 1)])


def test_a_ratio_over_nothing_has_no_upper_end():
    first, second = grid_release(SOUTH_UP), grid_release(np.zeros((3, 3), int))
    row = psd.ratio(first, second, [(0, 0, 1, 1)]).loc[0]
    assert np.isnan(row["ratio"])
    assert row["error"] == row["upper"] == np.inf
    assert row["lower"] > 0
