"""psd audit: what it prints, and its exit codes."""

import json
from dataclasses import replace

import pytest

from psd.mechanisms.laplace import LaplaceMechanism
from support.cli_runner import cli, fails, passes

SMALL = ("audit", "--method", "grid", "--epsilon", 1, "--set", "size=16", "--canaries", 256)
FAST = (*SMALL, "--runs", 2, "--pairs", 0)


def test_a_table_and_its_outcome():
    lines = passes(*FAST, "--confidence", 0.999999).splitlines()
    assert lines[0].split() == [
        "attack",
        "samples",
        "seen",
        "lower",
        "upper",
        "expected",
        "verdict",
    ]
    assert lines[1].split()[:2] == ["canaries", "512"]
    assert lines[-1].startswith("confidence 0.999999, per record: no fault: ")


def test_pairs_have_a_row_each():
    text = passes(*SMALL, "--runs", 1, "--pairs", 100, "--jobs", 1, "--confidence", 0.999999)
    for name in (
        "canaries",
        "one unit more",
        "one unit less",
        "the attack on pairs of small trees",
    ):
        assert f"\n{name}" in text


def test_json():
    found = json.loads(passes(*FAST, "--format", "json", "--confidence", 0.999999))
    assert (found["method"], found["epsilon"], found["failed"]) == ("grid", "1", False)
    assert [row["attack"] for row in found["findings"]] == ["canaries"]
    assert found["lower"] == found["findings"][0]["lower"] <= 1


def test_gaussian_builds_have_a_bound_at_delta():
    words = (*FAST, "--delta", "1e-9", "--confidence", 0.999999)
    lines = passes(*words).splitlines()
    assert lines[0].split() == [
        "attack", "samples", "seen", "lower", "upper", "expected", "at", "delta", "verdict",
    ]  # fmt: skip
    assert lines[-2] == (
        "claim: epsilon 1 and delta 1e-9 (rho 0.014973057673); with a probability of at most 1e-9 "
        "it may reveal more than epsilon allows"
    )
    assert "at delta 1e-9, expected" in lines[-1]
    found = json.loads(passes(*words, "--format", "json"))
    assert (found["epsilon"], found["delta"], found["failed"]) == ("1", "1e-9", False)
    assert found["lower"] == found["findings"][0]["proved"] <= found["findings"][0]["lower"]
    assert json.loads(passes(*FAST, "--format", "json"))["delta"] is None


def test_nothing_but_the_result_is_printed():
    assert cli(*FAST, "--confidence", 0.999999).err == ""


def test_a_fault_has_an_exit_code_of_its_own(monkeypatch):
    sample = LaplaceMechanism.sample
    monkeypatch.setattr(
        LaplaceMechanism, "sample", lambda self: sample(replace(self, epsilon=3 * self.epsilon))
    )
    outcome = cli(*FAST)
    assert outcome.code == 10
    assert "above the claim" in outcome.out
    assert outcome.err.startswith("psd: error: grid is not private as claimed: epsilon is over ")
    assert outcome.err.count("\n") == 1


def test_users():
    words = ("--unit", "user", "--max-contributions", 2, "--confidence", 0.999999)
    assert "per user, at most 2 records of each: no fault" in passes(*FAST, *words)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--unit", "user"), "must be given together"),
        (("--max-contributions", 2), "must be given together"),
        (("--canaries", 3), "canaries must be between"),
        (("--delta", "0.01"), "--delta must be above 0 and below 0.001, got 0.01"),
        (("--delta", "0"), "--delta must be above 0 and below 0.001, got 0"),
        (("visits.csv",), "unexpected extra argument"),
    ],
)
def test_refuses(words, told):
    assert told in fails(2, *FAST[:5], *words)
