"""psd map and methodology: a page beside the release, and refusals before anything is written."""

import geopandas as gpd
import pytest
import shapely

from support.cli_runner import check_refusals, fails, passes


def test_the_page_is_written_once(release, here):
    page = "map-of-visits-ü.html"
    told = passes(f"map r.psd.parquet -o {page} --title", "A < B")
    assert told == f"wrote {page}\n"
    text = (here / page).read_text(encoding="utf-8")
    assert "<title>A &lt; B</title>" in text
    assert str(here) not in text
    assert "--overwrite" in fails(6, f"map r.psd.parquet -o {page}")
    passes(f"map r.psd.parquet -o {page} --overwrite")


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


def test_regions_come_from_a_file(release, here):
    shape = shapely.box(-3, -3, 2, 2)
    gpd.GeoDataFrame({"id": ["w-1"]}, geometry=[shape], crs=4326).to_file("wards.gpkg")
    passes("map r.psd.parquet -o m.html --regions wards.gpkg")
    assert "w-1" in (here / "m.html").read_text(encoding="utf-8")
    (here / "w.wkt").write_text("POLYGON ((0 0, 1 0, 1 1, 0 0))")
    assert "CRS" in fails(3, "map r.psd.parquet -o n.html --regions w.wkt")


REFUSED = [
    (2, "r.psd.parquet -o map.pdf", "must end in .html"),
    (2, "r.psd.parquet -o x.html --regions-crs EPSG:4326", "--regions"),
    (2, "r.psd.parquet -o x.html --level 99", "level"),
    (5, "none.psd.parquet -o x.html", "none.psd.parquet"),
    (8, "r.psd.parquet -o x.html --regions none.gpkg", "none.gpkg"),
]


def test_other_endings_and_options_are_refused(release, subtests):
    check_refusals(subtests, REFUSED, "map")
