"""The site: it builds without a warning, asks no network, and has a page for every name."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from playwright import sync_api

from support.pages import DOCS, ROOT

CHROMIUM = shutil.which("chromium")
MISSING = CHROMIUM is None and "CI" not in os.environ
needs_browser = pytest.mark.skipif(MISSING, reason="no chromium on the path")
pytestmark = pytest.mark.deep
PATIENCE = 300_000  # ms, on a machine that is very busy
OF_KERNELS = re.compile(r"IPKernelApp|ipykernel/|^Task was destroyed but it is pending!$")
NAMES = re.compile(r"^   (psd\.[\w.]+)$", re.M)
LOOKED_AT = (
    "index", "guide/index", "guide/queries", "guide/gallery", "notebooks/districts",
    "notebooks/fares", "notebooks/week",
    "reference/commands/build", "reference/api", "reference/api/psd.build", "measured/compared",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Folder of a site that is built once, and what the build printed."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "-j", "auto", "--keep-going",
         "-d", folder / "work", DOCS, folder / "html"],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONWARNINGS": "ignore"},
    )  # fmt: skip
    # A kernel says that it is reached on this machine alone, and what waited in it when it ended.
    lines = [line for line in done.stderr.splitlines() if line and not OF_KERNELS.search(line)]
    assert (done.returncode, lines) == (0, [])
    return folder / "html"


def text_of(site, page):
    """Text of a page of the site."""
    return (site / f"{page}.html").read_text(encoding="utf-8")


def test_every_public_name_and_every_command_has_a_page(site):
    names = NAMES.findall((DOCS / "reference" / "api.md").read_text("utf-8"))
    assert len(names) > 100
    for name in names:
        assert name.rpartition(".")[2] in text_of(site, f"reference/api/{name}")
    assert "Guarantees" in text_of(site, "reference/api/psd.build")
    commands = {page.stem for page in (DOCS / "reference" / "commands").glob("*.md")}
    assert {"build", "query", "ledger"} <= commands
    for name in commands:
        assert f"psd {name}" in text_of(site, f"reference/commands/{name}")
    assert "--max-contributions" in text_of(site, "reference/commands/build")  # no dash


def test_every_notebook_ran_and_shows_what_it_drew(site):
    pages = {page.stem for page in (DOCS / "notebooks").glob("*.md")} - {"index"}
    assert len(pages) == 7
    for name in pages:
        assert 'class="cell_output' in text_of(site, f"notebooks/{name}")
    for name in ("first-release", "districts", "fares", "maps", "week"):
        assert "<img " in text_of(site, f"notebooks/{name}").partition("bd-article")[2]


def test_outputs_that_no_noise_changes_are_those_of_the_texts(site):
    """A notebook states some outputs, `expected` of their cells; what it says follows from them."""
    for path in (site.parent / "jupyter_execute" / "notebooks").glob("*.ipynb"):
        compared = 0
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            expected = cell["metadata"].get("expected")
            if expected is not None:
                shown = [each.get("text") or each["data"]["text/plain"] for each in cell["outputs"]]
                assert "".join(map("".join, shown)).strip() == expected.strip(), cell["source"]
                compared += 1
        assert compared, path.stem


@pytest.fixture
def open_page():
    """Opens pages without a network, and checks at the end what they asked for."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE
        )
        requests, faults = [], []

        def opened(width):
            size = {"width": width, "height": 900}
            page = browser.new_context(viewport=size, offline=True).new_page()
            page.set_default_timeout(PATIENCE)
            page.on("request", lambda request: requests.append(request.url))
            page.on("pageerror", lambda error: faults.append(str(error)))
            return page

        yield opened
        browser.close()
    assert {url for url in requests if not url.startswith(("file:", "data:"))} == set()
    assert requests
    assert faults == []


@needs_browser
def test_pages_fit_a_phone_and_a_screen(site, open_page):
    for width in (390, 1440):
        page = open_page(width)
        for name in LOOKED_AT:
            page.goto((site / f"{name}.html").as_uri())
            beyond = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert beyond <= 0, (name, width)
            if name == "reference/commands/build":  # choices of an option leave room for its help
                shares = page.evaluate(
                    "[...document.querySelectorAll('article table tr')].map((row) => "
                    "row.lastElementChild.clientWidth / row.closest('table').clientWidth)"
                )
                assert min(shares) > 0.25, width


@needs_browser
def test_a_search_finds_pages(site, open_page):
    page = open_page(1440)
    page.goto((site / "search.html").as_uri() + "?q=epsilon")
    # Pages are found one after another; the sixth shows up only if there is one.
    page.locator("#search-results li").nth(5).wait_for()
