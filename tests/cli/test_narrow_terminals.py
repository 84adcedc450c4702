"""Tables on narrow terminals: words are broken, and no number or heading is cut."""

import re

import geopandas as gpd
import numpy as np
import pytest
import shapely
from rich.console import Console

import psd
from psd.apps.planning import plan as planning
from support.cli_runner import cli, passes, write_points
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
SMALL_PLAN = "--area 605 --count 5000 --methods quadtree,grid --runs 1 --density uniform"
COMMANDS = {
    "plan": f"plan {SMALL_PLAN} --epsilon 0.1,1",
    "top": "top a -k 3 --draws 50",
    "top of regions": "top a -k 3 --draws 50 --polygons d.geojson",
    "query": "query a --polygons d.geojson",
    "query of codes": "query a --boxes codes.csv",
    "query --joint": "query a --polygons d.geojson --joint",
    "query --explain": "query a --boxes boxes.csv --explain",
    "query --nested": "query a --box 126.5 37.1 126.6 37.2 --box 126.4 37 127.6 38 --nested",
    "difference": "difference a b --boxes boxes.csv",
    "quantiles": "quantiles a --size 8 8 --draws 20",
    "ledger status": "ledger status city.ledger",
    "ledger history": "ledger history city.ledger",
    "info": "info a",
    "methods": "methods",
}
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*\.?\d*%?(?![\w.])")
SIDES = "west,south,east,north"
PLANS = []


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Two releases of large counts, regions with long names, and a ledger with a charge."""
    folder = tmp_path_factory.mktemp("narrow")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        tree, counts = psd.grid_tree(DOMAIN, 8), 1_234_567 + 98_765 * np.arange(64)
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
        paid = "--ledger city.ledger --dataset visits-of-the-spring:analyst=ann"
        passes(f"build v.csv -o paid --epsilon 0.123456 {paid} --bounds", *DOMAIN.bounds)
    return folder


@pytest.fixture(autouse=True)
def folder(prepared, monkeypatch):
    """A plan is simulated once: another one has other noise."""
    monkeypatch.chdir(prepared)
    real = planning.plan

    def plan_once(*args, **options):
        PLANS[:] = PLANS or [real(*args, **options)]
        return PLANS[0]

    monkeypatch.setattr(planning, "plan", plan_once)


def printed(line, width, monkeypatch):
    """Output of a command on a terminal of this width."""
    monkeypatch.setattr(
        "psd_cli.output.columns.open_console",
        lambda: Console(width=width, markup=False, highlight=False),
    )
    outcome = cli(line)
    assert outcome.code == 0
    assert "…" not in outcome.out
    return outcome


def headings(text):
    """Words above the first row of a table."""
    lines = [line for line in text.splitlines() if not line.startswith("Expected")]
    first = next(number for number, line in enumerate(lines) if re.search(r"\d[.,]\d", line))
    return set(" ".join(lines[:first]).split())


def letters(text):
    """All letters and digits, wherever lines are broken."""
    return sorted("".join(text.split()))


@pytest.mark.parametrize("name", [pytest.param("plan", marks=pytest.mark.deep), *[*COMMANDS][1:]])
def test_no_number_or_heading_is_cut(name, monkeypatch, subtests):
    wide = printed(COMMANDS[name], 1_000, monkeypatch)
    for width in (40, 80, 100):
        with subtests.test(width=width):
            narrow = printed(COMMANDS[name], width, monkeypatch)
            assert set(NUMBER.findall(narrow.out)) <= set(NUMBER.findall(wide.out))
            if "too narrow" in narrow.err:
                assert name.split()[0] in ("query", "plan")
                # A name may stand above.
                assert headings(narrow.out) - NAMED <= headings(wide.out)
            else:
                assert letters(narrow.out) == letters(wide.out)


@pytest.mark.deep
def test_a_table_of_usual_figures_fits_80_columns(monkeypatch, subtests):
    for name in ("plan", "top", "query", "query of codes", "quantiles", "info"):
        with subtests.test(name):
            lines = printed(COMMANDS[name], 80, monkeypatch).out.splitlines()
            sentences = ("- ", "Expected", "Each", "median", "for queries")
            assert max(len(line) for line in lines if not line.startswith(sentences)) <= 80
    outcome = printed(COMMANDS["query of codes"], 80, monkeypatch)
    for heading in ("ward code", "perturbation", "nonuniformity", "relative"):
        assert heading in outcome.out
    for code, name in zip(CODES, NAMES, strict=True):
        assert f"{code}  {name}\n" in outcome.out
    left_out = outcome.err.partition("(too narrow for ")[2].partition(";")[0]
    errors = {f"relative_{kind}_error" for kind in ("perturbation", "nonuniformity")}
    assert set(left_out.split(", ")) <= {*errors, ""}
