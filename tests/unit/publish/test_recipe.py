"""Recipes: the tables of a TOML file, and what in them is private."""

from decimal import Decimal

import pytest

from psd.errors import PsdError
from psd.publish.fields import FIELDS, public_files
from psd.publish.public_inputs import regions_of
from psd.publish.recipe import PrivateInputs, Recipe
from psd.publish.request import BuildRequest
from psd.publish.request_values import parse_values, regions_from_values
from psd.regions.files import CellRegions, RegionFiles
from psd.space.domain import Domain

TEXT = """
[private]
inputs = ["visits.csv", "postgresql://h/db", "-"]
ledger = "city.ledger"
dataset = "visits"
table = "public.visits"
memory = "2GB"

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
    assert recipe.releases[0].terms().method.height == 3
    again = Recipe.from_toml(recipe.to_toml())
    assert again.private == recipe.private
    for first, second in zip(recipe.releases, again.releases, strict=True):
        assert first.terms() == second.terms()
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
    assert "visits" not in str(recipe.releases[0].terms())
    with pytest.raises(PsdError, match="does not exist"):
        Recipe.load(tmp_path / "missing.toml")
    # So do those of regions.
    regions = regions_of_table(WARDS, tmp_path)
    assert regions.paths == (str(tmp_path / "wards.gpkg"),)
    assert public_files(WARDS, tmp_path) == list(regions.paths)
    assert table_of_regions(regions, tmp_path)["regions"] == str(tmp_path / "wards.gpkg")
    assert public_files({}) == public_files({"regions": "h3=5"}) == []


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
        ("[private]\nread = 'x'\n[release]\noutput = 'a'", "'read' is now keys of their own"),
        ("[private]\nx = 'lon'\n[release]\noutput = 'a'", "key of private 'x' does not exist"),
        ("[release]\noutput = 'a'\nread = {x = 'lon'}", "key of release 'read' is now keys of"),
        ("[release]\noutput = 'a'\ntable = 't'", "key of release 'table' does not exist"),
        ("[release]\noutput = 'a'\nnoise_law = 'laplace'", "'noise_law' is now noise"),
        ("[private]\nprivate_output = 'report'", "is now report_private and keep_tally"),
        (two.replace("'b'", "'a'"), "output must differ"),
        ("[private]\nkeep_tally = 't'\n" + two, "keep_tally must be left out"),
    ):
        with subtests.test(text), pytest.raises(PsdError, match=words):
            Recipe.from_toml(text)


# Regions as keys of a recipe, and back


WARDS = {"regions": "wards.gpkg", "region_id": "ward", "region_parent": ["borough", "region"]}

REGIONS = {
    "cells": CellRegions(kind="grid-cells", cells="1km,10km"),
    "a file": RegionFiles(paths=("wards.gpkg",), ids=("ward",)),
    "parents": RegionFiles(paths=("wards.gpkg",), ids=("ward",), parents=("borough", "region")),
    "levels": RegionFiles(paths=("boroughs.gpkg", "wards.gpkg"), ids=("code", "ward")),
    "all keys": RegionFiles(
        paths=("wards.gpkg",), ids=("ward",), tolerance=0.25, gaps="elsewhere", repair=True
    ),
}

NAMES = ("regions", "region_id", "region_parent", "gaps", "tolerance", "repair")


def regions_of_table(table, folder=None):
    return regions_from_values(parse_values(table, folder))


def table_of_regions(regions, folder=None):
    """Values of a request with these regions; no file is read."""
    request = BuildRequest(domain=(0, 0, 9, 9), epsilon=1, method="grid")
    for name, value in (("regions", regions), ("region_source", regions)):
        object.__setattr__(request, name, value)
    values = {
        field.name: field.value_of(request, folder) for field in FIELDS if field.name in NAMES
    }
    return {name: value for name, value in values.items() if value is not None}


def test_keys_and_back(subtests, tmp_path):
    for name, regions in REGIONS.items():
        with subtests.test(name):
            assert regions_of_table(table_of_regions(regions)) == regions
    # Values of a recipe are texts, numbers or lists.
    assert regions_of_table({"regions": "h3=7"}) == CellRegions(kind="h3", cells="7")
    for tolerance in ("1e-3", Decimal("0.001")):
        assert regions_of_table({**WARDS, "tolerance": tolerance}).tolerance == 0.001
    rows = [
        ({"regions": "polygons=8"}, "kind of regions 'polygons' does not exist"),
        ({"regions": ["wards.gpkg", 5]}, "regions must be paths"),
    ]
    for table, words in rows:
        with subtests.test(table=table), pytest.raises(PsdError, match=words):
            regions_of(regions_of_table(table), Domain(bounds=(0, 0, 9, 9)))
