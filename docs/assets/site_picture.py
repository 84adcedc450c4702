"""Draw the first page of a folder of releases: `python docs/assets/site_picture.py FOLDER PICTURE`.

Opens the page in Debian's Chromium without a network; needs playwright, and a font with Hangul. The
folder is one of `psd export --site`, of the releases of `docs/guide/about.md` and `slices.md`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

SIZE = {"width": 1100, "height": 760}


def main() -> None:
    """Draw the page."""
    if len(sys.argv) != 3:
        sys.exit("usage: python docs/assets/site_picture.py FOLDER PICTURE")
    from playwright.sync_api import sync_playwright

    index = Path(sys.argv[1]).resolve() / "index.html"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_context(offline=True, viewport=SIZE, locale="en-GB").new_page()
        page.goto(index.as_uri())
        page.screenshot(path=sys.argv[2])
        browser.close()


if __name__ == "__main__":
    main()
