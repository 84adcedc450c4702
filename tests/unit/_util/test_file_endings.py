"""Names of files and their content."""

import pytest

import psd
from psd._util.file_endings import contradicts
from psd.errors import ParameterError
from support.trees import SOUTH_UP, grid_release


@pytest.mark.parametrize(
    ("name", "form", "is_other"),
    [
        ("a.csv", "csv", False),
        ("a.CSV", "csv", False),
        ("a.csv", "json", True),
        ("a.json", "geojson", False),
        ("a.geojson", "json", True),
        ("a.txt", "csv", False),
        ("a.txt", "gpkg", True),
        ("a", "gpkg", False),
        ("a.b.c", "gpkg", False),
        ("a.gpkg.csv", "csv", False),
        ("r.psd.parquet", "parquet", False),
    ],
)
def test_an_ending_of_another_format(name, form, is_other):
    assert contradicts(name, form) == is_other


@pytest.mark.parametrize("name", ["r.gpkg", "r.CSV", "r.txt", "r.json", "r.kml"])
def test_a_release_is_not_named_like_another_file(tmp_path, name):
    release = grid_release(SOUTH_UP)
    series = psd.SeriesRelease.of(psd.TimeSlices.parse("month", "2024-01..2024-01"), [release])
    for saved in (release, series):
        with pytest.raises(ParameterError, match=r"path must end in \.parquet"):
            saved.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["r", "r.psd.parquet", "r.release", "r.v1"])
def test_other_names_are_free(tmp_path, name):
    grid_release(SOUTH_UP).save(tmp_path / name)
    assert psd.load(tmp_path / name).total
