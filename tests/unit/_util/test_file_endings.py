"""Names of files and their content."""

import pytest

import psd
from psd._util.file_endings import check_release_name, contradicts, split_layer
from psd.errors import ParameterError
from support.trees import SOUTH_UP, grid_release

OTHER = [("a.csv", "json"), ("a.geojson", "json"), ("a.txt", "gpkg")]
SAME = [("a.csv", "csv"), ("a.CSV", "csv"), ("a.json", "geojson"), ("a.txt", "csv"), ("a", "gpkg"),
        ("a.b.c", "gpkg"), ("a.gpkg.csv", "csv"), ("r.psd.parquet", "parquet")]  # fmt: skip


def test_an_ending_of_another_format():
    assert [pair for pair in SAME + OTHER if contradicts(*pair)] == OTHER


def test_a_release_is_not_named_like_another_file(tmp_path):
    release = grid_release(SOUTH_UP)
    series = psd.Release.from_slices(psd.TimeSlices.parse("month", "2024-01..2024-01"), [release])
    for name in ("r.gpkg", "r.CSV", "r.txt", "r.json", "r.kml"):
        for saved in (release, series):
            with pytest.raises(ParameterError, match=r"path must end in \.parquet"):
                saved.save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    for name in ("r", "r.psd.parquet", "r.release", "r.v1"):
        release.save(tmp_path / name)
        assert psd.load(tmp_path / name).total


def test_a_layer_stands_behind_the_name_of_its_file():
    assert split_layer("maps/city.gpkg:layer=wards")[1] == "wards"
    assert split_layer("maps/city.gpkg")[1] is None


def test_a_release_may_be_named_as_one():
    check_release_name("seoul.psd.parquet")
