"""--max-nodes: every command that reads a release refuses one of more nodes."""

import pytest

from psd._apps import has_app
from support.cli_runner import check_refusals, every_command, fails, passes

READING = {
    name
    for name, command in every_command()
    if any(param.name == "release" for param in command.params)
}
LINES = {
    name: f"{name} r.psd.parquet {more}"
    for name, more in {
        "query": "--box -4 -4 5 5",
        "export": "r.csv",
        "check evaluate": "p.csv",
        "sign file": "--key k.pem",
        "sign check": "",
        "map": "-o map.html",
        "info": "",
        "plot": "map.png",
    }.items()
    if name in READING
}
QUERIES = [
    "query r.psd.parquet --top 2",
    "query r.psd.parquet --quantiles",
    "query r.psd.parquet --difference r.psd.parquet --box -4 -4 5 5",
]
DRAWING = [
    line
    for line in (LINES["plot"], "info r.psd.parquet --sheet s.html")
    if "sheet" not in line or has_app("web")
]


@pytest.fixture(autouse=True)
def files(release, here):
    (here / "p.csv").write_text("lon,lat\n1,1\n")
    passes("sign new k.pem")


def test_a_release_of_more_nodes_alone_is_refused(subtests):
    assert {*LINES} == READING - {"suggest train", "suggest places"}
    told = "at most 3 nodes in all slices together, got 13; allow more with --max-nodes"
    lines = [*LINES.values(), *QUERIES]
    refused = [line for line in lines if line not in DRAWING]
    check_refusals(subtests, [(5, f"{line} --max-nodes 3", told) for line in refused])
    table = [(2, value, "max-nodes") for value in ("0", "-5", "x", "1e3")]
    check_refusals(subtests, table, "info r.psd.parquet --max-nodes")
    for line in refused:
        if "difference" not in line and "evaluate" not in line:
            with subtests.test(line):
                passes(f"{line} --max-nodes 100")


@pytest.mark.deep
@pytest.mark.parametrize("line", DRAWING)
def test_the_limit_holds_for_pictures(line):
    assert "at most 3 nodes" in fails(5, f"{line} --max-nodes 3")
    passes(f"{line} --max-nodes 100")
