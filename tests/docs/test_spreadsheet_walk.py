"""The page from a spreadsheet export to a map: its commands as they are, on the stops of London."""

import csv
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from pyproj import Transformer

import psd
from support.pages import ROOT, blocks, command_lines, run_page

PAGE = "docs/guide/spreadsheet.md"
NEEDS = "needs the file of this page"
STOPS = ROOT.parent / "shared" / "data" / "london_stop_search.csv"
TITLE = "Stop and search, London 2018\u20132020"


def write_export(path):
    """The stops as a program with European settings saves them."""
    with (
        STOPS.open(encoding="utf-8", newline="") as source,
        path.open("w", encoding="cp1252", newline="") as export,
    ):
        rows = csv.reader(source)
        next(rows)
        export.write(f"{TITLE}\r\nLongitude;Latitude;Date;Force\r\n")
        for x, y, *others in rows:
            fields = (x.replace(".", ","), y.replace(".", ","), *others)
            export.write(";".join(fields) + "\r\n")


def true_counts(side):
    """Stops in each square, by another library than the build, by column and row."""
    stops = pd.read_csv(STOPS)
    move = Transformer.from_crs("EPSG:4326", "EPSG:27700", always_xy=True)
    x, y = move.transform(stops["lon"], stops["lat"])
    inside = (x >= 500_000) & (x < 565_000) & (y >= 150_000) & (y < 205_000)
    squares = zip(x[inside] // side, y[inside] // side, strict=True)
    return pd.Series(list(squares)).value_counts()


def test_there_are_few_commands():
    commands = [
        line for each in blocks(PAGE) if each.language == "sh" for line in command_lines(each)
    ]
    assert len(commands) <= 7
    assert {block.reason for block in blocks(PAGE)} == {"", NEEDS}


@pytest.mark.deep
@pytest.mark.skipif(not STOPS.is_file(), reason="the stops of London are not there")
def test_the_page_leads_to_a_map(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = Path("try/spreadsheet")
    folder.mkdir(parents=True)
    write_export(folder / "stops.csv")
    run_page(PAGE, ready=NEEDS)
    release = psd.load(folder / "stops.psd.parquet")
    assert (release.domain.crs, release.epsilon) == ("EPSG:27700", 1)
    # Estimates are the true counts and noise, so every stop is in its own square.
    true, found = true_counts(5000), release.query(level="5km").table.set_index("id")["estimate"]
    names = [f"CRS27700RES5000mN{5000 * int(y)}E{5000 * int(x)}" for x, y in true.index]
    assert np.abs(found[names].to_numpy() - true.to_numpy()).max() < 40
    squares = gpd.read_file(folder / "stops.gpkg", layer="regions")
    assert squares.crs == "EPSG:27700"
    assert 50 < len(squares) < 1500
    np.testing.assert_allclose(squares.area, 1e6)
    table = pd.read_excel(folder / "squares.xlsx")
    assert len(table) == 65 * 55
    assert table["estimate"].sum() == pytest.approx(true_counts(1000).sum(), abs=1500)
    assert (folder / "stops.png").read_bytes().startswith(b"\x89PNG")
