"""A folder of releases in GDAL, QGIS, DuckDB and Chromium, on a disk and on a static host."""

import functools
import http.server
import json
import os
import shutil
import threading

import duckdb
import numpy as np
import pandas as pd
import pytest
from playwright import sync_api

import psd
from psd.apps.web import write_site
from support.map_engine import drawn, of_wards
from support.programs import ogrinfo, qgis
from support.releases import as_drawn

CHROMIUM = shutil.which("chromium")
MISSING = CHROMIUM is None and "CI" not in os.environ

pytestmark = pytest.mark.deep

NASTY = '</title><script>document.title = "run"</script><img src=x onerror=alert(1)>'
KOREAN = {"title": "서울 방문", "publisher": "서울 통계청", "language": "ko"}
PATIENCE = 900_000  # milliseconds, on a machine that is very busy
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]


def seoul(**about):
    domain = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
    tree = psd.decompositions.grid_tree(domain, 8)
    counts = psd.Release.from_counts(tree, np.arange(64) * 25, "0.5", domain=domain)
    return as_drawn(counts).replace(about=about)


@pytest.fixture(scope="module")
def releases():
    months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    return {
        "서울": seoul(**KOREAN),
        "nasty": seoul(title=NASTY, publisher=NASTY, description=NASTY),
        "months": psd.Release.from_slices(months, [seoul()] * 2),
        "wards": drawn(of_wards()),
    }


@pytest.fixture(scope="module")
def folder(releases, tmp_path_factory):
    place = tmp_path_factory.mktemp("sites of 서울 ü")
    write_site(releases, place / "site")
    return place / "site"


def tables(folder, ending):
    return sorted(folder.glob(f"*/*{ending}"))


# --- GIS programs and databases -------------------------------------------------------------------


def test_duckdb_reads_the_tables(folder, releases):
    found = {path.parent.name: path for path in tables(folder, "s.parquet")}
    found["wards"] = folder / "wards" / "regions-1-id.parquet"
    assert found.keys() == releases.keys()
    for name, path in found.items():
        release, text = releases[name], str(path).replace("'", "''")
        rows = duckdb.sql(f"SELECT * EXCLUDE (geometry) FROM '{text}'").df()
        slices = [release] if release.slices is None else [release[each] for each in release]
        expected = pd.concat([each.to_geopandas() for each in slices])
        assert rows["estimate"].tolist() == expected["estimate"].tolist()
        counts = duckdb.sql(f"SELECT quality, count(*) AS n FROM '{text}' GROUP BY ALL").df()
        assert counts["n"].sum() == len(expected)


def test_gdal_opens_the_layers(folder):
    for path in tables(folder, ".gpkg"):
        told = ogrinfo(path, "-so", "-al")
        rows = {"wards": 21, "months": 128}.get(path.parent.name, 64)
        assert f"Feature Count: {rows}" in told
        assert 'ID["EPSG",4326]' in told
        assert "epsilon=" in told


def test_gdal_opens_the_tiles(folder):
    import pyogrio

    for path in tables(folder, ".pmtiles"):
        told = pyogrio.read_info(path)
        assert told["crs"] == "EPSG:3857"
        assert {"estimate", "density"} <= {*told["fields"]}
        assert ("slice" in told["fields"]) == (path.parent.name == "months")


@pytest.mark.parametrize("name", ["서울", "months", "wards"])
def test_qgis_draws_the_layers_with_their_style(folder, tmp_path, name):
    (path,) = (folder / name).glob("*.gpkg")
    told = qgis(path, tmp_path / "a.png")
    assert (told["renderer"], told["crs"]) == ("graduatedSymbol", "EPSG:4326")
    assert '"density"' in f'"{told["column"]}"'


