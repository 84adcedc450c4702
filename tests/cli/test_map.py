"""psd map: a page beside the release, and refusals before anything is written."""

import geopandas as gpd
import pytest
import shapely

from support.cli_runner import fails, passes, three_by_three


@pytest.fixture
def release(tmp_path):
    path = tmp_path / "r.psd.parquet"
    three_by_three().save(path)
    return path


def test_the_page_is_written_once(release, tmp_path):
    page = tmp_path / "map of visits ü.html"
    assert passes("map", release, "-o", page, "--title", "A < B") == f"wrote {page}\n"
    text = page.read_text(encoding="utf-8")
    assert "<title>A &lt; B</title>" in text
    assert str(tmp_path) not in text
    assert "--overwrite" in fails(6, "map", release, "-o", page)
    passes("map", release, "-o", page, "--overwrite")


def test_regions_come_from_a_file(release, tmp_path):
    wards, page = tmp_path / "wards.gpkg", tmp_path / "m.html"
    shape = shapely.box(-3, -3, 2, 2)
    gpd.GeoDataFrame({"id": ["w-1"]}, geometry=[shape], crs=4326).to_file(wards)
    passes("map", release, "-o", page, "--regions", wards)
    assert "w-1" in page.read_text(encoding="utf-8")
    (tmp_path / "w.wkt").write_text("POLYGON ((0 0, 1 0, 1 1, 0 0))")
    assert "CRS" in fails(
        3, "map", release, "-o", tmp_path / "n.html", "--regions", tmp_path / "w.wkt"
    )


def test_other_endings_and_options_are_refused(release, tmp_path):
    other = tmp_path / "x.html"
    assert "must end in .html" in fails(2, "map", release, "-o", tmp_path / "map.pdf")
    assert "--regions" in fails(2, "map", release, "-o", other, "--regions-crs", "EPSG:4326")
    assert "level" in fails(2, "map", release, "-o", other, "--level", 99)
    fails(5, "map", tmp_path / "none.psd.parquet", "-o", other)
    fails(8, "map", release, "-o", other, "--regions", tmp_path / "none.gpkg")
    assert not other.exists()
