"""`psd.build`, `psd.tally` and `psd.ask` warn as the command does, of headers and parameters."""

import io
import warnings
from contextlib import redirect_stderr

import geopandas as gpd
import pandas as pd
import pyarrow as pa
import pytest

import psd
from psd.errors import LedgerError, PsdWarning
from psd.publish.request_warnings import odds_text
from psd_cli.main import run

BRITAIN = {"bounds": (503_000, 154_000, 563_000, 203_000), "crs": "EPSG:27700"}
SQUARE = {"bounds": (0, 0, 9, 9)}
GRID = {"method": "grid", "set": {"size": 2}}


def told(use, *args, **options):
    """What a use warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use(*args, **options)
    assert all(each.category is PsdWarning for each in caught)
    return [str(each.message) for each in caught]


def build(data, **options):
    return told(psd.build, data, **{"epsilon": 1, **GRID, **options})


def table(*names, rows=1):
    return pd.DataFrame([[1.0] * len(names)] * rows, columns=names, dtype=float)


@pytest.mark.parametrize("name", ["patient_id", "PatientID", "client", "driver", "nhs_number"])
def test_a_column_that_looks_like_an_id(name):
    for rows in (0, 1, 3):
        [message] = build(table("lon", "lat", name, rows=rows), **SQUARE)
        assert f"named like an id ({name})" in message
        assert 'give user="column"' in message.lower()
    assert build(table("lon", "lat", name), **SQUARE, per="record") == []
    people = table("lon", "lat", name).astype({name: str})
    assert build(people, **SQUARE, user=name, max_contributions=2) == []
    [message] = told(psd.tally, table("lon", "lat", name), **SQUARE, part="p")
    assert f"({name})" in message


def test_times_that_nothing_uses():
    timed = table("lon", "lat").assign(at=pd.Timestamp("2024-01-31"))
    [message] = build(timed, **SQUARE, time="at")
    assert message.startswith("time has no effect without slices or days")
    # Whatever the records are, and whether there is one.
    assert build(timed[:0], **SQUARE, time="at") == [message]
    assert told(psd.tally, timed, **SQUARE, part="p", time="at") == [message]
    assert build(timed, **SQUARE, time="at", slices="2024-01") == []
    users = {"time": "at", "part": "p", "user": "id", "max_contributions": 1}
    assert told(psd.tally, timed.assign(id="a"), **SQUARE, **users) == []
    days = {"time": "at", "per": "day", "user": "id", "max_contributions": 1}
    assert build(timed.assign(id="a"), **SQUARE, **days) == []


def test_longitudes_in_a_crs_in_metres(tmp_path, subtests):
    named = table("Longitude", "Latitude")
    (tmp_path / "p.csv").write_text("Longitude;Latitude\n1;2\n")
    named.to_parquet(tmp_path / "p.parquet")
    arrow = pa.Table.from_pandas(named)
    for data in (named, arrow, tmp_path / "p.csv", str(tmp_path / "p.parquet")):
        with subtests.test(data=type(data)):
            [message] = build(data, **BRITAIN)
            assert message.startswith("the columns Longitude and Latitude are named as degrees")
            assert 'input_crs="EPSG:4326"' in message
            assert build(data, **BRITAIN, input_crs="EPSG:4326") == []
            assert build(data, **SQUARE) == []


def test_eastings_in_degrees_and_names_that_say_nothing():
    [message] = build(table("easting", "northing"), **SQUARE)
    assert "named as metres" in message
    assert build(table("easting", "northing"), **BRITAIN) == []
    for names in (("x", "y"), ("lon", "northing")):
        at = dict(zip("xy", names, strict=True))
        assert build(table(*names), **BRITAIN, **at) == build(table(*names), **SQUARE, **at) == []


def test_columns_beside_geometries_are_not_the_points(tmp_path):
    points = gpd.GeoDataFrame(
        table("lon", "lat"), geometry=gpd.points_from_xy([530_000], [180_000]), crs="EPSG:27700"
    )
    points.to_file(tmp_path / "p.gpkg")
    points.to_parquet(tmp_path / "p.parquet")
    for data in (points, tmp_path / "p.gpkg", tmp_path / "p.parquet"):
        assert build(data, **BRITAIN) == []


def test_parameters_alone():
    assert "weak promise" in build(table("lon", "lat"), **SQUARE, epsilon=11)[0]
    wide = {"bounds": (-8, 49, 2, 61), "crs": "EPSG:27700"}
    [message] = build(table("x", "y"), **wide)
    assert message.startswith("bounds -8 49 2 61 may be degrees")


def test_the_line_of_the_caller_is_shown():
    with pytest.warns(PsdWarning) as caught:
        psd.build(table("lon", "lat", "patient"), epsilon=1, **SQUARE, **GRID)
    assert caught[0].filename == __file__


def test_a_ledger_states_the_unit_but_not_the_crs(tmp_path):
    ledger = psd.Ledger.create(tmp_path / "l")
    ledger.register("visits", budget=100)
    paid = {"ledger": ledger, "dataset": "visits"}
    assert build(table("lon", "lat", "patient"), **SQUARE, **paid) == []
    ask = {"epsilon": 1, "crs": "EPSG:27700", **paid}
    [message] = told(psd.ask, table("lon", "lat"), BRITAIN["bounds"], **ask)
    assert "named as degrees" in message
    # A line below the first may be a record, and the one who asks chooses which.
    (tmp_path / "p.csv").write_text("a,b\nlon,lat\n")
    request = {"epsilon": 1, **BRITAIN, **GRID, **paid, "skip_rows": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LedgerError, match="skip_rows"):
            psd.build(tmp_path / "p.csv", **request)
    assert len(build(tmp_path / "p.csv", **BRITAIN, skip_rows=1)) == 1


def test_the_command_names_its_options(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("Longitude;Latitude;patient\n1;2;3\n")
    line = "build p.csv -o r --epsilon 1 --method grid --bounds 503000 154000 563000 203000"
    err = io.StringIO()
    with redirect_stderr(err):
        assert run([*line.split(), "--crs", "EPSG:27700"]) == 0
    ids, crs, _ = err.getvalue().splitlines()  # the last says who sees what was left out
    assert "Give --user COLUMN to protect all records of a user, or --per record" in ids
    assert crs == (
        "psd: warning: the columns Longitude and Latitude are named as degrees, and --crs "
        "EPSG:27700 has metres: records elsewhere are left out. Give their own CRS, such as "
        "--input-crs EPSG:4326"
    )


@pytest.mark.parametrize(
    ("epsilon", "text"), [(11, "60 thousand"), (20, "490 million"), (50, "more than 10^21")]
)
def test_odds_are_said_in_words(epsilon, text):
    assert odds_text(epsilon) == text
