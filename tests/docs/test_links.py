"""Pages: what they link exists, and what is generated is what its generator writes now."""

import importlib.util
import re
from pathlib import Path

import pytest

from psd.publish.recipe import Recipe
from support.pages import ROOT

PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "data").rglob("*.md")]
)


def prose(path):
    """Text of a page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(path):
    """Anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(path), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_to_a_file_and_a_heading(subtests):
    assert len(PAGES) > 20
    for page in PAGES:
        with subtests.test(str(page.relative_to(ROOT))):
            broken = []
            for target in re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", prose(page)):
                name, _, anchor = target.partition("#")
                path = (page.parent / name).resolve() if name else page
                if not path.exists() or (anchor and anchor not in anchors(path)):
                    broken.append(target)
            assert broken == []


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
                name for name in files if not any((top / name).exists() for top in tops)
            } == set()


def test_names_of_the_table_of_contributing_stand_in_their_files():
    table = re.findall(
        r"^\|[^|]*\| `([\w/.]+)` \| `(\w+)` \|$", (ROOT / "CONTRIBUTING.md").read_text(), re.M
    )
    assert len(table) > 10
    for path, name in table:
        pattern = rf"^(    )?(def|class) {name}\b|^{name}\b"
        assert re.search(pattern, (ROOT / path).read_text("utf-8"), re.M), (path, name)


DOCS = ROOT / "docs"


def generate():
    """The module docs/generate.py."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATED = generate().PAGES


@pytest.mark.deep
@pytest.mark.parametrize("name", sorted(GENERATED))
def test_page_is_what_the_generator_writes(name):
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == GENERATED[name](), "run: python docs/generate.py"


def test_the_recipe_of_the_guide_loads(tmp_path):
    text = (DOCS / "guide" / "recipes.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```toml\n(.*?)```", text, re.S)
    path = tmp_path / "release.toml"
    path.write_text(code, encoding="utf-8")
    (release,) = Recipe.load(path).releases
    assert Path(release.output).name == "visits.psd.parquet"
