"""Recipes: the tables of a TOML file, and what in them is private."""

import pytest

from psd.errors import PsdError
from psd.publish.recipe import PrivateInputs, Recipe

TEXT = """
[private]
inputs = ["visits.csv", "postgresql://h/db", "-"]
ledger = "city.ledger"
dataset = "visits"
read = {table = "public.visits", memory = "2GB"}

[[release]]
output = "a.psd.parquet"
export = "a.gpkg"
epsilon = 0.5
bounds = [126.4, 37, 127.6, 38]
set = {height = 3}
method = "quadtree"

[[release]]
output = "b.psd.parquet"
epsilon = 1
bounds = "area-of-use"
"""


def test_a_recipe_and_back():
    recipe = Recipe.from_toml(TEXT)
    assert [release.output for release in recipe.releases] == ["a.psd.parquet", "b.psd.parquet"]
    assert recipe.releases[0].build_request().method.height == 3
    again = Recipe.from_toml(recipe.to_toml())
    assert again.private == recipe.private
    for first, second in zip(recipe.releases, again.releases, strict=True):
        assert first.build_request() == second.build_request()
        assert (first.output, first.export) == (second.output, second.export)


def test_paths_begin_at_the_folder_of_the_recipe(tmp_path):
    (tmp_path / "r.toml").write_text(TEXT)
    recipe = Recipe.load(tmp_path / "r.toml")
    assert recipe.private.inputs == (str(tmp_path / "visits.csv"), "postgresql://h/db", "-")
    assert recipe.private.ledger == str(tmp_path / "city.ledger")
    assert recipe.releases[0].export == (str(tmp_path / "a.gpkg"),)


def test_the_private_part_is_not_printed():
    recipe = Recipe.from_toml(TEXT)
    assert "visits.csv" not in repr(recipe)
    assert "visits" not in str(recipe.releases[0].build_request())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("inputs = [", "recipe must be TOML"),
        ("[privat]", "did you mean 'private'"),
        ("private = 3\n[release]\noutput = 'a'", "must be tables"),
        ("release = 3", "must be tables"),
        ("", "must have at least one table"),
        ("[release]\nepsilon = 1", "output must be given"),
        ("[release]\noutput = 'a'\nepsilom = 1", "did you mean 'epsilon'"),
        ("[private]\ninput = 'a'\n[release]\noutput = 'a'", "did you mean 'inputs'"),
        ("[private]\nread = 'x'\n[release]\noutput = 'a'", "read of private must be a table"),
        ("[private]\nread = {x = 'lon'}\n[release]\noutput = 'a'", "key of private.read 'x'"),
        (
            "[[release]]\noutput = 'a'\nepsilon = 1\n[[release]]\noutput = 'a'\nepsilon = 1",
            "output must differ",
        ),
        (
            "[private]\nkeep_tally = 't'\n[[release]]\noutput = 'a'\nepsilon = 1\n"
            "[[release]]\noutput = 'b'\nepsilon = 1",
            "keep_tally must be left out",
        ),
    ],
)
def test_what_is_refused(text, words):
    with pytest.raises(PsdError, match=words):
        Recipe.from_toml(text)


def test_a_recipe_that_is_missing(tmp_path):
    with pytest.raises(PsdError, match="does not exist"):
        Recipe.load(tmp_path / "r.toml")


def test_one_input_may_stand_without_a_list():
    assert PrivateInputs.from_table({"inputs": "a.csv"}).inputs == ("a.csv",)
