"""Tables on narrow terminals: words are broken, and no number or heading is cut."""

import re

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.planning import plan as planning
from support.cli_runner import cli, passes
from support.releases import as_drawn

DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
NAMES = ("Gangnam and Seocho by the river", "Verwaltungsgemeinschaft", "c", "d")
CODES = (11010530010001234567, 11010530010001234568, 11, 12)
NAMED = {"1"} | {word for name in (*NAMES, *CODES) for word in str(name).split()}
DISTRICTS = (
    (126.412345, 37.012345, 126.912345, 37.412345),
    (126.412345, 37.512345, 126.912345, 37.912345),
    (127.012345, 37.012345, 127.512345, 37.412345),
    (127.012345, 37.512345, 127.512345, 37.912345),
)
NESTED = ("--box", 126.5, 37.1, 126.6, 37.2, "--box", 126.4, 37, 127.6, 38)
SMALL_PLAN = ("--area", 605, "--count", 5_000, "--methods", "quadtree,grid", "--runs", 1)
COMMANDS = {
    "plan": ("plan", *SMALL_PLAN, "--density", "uniform", "--epsilon", "0.1,1"),
    "top": ("top", "a", "-k", 3, "--draws", 50),
    "top of regions": ("top", "a", "-k", 3, "--draws", 50, "--polygons", "d.geojson"),
    "query": ("query", "a", "--polygons", "d.geojson"),
    "query of codes": ("query", "a", "--boxes", "codes.csv"),
    "query --joint": ("query", "a", "--polygons", "d.geojson", "--joint"),
    "query --explain": ("query", "a", "--boxes", "boxes.csv", "--explain"),
    "query --nested": ("query", "a", *NESTED, "--nested"),
    "difference": ("difference", "a", "b", "--boxes", "boxes.csv"),
    "quantiles": ("quantiles", "a", "--size", 8, 8, "--draws", 20),
    "ledger status": ("ledger", "status", "city.ledger"),
    "ledger history": ("ledger", "history", "city.ledger"),
    "info": ("info", "a"),
    "methods": ("methods",),
}
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*\.?\d*%?(?![\w.])")
PLANS = []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two releases of large counts, regions with long names, and a ledger with a charge."""
    folder = tmp_path_factory.mktemp("narrow")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        tree, counts = psd.grid_tree(DOMAIN, 8), 1_234_567 + 98_765 * np.arange(64)
        for name, factor in (("a", 1), ("b", 2)):
            made = psd.Release.from_counts(tree, counts * factor, f"0.{factor}", domain=DOMAIN)
            as_drawn(made).save(name)
        rows = (
            f"{name},{','.join(map(str, box))}" for name, box in zip(NAMES, DISTRICTS, strict=True)
        )
        (folder / "boxes.csv").write_text("id,west,south,east,north\n" + "\n".join(rows))
        rows = (
            f"{number},{ward},{','.join(map(str, box))}"
            for number, ward, box in zip(CODES, NAMES, DISTRICTS, strict=True)
        )
        header = "ward code,ward,west,south,east,north\n"
        (folder / "codes.csv").write_text(header + "\n".join(rows))
        gpd.GeoDataFrame(
            {"name": NAMES, "a_long_heading": 1_234_567},
            geometry=shapely.box(*np.transpose(DISTRICTS)),
            crs="EPSG:4326",
        ).to_file("d.geojson")
        (folder / "v.csv").write_text("lon,lat\n" + "126.7,37.3\n" * 9)
        visits, file = "visits-of-the-spring", "city.ledger"
        passes("ledger", "create", file)
        passes("ledger", "register", file, visits, "--budget", "2.123456", "--cap", "ann=1.654321")
        passes("ledger", "raise", file, visits, "--budget", "3.123456")
        ledger = ("--ledger", file, "--dataset", f"{visits}:analyst=ann")
        charge = ("--epsilon", "0.123456", "--bounds", *DOMAIN.bounds)
        passes("build", "v.csv", "-o", "paid", *charge, *ledger)
    return folder


@pytest.fixture(autouse=True)
def same_plan(monkeypatch):
    """A plan is simulated once: another one has other noise."""
    real = planning.plan

    def plan_once(*args, **options):
        PLANS[:] = PLANS or [real(*args, **options)]
        return PLANS[0]

    monkeypatch.setattr(planning, "plan", plan_once)


def printed(words, width, monkeypatch):
    """Output of a command on a terminal of this width."""
    from rich.console import Console

    monkeypatch.setattr(
        "psd_cli.output.columns.open_console",
        lambda: Console(width=width, markup=False, highlight=False),
    )
    outcome = cli(*words)
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


@pytest.mark.parametrize("width", [40, 80, 100])
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_no_number_or_heading_is_cut(folder, words, width, monkeypatch):
    monkeypatch.chdir(folder)
    wide, narrow = (printed(words, each, monkeypatch) for each in (1_000, width))
    assert set(NUMBER.findall(narrow.out)) <= set(NUMBER.findall(wide.out))
    if "too narrow" in narrow.err:
        assert words[0] in ("query", "plan")
        assert headings(narrow.out) - NAMED <= headings(wide.out)  # a name may stand above
    else:
        assert letters(narrow.out) == letters(wide.out)


@pytest.mark.parametrize("name", ["plan", "top", "query", "query of codes", "quantiles", "info"])
def test_a_table_of_usual_figures_fits_80_columns(folder, name, monkeypatch):
    monkeypatch.chdir(folder)
    lines = printed(COMMANDS[name], 80, monkeypatch).out.splitlines()
    sentences = ("- ", "Expected", "Each", "median", "for queries")
    table = [line for line in lines if not line.startswith(sentences)]
    assert max(map(len, table)) <= 80


def test_at_80_columns_the_columns_of_the_caller_and_both_errors_stay(folder, monkeypatch):
    monkeypatch.chdir(folder)
    outcome = printed(COMMANDS["query of codes"], 80, monkeypatch)
    for heading in ("ward code", "perturbation", "nonuniformity", "relative"):
        assert heading in outcome.out
    for code, name in zip(CODES, NAMES, strict=True):
        assert f"{code}  {name}\n" in outcome.out
    left_out = outcome.err.partition("(too narrow for ")[2].partition(";")[0]
    assert set(left_out.split(", ")) <= {
        "relative_perturbation_error",
        "relative_nonuniformity_error",
        "",
    }
