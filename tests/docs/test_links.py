"""Pages: what they link is in git or made, and what is generated is what its generator gives."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from psd.publish.recipe import Recipe
from support.pages import DOCS, KEPT, MADE, ROOT

PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "data").rglob("*.md")]
    if path not in MADE
)


@cache
def text_of(path):
    """Text of a page, also of one that is not made yet."""
    return MADE[path]() if path in MADE else path.read_text(encoding="utf-8")


def prose(path):
    """Text of a page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```", "", text_of(path), flags=re.M | re.S)


def anchors(path):
    """Anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def ignored():
    """Pages of docs/ that git ignores by name or by folder, and folders that a site writes."""
    lines = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    names = {line[1:] for line in lines if line.startswith("/docs/")}
    folders = tuple(name for name in names if name.endswith("/"))
    return {ROOT / name for name in names if name not in folders}, folders


@cache
def in_git():
    """Files that git has or would add, as paths; None in a copy without git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return {ROOT / name for name in done.stdout.split("\0")} if done.returncode == 0 else None


def is_kept(path):
    """Whether a file or folder is in git, or is there where git is not."""
    if in_git() is None or path.is_dir():
        return path.exists()
    return path in in_git()


def broken_links(page):
    """Links of a page that lead to no page of git, to none that is made, or to no heading."""
    for target in re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", prose(page)):
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not (path in MADE or is_kept(path)) or (anchor and anchor not in anchors(path)):
            yield target


def test_links_lead_to_a_page_of_git_or_one_that_is_made_and_to_a_heading(subtests):
    assert len(PAGES) > 20
    for page in PAGES:
        with subtests.test(str(page.relative_to(ROOT))):
            assert [*broken_links(page)] == []


@pytest.mark.deep
@pytest.mark.parametrize("page", MADE, ids=lambda page: page.name)
def test_a_page_that_is_made_has_a_title_and_links_that_lead_somewhere(page):
    assert text_of(page).startswith(("# ", ".TH "))
    assert [*broken_links(page)] == []


def test_git_ignores_what_is_made_and_has_none_of_it():
    names, folders = ignored()
    made = {page.relative_to(ROOT).as_posix() for page in MADE}
    assert names == {ROOT / name for name in made if not name.startswith(folders)}
    assert in_git() is None or not in_git() & {*MADE}
    assert all(map(is_kept, KEPT))


def test_files_that_are_named_exist(subtests):
    settings = [*(ROOT / ".ci").iterdir(), ROOT / "pyproject.toml", ROOT / "tests/mutation.toml"]
    for page in [*PAGES, *settings]:
        with subtests.test(str(page.relative_to(ROOT))):
            named = re.findall(
                r"\b(?:psd|cli|tests|docs|\.ci)/[\w./*-]+\w", page.read_text("utf-8")
            )
            files = {name.partition("::")[0] for name in named if not re.search(r"[*<]", name)}
            tops = (ROOT, ROOT / "tests")
            assert {
                name
                for name in files
                if not (ROOT / name in MADE or any((top / name).exists() for top in tops))
            } == set()


def test_names_of_the_table_of_contributing_stand_in_their_files():
    table = re.findall(
        r"^\|[^|]*\| `([\w/.]+)` \| `(\w+)` \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.M
    )
    assert len(table) > 10
    for path, name in table:
        pattern = rf"^(    )?(def|class) {name}\b|^{name}\b"
        assert re.search(pattern, (ROOT / path).read_text("utf-8"), re.M), (path, name)


@pytest.mark.deep
@pytest.mark.parametrize("page", KEPT, ids=lambda page: page.name)
def test_a_generated_page_of_git_is_what_its_generator_gives(page):
    assert page.read_text(encoding="utf-8") == KEPT[page](), "run: python docs/generate.py"


def test_the_recipe_of_the_guide_loads(tmp_path):
    text = (DOCS / "guide" / "recipes.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    path = tmp_path / "release.toml"
    path.write_text(code, encoding="utf-8")
    (release,) = Recipe.load(path).releases
    assert Path(release.output).name == "visits.psd.parquet"
