"""Commands on a release of given counts: each says that psd does not vouch for them."""

import json

import pandas as pd
import pytest

import psd
from support.cli_runner import cli

NOTE = "(epsilon 1 per record; given: psd did not draw these counts and does not vouch for epsilon)"
BOX = "--box 0 0 2 1"
COMMANDS = (
    f"query r {BOX}",
    f"query r --joint {BOX}",
    f"query r --nested {BOX}",
    f"query r --explain {BOX}",
    "query r --top 1",
    "query r --quantiles --classes 2",
    f"query r --difference other {BOX}",
)


@pytest.fixture(autouse=True)
def releases(here):
    psd.testing.release_from_counts([[50, 10], [0, 20]]).save("r")
    psd.testing.release_from_counts([[40, 10], [0, 20]]).save("other")


def test_every_command_prints_the_source_to_people(subtests):
    for command in COMMANDS:
        with subtests.test(command):
            outcome = cli(command)
            assert outcome.code == 0
            assert NOTE in outcome.err.splitlines()
    months = psd.TimeSlices.parse("month", "2024-01..2024-02")
    psd.Release.from_slices(months, (psd.load("r"), psd.load("r"))).save("s")
    for name in "rs":
        facts = json.loads(cli(f"info {name} --format json").out)
        assert facts["source"] == "given"
        assert "does not vouch" in facts["guarantee"]
    assert "does not vouch" in " ".join(cli("info r").out.split())
    assert NOTE in cli("export r r.csv").err
    assert set(pd.read_csv("r.csv")["release_source"]) == {"given"}


def test_every_file_of_answers_has_the_source(subtests, here):
    for command in COMMANDS:
        with subtests.test(command):
            cli(f"{command} --format json -o a.json --overwrite")
            assert '"release_source"' in (here / "a.json").read_text()
            if "explain" not in command:
                cli(f"{command} --format csv -o a.csv --overwrite")
                assert set(pd.read_csv("a.csv")["release_source"]) == {"given"}
            (here / "a.json").unlink()
    answers = json.loads(cli(f"query r {BOX} --format geojson").out)
    assert answers["features"][0]["properties"]["release_source"] == "given"
