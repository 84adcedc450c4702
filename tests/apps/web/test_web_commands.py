"""psd map and psd info --sheet: pages that browsers open."""

import geopandas as gpd
import pytest
import shapely

from support.cli_runner import check_refusals, fails, passes


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


WRONG_MAPS = [
    (2, "r.psd.parquet -o map.pdf", "must end in .html"),
    (2, "r.psd.parquet -o x.html --regions-crs EPSG:4326", "--regions"),
    (2, "r.psd.parquet -o x.html --level 99", "level"),
    (5, "none.psd.parquet -o x.html", "none.psd.parquet"),
    (8, "r.psd.parquet -o x.html --regions none.gpkg", "none.gpkg"),
]


@pytest.mark.deep
def test_the_page_of_the_method_is_written_once(release, here, subtests):
    page = here / "sheet of the method ü.html"
    assert passes("info", release, "--sheet", page) == f"wrote {page}\n"
    text = page.read_text(encoding="utf-8")
    assert "epsilon 1 per record" in text
    assert str(here) not in text
    assert "--overwrite" in fails(6, "info", release, "--sheet", page)
    passes("info", release, "--sheet", page, "--overwrite")
    table = [
        (2, "r.psd.parquet --sheet sheet.pdf", "must end in .html"),
        (5, "none.psd.parquet --sheet x.html", "none.psd.parquet"),
        (2, "r.psd.parquet --sheet x.html --format json", "--format must be left out with --sheet"),
        (2, "r.psd.parquet --overwrite", "--overwrite must be given with --sheet"),
    ]
    check_refusals(subtests, table, "info")


CLAIM = "epsilon 1 and delta 1e-6 (rho 0.024355970359) per"
LIMIT = " record; with a probability of at most 1e-6 it may reveal more than epsilon allows"
DAYS = "--time time --slices 2024-01-01..2024-01-04"
USER = "--user user --max-contributions 4 --max-per-slice 1"


@pytest.mark.deep
def test_pages_state_the_claim_of_gaussian_noise_and_a_limit_in_each_slice(here):
    rows = "".join(
        f"u{n % 90},{n % 8}.5,{n * 3 % 8}.5,2024-01-{n % 4 + 1:02d}\n" for n in range(400)
    )
    (here / "v.csv").write_text("user,lon,lat,time\n" + rows)
    build = (
        "build v.csv --bounds 0 0 8 8 --crs EPSG:3857 --method quadtree --set height=3 --epsilon 1"
    )
    for name, words in (("first", ""), ("series", f"{DAYS} {USER}")):
        passes(f"{build} --delta 1e-6 --noise gaussian {words} -o {name}")
        for page, line in (("map", "map {} -o"), ("sheet", "info {} --sheet")):
            passes(line.format(name), f"{name}-{page}.html")
            text = (here / f"{name}-{page}.html").read_text(encoding="utf-8")
            assert CLAIM + (LIMIT if name == "first" else " user") in text
            limit = "at most 4 records of each, at most 1 of them in each time slice"
            assert name == "first" or page == "map" or limit in text
