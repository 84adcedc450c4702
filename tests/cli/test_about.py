"""--about of psd build, and the table about of a recipe."""

import json

import pytest

import psd
from support.cli_runner import BOUNDS, fails, passes, write_points

BUILD = (
    "build",
    "points.csv",
    "-o",
    "r.psd.parquet",
    "--epsilon",
    "1",
    *BOUNDS,
    "--method",
    "grid",
)
STATED = {"title": "Visits", "licence": "CC-BY-4.0", "reference_date": "2024-06"}
TOML = 'title = "Visits"\nlicence = "CC-BY-4.0"\nreference_date = 2024-06-15\n'


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_points(tmp_path / "points.csv", [(0.5, 0.5)] * 3)
    return tmp_path


def about(**texts):
    return [word for key, text in texts.items() for word in ("--about", f"{key}={text}")]


def test_a_licence_has_two_spellings():
    passes(*BUILD, "--about", "license=CC0-1.0")
    assert psd.load("r.psd.parquet").about == {"licence": "CC0-1.0"}
    toml = 'license = "CC0-1.0"'
    with open("about.toml", "w") as file:
        file.write(toml)
    passes(*BUILD, "--about", "about.toml", "--overwrite")
    assert psd.load("r.psd.parquet").about == {"licence": "CC0-1.0"}
    both = about(license="CC0-1.0", licence="CC0-1.0")
    assert "--about licence must be given once" in fails(2, *BUILD, *both, "--overwrite")


def test_keys_are_stated_and_shown():
    passes(*BUILD, *about(**STATED))
    assert psd.load("r.psd.parquet").about == STATED
    assert json.loads(passes("info", "r.psd.parquet", "--format", "json"))["about"] == STATED
    lines = [line.split() for line in passes("info", "r.psd.parquet").splitlines()[:4]]
    assert lines[:3] == [[key, text] for key, text in STATED.items()]
    assert lines[3] == ["method", "grid"]


def test_a_file_and_keys_go_together(here):
    (here / "about.toml").write_text(TOML, encoding="utf-8")
    passes(*BUILD, "--about", "about.toml", "--about", "language=en")
    stated = psd.load("r.psd.parquet").about
    assert stated == {**STATED, "reference_date": "2024-06-15", "language": "en"}


def test_a_recipe_has_a_table(here):
    passes(*BUILD, *about(**STATED), "--save-recipe", "r.toml", "--dry-run")
    assert '[release.about]\ntitle = "Visits"\n' in (here / "r.toml").read_text()
    passes("run", "r.toml")
    assert psd.load("r.psd.parquet").about == STATED


def test_a_recipe_names_a_file_in_its_folder(here):
    (here / "sub").mkdir()
    (here / "sub" / "about.toml").write_text(TOML, encoding="utf-8")
    (here / "sub" / "r.toml").write_text(
        '[private]\ninputs = ["../points.csv"]\n[release]\noutput = "../s.psd.parquet"\n'
        'epsilon = 1\nbounds = [-4, -4, 4, 4]\nabout = {file = "about.toml", language = "ko"}\n'
    )
    passes("run", "sub/r.toml")
    assert psd.load("s.psd.parquet").about["language"] == "ko"


def test_the_request_is_printed_with_it():
    assert 'title = "Visits"' in passes(*BUILD, *about(title="Visits"), "--dry-run")


def test_tallies_may_have_it():
    passes("tally", "points.csv", "-o", "t.tally", *BOUNDS)
    passes("build", "t.tally", "-o", "r.psd.parquet", "--epsilon", 1, *about(title="Visits"))
    assert psd.load("r.psd.parquet").about == {"title": "Visits"}


def test_a_build_does_not_overwrite_its_file(here):
    (here / "about.toml").write_text(TOML, encoding="utf-8")
    options = ("-o", "about.toml", *BUILD[4:], "--overwrite", "--about", "about.toml")
    words = fails(6, "build", "points.csv", *options)
    assert "input" in words
    assert (here / "about.toml").read_text(encoding="utf-8") == TOML


@pytest.mark.parametrize("form", ["stac", "dcat", "registry"])
def test_info_prints_entries_of_catalogues(form):
    passes(*BUILD, *about(**STATED))
    entry = json.loads(passes("info", "r.psd.parquet", "--format", form))
    assert entry == psd.load("r.psd.parquet").catalogue(form, file="r.psd.parquet")


def test_an_item_of_stac_without_a_time_is_refused():
    passes(*BUILD)
    assert "reference_date" in fails(2, "info", "r.psd.parquet", "--format", "stac")
