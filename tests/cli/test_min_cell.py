"""``--min-cell`` goes from the options to recipes, tallies and releases."""

import pytest

import psd
from psd.curator.private_bounds import PrivateBounds
from psd.publish.request import BuildRequest
from psd.publish.request_values import request_from_toml as from_toml
from psd.publish.request_values import request_to_toml as to_toml
from support.cli_runner import as_json, passes

BOUNDS = "--bounds 126.4 37 127.6 38"
BUILD = f"build rows.csv -o r --epsilon 2 {BOUNDS} --overwrite"


@pytest.fixture(autouse=True)
def rows(here):
    (here / "rows.csv").write_text("lon,lat\n" + "127.0,37.5\n127.1,37.6\n" * 400)


def stated(path="r"):
    return psd.load(path).domain.min_cell


def test_a_build_states_it_and_info_shows_it(subtests):
    for options, limit in (("", "5"), ("--min-cell 100", "100"), ("--min-cell 0", None)):
        with subtests.test(options):
            passes(f"{BUILD} {options}")
            assert stated() == limit
            assert as_json("info r")["min_cell"] == (limit or "none")
    assert 'min_cell = "30"' in passes(f"{BUILD} --min-cell 30.0 --dry-run")


def test_tallies_and_recipes_keep_it():
    passes(f"tally rows.csv -o t {BOUNDS} --min-cell 200")
    for options, limit in (("", "200"), (" --min-cell 900", "900")):
        passes(f"build t -o r --overwrite --epsilon 2{options}")
        assert stated() == limit
    bounds = PrivateBounds(min_cell=10_000_000)
    assert psd.build("rows.csv", domain=bounds, epsilon=5).domain.min_cell is not None
    for bounds in ({"bounds": (126.4, 37, 127.6, 38)}, {}):
        for min_cell in ("usual", "0", "80"):
            domain = (psd.Domain if bounds else PrivateBounds)(**bounds, min_cell=min_cell)
            request = BuildRequest(domain=domain, epsilon=1, method="auto")
            assert from_toml(to_toml(request)).domain.min_cell == domain.min_cell
