"""What a publisher states about a release: forms, files, series, exports."""

import datetime
import json
from dataclasses import replace

import geopandas as gpd
import numpy as np
import pytest

import psd
from psd.errors import ParameterError, ReleaseFormatError
from psd.release.about import ABOUT_KEYS, About, about_from_mapping, is_about
from psd.release.digest import canonical_json
from psd.release.file import decode_release, encode_release
from psd.release.schema import record_fields, record_header
from support.releases import as_drawn

ABOUT = {
    "title": "Visits in Seoul, 방문",
    "publisher": "Office of Seoul",
    "description": 'Counts of visits; $5 each, "quoted" <b>and</b> & so on',
    "licence": "CC-BY-4.0",
    "contact": "stat@example.org",
    "reference_date": "2024-01/2024-06",
    "language": "en",
    "justification": "epsilon 1 by decision of the board",
}


def release(**about):
    domain = psd.Domain(bounds=(126.4, 37, 127.6, 38))
    tree = psd.grid_tree(domain, 4)
    counts = psd.Release.from_counts(tree, np.arange(16) * 10, 1.0, domain=domain)
    return as_drawn(counts).with_about(about)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2024", (2024, 1, 1), (2024, 12, 31)),
        ("2024-02", (2024, 2, 1), (2024, 2, 29)),
        ("2024-12", (2024, 12, 1), (2024, 12, 31)),
        ("2024-06-15", (2024, 6, 15), (2024, 6, 15)),
        ("2023-11/2024-02", (2023, 11, 1), (2024, 2, 29)),
        ("9999-12", (9999, 12, 1), (9999, 12, 31)),
        ("9999", (9999, 1, 1), (9999, 12, 31)),
    ],
)
def test_a_reference_date_has_a_first_and_a_last_day(text, first, last):
    days = About(reference_date=text).period
    assert days == (datetime.date(*first), datetime.date(*last))


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("title", "", "1 to 200 characters, got 0"),
        ("title", "   ", "it is blank"),
        ("title", "x" * 201, "1 to 200 characters, got 201"),
        ("description", "x" * 4001, "1 to 4,000"),
        ("title", "two\nlines", r"one line of printable characters, got '\\n'"),
        ("title", "\x1b[31mred", "printable"),
        ("title", "\u202eright to left", "printable"),
        ("title", "\udc80", "printable"),
        ("publisher", "\x00", "printable"),
        ("licence", 5, "must be a text, got a value of type int"),
        ("reference_date", "June 2024", "must be a year, a month, a day"),
        ("reference_date", "2024-13", "must be a year"),
        ("reference_date", "2024-02-30", "must be a year"),
        ("reference_date", "2024-06/2024-01", "must be a year"),
        ("reference_date", "2024/", "must be a year"),
        ("reference_date", "0000", "must be a year"),
        ("reference_date", "٢٠٢٤", "must be a year"),
        ("language", "English language", "BCP 47"),
        ("language", "e", "BCP 47"),
    ],
)
def test_texts_that_are_not_valid_are_refused(key, value, words):
    with pytest.raises(ParameterError, match=f"^about {key} .*{words}"):
        about_from_mapping({key: value})
    assert not is_about({key: value})


def test_keys_and_kinds_of_mappings_are_checked():
    assert about_from_mapping(None) is about_from_mapping({}) is None
    assert about_from_mapping({"title": None}) is None
    assert about_from_mapping({"license": "CC0-1.0"}).texts == {"licence": "CC0-1.0"}
    with pytest.raises(ParameterError, match="did you mean 'licence'"):
        about_from_mapping({"license": "CC0-1.0", "licence": "CC0-1.0"})
    with pytest.raises(ParameterError, match="did you mean 'licence'"):
        about_from_mapping({"lisence": "CC0-1.0"})
    with pytest.raises(ParameterError, match="about must be a mapping of texts"):
        about_from_mapping("Visits")
    with pytest.raises(ParameterError, match="about must have at least one key"):
        About()
    assert is_about(None)
    assert not is_about({})
    assert not is_about(["title"])
    assert not is_about({"author": "x"})
    assert not is_about({"title": None, "licence": "x"})


def test_dates_of_toml_are_texts():
    day = about_from_mapping({"reference_date": datetime.date(2024, 6, 15)})
    assert day.reference_date == "2024-06-15"
    assert about_from_mapping({"reference_date": 2024}).reference_date == "2024"
    with pytest.raises(ParameterError, match="must be a text"):
        about_from_mapping({"title": 2024})


