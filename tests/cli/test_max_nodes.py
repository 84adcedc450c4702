"""--max-nodes: every command that reads a release refuses one of more nodes."""

import pytest

from psd_cli.commands import find_command
from psd_cli.main import cli
from support.cli_runner import check_refusals, fails, passes

COMMANDS = {name: find_command(name).params for name in cli.list_commands(None)}
READING = {
    name for name, each in COMMANDS.items() if any(param.name == "release" for param in each)
}
ARGUMENTS = {
    "query": "--box -4 -4 5 5",
    "difference": "r.psd.parquet --box -4 -4 5 5",
    "export": "r.csv",
    "evaluate": "p.csv",
    "sign": "--key k.pem",
    "top": "-k 2",
    "map": "-o map.html",
    "methodology": "-o sheet.html",
    "plot": "map.png",
}
DRAWING = {"methodology", "plot"} & READING


@pytest.fixture(autouse=True)
def files(release, here):
    (here / "p.csv").write_text("lon,lat\n1,1\n")
    passes("sign new k.pem")


def line(name):
    return f"{name} r.psd.parquet {ARGUMENTS.get(name, '')} --max-nodes"


def test_a_release_of_more_nodes_alone_is_refused(subtests):
    assert {"info", "verify", "top", "quantiles", *ARGUMENTS} & {*COMMANDS} <= READING
    told = "at most 3 nodes in all slices together, got 13; allow more with --max-nodes"
    check_refusals(subtests, [(5, f"{line(name)} 3", told) for name in READING - {"plot"}])
    table = [(2, value, "max-nodes") for value in ("0", "-5", "x", "1e3")]
    check_refusals(subtests, table, "info r.psd.parquet --max-nodes")
    for name in READING - {"difference", "evaluate"} - DRAWING:
        with subtests.test(name):
            passes(f"{line(name)} 100")


@pytest.mark.deep
@pytest.mark.parametrize("name", sorted(DRAWING))
def test_the_limit_holds_for_pictures(name):
    assert "at most 3 nodes" in fails(5, f"{line(name)} 3")
    passes(f"{line(name)} 100")
