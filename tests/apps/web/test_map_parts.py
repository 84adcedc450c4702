"""Parts of a map page: arrays, classes, outlines of countries, and regions."""

import base64
import zlib
from functools import partial

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd._util.colours import class_breaks
from psd.apps.web.map_arrays import (
    cell_classes,
    cut_arrays,
    level_cells,
    pack_arrays,
    region_classes,
    release_arrays,
    release_numbers,
    shown_nodes,
)
from psd.apps.web.map_outlines import (
    RegionGroup,
    country_outlines,
    given_regions,
    outline_arrays,
    release_regions,
)
from psd.apps.web.map_page import map_page
from psd.errors import ParameterError
from psd.space.ground_areas import ground_areas
from psd.space.region_tree import ELSEWHERE
from psd.testing.data import release_from_counts
from support.map_engine import KINDS, built, of_zooms, viewed
from support.tables import refused
from support.trees import EQUATOR_SCALE

TYPES = {"f8": np.float64, "i4": np.int32, "u2": np.uint16, "u1": np.uint8}


def unpacked(packed):
    """Arrays of a text, by the directory."""
    content, start, arrays = zlib.decompress(base64.b64decode(packed.text)), 0, {}
    for name, kind, length in packed.directory:
        width = np.dtype(TYPES[kind]).itemsize
        planes = np.frombuffer(content, np.uint8, width * length, start).reshape(width, length)
        arrays[name] = np.ascontiguousarray(planes.T).view(TYPES[kind]).ravel()
        start += width * length
    assert start == len(content)
    return arrays


def test_arrays_come_back_to_the_bit_and_what_a_release_lacks_is_not_stored():
    random = np.random.default_rng(0)
    arrays = {
        "floats": np.array([0.1, -np.inf, np.inf, 5e-324, *random.random(100)]),
        "integers": random.integers(-(2**31), 2**31, 50).astype(np.int32),
        "short": np.array([0, 65535], np.uint16),
        "bytes": np.array([], np.uint8),
    }
    for name, values in unpacked(pack_arrays(arrays)).items():
        assert values.dtype == arrays[name].dtype
        assert values.tolist() == arrays[name].tolist()
    signed = release_arrays(viewed(built(), estimate="signed"))
    assert not {"signed", "real", "lines", "raster"} & signed.keys()
    assert "lines" in release_arrays(KINDS["streets"]())
    assert "raster" in release_arrays(KINDS["covariate"]())
    numbers = release_numbers(release_from_counts([[1, 2], [3, 4]]), 0.2)
    assert (numbers["good"], numbers["reliable"]) == (0.12, 0.2)
    assert numbers["density"] == "uniform"
    assert all(np.isfinite(v) for v in numbers.values() if isinstance(v, float))


@pytest.mark.deep
def test_counts_of_leaves_make_up_all_nodes():
    release = built()
    arrays = release_arrays(release)
    leaves = int(release.tree.is_leaf.sum())
    assert (len(arrays["count"]), len(arrays["signed"])) == (leaves, leaves)
    assert len(arrays["slope"]) == len(release.tree)
    offsets = arrays["offsets"].reshape(4, -1).T
    boxes = offsets.copy()
    for node in range(1, len(boxes)):
        boxes[node] += boxes[release.tree.parent[node]]
    assert np.array_equal(boxes, release.tree.boxes)


@pytest.mark.parametrize("level", [0, 2])
def test_a_part_of_a_tree_has_the_nodes_down_to_a_level(level):
    release = built()
    arrays = cut_arrays(release, level)
    kept = int((release.tree.level <= level).sum())
    assert len(arrays["children"]) == len(arrays["count"]) == kept
    assert int(arrays["children"].sum()) == kept - 1
    assert np.array_equal(arrays["count"], release.index.fit.estimates.count[:kept])


