"""Vector tiles, in the reader of PMTiles' own authors."""

import gzip

import numpy as np
import pytest
from pmtiles.reader import MemorySource, Reader, all_tiles
from pmtiles.tile import Compression, TileType

import psd
from psd.errors import PsdError, PsdWarning
from psd.export.pmtiles import _largest_zoom
from support.cli_runner import cli, passes
from support.releases import as_drawn

pytestmark = pytest.mark.deep

DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))


@pytest.fixture(scope="module")
def release():
    counts = 100 + np.arange(256)
    return as_drawn(
        psd.Release.from_counts(psd.decompositions.grid_tree(DOMAIN, 16), counts, 1, domain=DOMAIN)
    )


def test_tiles_hold_the_layer_the_bounds_and_the_guarantee(release, tmp_path):
    release.export(tmp_path / "a.pmtiles", unreliable="mark")
    reader = Reader(MemorySource((tmp_path / "a.pmtiles").read_bytes()))
    header, stated = reader.header(), reader.metadata()
    assert header["tile_type"] == TileType.MVT
    assert header["min_zoom"] == 0
    sides = [header[f"{side}_e7"] / 1e7 for side in ("min_lon", "min_lat", "max_lon", "max_lat")]
    assert sides == pytest.approx(DOMAIN.bounds, abs=1e-4)
    assert [layer["id"] for layer in stated["vector_layers"]] == ["cells"]
    fields = stated["vector_layers"][0]["fields"]
    assert {"estimate", "density", "relative_error", "reliable", "flag"} <= fields.keys()
    assert f"digest {release.digest}" in stated["description"]
    assert "epsilon 1; unit of privacy per record" in stated["description"]
    tile = reader.get(0, 0, 0)
    assert header["tile_compression"] == Compression.GZIP
    assert b"perturbation_error" in gzip.decompress(tile)


def test_the_smallest_cell_is_seen_and_large_domains_have_few_tiles(release, tmp_path):
    zooms = {}
    world = psd.Domain(bounds=(-180, -80, 180, 80))
    wide = psd.Release.from_counts(
        psd.decompositions.grid_tree(world, 32), np.arange(1024), 1, domain=world
    )
    for name, each in (("city", release), ("world", wide)):
        each.export(tmp_path / f"{name}.pmtiles")
        content = (tmp_path / f"{name}.pmtiles").read_bytes()
        zooms[name] = Reader(MemorySource(content)).header()["max_zoom"]
    assert 4 <= zooms["city"] <= 14
    assert zooms["world"] <= 6


def test_answers_of_queries_are_tiles_too(release, tmp_path):
    release.save(tmp_path / "r")
    box = ("--box", 126.5, 37.1, 127, 37.5)
    passes("query", tmp_path / "r", *box, "-o", tmp_path / "a.pmtiles")
    stated = Reader(MemorySource((tmp_path / "a.pmtiles").read_bytes())).metadata()
    assert [layer["id"] for layer in stated["vector_layers"]] == ["answers"]


def test_the_poles_are_cut_off(tmp_path):
    earth = psd.Domain(bounds=(-180, -90, 180, 90))
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(earth, 4), np.arange(16), 1, domain=earth
    )
    with pytest.warns(PsdWarning, match="8 of 16 shapes reach beyond 85.05 degrees"):
        release.export(tmp_path / "a.pmtiles")
    header = Reader(MemorySource((tmp_path / "a.pmtiles").read_bytes())).header()
    assert header["max_lat_e7"] / 1e7 <= 85.06
    as_drawn(release).save(tmp_path / "r")
    polar, near = ("--box", 0, 86, 9, 87), ("--box", 0, 84, 9, 85)
    for told, line in (
        ("8 of 16 shapes", ("export", tmp_path / "r", tmp_path / "b.pmtiles")),
        ("1 of 2 shapes", ("query", tmp_path / "r", *polar, *near, "-o", tmp_path / "c.pmtiles")),
    ):
        outcome = cli(*line)
        assert outcome.code == 0
        assert outcome.err.startswith(f"psd: warning: {told} reach beyond 85.05 degrees")
        assert outcome.err.count("\n") == 1
    passes("query", tmp_path / "r", *near, "-o", tmp_path / "d.pmtiles")


def test_a_local_crs_has_no_tiles(tmp_path):
    local = psd.Domain(bounds=(0, 0, 4, 4), crs='LOCAL_CS["site",UNIT["metre",1]]')
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(local, 2), [1] * 4, 1, domain=local
    )
    with pytest.raises(PsdError, match="cannot be transformed"):
        release.export(tmp_path / "a.pmtiles")
    assert list(tmp_path.iterdir()) == []


def test_no_feature_of_a_pacific_release_spans_the_world(tmp_path):
    """A cell across longitude 180 that is not cut is in every tile around the earth."""
    bounds = (2_226_389, -2_500_000, 4_452_779, -1_300_000)
    fiji = psd.Domain(bounds=bounds, crs="EPSG:3832")
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(fiji, 64), np.ones(4096, int), 1, domain=fiji
    )
    release.export(tmp_path / "a.pmtiles")
    source = MemorySource((tmp_path / "a.pmtiles").read_bytes())
    assert Reader(source).header()["max_zoom"] >= 4
    places = [place for place, _ in all_tiles(source) if place[0] == 4]
    # 20 degrees of longitude are in two of the 16 columns, which meet at 180.
    assert {column for _, column, _ in places} == {0, 15}


def test_the_largest_zoom_shows_the_smallest_polygon():
    boxes = [[0.0, 0.0, 100.0, 100.0], [0.0, 0.0, 20_000.0, 20_000.0]]
    assert _largest_zoom(np.array(boxes)) == 11
