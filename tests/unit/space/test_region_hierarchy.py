"""Levels of regions, what a release states of them, and what is refused of a forged one."""

import geopandas as gpd
import numpy as np
import pyarrow as pa
import pytest
import shapely

import psd
from psd.errors import ParameterError, ReleaseFormatError
from psd.space.polygon_hierarchy import hierarchy_from_polygons
from psd.space.region_hierarchy import RegionHierarchy, RegionLevel

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(64, 64))


def squares():
    """Sixteen wards in four boroughs in two regions, in an order that does not nest."""
    rows = []
    for j in range(4):
        for i in range(4):
            ids = {"ward": f"w{j}{i}", "borough": f"b{j // 2}{i // 2}", "region": f"r{i // 2}"}
            rows.append({**ids, "geometry": shapely.box(2 * i, 2 * j, 2 * i + 2, 2 * j + 2)})
    table = gpd.GeoDataFrame(rows, geometry="geometry", crs="EPSG:3857")
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


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ((), "at least one level"),
        (([0, 0], [0, 0]), "level l1 does not fit"),
        (([0, 0], [1, 0]), "level l1 does not fit"),
        (([0, 0], [0, 2]), "level l1 does not fit"),
        (([1, 0],), "level l0 does not fit"),
        (([0, 0], [0, 1, 1]), "regions must be 3"),
    ],
)
def test_levels_that_do_not_fit_are_refused(levels, words):
    found = hierarchy_from_polygons(
        gpd.GeoDataFrame(
            {"ward": ["a", "b"]},
            geometry=[shapely.box(0, 0, 4, 8), shapely.box(4, 0, 8, 8)],
            crs="EPSG:3857",
        ),
        PLANE,
        ids="ward",
    )
    tuple_of = tuple(
        RegionLevel(name=f"l{n}", ids=[str(i) for i in range(len(parent))], parent=np.array(parent))
        for n, parent in enumerate(levels)
    )
    with pytest.raises(ParameterError, match=words):
        RegionHierarchy(domain=PLANE, levels=tuple_of, geometry=found.geometry)


def forged(change):
    """Parameters and rows of a release, changed."""
    found = squares()
    parameters, table = found.parameters(), found.to_table().to_pydict()
    change(parameters, table)
    types = [pa.int16(), pa.string(), pa.int32(), pa.binary()]
    arrays = [pa.array(column, kind) for column, kind in zip(table.values(), types, strict=True)]
    return parameters, pa.table(dict(zip(table, arrays, strict=True)))


def put(name, row, value):
    return lambda _, table: table[name].__setitem__(row, value)


# A triangle with a vertex that is not a number.
NAN = (
    "010300000001000000040000000000000000000000000000000000000000000000000008400000000000000000"
    "000000000000f87f000000000000084000000000000000000000000000000000"
)
BOWTIE = shapely.Polygon([(0, 0), (2, 2), (2, 0), (0, 2)]).wkb


@pytest.mark.parametrize(
    "change",
    [
        lambda parameters, _: parameters.update(kind="circles"),
        lambda parameters, _: parameters.update(kind=7),
        lambda parameters, _: parameters.update(levels=["ward"]),
        lambda parameters, _: parameters.update(levels=["a", "b", "c\n"]),
        lambda parameters, _: parameters.update(levels=[]),
        lambda parameters, _: parameters.update(margin=-1.0),
        lambda parameters, _: parameters.update(margin=float("nan")),
        lambda parameters, _: parameters.update(margin=True),
        lambda parameters, _: parameters.update(elsewhere=1),
        lambda parameters, _: parameters.update(overlaps=[0]),
        lambda parameters, _: parameters.update(overlaps=[0, 16]),
        lambda parameters, _: parameters.update(more=1),
        lambda parameters, _: parameters.pop("margin"),
        put("level", 0, 1),
        put("level", 21, 7),
        put("level", 2, -1),
        put("id", 3, "b00"),
        put("id", 3, ""),
        put("id", 3, "a\x07"),
        put("id", 3, "a" * 1000),
        put("id", 3, None),
        put("parent", 3, 2**31 - 1),
        put("parent", 3, -1),
        put("parent", 3, None),
        put("geometry", 21, None),
        put("geometry", 21, b"POLYGON"),
        put("geometry", 21, BOWTIE),
        put("geometry", 21, shapely.Point(1, 1).wkb),
        put("geometry", 21, shapely.box(20, 20, 30, 30).wkb),
        put("geometry", 21, bytes.fromhex(NAN)),
    ],
)
def test_a_forged_release_is_refused(change):
    with pytest.raises(ReleaseFormatError):
        RegionHierarchy.from_table(PLANE, *forged(change))


def test_a_release_without_its_table_is_refused():
    parameters, table = forged(lambda *_: None)
    assert RegionHierarchy.from_table(PLANE, parameters, table).size == 16
    for other in (None, table.drop_columns(["id"]), table.slice(0, 0)):
        with pytest.raises(ReleaseFormatError):
            RegionHierarchy.from_table(PLANE, parameters, other)