def test_a_page_has_the_ground_of_each_node():
    # Web Mercator from the equator to 75 degrees north: cells of one size have 1 to 15 of ground.
    domain = psd.Domain(bounds=(0, 0, 1e6, 1.3e7), crs="EPSG:3857")
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 8), range(64), 1, domain=domain
    )
    step, boxes = release_numbers(release)["ground"], release.tree.boxes.astype(np.float64)
    areas = release_arrays(release)["ground"] * step * (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
    assert areas == pytest.approx(ground_areas(domain, boxes), rel=1e-5)
    part = cut_arrays(release, 1)["ground"]
    assert part.tolist() == release_arrays(release)["ground"][: len(part)].tolist()


FIRST = release_from_counts(np.arange(64).reshape(8, 8))
SECOND = release_from_counts(np.arange(64).reshape(8, 8) * 100)


def test_breaks_are_those_of_other_maps_and_slices_share_them():
    deepest = int(FIRST.tree.level.max())
    table = FIRST.to_geopandas()
    expected = class_breaks(table["density"].to_numpy(), np.full(len(table), 1e-6))
    first, second = level_cells(FIRST, deepest), level_cells(SECOND, deepest)
    assert cell_classes([first])[-1]["density"] == expected
    both = cell_classes([first, second])
    assert both == cell_classes([second, first]) != cell_classes([second])
    for level in range(int(FIRST.tree.level.max()) + 1):
        assert FIRST.tree.area[shown_nodes(FIRST.tree, level)].sum() == 64
    group = RegionGroup(
        name="g", ids=["a", "b", "c"], names=["a", "b", "c"],
        shapes=shapely.box(0, 0, [1, 2, 4], 1),
        areas=np.array([1.0, 2.0, 4.0]), nodes=[1, 2, 3], overlaps=[],
    )  # fmt: skip
    breaks = region_classes(group, [np.array([10.0, 200.0, 4000.0])])
    assert breaks["count"] == class_breaks(np.array([10.0, 200.0, 4000.0]), group.areas)
    assert breaks["density"] == class_breaks(np.array([10.0, 100.0, 1000.0]), group.areas)


def test_what_lies_in_no_region_sets_no_classes():
    counts = np.array([10.0, 20.0, 40.0, 80.0])
    group = {"name": "g", "nodes": [1, 2, 3, 4], "overlaps": []}
    named = RegionGroup(
        ids=list("abcd"), names=list("abcd"), shapes=shapely.box(0, 0, [1.0] * 4, 1),
        areas=np.ones(4), **group,
    )  # fmt: skip
    rest = RegionGroup(
        ids=[*"abcd", ELSEWHERE], names=[*"abcd", ELSEWHERE],
        shapes=shapely.box(0, 0, [1.0] * 4 + [900.0], 1), areas=np.array([1.0] * 4 + [900]),
        **group,
    )  # fmt: skip
    assert region_classes(rest, [np.append(counts, 5e4)]) == region_classes(named, [counts])
    assert (named.to_json()["rest"], rest.to_json()["rest"]) == (None, 4)


def test_counts_below_0_and_equal_counts_have_classes():
    for counts, breaks in (([[-9, -1], [-3, 0]], []), ([[50, 50], [50, 50]], [])):
        release = release_from_counts(counts)
        deepest = int(release.tree.level.max())
        assert cell_classes([level_cells(release, deepest)])[-1] == {
            "count": breaks,
            "density": breaks,
        }
        assert "psd-slice-0" in map_page(release)
    cells = level_cells(release_from_counts([[-9, 10], [1000, 100]]), 1)
    mixed = cell_classes([cells])[-1]["count"]
    assert mixed == sorted(mixed)
    assert mixed
    assert min(mixed) > 0


LOCAL = 'LOCAL_CS["site",UNIT["metre",1]]'


def lines(domain):
    return shapely.MultiLineString(country_outlines(domain))


def test_coasts_are_where_they_are_in_the_crs_of_the_release():
    degrees = psd.Domain(bounds=(126.4, 37, 127.6, 38))
    found = lines(degrees)
    assert 1 < found.length < 30
    assert shapely.box(125.6, 36.2, 128.4, 38.8).covers(found)
    # Incheon lies at the coast.
    assert found.distance(shapely.Point(126.6, 37.45)) < 0.15
    metres = psd.Domain(bounds=(14_070_785, 4_439_107, 14_204_369, 4_579_426), crs="EPSG:3857")
    there = shapely.transform(lines(metres), lambda xy: xy / 111_319.49)
    assert abs(there.bounds[0] - found.bounds[0]) < 0.3
    fiji = psd.Domain(bounds=(2_900_000, -2_300_000, 3_600_000, -1_700_000), crs="EPSG:3832")
    found = lines(fiji)
    assert found.length > 100_000
    assert max(part.length / len(part.coords) for part in found.geoms) < 200_000
    world = psd.Domain(bounds=(-180, -90, 180, 90))
    found = country_outlines(world)
    assert 1_000 < sum(len(line) for line in found) < 10_000
    assert all(np.abs(np.array(line)[:, 0]).max() <= 180 for line in found)
    assert country_outlines(psd.Domain(bounds=(0, 0, 100, 100), crs=LOCAL)) == []
    assert country_outlines(psd.Domain(bounds=(0, 10, 40, 60), crs="IAU_2015:30100")) == []


RELEASE = release_from_counts(np.full((4, 4), 50))


def table(shapes, **columns):
    return gpd.GeoDataFrame(columns, geometry=shapes, crs=RELEASE.domain.crs)


def test_ids_and_names_are_read_and_nothing_else(subtests):
    boxes = [shapely.box(0, 0, 2, 2), shapely.box(1, 1, 3, 3)]
    texts = {"name": ["West", "East"], "secret": ["x1", "x2"]}
    group = given_regions(RELEASE, table(boxes, id=[11, 12], **texts))
    assert (group.ids, group.names, group.overlaps) == (["11", "12"], ["West", "East"], [[0, 1]])
    assert group.areas == pytest.approx(np.array([4e-6, 4e-6]) * EQUATOR_SCALE)
    assert "x1" not in repr(group.to_json())
    # Without ids regions are numbered.
    group = given_regions(RELEASE, table([shapely.box(0, 0, 1, 1), shapely.box(2, 2, 9, 9)]))
    assert (group.ids, group.names) == (["1", "2"], ["1", "2"])
    assert group.areas == pytest.approx(
        np.array([1e-6, 4e-6]) * EQUATOR_SCALE
    )  # of what lies inside the bounds
    bow = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)])
    rows = [
        ("1 to 5,000", table([])),
        ("different ids", table([shapely.box(0, 0, 1, 1)] * 2, id=["a", "a"])),
        ("valid", table([bow])),
    ]
    refused(subtests, ParameterError, rows, partial(given_regions, RELEASE))


def test_outlines_are_rings_turned_to_the_left():
    hole = shapely.box(0, 0, 3, 3).difference(shapely.box(1, 1, 2, 2))
    two = shapely.MultiPolygon([shapely.box(3, 3, 4, 4), shapely.box(0, 3, 1, 4)])
    arrays = outline_arrays([given_regions(RELEASE, table([hole, two]))])
    begin, ends = arrays["begin0"].tolist(), arrays["ends0"].tolist()
    assert (begin, ends) == ([0, 2, 4], [4, 8, 12, 16])
    xy = np.column_stack([arrays["x0"], arrays["y0"]])
    areas = [shapely.LinearRing(xy[a:b]) for a, b in zip([0, *ends], ends, strict=False)]
    assert [ring.is_ccw for ring in areas] == [True, False, True, True]
    release = of_zooms("9,10")
    groups = release_regions(release)
    assert [group.name for group in groups] == list(reversed(release.levels))
    for group in groups:
        answers = release.query(level=group.name).table
        assert group.ids == answers["id"].tolist()
        assert release.index.fit.estimates.count[group.nodes] == pytest.approx(answers["estimate"])
