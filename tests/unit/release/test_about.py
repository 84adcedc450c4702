"""What a publisher states about a release: forms, files, series, exports."""

import datetime
import json
from dataclasses import replace
from itertools import starmap

import geopandas as gpd
import numpy as np
import openpyxl
import pandas as pd
import pyogrio
import pytest

import psd
from psd.errors import ParameterError, ReleaseFormatError
from psd.release.about import ABOUT_KEYS, About, about_from_mapping, is_about
from psd.release.file import decode_release, encode_release
from psd.release.schema import record_fields, record_header
from support.releases import as_drawn
from support.tables import refused, returned

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
    tree = psd.decompositions.grid_tree(domain, 4)
    counts = psd.Release.from_counts(tree, np.arange(16) * 10, 1.0, domain=domain)
    return as_drawn(counts).replace(about=about)


def test_a_reference_date_has_a_first_and_a_last_day(subtests):
    table = [
        (((2024, 1, 1), (2024, 12, 31)), "2024"),
        (((2024, 2, 1), (2024, 2, 29)), "2024-02"),
        (((2024, 12, 1), (2024, 12, 31)), "2024-12"),
        (((2024, 6, 15), (2024, 6, 15)), "2024-06-15"),
        (((2023, 11, 1), (2024, 2, 29)), "2023-11/2024-02"),
        (((9999, 12, 1), (9999, 12, 31)), "9999-12"),
        (((9999, 1, 1), (9999, 12, 31)), "9999"),
    ]
    days = [(tuple(starmap(datetime.date, ends)), text) for ends, text in table]
    returned(subtests, days, lambda text: About(reference_date=text).period)


def test_texts_that_are_not_valid_are_refused(subtests):
    no_dates = ("June 2024", "2024-13", "2024-02-30", "2024-06/2024-01", "2024/", "0000", "٢٠٢٤")
    for key, words, *values in (
        ("title", "1 to 200 characters, got 0", ""),
        ("title", "it is blank", "   "),
        ("title", "1 to 200 characters, got 201", "x" * 201),
        ("description", "1 to 4,000", "x" * 4001),
        ("title", r"one line of printable characters, got '\\n'", "two\nlines"),
        ("title", "printable", "\x1b[31mred", "\u202eright to left", "\udc80"),
        ("publisher", "printable", "\x00"),
        ("licence", "must be a text, got a value of type int", 5),
        ("reference_date", "must be a year, a month, a day", *no_dates),
        ("language", "BCP 47", "English language", "e"),
    ):
        for value in values:
            told = pytest.raises(ParameterError, match=f"^about {key} .*{words}")
            with subtests.test(key, value=value), told:
                about_from_mapping({key: value})
            assert not is_about({key: value})


def test_keys_and_kinds_of_mappings_are_checked(subtests):
    assert about_from_mapping(None) is about_from_mapping({}) is None
    assert about_from_mapping({"title": None}) is None
    assert about_from_mapping({"license": "CC0-1.0"}).texts == {"licence": "CC0-1.0"}
    both = {"license": "CC0-1.0", "licence": "CC0-1.0"}
    table = [
        ("did you mean 'licence'", both, {"lisence": "CC0-1.0"}),
        ("about must be a mapping of texts", "Visits"),
        ("must be a text", {"title": 2024}),
    ]
    refused(subtests, ParameterError, table, about_from_mapping)
    with pytest.raises(ParameterError, match="about must have at least one key"):
        About()
    assert is_about(None)
    for other in ({}, ["title"], {"author": "x"}, {"title": None, "licence": "x"}):
        assert not is_about(other)
    # Dates of TOML are texts.
    for date, text in ((datetime.date(2024, 6, 15), "2024-06-15"), (2024, "2024")):
        assert about_from_mapping({"reference_date": date}).reference_date == text


