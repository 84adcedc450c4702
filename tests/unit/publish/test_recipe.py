"""Recipes: the tables of a TOML file, and what in them is private."""

import pytest

from psd.errors import ParameterError, PsdError
from psd.publish.recipe import PrivateInputs, Recipe
from psd.publish.region_text import (
    region_files,
    region_keys,
    regions_from_table,
    table_from_regions,
)
from psd.regions.inputs import CellRegions, RegionFiles

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
    assert PrivateInputs.from_table({"inputs": "a.csv"}).inputs == ("a.csv",)


def test_paths_begin_at_the_folder_of_the_recipe(tmp_path):
    (tmp_path / "r.toml").write_text(TEXT)
    recipe = Recipe.load(tmp_path / "r.toml")
    assert recipe.private.inputs == (str(tmp_path / "visits.csv"), "postgresql://h/db", "-")
    assert recipe.private.ledger == str(tmp_path / "city.ledger")
    assert recipe.releases[0].export == (str(tmp_path / "a.gpkg"),)
    # The private part is not printed.
    assert "visits.csv" not in repr(recipe)
    assert "visits" not in str(recipe.releases[0].build_request())
    with pytest.raises(PsdError, match="does not exist"):
        Recipe.load(tmp_path / "missing.toml")
    # So do those of regions.
    regions = regions_from_table(WARDS, tmp_path)
    assert regions.paths == (str(tmp_path / "wards.gpkg"),)
    assert region_files(WARDS, tmp_path) == list(regions.paths)
    assert table_from_regions(regions, tmp_path)["file"] == str(tmp_path / "wards.gpkg")
    assert region_files(None) == region_files({"h3": "5"}) == []


def test_what_is_refused(subtests):
    two = "[[release]]\noutput = 'a'\nepsilon = 1\n[[release]]\noutput = 'b'\nepsilon = 1"
    for text, words in (
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
        (two.replace("'b'", "'a'"), "output must differ"),
        ("[private]\nkeep_tally = 't'\n" + two, "keep_tally must be left out"),
    ):
        with subtests.test(text), pytest.raises(PsdError, match=words):
            Recipe.from_toml(text)


# Regions as the table of a recipe, and back


WARDS = {"file": "wards.gpkg", "id": "ward", "parent": ["borough", "region"]}

REGIONS = {
    "cells": CellRegions(kind="grid-cells", cells="1km,10km"),
    "a file": RegionFiles(paths=("wards.gpkg",), ids=("ward",)),
    "parents": RegionFiles(paths=("wards.gpkg",), ids=("ward",), parents=("borough", "region")),
    "levels": RegionFiles(paths=("boroughs.gpkg", "wards.gpkg"), ids=("code", "ward")),
    "all keys": RegionFiles(
        paths=("wards.gpkg",), ids=("ward",), tolerance=0.25, gaps="elsewhere", repair=True
    ),
}


def test_a_table_and_back(subtests):
    for name, regions in REGIONS.items():
        with subtests.test(name):
            assert regions_from_table(table_from_regions(regions)) == regions
    # Values of a recipe are texts, numbers or lists.
    assert regions_from_table({"h3": 7}) == CellRegions(kind="h3", cells="7")
    assert regions_from_table({"grid-cells": ["1km", "10km"]}) == REGIONS["cells"]
    assert regions_from_table({**WARDS, "tolerance": "1e-3", "repair": "yes"}).tolerance == 0.001
    assert region_keys()[:6] == ("file", "id", "parent", "tolerance", "gaps", "repair")


def test_tables_that_are_refused(subtests):
    for table, words in (
        ("wards.gpkg", "regions must be a table of KEY = VALUE"),
        ({}, "got none of them"),
        ({"id": "ward"}, "got none of them"),
        ({**WARDS, "h3": "5"}, "got a file and h3"),
        ({"tiles": "8", "h3": "5"}, "got tiles and h3"),
        ({"tile": "8"}, "did you mean 'tiles'"),
        ({"tiles": "8", "id": "ward"}, "regions id must be left out with tiles"),
        ({"file": "wards.gpkg"}, "ids must be the column that names the regions"),
        ({**WARDS, "id": ["a", "b"]}, "ids must be one column, or one for each of 1 files"),
        ({**WARDS, "file": ["a", "b"]}, "parents must be left out with a file of each level"),
        ({**WARDS, "tolerance": "wide"}, "tolerance must be a length, 0 or above, got 'wide'"),
        ({**WARDS, "repair": "maybe"}, "regions repair must be yes or no, got 'maybe'"),
        ({**WARDS, "file": 5}, "file must be a list"),
    ):
        with subtests.test(table=table), pytest.raises(ParameterError, match=words):
            regions_from_table(table)
