"""--max-nodes: every command that reads a release refuses one of more nodes."""

from importlib import import_module

import pytest

from psd_cli.main import COMMANDS
from support.cli_runner import fails, passes, three_by_three

READING = {
    name
    for name in COMMANDS
    if any(
        param.name == "release"
        for param in import_module(f"psd_cli.commands.{name.replace('-', '_')}").command.params
    )
}
ARGUMENTS = {
    "query": ("--box", -4, -4, 5, 5),
    "difference": ("r.psd.parquet", "--box", -4, -4, 5, 5),
    "export": ("r.csv",),
    "evaluate": ("p.csv",),
    "sign": ("--key", "k.pem"),
    "top": ("-k", 2),
    "map": ("-o", "map.html"),
    "methodology": ("-o", "sheet.html"),
    "plot": ("map.png",),
}


@pytest.fixture(autouse=True)
def release(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    three_by_three().save("r.psd.parquet")
    (tmp_path / "p.csv").write_text("lon,lat\n1,1\n")
    passes("keygen", "k.pem")


def test_all_commands_that_read_a_release_are_named():
    assert {"info", "verify", "top", "quantiles", *ARGUMENTS} <= READING


@pytest.mark.parametrize("name", sorted(READING))
def test_a_release_of_more_nodes_is_refused(name):
    told = fails(5, name, "r.psd.parquet", *ARGUMENTS.get(name, ()), "--max-nodes", 3)
    assert "at most 3 nodes" in told
    assert "allow more with --max-nodes" in told


@pytest.mark.parametrize("name", sorted(READING - {"difference", "evaluate"}))
def test_a_limit_that_is_high_enough_changes_nothing(name):
    passes(name, "r.psd.parquet", *ARGUMENTS.get(name, ()), "--max-nodes", 100)


@pytest.mark.parametrize("value", [0, -5, "x", "1e3"])
def test_a_limit_that_is_none_is_refused(value):
    assert "max-nodes" in fails(2, "info", "r.psd.parquet", "--max-nodes", value)
