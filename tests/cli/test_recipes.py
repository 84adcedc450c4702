"""psd build of a recipe, and with --dry-run, --save-recipe and --about."""

import builtins
import json
import os
import sys

import pandas as pd
import pytest

import psd
from psd.ledger.ledger import Ledger
from support.cli_runner import (
    BOUNDS,
    as_json,
    check_refusals,
    cli,
    fails,
    files,
    passes,
    write_points,
)
from support.ledger_edits import edit_charge

RECIPE = """
[private]
inputs = ["points.csv"]

[release]
output = "r.psd.parquet"
export = ["cells.csv"]
epsilon = 1
bounds = [-4, -4, 4, 4]
method = "quadtree"
set = {height = 2}
estimate = "signed"
"""
PAID = '[private]\ninputs = "points.csv"\nledger = "l"\ndataset = "rows"\n'
SECOND = RECIPE[RECIPE.index("[release]") :].replace("[release]", "[[release]]")
FIRST = SECOND.replace("r.psd", "s.psd").replace("cells", "others").replace("= 1\n", "= 0.5\n")


@pytest.fixture(autouse=True)
def folder(here):
    write_points(here / "points.csv", [(-1, -1), (1, 1), (2, 3)])
    (here / "release.toml").write_text(RECIPE)
    return here


def test_a_recipe_is_built_exported_and_signed(folder):
    told = passes("build release.toml")
    assert told == "wrote r.psd.parquet: quadtree, epsilon 1 per record\nwrote cells.csv\n"
    release = psd.load("r.psd.parquet")
    assert (release.record.parameters["height"], release.record.post_processing.estimate) == (
        2,
        "signed",
    )
    assert len(pd.read_csv("cells.csv")) == 16
    passes("sign new office.pem")
    text = RECIPE.replace("[private]\n", '[private]\nsign_key = "office.pem"\n')
    (folder / "release.toml").write_text(text)
    assert "wrote r.psd.parquet.sig" in passes("build release.toml --overwrite")
    passes("sign check r.psd.parquet --key office.pub.pem")
    recipe = passes("build release.toml --dry-run")
    (folder / "again.toml").write_text('[private]\ninputs = "points.csv"\n' + recipe)
    assert passes("build again.toml --dry-run") == recipe
    passes("build again.toml --overwrite")
    before = files(folder)
    passes("tally points.csv -o t", *BOUNDS)
    told = passes("build t -o r --epsilon 1 --method grid --dry-run")
    assert told.startswith("# epsilon 1; bounds, unit and slices are those of the tallies\n")
    assert files(folder) == sorted([*before, "t"])


def test_several_releases_are_charged_each(folder):
    ledger = Ledger.create("l")
    ledger.register("rows", budget="1.5")
    (folder / "two.toml").write_text(PAID + FIRST + SECOND)
    told = passes("build two.toml")
    assert [line.split(":")[0].partition(" head")[0] for line in told.splitlines()] == [
        "wrote s.psd.parquet", "ledger", "wrote others.csv",
        "wrote r.psd.parquet", "ledger", "wrote cells.csv",
    ]  # fmt: skip
    charges = ledger.state().charges.values()
    assert [charge.loss.epsilon for charge in charges] == [5 * 10**8, 10**9]
    assert all(charge.done for charge in charges)
    assert "left" in fails(4, "build two.toml --overwrite")


def test_paths_of_recipes_and_of_all_outputs(folder, monkeypatch):
    ledger = Ledger.create("l")
    ledger.register("rows", budget=9)
    (folder / "out").mkdir()
    (folder / "two.toml").write_text(PAID + FIRST + SECOND.replace("r.psd", "out/r.psd"))
    passes("build two.toml")
    edit_charge(ledger, 5, epsilon=1)
    assert "out/r.psd.parquet states another epsilon" in fails(9, "build two.toml --overwrite")


OPTIONS = "--set height=2 --estimate signed --method quadtree --ledger none"


