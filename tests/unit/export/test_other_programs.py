"""Exports in GDAL's command line, DuckDB and QGIS, which share no code with the writers."""

import io
import json

import duckdb
import numpy as np
import pandas as pd
import pytest

import psd
from psd.statistics.raster import density_raster
from support.programs import gdalinfo, ogr_csv, ogrinfo, qgis
from support.releases import as_drawn

pytestmark = pytest.mark.deep

DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
FACTS = {
    "epsilon": "0.5",
    "unit_of_privacy": "per record",
    "source": "curator",
    "counts": "records",
    "density_unit": "records per km2",
    "content": "cells",
    "unreliable": "keep",
}


@pytest.fixture(scope="module")
def seoul():
    counts = (np.arange(64) * 37) % 2000 + 50
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(DOMAIN, 8), counts, "0.5", domain=DOMAIN
    )
    return as_drawn(release)


def test_metadata_are_the_same_in_every_format(seoul, tmp_path):
    facts = FACTS | {"digest": seoul.digest}
    for ending in ("gpkg", "fgb", "geojson", "parquet", "tif"):
        seoul.export(tmp_path / f"a.{ending}")
    for ending in ("gpkg", "fgb", "geojson"):
        told = ogrinfo(tmp_path / f"a.{ending}", "-al", "-so")
        assert "Feature Count: 64" in told
        assert "Geometry: Polygon" in told
        assert 'ID["EPSG",4326]' in told
    told = ogrinfo(tmp_path / "a.gpkg", "-al", "-so")
    for key, value in facts.items():
        assert f"{key}={value}\n" in told
    collection = json.loads((tmp_path / "a.geojson").read_text(encoding="utf-8"))
    assert facts.items() <= collection["metadata"].items()
    (((value,),)) = duckdb.sql(
        f"SELECT value FROM parquet_kv_metadata('{tmp_path}/a.parquet') "
        "WHERE key = 'PANDAS_ATTRS'::BLOB"
    ).fetchall()
    assert facts.items() <= json.loads(value).items()
    assert seoul.digest.encode() in (tmp_path / "a.fgb").read_bytes()
    tags = gdalinfo(tmp_path / "a.tif")["metadata"][""]
    assert (tags["epsilon"], tags["digest"]) == ("0.5", seoul.digest)


def test_duckdb_reads_the_numbers(seoul, tmp_path):
    expected = seoul.to_geopandas()
    for ending, reader in (("parquet", "read_parquet"), ("csv", "read_csv")):
        seoul.export(tmp_path / f"a.{ending}")
        table = duckdb.sql(
            f"SELECT cell, estimate, density, reliable FROM {reader}('{tmp_path}/a.{ending}')"
        ).df()
        for name in table.columns:
            assert table[name].tolist() == pytest.approx(expected[name].tolist())


@pytest.mark.parametrize("ending", ["gpkg", "fgb", "geojson", "xlsx", "csv"])
def test_gdal_reads_the_numbers(seoul, tmp_path, ending):
    seoul.export(tmp_path / f"a.{ending}")
    expected = seoul.to_geopandas().sort_values("cell")
    layer = "a" if ending == "csv" else "cells"
    query = f'SELECT CAST(cell AS integer) AS cell, estimate, density, reliable FROM "{layer}"'
    read = pd.read_csv(io.StringIO(ogr_csv(tmp_path / f"a.{ending}", query))).sort_values("cell")
    for name in ("cell", "estimate", "density"):
        assert read[name].tolist() == pytest.approx(expected[name].tolist(), rel=1e-9)
    yes = read["reliable"].astype(str).str.lower().isin(["1", "true"])
    assert yes.tolist() == expected["reliable"].tolist()


@pytest.mark.parametrize("ending", ["fgb", "geojson"])
def test_qgis_opens_other_formats(seoul, tmp_path, ending):
    seoul.export(tmp_path / f"a.{ending}")
    told = qgis(tmp_path / f"a.{ending}", tmp_path / "a.png")
    assert told["crs"] == "EPSG:4326"
    assert len(colours(tmp_path / "a.png")) > 1


