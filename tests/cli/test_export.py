"""psd export, map and methodology: files and pages that other programs open."""

import json

import geopandas as gpd
import pandas as pd
import pytest
import shapely

from support.cli_runner import check_refusals, fails, files, passes, three_by_three

REFUSED = [
    (2, "cells.xyz", "cells.xyz"),
    (2, "cells", "cells"),
    (6, "there.csv", "there.csv"),
    (6, "folder.csv", "folder.csv"),
    (6, "nowhere/cells.csv", "nowhere"),
    (6, "r.psd.parquet --overwrite", "input"),
    (
        2,
        "r.npy --size 0 5",
        "--size must be two integers above 0, the columns and the rows of the raster, got 0 ",
    ),
    (
        2,
        "r.npy --size 100000 100000",
        "must be at most 16,777,216 cells of the raster, got 100,000 x 100,000; choose fewer",
    ),
]


def test_geojson_leaves_and_targets(release, subtests, monkeypatch):
    passes("export r.psd.parquet cells.geojson")
    content = json.loads((release.parent / "cells.geojson").read_text(encoding="utf-8"))
    assert content["type"] == "FeatureCollection"
    assert "crs" not in content
    passes("export r.psd.parquet a.csv")
    passes("export r.psd.parquet B.CSV --cells leaves")
    assert (release.parent / "a.csv").read_bytes() == (release.parent / "B.CSV").read_bytes()
    for cells, number in (("leaves", 9), ("all", len(three_by_three().tree))):
        assert passes(f"export r.psd.parquet {cells}.csv --cells {cells}") == f"wrote {cells}.csv\n"
        assert len(pd.read_csv(f"{cells}.csv")) == number
    (release.parent / "there.csv").write_text("mine")
    (release.parent / "folder.csv").mkdir()
    check_refusals(subtests, REFUSED, "export r.psd.parquet")
    check_refusals(subtests, [(5, "cells.csv", "there.csv")], "export there.csv")
    passes("export r.psd.parquet there.csv --overwrite")
    assert len(pd.read_csv("there.csv")) == 9

    def full(table, path):
        path.write_text("half a fi")
        raise OSError(28, "No space left on device")

    there = files(release.parent)
    monkeypatch.setattr("psd.export.csv.write", full)
    assert "No space left" in fails(6, "export r.psd.parquet cells.csv")
    assert files(release.parent) == there


def test_the_page_is_written_once_with_regions_of_a_file(release, here, subtests):
    page = "map-of-visits-ü.html"
    told = passes(f"map r.psd.parquet -o {page} --title", "A < B")
    assert told == f"wrote {page}\n"
    text = (here / page).read_text(encoding="utf-8")
    assert "<title>A &lt; B</title>" in text
    assert str(here) not in text
    assert "--overwrite" in fails(6, f"map r.psd.parquet -o {page}")
    passes(f"map r.psd.parquet -o {page} --overwrite")
    shape = shapely.box(-3, -3, 2, 2)
    gpd.GeoDataFrame({"id": ["w-1"]}, geometry=[shape], crs=4326).to_file("wards.gpkg")
    passes("map r.psd.parquet -o m.html --regions wards.gpkg")
    assert "w-1" in (here / "m.html").read_text(encoding="utf-8")
    (here / "w.wkt").write_text("POLYGON ((0 0, 1 0, 1 1, 0 0))")
    assert "CRS" in fails(3, "map r.psd.parquet -o n.html --regions w.wkt")
    check_refusals(subtests, WRONG_MAPS, "map")


@pytest.mark.deep
def test_the_page_of_the_method_is_written_once(release, here, subtests):
    page = here / "sheet of the method ü.html"
    assert passes("methodology", release, "-o", page) == f"wrote {page}\n"
    text = page.read_text(encoding="utf-8")
    assert "epsilon 1 per record" in text
    assert str(here) not in text
    assert "--overwrite" in fails(6, "methodology", release, "-o", page)
    passes("methodology", release, "-o", page, "--overwrite")
    table = [
        (2, "r.psd.parquet -o sheet.pdf", "must end in .html"),
        (5, "none.psd.parquet -o x.html", "none.psd.parquet"),
    ]
    check_refusals(subtests, table, "methodology")


WRONG_MAPS = [
    (2, "r.psd.parquet -o map.pdf", "must end in .html"),
    (2, "r.psd.parquet -o x.html --regions-crs EPSG:4326", "--regions"),
    (2, "r.psd.parquet -o x.html --level 99", "level"),
    (5, "none.psd.parquet -o x.html", "none.psd.parquet"),
    (8, "r.psd.parquet -o x.html --regions none.gpkg", "none.gpkg"),
]