@pytest.mark.parametrize(
    "line", ["build release.toml", f"build points.csv -o r --epsilon 1 {OPTIONS}"]
)
def test_a_dry_run_opens_no_input(folder, monkeypatch, line):
    (folder / "points.csv").unlink()
    there = files(folder)
    opened, real = [], builtins.open
    monkeypatch.setattr(builtins, "open", lambda *a, **n: opened.append(a[0]) or real(*a, **n))
    told = passes(f"{line} --dry-run", *(BOUNDS if "points" in line else ()))
    assert told.startswith("# epsilon 1 per record\n# place of the bounds: at sea, 570 km from Gh")
    assert "points" not in told
    assert "height = 2" in told
    assert 'estimate = "signed"' in told
    assert files(folder) == there
    assert {os.path.basename(str(name)) for name in opened} <= {"release.toml"}


def test_a_build_is_saved_as_a_recipe(folder):
    recipe = folder / "recipes" / "r.toml"
    recipe.parent.mkdir()
    build = "build points.csv -o r.psd.parquet --epsilon 0.5 --memory 1GB --save-recipe"
    assert f"wrote {recipe} (PRIVATE)" in passes(build, recipe, *BOUNDS)
    assert recipe.stat().st_mode & 0o777 == 0o600
    text = recipe.read_text()
    assert 'inputs = ["../points.csv"]' in text
    assert str(folder) not in text
    assert "exists" in fails(6, "build", recipe)
    passes("build", recipe, "--overwrite")
    assert "exists" in fails(6, build, recipe, *BOUNDS)


LONG = '"' + "a" * 3_000 + '"'
EPSILON = "epsilon = 1"
# Each: the code, what the message says, and what stands in place of which text.
REFUSED = [
    (2, "no parameter 'heigth'", "height", "heigth"),
    (8, "does not exist", "points.csv", "nothing.csv"),
    (6, "does not exist", "r.psd.parquet", "no/r.psd.parquet"),
    (2, "ledger", "[release]", 'ledger = "l"\n[release]'),
    (2, "inputs must be a list", '["points.csv"]', "5"),
    (2, "engine of private must be a text", "[release]", "engine = 5\n[release]"),
    (2, "table of private must be", "[release]", "table = 5\n[release]"),
    (2, "export must be a list", '["cells.csv"]', "5"),
    (2, "lattice must be a list", EPSILON, f"{EPSILON}\nlattice = 5"),
    (2, "set must be a table", "{height = 2}", "5"),
    (8, "does not exist or cannot be reached", '["points.csv"]', LONG),
    (8, "does not exist or is not a file", EPSILON, f"{EPSILON}\nboundary = {LONG}"),
    (8, "does not exist or is not a file", EPSILON, f"{EPSILON}\ncovariate = {LONG}"),
    (
        3,
        "bounds",
        RECIPE,
        f'{PAID[:31]}\n{SECOND}[[release]]\noutput = "t"\n{EPSILON}\nbounds = [1, 2]\n',
    ),
]


def test_refusals(folder, subtests):
    for code, told, *change in REFUSED:
        (folder / "release.toml").write_text(RECIPE.replace(*change))
        check_refusals(subtests, [(code, "", told)], "build release.toml")
    check_refusals(subtests, [(8, "", "recipe no.toml does not exist")], "build no.toml")
    for option in ("-o r", "--epsilon 1", "--x a", "--save-recipe s.toml", "--min-cell 2"):
        told = fails(2, f"build release.toml {option}")
        assert "must be left out with a recipe, which states it; --dry-run and" in told
    assert "a recipe must be the only input" in fails(2, "build release.toml points.csv")
    text = RECIPE.replace("[release]", f"sign_key = {LONG}\n[release]")
    (folder / "release.toml").write_text(text)
    assert cli("build release.toml").err.endswith("does not exist or is not a file\n")