def test_statements_are_in_the_header_and_others_are_refused(subtests):
    plain, stated = release(), release(**ABOUT)
    assert record_header(plain.record)["about"] is None
    assert record_header(stated.record)["about"] == ABOUT
    assert plain.digest != stated.digest
    assert stated.replace(about={}).digest == plain.digest
    assert stated.replace().digest == stated.digest
    assert set(ABOUT) == set(ABOUT_KEYS)
    record, digest = decode_release(encode_release(stated.record))
    assert (record.about, digest) == (About(**ABOUT), stated.digest)
    header = record_header(release(**ABOUT).record)
    others = ({}, [], "Visits", {"title": ""}, {"title": 1}, {"x": "y"}, {"title": "a\tb"})
    table = [("header field about is not valid", *({"about": about} for about in others))]
    refused(subtests, ReleaseFormatError, table, lambda change: record_fields(header | change))

    class Other(About):
        pass

    record = replace(release().record, about=Other(title="x"))
    with pytest.raises(ParameterError, match="about must be About or NoneType, got Other"):
        encode_release(record)


def test_a_build_and_its_series_state_what_is_given(tmp_path):
    domain = psd.Domain(bounds=(0, 0, 1, 1))
    rows = pd.DataFrame({"lon": [0.5], "lat": [0.5], "time": ["2024-01-05"]})
    options = {"domain": domain, "epsilon": 1, "method": "grid", "about": ABOUT}
    built = psd.build(rows[["lon", "lat"]], **options)
    assert built.record.about_texts == ABOUT
    assert built.metadata["licence"] == "CC-BY-4.0"
    months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    psd.build(rows, **options, time="time", slices=months).save(tmp_path / "s.psd.parquet")
    series = psd.load(tmp_path / "s.psd.parquet")
    assert series.record.about_texts == series["2024-02"].record.about_texts == ABOUT
    with pytest.raises(ParameterError, match="differ in about"):
        psd.Release.from_slices(months, [release(title="a"), release(title="b")])


@pytest.mark.deep
def test_exports_state_them(tmp_path):
    import rasterio
    from pmtiles.reader import MmapSource, Reader

    for ending in ("geojson", "parquet", "gpkg", "xlsx", "pmtiles"):
        release(**ABOUT).export(tmp_path / f"a.{ending}")
    release(**ABOUT).export(tmp_path / "a.tif", size=(8, 8))
    assert ABOUT.items() <= json.loads((tmp_path / "a.geojson").read_text())["metadata"].items()
    assert ABOUT.items() <= gpd.read_parquet(tmp_path / "a.parquet").attrs.items()
    info = pyogrio.read_info(tmp_path / "a.gpkg", layer="cells")
    stored = {key: text for key, text in ABOUT.items() if key != "description"}
    assert stored.items() <= info["layer_metadata"].items()
    # GDAL has one description of a layer, which is that of all metadata.
    assert ABOUT["description"] in info["layer_metadata"]["DESCRIPTION"]
    with rasterio.open(tmp_path / "a.tif") as raster:
        assert ABOUT.items() <= raster.tags().items()
    sheet = openpyxl.load_workbook(tmp_path / "a.xlsx")["about"]
    shown = {row[0]: row[1] for row in sheet.iter_rows(values_only=True)}
    assert {key.replace("_", " "): text for key, text in ABOUT.items()}.items() <= shown.items()
    with (tmp_path / "a.pmtiles").open("rb") as file:
        tiles = Reader(MmapSource(file)).metadata()
    assert tiles["name"] == ABOUT["title"]
    assert "licence CC-BY-4.0" in tiles["description"]


@pytest.mark.deep
def test_titles_on_pictures_are_no_formulas():
    import matplotlib.pyplot as plt

    axes = release(title="a $\\frac{1}$ b " + "x" * 150).plot()
    axes.figure.canvas.draw()
    assert axes.get_title().startswith("a \\$")
    assert "&lt;b&gt;" in release(title="<b>")._repr_html_()
    plt.close(axes.figure)
