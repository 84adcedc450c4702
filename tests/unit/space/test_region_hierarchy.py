"""Levels of regions, what a release states of them, and what is refused of a forged one."""

from itertools import product

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.errors import ParameterError, ReleaseFormatError
from psd.space.polygon_hierarchy import hierarchy_from_polygons
from psd.space.region_hierarchy import RegionHierarchy, RegionLevel
from support.forged_releases import with_value
from support.tables import refused

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(64, 64))


def squares():
    """Sixteen wards in four boroughs in two regions, in an order that does not nest."""
    places = list(product(range(4), range(4)))
    boxes = [shapely.box(2 * i, 2 * j, 2 * i + 2, 2 * j + 2) for j, i in places]
    ids = [(f"w{j}{i}", f"b{j // 2}{i // 2}", f"r{i // 2}") for j, i in places]
    columns = dict(zip(("ward", "borough", "region"), zip(*ids, strict=True), strict=True))
    table = gpd.GeoDataFrame(columns, geometry=boxes, crs="EPSG:3857")
    return hierarchy_from_polygons(table, PLANE, ids="ward", parents=["borough", "region"])


def test_children_of_a_region_are_beside_each_other():
    found = squares()
    assert [level.name for level in found.levels] == ["region", "borough", "ward"]
    assert found.levels[0].ids == ("r0", "r1")
    assert found.levels[1].ids == ("b00", "b10", "b01", "b11")
    assert found.levels[1].parent.tolist() == [0, 0, 1, 1]
    assert found.levels[2].ids[:5] == ("w00", "w01", "w10", "w11", "w20")
    assert found.levels[2].parent.tolist() == [n // 4 for n in range(16)]
    assert found.ancestors(0).tolist() == [0] * 8 + [1] * 8
    assert repr(found) == "<RegionHierarchy of polygons: 2 region, 4 borough, 16 ward>"


def test_polygons_of_levels_above_are_unions():
    found = squares()
    assert shapely.area(found.shapes(0)).tolist() == [32, 32]
    assert shapely.area(found.shapes(1)).tolist() == [16] * 4
    assert shapely.equals(found.shapes(1)[1], shapely.box(0, 4, 4, 8))
    x, y = np.random.default_rng(1).uniform(0, 8, (2, 400))
    region = found.assign(x, y)
    assert shapely.contains_xy(found.shapes(0)[found.ancestors(0)[region]], x, y).all()


def test_the_digest_is_that_of_what_decides():
    found = squares()
    assert found.digest == squares().digest
    assert len(found.digest) == 64
    other = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(32, 64))
    again = RegionHierarchy.from_table(other, found.parameters(), found.to_table())
    assert again.digest != found.digest


def test_levels_that_do_not_fit_are_refused(subtests):
    halves = [shapely.box(0, 0, 4, 8), shapely.box(4, 0, 8, 8)]
    table = gpd.GeoDataFrame({"ward": ["a", "b"]}, geometry=halves, crs="EPSG:3857")
    geometry = hierarchy_from_polygons(table, PLANE, ids="ward").geometry

    def use(parents):
        levels = tuple(
            RegionLevel(name=f"l{n}", ids=list(map(str, range(len(own)))), parent=np.array(own))
            for n, own in enumerate(parents)
        )
        return RegionHierarchy(domain=PLANE, levels=levels, geometry=geometry)

    rows = [
        ("at least one level", ()),
        ("level l1 does not fit", ([0, 0], [0, 0]), ([0, 0], [1, 0]), ([0, 0], [0, 2])),
        ("level l0 does not fit", ([1, 0],)),
        ("regions must be 3", ([0, 0], [0, 1, 1])),
    ]
    refused(subtests, ParameterError, rows, use)


# A triangle with a vertex that is not a number.
NAN = (
    "010300000001000000040000000000000000000000000000000000000000000000000008400000000000000000"
    "000000000000f87f000000000000084000000000000000000000000000000000"
)
BOWTIE = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]).wkb


STATED = [
    *({"kind": kind} for kind in ("circles", 7)),
    *({"levels": names} for names in (["ward"], ["a", "b", "c\n"], [])),
    *({"margin": margin} for margin in (-1.0, float("nan"), True, ...)),
    *({"overlaps": pair} for pair in ([0], [0, 16])),
    *({"elsewhere": 1}, {"more": 1}),
]
ROWS = [
    *(("level", row, value) for row, value in ((0, 1), (21, 7), (2, -1))),
    *(("id", 3, value) for value in ("b00", "", "a\x07", "a" * 1000, None)),
    *(("parent", 3, value) for value in (2**31 - 1, -1, None)),
    *(("geometry", 21, value) for value in (None, b"POLYGON", BOWTIE, bytes.fromhex(NAN))),
    *(("geometry", 21, s.wkb) for s in (shapely.Point(1, 1), shapely.box(20, 20, 30, 30))),
]


def test_a_forged_release_is_refused(subtests):
    found = squares()
    stated, table = found.parameters(), found.to_table()
    assert RegionHierarchy.from_table(PLANE, stated, table).size == 16
    nothing = None, table.drop_columns(["id"]), table.slice(0, 0)
    changed = [{k: v for k, v in {**stated, **change}.items() if v is not ...} for change in STATED]
    for case in (
        *((parameters, table) for parameters in changed),
        *((stated, with_value(table, *change)) for change in ROWS),
        *((stated, other) for other in nothing),
    ):
        with subtests.test(case=case), pytest.raises(ReleaseFormatError):
            RegionHierarchy.from_table(PLANE, *case)