def test_a_release_that_cannot_be_signed_or_exported_is_not_charged(folder, monkeypatch, subtests):
    ledger = Ledger.create("l")
    ledger.register("rows", budget=9)
    signed = f'{PAID}sign_key = "office.pem"\n{SECOND}'
    (folder / "release.toml").write_text(signed)
    check_refusals(subtests, [(2, "", "key office.pem does not exist")], "build release.toml")
    with monkeypatch.context() as bare:
        bare.setitem(sys.modules, "cryptography", None)
        bare.setitem(sys.modules, "cryptography.hazmat.primitives.asymmetric", None)
        check_refusals(subtests, [(7, "", "signatures need crypt")], "build release.toml")
    passes("sign new office.pem")
    (folder / "r.psd.parquet.sig").touch()
    check_refusals(subtests, [(6, "", "r.psd.parquet.sig exists")], "build release.toml")
    (folder / "release.toml").write_text(signed.replace("cells.csv", "cells.xyz"))
    ending = (2, "", "output must end in one of")
    check_refusals(subtests, [ending], "build release.toml --overwrite")
    check_refusals(subtests, [ending], "build release.toml --dry-run")
    with monkeypatch.context() as bare:
        bare.setitem(sys.modules, "rasterio", None)
        (folder / "release.toml").write_text(signed.replace("cells.csv", "cells.tif"))
        check_refusals(subtests, [(7, "", "needs rasterio")], "build release.toml --overwrite")
    assert not ledger.state().charges
    assert not (folder / "r.psd.parquet").exists()
    (folder / "release.toml").write_text(signed)
    passes("build release.toml --overwrite")
    assert len(ledger.state().charges) == 1


def test_releases_that_a_budget_does_not_pay_together_are_not_begun(folder, monkeypatch):
    ledger = Ledger.create("l")
    ledger.register("rows", budget="1.2")
    (folder / "both.toml").write_text(PAID + FIRST + SECOND)
    refused = "release 2 of 2 cannot be paid after those before it: dataset 'rows' has"
    with monkeypatch.context() as unread:
        unread.setattr("psd.publish.pipeline.run_build", lambda *_, **__: pytest.fail("began"))
        assert refused in fails(4, "build both.toml")
    passes("tally points.csv -o rows.tally --per record", *BOUNDS)
    tallied = (PAID + FIRST + SECOND).replace("points.csv", "rows.tally")
    (folder / "tallied.toml").write_text(tallied.replace("bounds = [-4, -4, 4, 4]\n", ""))
    with monkeypatch.context() as unread:
        unread.setattr("psd.publish.tallies.read_tallies", lambda *_, **__: pytest.fail("began"))
        assert refused in fails(4, "build tallied.toml")
    assert not ledger.state().charges
    assert not list(folder.glob("*.psd.parquet"))
    ledger.raise_budget("rows", "1.5")
    passes("build both.toml")
    assert len(ledger.state().charges) == 2


