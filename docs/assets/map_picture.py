"""Draw pictures of map pages: `python docs/assets/map_picture.py RELEASE SERIES WARDS CUBE FOLDER`.

Opens the page in Debian's Chromium without a network and draws on it as a reader does; needs
playwright. The releases are those of `docs/guide/maps.md`, of wards, of `docs/index.md`, and of a
cube, of `docs/guide/week.md`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psd
from psd.apps.web.map_page import map_page

FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
SIZE = {"width": 1100, "height": 720}

# Corners of a polygon on the screen.
POLYGON = ((250, 330), (420, 300), (470, 420), (380, 500), (270, 460))


def main() -> None:
    """Draw the pictures."""
    if len(sys.argv) != 6:
        sys.exit("usage: python docs/assets/map_picture.py RELEASE SERIES WARDS CUBE FOLDER")
    release, series, wards, cube = (psd.load(name) for name in sys.argv[1:5])
    with tempfile.TemporaryDirectory() as place:
        single, slices = Path(place) / "single.html", Path(place) / "series.html"
        single.write_text(map_page(release, title="Visits in Seoul"), encoding="utf-8")
        slices.write_text(map_page(series, title="Visits by day"), encoding="utf-8")
        named = Path(place) / "wards.html"
        named.write_text(map_page(wards, title="Visits in Seoul, by ward"), encoding="utf-8")
        week, windows = Path(place) / "week.html", ["weekdays 07-10", "fridays,saturdays 22-02"]
        page = map_page(cube, title="A week of a city", when=windows)
        week.write_text(page, encoding="utf-8")
        _pictures(single, slices, named, week, Path(sys.argv[5]))


def _pictures(single: Path, slices: Path, named: Path, week: Path, folder: Path) -> None:
    """Open the pages and write the pictures."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)

        def shot(name: str, path: Path, act: Callable[[Any], None], **options: str) -> None:
            settings = {"locale": "en-GB", "color_scheme": "light", **options}
            page = browser.new_context(offline=True, viewport=SIZE, **settings).new_page()
            page.goto(path.as_uri())
            page.wait_for_selector("html[data-ready=map]")
            act(page)
            page.wait_for_timeout(500)
            page.screenshot(path=folder / name)
            page.context.close()

        shot("map-light.png", single, _polygon)
        shot("map-dark.png", single, _reliability, color_scheme="dark")
        shot("map-korean.png", single, _polygon, locale="ko-KR")
        shot("map-slices.png", slices, _slice)
        shot("map-print.png", single, _print)
        shot("map-wards.png", named, _ward)
        shot("map-cube.png", week, _week)
        browser.close()


def _polygon(page: Any) -> None:
    """Draw a polygon, and wait for its answer."""
    page.click("#draw-polygon")
    for corner in POLYGON:
        page.mouse.click(*corner)
    page.click("#finish")
    page.wait_for_selector("#answers[data-ready='1']", timeout=60_000)
    page.locator("#made").scroll_into_view_if_needed()


def _week(page: Any) -> None:
    """Show cells of which some are reliable, and draw a polygon."""
    page.locator("#level").fill("5")
    _polygon(page)
    page.locator("#side").evaluate("side => side.scrollTo(0, 0)")


def _reliability(page: Any) -> None:
    """Show how reliable the cells are."""
    page.select_option("#show", "reliability")
    page.locator("#level").fill("6")


def _slice(page: Any) -> None:
    """Show another day, and draw a polygon."""
    page.locator("#slice").fill("3")
    page.locator("#level").fill("5")
    _polygon(page)
    page.locator("#side").evaluate("side => side.scrollTo(0, 0)")


def _ward(page: Any) -> None:
    """Choose two wards north and south of the river."""
    page.mouse.click(322, 292)
    page.mouse.click(309, 344)
    page.wait_for_selector("#answers[data-ready='2']", timeout=60_000)
    page.locator("#answers").scroll_into_view_if_needed()


def _print(page: Any) -> None:
    """Show the page as it prints."""
    _polygon(page)
    page.emulate_media(media="print")


if __name__ == "__main__":
    main()
