"""Commands on a release of given counts: each says that psd does not vouch for them."""

import json

import pandas as pd
import pytest

import psd
from support.cli_runner import cli

NOTE = "(epsilon 1 per record; given: psd did not draw these counts and does not vouch for epsilon)"
BOX = ("--box", 0, 0, 2, 1)
COMMANDS = {
    "query": ("query", "r", *BOX),
    "joint": ("query", "r", "--joint", *BOX),
    "nested": ("query", "r", "--nested", *BOX),
    "explain": ("query", "r", "--explain", *BOX),
    "top": ("top", "r", "-k", 1),
    "quantiles": ("quantiles", "r", "--classes", 2),
    "difference": ("difference", "r", "other", *BOX),
}


@pytest.fixture(autouse=True)
def release(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    psd.testing.release_from_counts([[50, 10], [0, 20]]).save("r")
    psd.testing.release_from_counts([[40, 10], [0, 20]]).save("other")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_the_source_to_people(command):
    outcome = cli(*COMMANDS[command])
    assert outcome.code == 0
    assert NOTE in outcome.err.splitlines()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_file_of_answers_has_the_source(command, tmp_path):
    cli(*COMMANDS[command], "--format", "json", "-o", "a.json")
    assert '"release_source"' in (tmp_path / "a.json").read_text()
    if command != "explain":
        cli(*COMMANDS[command], "--format", "csv", "-o", "a.csv")
        assert set(pd.read_csv("a.csv")["release_source"]) == {"given"}


def test_geojson_has_the_source():
    answers = json.loads(cli("query", "r", *BOX, "--format", "geojson").out)
    assert answers["features"][0]["properties"]["release_source"] == "given"


def test_info_states_it():
    facts = json.loads(cli("info", "r", "--format", "json").out)
    assert facts["source"] == "given"
    assert "does not vouch" in facts["guarantee"]
    assert "does not vouch" in " ".join(cli("info", "r").out.split())


def test_info_of_a_series_states_it():
    months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    psd.SeriesRelease.of(months, (psd.load("r"), psd.load("r"))).save("s")
    facts = json.loads(cli("info", "s", "--format", "json").out)
    assert facts["source"] == "given"
    assert "does not vouch" in facts["guarantee"]


def test_export_prints_and_writes_it():
    assert NOTE in cli("export", "r", "r.csv").err
    assert set(pd.read_csv("r.csv")["release_source"]) == {"given"}