def test_another_crs(seoul, tmp_path):
    for ending in ("gpkg", "fgb", "parquet"):
        seoul.export(tmp_path / f"a.{ending}", crs="EPSG:5179")
    for ending in ("gpkg", "fgb"):
        assert 'ID["EPSG",5179]' in ogrinfo(tmp_path / f"a.{ending}", "-al", "-so")
    area = ogrinfo(
        tmp_path / "a.gpkg", "-dialect", "sqlite", "-sql",
        "SELECT sum(st_area(geom) * density) / 1e6 AS total FROM cells",
    )  # fmt: skip
    # The plane of EPSG:5179 stretches areas by a little; cells meet without gaps.
    total = float(area.partition("total (Real) = ")[2].split()[0])
    assert total == pytest.approx(seoul.total, rel=2e-3)


def test_a_raster_in_gdal(seoul, tmp_path):
    seoul.export(tmp_path / "a.tif", size=(24, 20))
    told, expected = gdalinfo(tmp_path / "a.tif"), density_raster(seoul.index.fit, 24, 20)
    assert told["size"] == [24, 20]
    assert told["metadata"]["IMAGE_STRUCTURE"]["LAYOUT"] == "COG"
    bands = {band["description"]: band for band in told["bands"]}
    assert list(bands) == ["count", "density", "error"]
    assert bands["density"]["unit"] == "records per km2"
    for name, band in bands.items():
        values = getattr(expected, name)
        figures = [float(band["metadata"][""][f"STATISTICS_{key}"]) for key in ("MAXIMUM", "MEAN")]
        assert figures == pytest.approx([values.max(), values.mean()])
        assert str(band["noDataValue"]).lower() == "nan"


def test_one_band_with_a_colour_table(seoul, tmp_path):
    seoul.export(tmp_path / "a.tif", size=(24, 20), band="classes")
    (band,) = gdalinfo(tmp_path / "a.tif")["bands"]
    looks = [band[key] for key in ("type", "colorInterpretation", "noDataValue")]
    assert looks == ["Byte", "Palette", 0]
    assert band["colorTable"]["entries"][1] == [255, 255, 204, 255]
    assert band["unit"].startswith("classes of records per km2, divided at ")
    told = qgis(tmp_path / "a.tif", tmp_path / "a.png")
    assert told["renderer"] == "paletted"
    seoul.export(tmp_path / "b.tif", band="density")
    assert [each["description"] for each in gdalinfo(tmp_path / "b.tif")["bands"]] == ["density"]


@pytest.mark.parametrize("crs", [None, "EPSG:5179"])
def test_qgis_opens_a_map(seoul, tmp_path, crs):
    seoul.export(tmp_path / "a.gpkg", crs=crs)
    source = f"{tmp_path}/a.gpkg|layername=cells"
    told = qgis(source, tmp_path / "a.png")
    assert (told["renderer"], told["column"]) == ("graduatedSymbol", "density")
    assert told["crs"] == (crs or "EPSG:4326")
    assert told["classes"][0].endswith("records per km2")
    assert 3 <= len(told["classes"]) <= 7
    shown = colours(tmp_path / "a.png")
    assert len(shown & set(SEQUENTIAL)) >= 3
    told = qgis(source, tmp_path / "b.png", "reliability")
    assert told["column"] == 'coalesce("relative_error", 100000000000)'
    assert told["classes"][-1] == "above 100%"
    assert colours(tmp_path / "b.png") & {"#2c7bb6", "#abd9e9"}


SEQUENTIAL = ("#ffffcc", "#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#0c2c84")


def colours(path):
    """Colours of a picture."""
    from matplotlib import colors, image

    pixels = np.unique(image.imread(path)[..., :3].reshape(-1, 3), axis=0)
    return {colors.to_hex(each) for each in pixels}