def test_a_release_that_is_charged_and_not_written_says_so(folder, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    ledger = Ledger.create("l")
    ledger.register("rows", budget=9)
    (folder / "paid.toml").write_text(PAID + SECOND)
    monkeypatch.setattr("psd._util.atomic_write.os.fsync", fail)
    stays = "; its charge stays\n"
    assert fails(6, "build paid.toml").endswith(stays)
    assert [charge.done for charge in ledger.state().charges.values()] == [False]
    assert stays not in fails(6, "build release.toml")


def test_a_dry_run_checks_slices_and_their_time_zone(folder, subtests):
    sliced = RECIPE.replace(EPSILON, f'{EPSILON}\nslices = "2024-01"\ntime = "t"')
    (folder / "release.toml").write_text(sliced)
    refused = [(2, "", "export must be left out with slices")]
    check_refusals(subtests, refused, "build release.toml --dry-run")
    away = sliced.replace('export = ["cells.csv"]', 'time_zone = "Asia/Soul"')
    (folder / "release.toml").write_text(away)
    refused = [(2, "", "time_zone must be in the IANA database")]
    check_refusals(subtests, refused, "build release.toml --dry-run")


BUILD = ("build points.csv -o r.psd.parquet --epsilon 1 --method grid", *BOUNDS)
STATED = {"title": "Visits", "licence": "CC-BY-4.0", "reference_date": "2024-06"}
TOML = 'title = "Visits"\nlicence = "CC-BY-4.0"\nreference_date = 2024-06-15\n'


def about(**texts):
    return [word for key, text in texts.items() for word in ("--about", f"{key}={text}")]


def stated(path="r.psd.parquet"):
    return psd.load(path).record.about_texts


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
    passes("build r.toml")
    assert stated() == STATED
    assert as_json("info r.psd.parquet")["about"] == STATED
    lines = [line.split() for line in passes("info r.psd.parquet").splitlines()[:4]]
    assert lines == [*([key, text] for key, text in STATED.items()), ["method", "grid"]]
    for form in ("stac", "dcat", "registry"):
        entry = json.loads(passes("info r.psd.parquet --format", form))
        assert entry == psd.load("r.psd.parquet").catalogue(form, file="r.psd.parquet")


def test_recipes_name_files_in_their_folders_and_tallies_have_it(here):
    (here / "sub").mkdir()
    (here / "sub" / "about.toml").write_text(TOML, encoding="utf-8")
    (here / "sub" / "r.toml").write_text(
        '[private]\ninputs = ["../points.csv"]\n[release]\noutput = "../s.psd.parquet"\n'
        'epsilon = 1\nbounds = [-4, -4, 4, 4]\nabout = {file = "about.toml", language = "ko"}\n'
    )
    passes("build sub/r.toml")
    assert stated("s.psd.parquet")["language"] == "ko"
    passes("tally points.csv -o t.tally", *BOUNDS)
    passes("build t.tally -o r.psd.parquet --epsilon 1 --about title=Visits")
    assert stated() == {"title": "Visits"}


def test_a_file_and_keys_go_together(here):
    passes(*BUILD)
    assert "reference_date" in fails(2, "info r.psd.parquet --format stac")
    (here / "about.toml").write_text(TOML, encoding="utf-8")
    passes(*BUILD, "--overwrite", "--about", "about.toml", "--about", "language=en")
    assert stated() == {**STATED, "reference_date": "2024-06-15", "language": "en"}
    over = "build points.csv -o about.toml --epsilon 1 --overwrite --about about.toml"
    assert "input" in fails(6, over, *BOUNDS)
    assert (here / "about.toml").read_text(encoding="utf-8") == TOML


def test_a_recipe_states_values_as_other_fields(folder):
    data = pd.DataFrame({"x": [-1, 1, 2], "y": [-1, 1, 3], "fare": [5, 20, 90.5]})
    data.to_csv("points.csv", index=False)
    values = RECIPE.replace("set =", "values = {fare = [0, 60]}\nset =")
    (folder / "release.toml").write_text(values)
    told = passes("build release.toml --dry-run")
    assert "[release.values]\nfare = [0.0, 60.0]" in told
    assert not (folder / "r.psd.parquet").exists()
    passes("build release.toml")
    (value,) = psd.load("r.psd.parquet").record.values
    assert (value.name, value.lower, value.upper) == ("fare", 0, 60)
    assert "mean_fare" in pd.read_csv("cells.csv")
    passes("build points.csv -o s.psd.parquet --epsilon 1 --bounds -4 -4 4 4 --value fare 0 60 "
           "--save-recipe saved.toml --dry-run")  # fmt: skip
    assert "fare = [0.0, 60.0]" in (folder / "saved.toml").read_text()
    passes("build saved.toml")
    wrong = [("[60, 0]", "lower and a larger upper bound"), ("60", "two bounds"),
             ('"0"', "two bounds")]  # fmt: skip
    for given, message in wrong:
        (folder / "wrong.toml").write_text(values.replace("[0, 60]", given))
        assert message in fails(2, "build wrong.toml --dry-run")


def test_a_recipe_of_tallies_has_no_values(folder):
    passes("tally points.csv -o t.tally --bounds -4 -4 4 4")
    text = RECIPE.replace('"points.csv"', '"t.tally"').replace("bounds = [-4, -4, 4, 4]\n", "")
    (folder / "tallied.toml").write_text(text.replace("set =", "values = {fare = [0, 60]}\nset ="))
    assert "must be left out for tallies" in fails(2, "build tallied.toml")
    assert not (folder / "r.psd.parquet").exists()
