"""Releases with regions in files: round trips, equal bytes, and what is refused of a forged one."""

import base64
import hashlib
import zlib

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.errors import ParameterError, ReleaseFormatError
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.release.codecs import is_regions, pack_regions, regions_header, unpack_regions
from psd.release.file import decode_release, encode_release
from psd.testing.data import LatticeRegions

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
    assert again.levels
    assert again.digest == release.digest
    assert again.tree.regions.digest == release.tree.regions.digest
    assert encode_release(again.record) == path.read_bytes()
    for level in ("up", "id"):
        pd.testing.assert_frame_equal(
            again.query(level=level).table, release.query(level=level).table
        )
    assert again.query()["id"].tolist() == ["å", "b", "c"]


def content_of(release):
    return zlib.decompress(base64.b64decode(pack_regions(release.tree.regions)))


def read_again(release, content):
    """Read a changed table with the size and digest that it should have."""
    stated = {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    described = {**regions_header(release.record), **stated}
    return unpack_regions(described, base64.b64encode(zlib.compress(content)), PLANE)


def test_changed_bytes_are_refused_or_give_other_regions(release):
    content = content_of(release)
    assert read_again(release, content).digest == release.tree.regions.digest
    for seed in range(8):
        random = np.random.default_rng(seed)
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
    content = encode_release(release.record)
    for place in range(len(content) - 3_000, len(content), 61):
        changed = bytearray(content)
        changed[place] ^= 0x55
        try:  # some bytes of Parquet mean nothing
            _, digest = decode_release(bytes(changed))
        except ReleaseFormatError:
            continue
        assert digest == release.digest


def test_other_tables_and_footers_are_refused(release, subtests, monkeypatch):
    for cut in (1, 7, 8, 9, 40, 200):
        with subtests.test(cut=cut), pytest.raises((ReleaseFormatError, ParameterError)):
            read_again(release, content_of(release)[:-cut])
    for head in (
        b"[]",
        b"{",
        b'{"rows": 4}',
        b'{"rows": -1, "columns": [["a", "int16"]]}',
        b'{"rows": 2, "columns": []}',
        b'{"rows": 2, "columns": [["a", "float"]]}',
        b'{"rows": 2, "columns": [["a", "int16"], ["a", "int16"]]}',
        b'{"rows": 2, "columns": [["a", "string"]]}',
        b'{"rows": 536870912, "columns": [["a", "int64"]]}',
    ):
        with subtests.test(head=head), pytest.raises(ReleaseFormatError):
            read_again(release, len(head).to_bytes(8, "little") + head)
    stated = regions_header(release.record)
    assert is_regions(stated)
    for change in (
        *({"bytes": number} for number in (-1, 2**40, True)),
        *({"sha256": "0" * 63}, {"parameters": []}, {"more": 1}),
    ):
        assert not is_regions({**stated, **change})
    described, value = regions_header(release.record), pack_regions(release.tree.regions)
    for words, change, given in (
        ("disagree on whether", None, value),
        ("disagree on whether", {}, None),
        ("its regions are damaged", {}, b"%"),
        ("its regions do not have the size", {}, value[:-8]),
        ("its regions do not have the size", {"bytes": described["bytes"] - 1}, value),
        ("do not match the digest", {"sha256": "0" * 64}, value),
        ("its regions unpack to more than", {"bytes": 2**28}, value),
    ):
        stated = None if change is None else {**described, **change}
        with subtests.test(words, change=change), pytest.raises(ReleaseFormatError, match=words):
            unpack_regions(stated, given, PLANE)
    other = LatticeRegions(area=np.ones((1, 256, 256)), parents=((0,),))
    monkeypatch.setitem(vars(release.tree), "regions", other)
    with pytest.raises(ParameterError, match="regions"):
        encode_release(release.record)
