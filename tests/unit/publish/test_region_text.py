"""Regions as the table of a recipe, and back."""

import pytest

from psd.errors import ParameterError
from psd.publish.region_text import (
    region_files,
    region_keys,
    regions_from_table,
    table_from_regions,
)
from psd.space.region_inputs import CellRegions, RegionFiles

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


@pytest.mark.parametrize("name", REGIONS)
def test_a_table_and_back(name):
    assert regions_from_table(table_from_regions(REGIONS[name])) == REGIONS[name]


def test_paths_begin_at_the_folder(tmp_path):
    regions = regions_from_table(WARDS, tmp_path)
    assert regions.paths == (str(tmp_path / "wards.gpkg"),)
    assert region_files(WARDS, tmp_path) == list(regions.paths)
    assert table_from_regions(regions, tmp_path)["file"] == str(tmp_path / "wards.gpkg")
    assert region_files(None) == region_files({"h3": "5"}) == []


def test_values_of_a_recipe_are_texts_numbers_or_lists():
    assert regions_from_table({"h3": 7}) == CellRegions(kind="h3", cells="7")
    assert regions_from_table({"grid-cells": ["1km", "10km"]}) == REGIONS["cells"]
    assert regions_from_table({**WARDS, "tolerance": "1e-3", "repair": "yes"}).tolerance == 0.001
    assert region_keys()[:6] == ("file", "id", "parent", "tolerance", "gaps", "repair")


@pytest.mark.parametrize(
    ("table", "words"),
    [
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
    ],
)
def test_tables_that_are_refused(table, words):
    with pytest.raises(ParameterError, match=words):
        regions_from_table(table)
