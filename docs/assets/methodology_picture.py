"""Draw the sheet of method: `python docs/assets/methodology_picture.py RELEASE FOLDER`.

Opens the sheet in Debian's Chromium, without a network, on a screen and as it prints on A4; needs
playwright, and pdftoppm for the printed pages (`apt-get install poppler-utils`).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import psd
from psd.apps.web.methodology import methodology_page

HEIGHT = 1312


def main() -> None:
    """Draw the sheet on a screen, and its first printed pages."""
    if len(sys.argv) != 3:
        sys.exit("usage: python docs/assets/methodology_picture.py RELEASE FOLDER")
    release, folder = psd.load(sys.argv[1]), Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as place:
        page, printed = Path(place) / "sheet.html", Path(place) / "sheet.pdf"
        page.write_text(methodology_page(release), encoding="utf-8")
        _open(page, folder / "methodology.png", printed)
        subprocess.run(
            ["pdftoppm", "-png", "-r", "60", "-f", "1", "-l", "2", printed, f"{place}/page"],
            check=True,
        )
        for number in (1, 2):
            shutil.copy(f"{place}/page-{number}.png", folder / f"methodology-page-{number}.png")


def _open(page: Path, picture: Path, printed: Path) -> None:
    """Draw a page and print it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        context = browser.new_context(offline=True, viewport={"width": 800, "height": HEIGHT})
        sheet = context.new_page()
        sheet.goto(page.as_uri())
        sheet.screenshot(path=picture)
        sheet.pdf(path=printed, format="A4", print_background=True)
        browser.close()


if __name__ == "__main__":
    main()
