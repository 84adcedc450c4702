"""Releases with regions in files: round trips, equal bytes, and what is refused of a forged one."""

import base64
import json
import zlib

import geopandas as gpd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import shapely

import psd
from psd.api.region_release import RegionRelease
from psd.errors import ParameterError, ReleaseFormatError
from psd.release.file import decode_release, encode_release
from psd.release.region_codec import is_regions, pack_regions, regions_header, unpack_regions
from psd.space.polygon_hierarchy import hierarchy_from_polygons
from psd.testing.regions import LatticeRegions

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(256, 256))


@pytest.fixture(scope="module")
def release():
    shapes = [shapely.box(0, 0, 3, 8), shapely.box(3, 0, 8, 5), shapely.box(3, 5, 8, 8)]
    table = gpd.GeoDataFrame({"id": ["å", "b", "c"], "up": ["x", "x", "y"]}, geometry=shapes)
    table = table.set_crs("EPSG:3857")
    regions = hierarchy_from_polygons(table, PLANE, ids="id", parents=["up"])
    x, y = np.random.default_rng(5).uniform(0, 8, (2, 3_000))
    rows = pd.DataFrame({"x": x, "y": y})
    return psd.build(rows, regions=regions, epsilon=1, method="cascade", x="x", y="y")


def test_a_release_is_read_as_it_was_written(release, tmp_path):
    path = tmp_path / "wards.psd.parquet"
    release.save(path)
    again = psd.load(path)
    assert isinstance(again, RegionRelease)
    assert again.digest == release.digest
    assert again.tree.regions.digest == release.tree.regions.digest
    assert encode_release(again.record) == path.read_bytes()
    for level in ("up", "id"):
        pd.testing.assert_frame_equal(again.query_regions(level), release.query_regions(level))
    assert again.query_regions()["id"].tolist() == ["å", "b", "c"]
    assert json.loads(pq.read_metadata(path).metadata[b"psd"])["format"] == 7


def header_of(release):
    return regions_header(release.record)


@pytest.mark.parametrize(
    "change",
    [
        {"bytes": -1},
        {"bytes": 2**40},
        {"bytes": True},
        {"sha256": "0" * 63},
        {"parameters": []},
        {"more": 1},
    ],
)
def test_other_entries_are_refused(release, change):
    assert is_regions(header_of(release))
    assert not is_regions({**header_of(release), **change})


def content_of(release):
    return zlib.decompress(base64.b64decode(pack_regions(release.tree.regions)))


def read_again(release, content, **change):
    """Read a changed table with the size and digest that it should have."""
    import hashlib

    stated = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    described = {**header_of(release), **stated, **change}
    return unpack_regions(described, base64.b64encode(zlib.compress(content)), PLANE)


@pytest.mark.parametrize("seed", range(8))
def test_changed_bytes_are_refused_or_give_other_regions(release, seed):
    random, content = np.random.default_rng(seed), content_of(release)
    assert read_again(release, content).digest == release.tree.regions.digest
    for _ in range(40):
        changed = bytearray(content)
        for place in random.integers(0, len(content), 1 + seed % 3):
            changed[place] = random.integers(256)
        if bytes(changed) == content:
            continue
        try:
            regions = read_again(release, bytes(changed))
        except (ReleaseFormatError, ParameterError):
            continue
        assert regions.digest != release.tree.regions.digest


@pytest.mark.parametrize("cut", [1, 7, 8, 9, 40, 200])
def test_a_table_that_ends_early_is_refused(release, cut):
    with pytest.raises((ReleaseFormatError, ParameterError)):
        read_again(release, content_of(release)[:-cut])


@pytest.mark.parametrize(
    "head",
    [
        b"[]",
        b'{"rows": 4}',
        b'{"rows": -1, "columns": [["a", "int16"]]}',
        b'{"rows": 2, "columns": []}',
        b'{"rows": 2, "columns": [["a", "float"]]}',
        b'{"rows": 2, "columns": [["a", "int16"], ["a", "int16"]]}',
        b'{"rows": 2, "columns": [["a", "string"]]}',
        b'{"rows": 536870912, "columns": [["a", "int64"]]}',
        b"{",
    ],
)
def test_other_heads_are_refused(release, head):
    with pytest.raises(ReleaseFormatError):
        read_again(release, len(head).to_bytes(8, "little") + head)


def test_a_footer_without_the_stated_regions_is_refused(release):
    described, value = header_of(release), pack_regions(release.tree.regions)
    for pair in ((None, value), (described, None), (described, b"%"), (described, value[:-8])):
        with pytest.raises(ReleaseFormatError):
            unpack_regions(*pair, PLANE)
    for change in ({"bytes": described["bytes"] - 1}, {"sha256": "0" * 64}, {"bytes": 2**28}):
        with pytest.raises(ReleaseFormatError):
            unpack_regions({**described, **change}, value, PLANE)


def test_a_damaged_file_is_refused_or_the_same_release(release):
    content = encode_release(release.record)
    for place in range(len(content) - 3_000, len(content), 61):
        changed = bytearray(content)
        changed[place] ^= 0x55
        try:  # some bytes of Parquet mean nothing
            _, digest = decode_release(bytes(changed))
        except ReleaseFormatError:
            continue
        assert digest == release.digest


def test_regions_of_another_type_are_not_written(release):
    area = np.ones((1, 256, 256))
    tree = release.tree
    other = LatticeRegions(area=area, parents=((0,),))
    vars(tree)["regions"], kept = other, tree.regions
    try:
        with pytest.raises(ParameterError, match="regions"):
            encode_release(release.record)
    finally:
        vars(tree)["regions"] = kept
