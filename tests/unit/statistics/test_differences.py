"""Two releases: changes, ratios, and what cannot be compared."""

from dataclasses import replace

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.errors import DomainError, ParameterError
from psd.query.index import CubeWindow
from psd.statistics.several_areas import count_pair, differences, ratios
from support.cubes import cube
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


HOURS = ["2024-01-01T06..2024-01-01T12", "2024-01-01T08..2024-01-01T20"]
PLACES = [(1.3, 2.1, 6.7, 9.9), (0, 0, 8, 8), (9, 7, 13, 13)]


@pytest.fixture(scope="module")
def town_cube():
    return cube()


@pytest.mark.parametrize("is_ratio", [False, True])
def test_two_windows_of_a_cube_share_noise(town_cube, is_ratio):
    asked = town_cube.query(PLACES, when=HOURS)
    windows = [CubeWindow(index=town_cube._cube, window=w) for w in asked.time.windows]
    pair = count_pair(*windows, asked.areas, confidence=0.9)
    table = ratios(pair) if is_ratio else differences(pair)
    joint = town_cube.query(PLACES, when=HOURS, confidence=0.9).joint()
    apart = np.sqrt((asked["error"].to_numpy().reshape(2, -1) ** 2).sum(axis=0))
    for number, row in table.iterrows():
        own = (joint.ratio if is_ratio else joint.difference)(number, number + len(PLACES))
        name = "ratio" if is_ratio else "difference"
        assert row[name] == pytest.approx(own.estimate)
        for column in ("perturbation_error", "nonuniformity_error", "error", "lower", "upper"):
            assert row[column] == pytest.approx(getattr(own, column)), column
        assert is_ratio or row["error"] < apart[number]


def test_two_cubes_have_independent_noise(town_cube):
    other = cube(2)
    found = town_cube.query(PLACES, when=HOURS[0], difference=other).table
    alone = [made.query(PLACES, when=HOURS[0]).table for made in (town_cube, other)]
    assert found["first"].tolist() == alone[0]["estimate"].tolist()
    assert found["second"].tolist() == alone[1]["estimate"].tolist()
    both = alone[0]["error"] ** 2 + alone[1]["error"] ** 2
    assert (found["error"] ** 2).tolist() == pytest.approx(both.tolist())
    with pytest.raises(ParameterError, match="same window twice"):
        town_cube.query(PLACES, when=HOURS[0], difference=town_cube)


def test_cubes_whose_planes_have_equal_counts_are_two(town_cube):
    """Of few records, the plane of a cube is one count, which another cube may have by chance."""
    record = town_cube.record
    tree = record.joint.tree
    joint = replace(record.joint, tree=replace(tree, count=tree.count + 7 * (tree.loss > 0)))
    other = psd.Release(replace(record, joint=joint))
    for hours in (HOURS[0], HOURS[1]):
        pair = (town_cube.query(PLACES, when=hours), other.query(PLACES, when=hours))
        found = town_cube[hours].query(PLACES, difference=other[hours]).table
        first, second = (each["estimate"] for each in pair)
        assert found["second"].tolist() == second.tolist()
        assert found["difference"].tolist() == (first - second).tolist()
        noise = [each["perturbation_error"] for each in pair]
        assert found["perturbation_error"].tolist() == pytest.approx(np.hypot(*noise))


def test_a_cube_and_a_release_without_time(town_cube):
    flat = psd.Release(cube(3).record.plane)
    found = town_cube.query(PLACES, when=HOURS[0], difference=flat).table
    back = flat.query(PLACES, difference=town_cube).table
    assert found["second"].tolist() == back["first"].tolist()
    assert back["second"].tolist() == town_cube.query(PLACES)["estimate"].tolist()