def test_a_file_with_statements_is_of_format_9_and_others_stay_as_they_were():
    plain, stated = release(), release(**ABOUT)
    assert record_header(plain.record)["format"] == 4
    assert "about" not in record_header(plain.record)
    header = record_header(stated.record)
    assert (header["format"], header["about"]) == (9, ABOUT)
    assert plain.digest != stated.digest
    assert stated.with_about(None).digest == plain.digest
    assert set(ABOUT) == set(ABOUT_KEYS)


def test_statements_come_back_from_a_file():
    record, digest = decode_release(encode_release(release(**ABOUT).record))
    assert record.about == About(**ABOUT)
    assert digest == release(**ABOUT).digest


@pytest.mark.parametrize(
    "about", [{}, [], "Visits", {"title": ""}, {"title": 1}, {"x": "y"}, {"title": "a\tb"}]
)
def test_a_header_with_other_statements_is_refused(about):
    header = {**record_header(release(**ABOUT).record), "about": about}
    with pytest.raises(ReleaseFormatError, match="header field about is not valid"):
        record_fields(json.loads(canonical_json(header)))


def test_a_file_of_an_older_format_has_no_statements():
    header = {**record_header(release(**ABOUT).record), "format": 8}
    with pytest.raises(ReleaseFormatError, match="other fields than its format"):
        record_fields(header)


def test_only_statements_may_be_written():
    class Other(About):
        pass

    record = replace(release().record, about=Other(title="x"))
    with pytest.raises(ParameterError, match="about must be About or NoneType, got Other"):
        encode_release(record)


def test_a_build_and_its_series_state_what_is_given(tmp_path):
    import pandas as pd

    domain = psd.Domain(bounds=(0, 0, 1, 1))
    rows = pd.DataFrame({"lon": [0.5], "lat": [0.5], "time": ["2024-01-05"]})
    options = {"domain": domain, "epsilon": 1, "method": "grid", "about": ABOUT}
    built = psd.build(rows[["lon", "lat"]], **options)
    assert built.about == ABOUT
    assert built.metadata["licence"] == "CC-BY-4.0"
    series = psd.build(
        rows, **options, time="time", slices=psd.TimeSlices.parse("month", "2024-01..2024-02")
    )
    series.save(tmp_path / "s.psd.parquet")
    assert psd.load(tmp_path / "s.psd.parquet").about == ABOUT
    assert psd.load(tmp_path / "s.psd.parquet")["2024-02"].about == ABOUT


def test_releases_of_a_series_state_the_same():
    months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    with pytest.raises(ParameterError, match="differ in about"):
        psd.SeriesRelease.of(months, [release(title="a"), release(title="b")])


def test_exports_state_them(tmp_path):
    stated = release(**ABOUT)
    stated.export(tmp_path / "a.geojson")
    assert ABOUT.items() <= json.loads((tmp_path / "a.geojson").read_text())["metadata"].items()
    stated.export(tmp_path / "a.parquet")
    assert ABOUT.items() <= gpd.read_parquet(tmp_path / "a.parquet").attrs.items()
    stated.export(tmp_path / "a.gpkg")
    import pyogrio

    info = pyogrio.read_info(tmp_path / "a.gpkg", layer="cells")
    stored = {key: text for key, text in ABOUT.items() if key != "description"}
    assert stored.items() <= info["layer_metadata"].items()
    # GDAL has one description of a layer, which is that of all metadata.
    assert ABOUT["description"] in info["layer_metadata"]["DESCRIPTION"]
    stated.export(tmp_path / "a.tif", size=(8, 8))
    import rasterio

    with rasterio.open(tmp_path / "a.tif") as raster:
        assert ABOUT.items() <= raster.tags().items()
    stated.export(tmp_path / "a.xlsx")
    from openpyxl import load_workbook

    sheet = load_workbook(tmp_path / "a.xlsx")["about"]
    shown = {row[0]: row[1] for row in sheet.iter_rows(values_only=True)}
    assert {key.replace("_", " "): text for key, text in ABOUT.items()}.items() <= shown.items()
    stated.export(tmp_path / "a.pmtiles")
    from pmtiles.reader import MmapSource, Reader

    with (tmp_path / "a.pmtiles").open("rb") as file:
        tiles = Reader(MmapSource(file)).metadata()
    assert tiles["name"] == ABOUT["title"]
    assert "licence CC-BY-4.0" in tiles["description"]


def test_titles_on_pictures_are_no_formulas():
    axes = release(title="a $\\frac{1}$ b " + "x" * 150).plot()
    axes.figure.canvas.draw()
    assert axes.get_title().startswith("a \\$")
    assert "&lt;b&gt;" in release(title="<b>")._repr_html_()
    import matplotlib.pyplot as plt

    plt.close(axes.figure)
