"""Map tiles as regions: quadkeys, zooms, and what is refused."""

import numpy as np
import pytest
import shapely

import psd
from psd.errors import DomainError, ParameterError, ReleaseFormatError
from psd.space.region_hierarchy import RegionHierarchy
from psd.space.region_kinds.tiles import hierarchy_from_tiles
from support.tables import refused

SEOUL = psd.Domain(bounds=(14_070_000, 4_480_000, 14_200_000, 4_560_000), crs="EPSG:3857")


def tile_of(lon, lat, zoom):
    """Column and row of a tile by the formula of the OpenStreetMap wiki."""
    n = 2**zoom
    turned = np.arcsinh(np.tan(np.radians(lat)))
    return int((lon + 180) / 360 * n), int((1 - turned / np.pi) / 2 * n)


def test_tiles_are_those_of_web_maps():
    found = hierarchy_from_tiles("6..12", SEOUL, codes="xyz")
    assert [level.name for level in found.levels] == [f"zoom {zoom}" for zoom in range(6, 13)]
    radius = 6_378_137.0
    for lon, lat in ((126.9, 37.5), (127.2, 37.4), (126.6, 37.7)):
        x, y = np.radians(lon) * radius, np.arcsinh(np.tan(np.radians(lat))) * radius
        region = int(found.assign(np.array([x]), np.array([y]))[0])
        for level in range(6, -1, -1):
            column, row = tile_of(lon, lat, 6 + level)
            assert found.levels[level].ids[region] == f"{6 + level}/{column}/{row}"
            region = int(found.levels[level].parent[region])


def test_a_quadkey_begins_with_that_of_its_parent():
    found = hierarchy_from_tiles((8, 11, 13), SEOUL)
    assert {len(text) for text in found.levels[0].ids} == {8}
    for level in (1, 2):
        upper, lower = found.levels[level - 1 : level + 1]
        for text, parent in zip(lower.ids, lower.parent, strict=True):
            assert text.startswith(upper.ids[parent])
    assert len(set(found.levels[2].ids)) == found.size
    # Bing's example: tile 3, 5 of zoom 3 is 213.
    world = psd.Domain(bounds=(-2e7, -2e7, 2e7, 2e7), crs="EPSG:3857")
    codes = hierarchy_from_tiles("3", world), hierarchy_from_tiles("3", world, codes="xyz")
    assert codes[0].levels[0].ids[list(codes[1].levels[0].ids).index("3/3/5")] == "213"


def test_records_lie_in_their_tiles():
    found = hierarchy_from_tiles("12", SEOUL)
    rng = np.random.default_rng(1)
    x, y = rng.uniform(14_070_000, 14_200_000, 5000), rng.uniform(4_480_000, 4_560_000, 5000)
    region = found.assign(x, y)
    assert shapely.contains_xy(found.shapes()[region], x, y).all()
    assert shapely.area(found.shapes()).sum() == pytest.approx(130_000 * 80_000)


def test_a_release_has_the_same_tiles_by_parameters_alone():
    found = hierarchy_from_tiles("8..12", SEOUL)
    assert found.to_table() is None
    again = RegionHierarchy.from_table(SEOUL, found.parameters(), None)
    assert again.digest == found.digest
    for wrong in ({"zooms": [8]}, {"zooms": "8..12"}, {"codes": "z"}, {"zooms": [40]}, {"x": 1}):
        with pytest.raises(ReleaseFormatError):
            RegionHierarchy.from_table(SEOUL, {**found.parameters(), **wrong}, None)


def test_zooms_and_bounds_that_are_refused(subtests):
    table = [
        ("tiles must be", "14..8", "8,8", "8..25", "1e3", "8;9", (), (9, 8), (8, 8), (-1, 3)),
        ("tiles must be zooms such as", "", "a", "8..", "-1", "1.5", "8,", "100", "8..100", "²"),
        ("must be ascending zooms from 0 to 24, got", (3, 25)),
        ("the finest zoom that fits is 19", "8..22"),
    ]
    refused(subtests, ParameterError, table, lambda text: hierarchy_from_tiles(text, SEOUL))
    with pytest.raises(DomainError, match="tiles need bounds in EPSG:3857, got EPSG:4326"):
        hierarchy_from_tiles("8", psd.Domain(bounds=(126, 37, 127, 38)))
    with pytest.raises(ParameterError, match="codes must be one of quadkey, xyz"):
        hierarchy_from_tiles("8", SEOUL, codes="zxy")
