"""--about of psd build, and the table about of a recipe."""

import json

import pytest

import psd
from support.cli_runner import BOUNDS, as_json, fails, passes, write_points

BUILD = ("build points.csv -o r.psd.parquet --epsilon 1 --method grid", *BOUNDS)
STATED = {"title": "Visits", "licence": "CC-BY-4.0", "reference_date": "2024-06"}
TOML = 'title = "Visits"\nlicence = "CC-BY-4.0"\nreference_date = 2024-06-15\n'


@pytest.fixture(autouse=True)
def points(here):
    write_points(here / "points.csv", [(0.5, 0.5)] * 3)


def about(**texts):
    return [word for key, text in texts.items() for word in ("--about", f"{key}={text}")]


def stated(path="r.psd.parquet"):
    return psd.load(path).about


def test_a_licence_has_two_spellings(here):
    passes(*BUILD, "--about", "license=CC0-1.0")
    assert stated() == {"licence": "CC0-1.0"}
    (here / "about.toml").write_text('license = "CC0-1.0"')
    passes(*BUILD, "--about", "about.toml", "--overwrite")
    assert stated() == {"licence": "CC0-1.0"}
    both = about(license="CC0-1.0", licence="CC0-1.0")
    assert "--about licence must be given once" in fails(2, *BUILD, *both, "--overwrite")


def test_keys_are_stated_and_shown_and_go_into_a_recipe(here):
    recipe = ("--save-recipe", "r.toml", "--dry-run")
    assert 'title = "Visits"' in passes(*BUILD, *about(**STATED), *recipe)
    assert '[release.about]\ntitle = "Visits"\n' in (here / "r.toml").read_text()
    passes("run r.toml")
    assert stated() == STATED
    assert as_json("info r.psd.parquet")["about"] == STATED
    lines = [line.split() for line in passes("info r.psd.parquet").splitlines()[:4]]
    assert lines == [*([key, text] for key, text in STATED.items()), ["method", "grid"]]
    for form in ("stac", "dcat", "registry"):
        entry = json.loads(passes("info r.psd.parquet --format", form))
        assert entry == psd.load("r.psd.parquet").catalogue(form, file="r.psd.parquet")


def test_a_file_and_keys_go_together(here):
    (here / "about.toml").write_text(TOML, encoding="utf-8")
    passes(*BUILD, "--about", "about.toml", "--about", "language=en")
    assert stated() == {**STATED, "reference_date": "2024-06-15", "language": "en"}
    over = "build points.csv -o about.toml --epsilon 1 --overwrite --about about.toml"
    assert "input" in fails(6, over, *BOUNDS)
    assert (here / "about.toml").read_text(encoding="utf-8") == TOML


def test_a_recipe_names_a_file_in_its_folder(here):
    (here / "sub").mkdir()
    (here / "sub" / "about.toml").write_text(TOML, encoding="utf-8")
    (here / "sub" / "r.toml").write_text(
        '[private]\ninputs = ["../points.csv"]\n[release]\noutput = "../s.psd.parquet"\n'
        'epsilon = 1\nbounds = [-4, -4, 4, 4]\nabout = {file = "about.toml", language = "ko"}\n'
    )
    passes("run sub/r.toml")
    assert stated("s.psd.parquet")["language"] == "ko"


def test_tallies_may_have_it():
    passes("tally points.csv -o t.tally", *BOUNDS)
    passes("build t.tally -o r.psd.parquet --epsilon 1 --about title=Visits")
    assert stated() == {"title": "Visits"}


def test_an_item_of_stac_without_a_time_is_refused():
    passes(*BUILD)
    assert "reference_date" in fails(2, "info r.psd.parquet --format stac")
