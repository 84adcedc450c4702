"""How much there is to read, and that each page is listed.

The reading path is README, CONTRIBUTING and all pages of docs/ that are written by hand, without
their tables; lists of pages and notebooks, which only the site has, are no part of it. Blocks of
code count, since they are read. ``python tests/docs/test_reading_path.py``
prints the words of each page, with code and without.
"""

import re
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[end]) for end in (1, 2)]

from support.pages import DOCS, MADE, OF_SITE, ROOT

PLANTED = DOCS / "privacy" / "planted-bugs.md"  # Generated as well, and in git.
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted({*DOCS.rglob("*.md")} - {*MADE, *OF_SITE, PLANTED}),
]
MOST_WORDS = 60_000


def words(path, code=True):
    """Words of a page outside its tables and comments."""
    text = re.sub(r"<!--.*?-->|^ *\|.*?$", "", path.read_text("utf-8"), flags=re.M | re.S)
    if not code:
        text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
    return len(text.split())


def test_the_reading_path_has_at_most_60_000_words():
    assert sum(map(words, PAGES)) <= MOST_WORDS


def test_the_readme_has_three_screens():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 150


def test_the_first_page_of_docs_lists_each_page():
    index = (DOCS / "README.md").read_text("utf-8")
    listed = {(DOCS / name).resolve() for name in re.findall(r"\]\(([^)#]+\.md)\)", index)}
    pages = {*DOCS.rglob("*.md")} | {page for page in MADE if page.suffix == ".md"}
    beyond = {*OF_SITE, *(DOCS / "reference" / "commands").glob("*.md")}
    assert {page for page in pages - listed if "commands" not in page.parts} - beyond == {
        DOCS / "README.md"
    }


if __name__ == "__main__":
    for page in PAGES:
        print(f"{words(page):7,} {words(page, code=False):7,} {page.relative_to(ROOT)}")
    print(f"{sum(map(words, PAGES)):7,} {sum(words(page, False) for page in PAGES):7,} in all")
