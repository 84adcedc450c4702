"""Tables on narrow terminals: words are broken, and no number or heading is cut."""

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from support.cli_runner import passes, write_points
from support.narrow_terminals import SENTENCES, check_narrow, printed
from support.releases import as_drawn

DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
NAMES = ("Gangnam and Seocho by the river", "Verwaltungsgemeinschaft", "c", "d")
CODES = (11010530010001234567, 11010530010001234568, 11, 12)
NAMED = {"1"} | {word for name in (*NAMES, *CODES) for word in str(name).split()}
DISTRICTS = [
    (west, south, west + 0.5, south + 0.4)
    for west in (126.412345, 127.012345)
    for south in (37.012345, 37.512345)
]
COMMANDS = {
    "top": "query a --top 3 --draws 50",
    "top of regions": "query a --top 3 --draws 50 --polygons d.geojson",
    "query": "query a --polygons d.geojson",
    "query of codes": "query a --boxes codes.csv",
    "query --details": "query a --polygons d.geojson --details",
    "query of codes --details": "query a --boxes codes.csv --details",
    "query --joint": "query a --polygons d.geojson --joint",
    "query --explain": "query a --boxes boxes.csv --explain",
    "query --nested": "query a --box 126.5 37.1 126.6 37.2 --box 126.4 37 127.6 38 --nested",
    "difference": "query a --difference b --boxes boxes.csv",
    "quantiles": "query a --quantiles --size 8 8 --draws 20",
    "ledger status": "ledger status city.ledger",
    "ledger history": "ledger history city.ledger",
    "info": "info a",
    "methods": "methods",
}
SIDES = "west,south,east,north"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Two releases of large counts, regions with long names, and a ledger with a charge."""
    folder = tmp_path_factory.mktemp("narrow")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        tree, counts = psd.decompositions.grid_tree(DOMAIN, 8), 1_234_567 + 98_765 * np.arange(64)
        for name, factor in (("a", 1), ("b", 2)):
            made = psd.Release.from_counts(tree, counts * factor, f"0.{factor}", domain=DOMAIN)
            as_drawn(made).save(name)
        rows = [(name, *box) for name, box in zip(NAMES, DISTRICTS, strict=True)]
        write_points(folder / "boxes.csv", rows, f"id,{SIDES}")
        rows = [(code, *row) for code, row in zip(CODES, rows, strict=True)]
        write_points(folder / "codes.csv", rows, f"ward code,ward,{SIDES}")
        columns = {"name": NAMES, "a_long_heading": 1_234_567}
        shapes = shapely.box(*np.transpose(DISTRICTS))
        gpd.GeoDataFrame(columns, geometry=shapes, crs="EPSG:4326").to_file("d.geojson")
        (folder / "v.csv").write_text("lon,lat\n" + "126.7,37.3\n" * 9)
        visits = "city.ledger visits-of-the-spring --budget"
        passes("ledger create city.ledger")
        passes(f"ledger register {visits} 2.123456 --cap ann=1.654321")
        passes(f"ledger raise {visits} 3.123456")
        paid = "--ledger city.ledger --dataset visits-of-the-spring --analyst ann"
        passes(f"build v.csv -o paid --epsilon 0.123456 {paid} --bounds", *DOMAIN.bounds)
    return folder


@pytest.fixture(autouse=True)
def folder(prepared, monkeypatch):
    monkeypatch.chdir(prepared)


@pytest.mark.parametrize("name", COMMANDS)
def test_no_number_or_heading_is_cut(name, monkeypatch, subtests):
    check_narrow(COMMANDS[name], monkeypatch, subtests, extra=NAMED, may_leave_out="query" in name)


@pytest.mark.deep
def test_a_table_of_usual_figures_fits_80_columns(monkeypatch, subtests):
    for name in ("top", "query", "query of codes", "query of codes --details", "quantiles", "info"):
        with subtests.test(name):
            lines = printed(COMMANDS[name], 80, monkeypatch).out.splitlines()
            assert max(len(line) for line in lines if not line.startswith(SENTENCES)) <= 80
    for name in ("query", "query --details"):
        for line in printed(COMMANDS[name], 120, monkeypatch).out.splitlines():
            assert len(line) <= 120
    outcome = printed(COMMANDS["query of codes --details"], 80, monkeypatch)
    for heading in ("ward code", "perturbation", "nonuniformity", "relative"):
        assert heading in outcome.out
    for code, name in zip(CODES, NAMES, strict=True):
        assert f"{code}  {name}\n" in outcome.out
    left_out = outcome.err.partition("(too narrow for ")[2].partition(";")[0]
    errors = {f"relative_{kind}_error" for kind in ("perturbation", "nonuniformity")}
    assert set(left_out.split(", ")) <= {*errors, ""}