# --- Chromium -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    if MISSING:
        pytest.skip("no chromium on the path")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=PATIENCE)
        yield opened
        opened.close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and prints nothing."""

    def log_message(self, *_):
        pass


@pytest.fixture(params=["disk", "host"])
def address(request, folder):
    """Address of the folder, on a disk or on a static host."""
    if request.param == "disk":
        yield folder.as_uri()
        return
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def opened(browser):
    """Opens a page; all requests and faults are checked at the end."""
    noted = []

    def opened(address, **options):
        context = browser.new_context(locale="en-GB", reduced_motion="reduce", **options)
        context.set_default_timeout(PATIENCE)
        page, requests, faults = context.new_page(), [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        noted.append((context, address.rpartition("/")[0], requests, faults))
        page.goto(address)
        return page

    yield opened
    for context, above, requests, faults in noted:
        # Maps have a worker, whose script is a part of the page.
        assert [url for url in requests if not url.startswith((above, "blob:"))] == []
        assert faults == []
        context.close()


def test_pages_load_nothing_but_themselves(address, opened, releases):
    page = opened(f"{address}/index.html")
    # In the language of the first release; one link leads to the other language, and back.
    assert page.evaluate("document.documentElement.lang") == "ko"
    assert page.title() == "차분 프라이버시로 보호한 위치 통계"
    page.click(".top a")
    page.wait_for_url("**/index.en.html")
    assert page.locator("section h2").all_inner_texts()[:4] == [
        "서울 방문",
        NASTY,
        "months",
        "wards",
    ]
    assert page.locator("script, img[onerror]").count() == 0
    for number in range(len(releases)):
        page.locator("nav.open").nth(number).locator("a").nth(0).click()
        page.wait_for_selector("html[data-ready=map]")
        assert page.evaluate("document.documentElement.lang") == "en"
        page.go_back()
        page.locator("nav.open").nth(number).locator("a").nth(1).click()
        page.wait_for_selector("h1")
        page.go_back()
    page.click(".top a")
    page.wait_for_url("**/index.html")
    page.locator("nav.open a").first.click()
    page.wait_for_selector("html[data-ready=map]")
    assert page.evaluate("document.documentElement.lang") == "ko"
    assert page.title() == "서울 방문"


@pytest.mark.parametrize("address", ["host"], indirect=True)
def test_files_are_fetched_from_a_host(folder, browser, address, tmp_path):
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    page.goto(f"{address}/index.html")
    with page.expect_download(timeout=PATIENCE) as download:
        page.click("text=nasty.psd.parquet")
    download.value.save_as(tmp_path / "r.psd.parquet")
    assert psd.load(tmp_path / "r.psd.parquet").metadata["title"] == NASTY
    told = page.request.get(f"{address}/catalog.json").json()
    assert told == json.loads((folder / "catalog.json").read_text("utf-8"))
    context.close()


LOOKS = {
    "wide": {"viewport": {"width": 1440, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2},
    "narrow": {"viewport": {"width": 320, "height": 600}},
    "dark": {"viewport": {"width": 1000, "height": 700}, "color_scheme": "dark"},
}


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_is_cut_off_or_unreadable(folder, opened, look):
    for name in ("index.html", "index.en.html"):
        page = opened((folder / name).as_uri(), **LOOKS[look])
        width = LOOKS[look]["viewport"]["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # Contrast of texts and links against what is behind them, by WCAG 2.
        assert page.evaluate(CONTRAST) >= 4.5
        page.emulate_media(media="print")
        assert page.locator("nav.open").first.is_hidden()


CONTRAST = """() => {
  const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = (rgb) => {
    const [r, g, b] = rgb.map((v) => v / 255).map(
      (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    for (let each = one; each; each = each.parentElement) {
      const found = numbers(getComputedStyle(each).backgroundColor);
      if (found.length === 3 || found[3] > 0) return found.slice(0, 3);
    }
    return [255, 255, 255];
  };
  let least = 21;
  for (const one of document.querySelectorAll("h1, h2, h3, p, a, th, td, li, figcaption")) {
    if (!one.innerText.trim()) continue;
    const ends = [light(numbers(getComputedStyle(one).color).slice(0, 3)), light(behind(one))];
    least = Math.min(least, (Math.max(...ends) + 0.05) / (Math.min(...ends) + 0.05));
  }
  return least;
}"""
