"""Pages: what they link is in git or made, and what is generated is what its generator gives."""

import importlib.util
import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from psd.publish.recipe import Recipe
from support.pages import ROOT

DOCS = ROOT / "docs"


def generate():
    """The module docs/generate.py."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MADE, KEPT = generate().MADE, generate().KEPT
MADE_PATHS = {DOCS / name: page for name, page in MADE.items()}
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "data").rglob("*.md")]
    if path not in MADE_PATHS
)


@cache
def text_of(path):
    """Text of a page, also of one that is not made yet."""
    return MADE_PATHS[path]() if path in MADE_PATHS else path.read_text(encoding="utf-8")


def prose(path):
    """Text of a page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```", "", text_of(path), flags=re.M | re.S)


def anchors(path):
    """Anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def ignored():
    """Pages of docs/ that git ignores by name."""
    lines = (ROOT / ".gitignore").read_text("utf-8").splitlines()
    return {line.removeprefix("/docs/") for line in lines if line.startswith("/docs/")}


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
        if not (path in MADE_PATHS or is_kept(path)) or (anchor and anchor not in anchors(path)):
            yield target


def test_links_lead_to_a_page_of_git_or_one_that_is_made_and_to_a_heading(subtests):
    assert len(PAGES) > 20
    for page in PAGES:
        with subtests.test(str(page.relative_to(ROOT))):
            assert [*broken_links(page)] == []


@pytest.mark.deep
@pytest.mark.parametrize("name", sorted(MADE))
def test_a_page_that_is_made_has_a_title_and_links_that_lead_somewhere(name):
    assert text_of(DOCS / name).startswith(("# ", ".TH "))
    assert [*broken_links(DOCS / name)] == []


def test_git_ignores_what_is_made_and_has_none_of_it():
    assert ignored() == {*MADE}
    assert in_git() is None or not in_git() & {*MADE_PATHS}
    assert all(is_kept(DOCS / name) for name in KEPT)


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
                if not (ROOT / name in MADE_PATHS or any((top / name).exists() for top in tops))
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
@pytest.mark.parametrize("name", sorted(KEPT))
def test_a_generated_page_of_git_is_what_its_generator_gives(name):
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == KEPT[name](), "run: python docs/generate.py"


def test_the_recipe_of_the_guide_loads(tmp_path):
    text = (DOCS / "guide" / "recipes.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    path = tmp_path / "release.toml"
    path.write_text(code, encoding="utf-8")
    (release,) = Recipe.load(path).releases
    assert Path(release.output).name == "visits.psd.parquet"
