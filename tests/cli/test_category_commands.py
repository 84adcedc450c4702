"""Categories on the command line: build, recipe, info, query, differences, a ledger, refusals."""

import os

import numpy as np
import pandas as pd
import pytest

import psd
from support.cli_runner import as_json, as_table, check_refusals, fails, passes
from support.cubes import town

BOUNDS = "--bounds 0 0 16 16 --crs EPSG:3857"
TIMES = "--time time --time-zone UTC --slices 2024-01-01T00..2024-01-02T23"
BUILD = f"build v.csv {BOUNDS} --per record --input-crs EPSG:3857 --epsilon 1"
LABELS = "--category purpose --labels labels.csv"
ASK = "query c --box 0 0 8 8"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Folder of records, public labels, and a release by hour and purpose."""
    folder = tmp_path_factory.mktemp("prepared")
    random = np.random.default_rng(1)
    purpose = random.choice(["shift", "office", "home", "shop"], 600)
    town(600).assign(purpose=purpose).to_csv(folder / "v.csv", index=False)
    (folder / "labels.csv").write_text("label,parent\nwork,\nshift,work\noffice,work\nhome,\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        told = passes(f"{BUILD} -o c {TIMES} {LABELS}")
    assert told == "wrote c: cube, 48 slices, 4 categories of purpose, epsilon 1 per record\n"
    return folder


@pytest.fixture(autouse=True)
def folder(prepared, here):
    """Links to these, in a folder of its own."""
    for name in ("v.csv", "c", "labels.csv"):
        os.symlink(prepared / name, here / name)
    return here


def test_info_names_the_labels():
    facts = as_json("info c")
    assert facts["category"] == "purpose"
    assert facts["labels"] == "work, shift (in work), office (in work), home"
    assert facts["other_labels"] == "counted"
    assert [layer["layer"] for layer in facts["layers"]] == ["space", "space, time and category"]
    assert "purpose" in passes("info c")


def test_answers_are_those_of_python():
    found = as_table(f"{ASK} --category purpose=work --each category")
    release = psd.load("c")
    table = release.query([(0, 0, 8, 8)], category="work", each="category").table
    assert found["category"].tolist() == ["shift", "office"]
    for name in ("estimate", "lower", "upper"):
        assert found[name].tolist() == pytest.approx(table[name].tolist())
    both = as_table(f"{ASK} --category work --category other --when 2024-01-01 --each slice")
    assert both["category"].tolist() == ["work", "other"] * 24
    joint = as_json(f"{ASK} --category work --category home --joint")
    assert np.array(joint["covariance"]).shape == (2, 2)


def test_a_category_alone_without_time():
    told = passes(f"{BUILD} -o flat --category purpose --labels shift,home --other-labels drop")
    assert told == "wrote flat: cube, 2 categories of purpose, epsilon 1 per record\n"
    assert psd.load("flat").slices is None
    facts = as_json("info flat")
    assert facts["other_labels"] == "dropped"
    assert "slices" not in facts
    assert len(as_table("query flat --box 0 0 8 8 --each category")) == 2
    told = fails(2, "query flat --box 0 0 8 8 --when 2024-01-01")
    assert "the release has no time slices" in told
    passes("export flat cells.csv")
    passes("export c day.csv --when 2024-01-01")


def test_cells_and_points_of_a_category_are_exported(here):
    release = psd.load("c")
    for line, view in (
        ("--category purpose=work", {"category": "work"}),
        ("--category home --when mondays", {"category": "home", "when": "mondays"}),
    ):
        passes(f"export c e.csv {line} --overwrite")
        wanted = release[view.get("when"), view.get("category")].to_geopandas()
        found = pd.read_csv(here / "e.csv")
        for name in ("estimate", "perturbation_error"):
            assert found[name].to_numpy() == pytest.approx(wanted[name].to_numpy(), abs=1e-6)
    passes("export c e.geojson --category home")
    assert "purpose=home" in (here / "e.geojson").read_text()
    passes("export c p.csv --points --seed 1 --category home")
    wanted = release[:, "home"].to_points(seed=1)
    assert len(pd.read_csv(here / "p.csv")) == len(wanted)


@pytest.mark.deep  # they need matplotlib, or the app of pages
@pytest.mark.app("web")
def test_pictures_and_pages_of_categories(here):
    passes("plot c one.svg --category work")
    assert "purpose=work" in (here / "one.svg").read_text()
    passes("plot c two.svg --category work --category home --when mondays")
    passes("map c -o m.html --category work --when mondays --when tuesdays")
    assert '"chosen":"work"' in (here / "m.html").read_text()


def test_views_that_are_refused(subtests):
    passes(f"{BUILD} -o plain")
    table = [
        (2, "export c f.csv --category wrok", "did you mean 'work'?"),
        (2, "export c f.csv --points --category wrok", "did you mean 'work'?"),
        (2, "export plain f.csv --category work", "--category must be given with a cube"),
        (2, "map c -o m.html --category wrok", "did you mean 'work'?"),
        (2, "map plain -o m.html --category work", "--category must be given with a cube"),
    ]
    check_refusals(subtests, table)


def test_differences_of_a_category():
    passes(f"{BUILD} -o d {TIMES} {LABELS}")
    line = "query c --difference d --box 0 0 8 8 --category work --format csv"
    assert "difference" in passes(line)
    found = passes("query c --top 3 --category work --when 2024-01-01 --format csv")
    assert len(found.splitlines()) == 4
    days = "--when 2024-01-01 --other-slice 2024-01-02"
    found = as_table(f"{ASK} --difference c {days} --category work")
    both = psd.load("c").query([(0, 0, 8, 8)], when=["2024-01-01", "2024-01-02"], category="work")
    assert found[["first", "second"]].to_numpy()[0] == pytest.approx(both.table["estimate"])
    same = "--when 2024-01-01 --other-slice 2024-01-01"
    assert "same window twice" in fails(2, f"{ASK} --difference c {same} --category work")


def test_a_recipe_states_the_labels_and_builds_the_same(here):
    passes(f"{BUILD} -o r {LABELS} --save-recipe r.toml --dry-run")
    text = (here / "r.toml").read_text()
    assert 'category = "purpose"' in text
    assert "labels" in text
    dry = passes("build r.toml --dry-run")
    assert "purpose" in dry
    passes("build r.toml")
    assert psd.load("r").record.category == psd.load("c").record.category


@pytest.mark.parametrize("other", ["count", "drop"])
def test_a_ledger_registers_the_column_and_adds_up_all_categories(here, other):
    passes("ledger create l.ledger")
    told = passes("ledger register l.ledger v --budget 3 --time time --category purpose")
    assert "category=purpose" in told
    paid = "--ledger l.ledger --dataset v"
    for number, label in enumerate(("shift", "home")):
        build = f"{BUILD} -o r{number} {TIMES} --category purpose --labels {label}"
        passes(f"{build} --other-labels {other} {paid}")
    # Two builds of different labels, whose epsilons add up.
    assert as_json("ledger status l.ledger")[0]["spent"] == "2"
    line = BUILD.replace("--epsilon 1", "--epsilon 2")
    fails(4, f"{line} -o r2 {TIMES} --category purpose --labels office {paid}")
    (here / "pub").mkdir()
    (here / "r0").rename(here / "pub" / "r0.psd.parquet")
    passes("ledger verify l.ledger --releases pub")


def test_refusals(subtests):
    table = [
        (2, "--category purpose", "--labels must be given with --category"),
        (2, "--labels met", "--labels must be left out without --category"),
        (2, f"{LABELS} --method grid", "--category must be left out with method grid"),
        (2, f"{LABELS} --value lon 0 16", "--value must be left out with a category"),
        (2, "--category lon --labels a", "x, y, user, time, bid and category must be different"),
        (2, "--category purpose --labels a,a", "labels must be different"),
        (8, "--category purpose --labels none.csv", "labels cannot be read from"),
        (2, f"{LABELS} --keep-tally t", "keep-tally must be left out with"),
    ]
    check_refusals(subtests, table, *f"{BUILD} -o e".split())
    table = [(2, "--category wrok", "did you mean 'work'?"), (2, "--each kind", "--each")]
    check_refusals(subtests, table, *ASK.split())
