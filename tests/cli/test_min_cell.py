"""``--min-cell`` goes from the options to recipes, tallies, plans and releases."""

import json

import pytest

import psd
from psd.publish.request import BuildRequest
from psd.publish.request_toml import from_toml, to_toml
from support.cli_runner import fails, passes

BOUNDS = ["--bounds", "126.4", "37", "127.6", "38"]


@pytest.fixture
def rows(tmp_path):
    (tmp_path / "rows.csv").write_text("lon,lat\n" + "127.0,37.5\n127.1,37.6\n" * 400)
    return tmp_path / "rows.csv"


@pytest.mark.parametrize(("options", "stated"), [([], "5"), (["--min-cell", "100"], "100")])
def test_a_build_states_it_and_info_shows_it(tmp_path, rows, options, stated):
    passes("build", rows, "-o", tmp_path / "r", "--epsilon", "2", *BOUNDS, *options)
    assert psd.load(tmp_path / "r").domain.min_cell == stated
    facts = json.loads(passes("info", tmp_path / "r", "--format", "json"))
    assert facts["min_cell"] == stated


def test_0_is_no_limit(tmp_path, rows):
    passes("build", rows, "-o", tmp_path / "r", "--epsilon", "2", *BOUNDS, "--min-cell", "0")
    assert psd.load(tmp_path / "r").domain.min_cell is None
    assert json.loads(passes("info", tmp_path / "r", "--format", "json"))["min_cell"] == "none"


def test_a_dry_run_shows_it(rows):
    told = passes(
        "build", rows, "-o", "r", "--epsilon", "1", *BOUNDS, "--min-cell", "30.0", "--dry-run"
    )
    assert 'min_cell = "30"' in told


def test_a_tally_keeps_it_and_a_build_may_change_it(tmp_path, rows):
    passes("tally", rows, "-o", tmp_path / "t", *BOUNDS, "--min-cell", "200")
    passes("build", tmp_path / "t", "-o", tmp_path / "r", "--epsilon", "2")
    assert psd.load(tmp_path / "r").domain.min_cell == "200"
    passes("build", tmp_path / "t", "-o", tmp_path / "s", "--epsilon", "2", "--min-cell", "900")
    assert psd.load(tmp_path / "s").domain.min_cell == "900"


def test_a_plan_takes_it():
    plan = [
        "plan",
        "--count",
        "500",
        "--runs",
        "1",
        "--epsilon",
        "1",
        "--methods",
        "auto",
        "--sizes",
        "10%",
    ]
    told = json.loads(passes(*plan, "--area", "100", "--min-cell", "70", "--format", "json"))
    assert told["min_cell"] == "70"
    assert "no cell of a method that adapts to the data is below 70 m a side" in told["words"]
    assert json.loads(passes(*plan, *BOUNDS, "--format", "json"))["min_cell"] == "5"
    assert "at most the sides of the bounds" in fails(3, *plan, "--area", "1", "--min-cell", "2000")


@pytest.mark.parametrize("min_cell", ["usual", "0", "80"])
@pytest.mark.parametrize("domain", [psd.Domain, psd.PrivateBounds])
def test_a_recipe_gives_it_back(domain, min_cell):
    bounds = {"bounds": (126.4, 37, 127.6, 38)} if domain is psd.Domain else {}
    request = BuildRequest(domain=domain(**bounds, min_cell=min_cell), epsilon=1, method="auto")
    again = from_toml(to_toml(request))
    assert again.domain.min_cell == request.domain.min_cell


def test_private_bounds_that_are_narrower_are_the_limit(rows):
    bounds = psd.PrivateBounds(min_cell=10_000_000)
    release = psd.build(rows, domain=bounds, epsilon=5)
    assert release.domain.min_cell is not None
