"""psd run, and psd build with --dry-run and --save-recipe."""

import builtins
import os

import pandas as pd
import pytest

import psd
from psd.ledger.ledger import Ledger
from support.cli_runner import BOUNDS, cli, fails, files, passes, write_points
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
set = {height = 2, estimate = "signed"}
"""


SLICES = 'slices = "2024-01"\nread = {time = "t"}'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_points(tmp_path / "points.csv", [(-1, -1), (1, 1), (2, 3)])
    (tmp_path / "release.toml").write_text(RECIPE)
    return tmp_path


def test_a_recipe_is_built_and_exported(folder):
    told = passes("run", "release.toml")
    assert told == "wrote r.psd.parquet: quadtree, epsilon 1 per record\nwrote cells.csv\n"
    release = psd.Release.load("r.psd.parquet")
    assert (release.parameters["height"], release.post_processing.estimate) == (2, "signed")
    assert len(pd.read_csv("cells.csv")) == 16


def test_paths_begin_at_the_recipe(folder, monkeypatch):
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    passes("run", "../release.toml")
    assert (folder / "r.psd.parquet").exists()
    assert files(folder / "elsewhere") == []


def test_several_releases_are_charged_each(folder):
    ledger = Ledger.create("l")
    ledger.register("rows", budget="1.5")
    second = RECIPE[RECIPE.index("[release]") :].replace("[release]", "[[release]]")
    first = second.replace("r.psd", "s.psd").replace("cells", "others").replace("= 1\n", "= 0.5\n")
    private = '[private]\ninputs = "points.csv"\nledger = "l"\ndataset = "rows"\n'
    (folder / "two.toml").write_text(private + first + second)
    told = passes("run", "two.toml")
    assert [line.split(":")[0].partition(" head")[0] for line in told.splitlines()] == [
        "wrote s.psd.parquet", "ledger", "wrote others.csv",
        "wrote r.psd.parquet", "ledger", "wrote cells.csv",
    ]  # fmt: skip
    charges = ledger.state().charges.values()
    assert [charge.loss.epsilon for charge in charges] == [5 * 10**8, 10**9]
    assert all(charge.done for charge in charges)
    assert "left" in fails(4, "run", "two.toml", "--overwrite")


def test_releases_in_the_folders_of_all_outputs_are_compared(folder):
    ledger = Ledger.create("l")
    ledger.register("rows", budget=9)
    (folder / "out").mkdir()
    second = RECIPE[RECIPE.index("[release]") :].replace("[release]", "[[release]]")
    first = second.replace("cells", "others").replace("r.psd", "s.psd")
    private = '[private]\ninputs = "points.csv"\nledger = "l"\ndataset = "rows"\n'
    (folder / "two.toml").write_text(private + first + second.replace("r.psd", "out/r.psd"))
    passes("run", "two.toml")
    edit_charge(ledger, 5, epsilon=1)
    assert "out/r.psd.parquet states another epsilon" in fails(9, "run", "two.toml", "--overwrite")


def test_all_releases_are_checked_before_the_first(folder):
    wrong = RECIPE.replace("[release]", "[[release]]") + (
        '[[release]]\noutput = "s.psd.parquet"\nepsilon = 1\nbounds = [1, 2]\n'
    )
    (folder / "two.toml").write_text(wrong)
    there = files(folder)
    assert "bounds" in fails(3, "run", "two.toml")
    assert files(folder) == there


def test_a_recipe_signs(folder):
    pytest.importorskip("cryptography")
    passes("keygen", "office.pem")
    text = RECIPE.replace("[private]\n", '[private]\nsign_key = "office.pem"\n')
    (folder / "release.toml").write_text(text)
    told = passes("run", "release.toml")
    assert "wrote r.psd.parquet.sig" in told
    passes("verify", "r.psd.parquet", "--key", "office.pub.pem")


@pytest.mark.parametrize("words", [("run", "release.toml"), ("build", "points.csv")])
def test_a_dry_run_opens_no_input(folder, monkeypatch, words):
    if words[0] == "build":
        words = (*words, "-o", "r.psd.parquet", "--epsilon", 1, *BOUNDS, "--set", "height=2")
        words = (*words, "--method", "quadtree", "--set", "estimate=signed", "--ledger", "none")
    (folder / "points.csv").unlink()
    there = files(folder)
    opened, real = [], builtins.open
    monkeypatch.setattr(builtins, "open", lambda *a, **n: opened.append(a[0]) or real(*a, **n))
    told = passes(*words, "--dry-run")
    assert told.startswith("# epsilon 1 per record\n[release]\n")
    assert "points" not in told
    assert "height = 2" in told
    assert 'estimate = "signed"' in told
    assert files(folder) == there
    assert {os.path.basename(str(name)) for name in opened} <= {"release.toml"}


def test_what_a_dry_run_prints_is_a_recipe(folder):
    (folder / "again.toml").write_text(
        '[private]\ninputs = "points.csv"\n' + passes("run", "release.toml", "--dry-run")
    )
    assert passes("run", "again.toml", "--dry-run") == passes("run", "release.toml", "--dry-run")
    passes("run", "again.toml")


def test_a_dry_run_of_tallies(folder):
    passes("tally", "points.csv", "-o", "t", *BOUNDS)
    told = passes("build", "t", "-o", "r", "--epsilon", 1, "--method", "grid", "--dry-run")
    assert told.startswith("# epsilon 1; bounds, unit and slices are those of the tallies\n")
    assert files(folder) == ["points.csv", "release.toml", "t"]


def test_a_build_is_saved_as_a_recipe(folder):
    where = folder / "recipes"
    where.mkdir()
    words = ("-o", "r.psd.parquet", "--epsilon", "0.5", *BOUNDS, "--read", "memory=1GB")
    told = passes("build", "points.csv", *words, "--save-recipe", where / "r.toml")
    assert f"wrote {where / 'r.toml'} (PRIVATE)" in told
    assert (where / "r.toml").stat().st_mode & 0o777 == 0o600
    text = (where / "r.toml").read_text()
    assert 'inputs = ["../points.csv"]' in text
    assert str(folder) not in text
    assert "exists" in fails(6, "run", where / "r.toml")
    passes("run", where / "r.toml", "--overwrite")
    assert "exists" in fails(6, "build", "points.csv", *words, "--save-recipe", where / "r.toml")


@pytest.mark.parametrize(
    ("code", "told", "change"),
    [
        (2, "did you mean 'epsilon'", ("epsilon", "epsilom")),
        (2, "no parameter 'heigth'", ("height", "heigth")),
        (2, "bounds must be given", ("bounds = [-4, -4, 4, 4]", "")),
        (2, "epsilon must be given", ("epsilon = 1", "")),
        (8, "does not exist", ("points.csv", "nothing.csv")),
        (6, "does not exist", ("r.psd.parquet", "no/r.psd.parquet")),
        (2, "ledger", ("[release]", 'ledger = "l"\n[release]')),
        (2, "export must be left out", ("epsilon = 1", f"epsilon = 1\n{SLICES}")),
    ],
)  # fmt: skip
def test_refusals(folder, code, told, change):
    (folder / "release.toml").write_text(RECIPE.replace(*change))
    there = files(folder)
    assert told in fails(code, "run", "release.toml")
    assert files(folder) == there


LONG = '"' + "a" * 3_000 + '"'


@pytest.mark.parametrize(
    ("code", "told", "change"),
    [
        (2, "inputs must be a list", ('["points.csv"]', "5")),
        (2, "engine of private must be a text", ("[release]", "engine = 5\n[release]")),
        (2, "dataset of private must be a text", ("[release]", "dataset = 5\n[release]")),
        (2, "table of private.read must be", ("[release]", "read = {table = 5}\n[release]")),
        (2, "export must be a list", ('["cells.csv"]', "5")),
        (2, "bounds must be a list", ("[-4, -4, 4, 4]", "5")),
        (2, "lattice must be a list", ("epsilon = 1", "epsilon = 1\nlattice = 5")),
        (2, "slices must be a list", ("epsilon = 1", "epsilon = 1\nslices = 5")),
        (2, "set must be a table", ('{height = 2, estimate = "signed"}', "5")),
        (8, "does not exist or cannot be reached", ('["points.csv"]', LONG)),
        (8, "does not exist or is not a file", ("epsilon = 1", f"epsilon = 1\nboundary = {LONG}")),
        (8, "does not exist or is not a file", ("epsilon = 1", f"epsilon = 1\ncovariate = {LONG}")),
        (2, "regions must be a table", ("epsilon = 1", "epsilon = 1\nregions = 5")),
        (2, "nested too deeply", ("epsilon = 1", f"epsilon = {'[' * 5_000}")),
        (2, "too many digits", ("epsilon = 1", f"epsilon = {'1' * 5_000}")),
        (2, "too many digits", ("epsilon = 1", f"epsilon = 1e{'9' * 50}")),
    ],
)
def test_values_of_another_type_or_size_are_refused_in_a_sentence(folder, code, told, change):
    (folder / "release.toml").write_text(RECIPE.replace(*change))
    assert told in fails(code, "run", "release.toml")


def test_a_key_with_a_long_name_does_not_exist(folder):
    text = RECIPE.replace("[release]", f"sign_key = {LONG}\n[release]")
    (folder / "release.toml").write_text(text)
    outcome = cli("run", "release.toml")
    assert outcome.code == 2
    assert outcome.err.endswith("does not exist or is not a file\n")


def test_no_recipe(folder):
    assert "recipe no.toml does not exist" in fails(8, "run", "no.toml")
