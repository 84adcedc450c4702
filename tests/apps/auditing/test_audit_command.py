"""psd check audit: rows, outcomes, faults and refusals."""

from dataclasses import replace

import pytest

from psd.mechanisms.laplace import LaplaceMechanism
from support.cli_runner import as_json, check_refusals, cli, passes

SMALL = "check audit --method grid --epsilon 1 --set size=16 --canaries 256"
FAST = f"{SMALL} --runs 2 --pairs 0"
SURE = f"{FAST} --confidence 0.999999"
HEADINGS = ["attack", "samples", "seen", "lower", "upper", "expected", "verdict"]


@pytest.mark.deep
def test_pairs_have_a_row_each():
    text = passes(f"{SMALL} --runs 1 --pairs 100 --jobs 1 --confidence 0.999999")
    attacks = ("one unit more", "one unit less", "the attack on pairs of small trees")
    assert all(f"\n{name}" in text for name in ("canaries", *attacks))


def test_a_table_and_its_outcome():
    lines = passes(SURE).splitlines()
    assert lines[0].split() == HEADINGS
    assert lines[1].split()[:2] == ["canaries", "512"]
    assert lines[-1].startswith("confidence 0.999999, per record: no fault: ")


@pytest.mark.deep
def test_gaussian_builds_have_a_bound_at_delta():
    found = as_json(SURE)
    assert (found["method"], found["epsilon"], found["failed"]) == ("grid", "1", False)
    assert [row["attack"] for row in found["findings"]] == ["canaries"]
    assert found["lower"] == found["findings"][0]["lower"] <= 1
    assert found["delta"] is None
    told = passes(f"{SURE} --unit user --max-contributions 2")
    assert "per user, at most 2 records of each: no fault" in told
    lines = passes(f"{SURE} --delta 1e-9").splitlines()
    assert lines[0].split() == [*HEADINGS[:-1], "at", "delta", "verdict"]
    assert lines[-2] == (
        "claim: epsilon 1 and delta 1e-9 (rho 0.014973057673); with a probability of at most 1e-9 "
        "it may reveal more than epsilon allows"
    )
    assert "at delta 1e-9, expected" in lines[-1]
    found = as_json(f"{SURE} --delta 1e-9")
    assert (found["epsilon"], found["delta"], found["failed"]) == ("1", "1e-9", False)
    assert found["lower"] == found["findings"][0]["proved"] <= found["findings"][0]["lower"]


WRONG_AUDITS = [
    (2, "--unit user", "must be given together"),
    (2, "--max-contributions 2", "must be given together"),
    (2, "--canaries 3", "canaries must be between"),
    (2, "--delta 0.01", "--delta must be above 0 and below 0.001, got 0.01"),
    (2, "visits.csv", "unexpected extra argument"),
]


def test_faults_and_refusals_have_exit_codes(monkeypatch, subtests, here):
    sample = LaplaceMechanism.sample
    monkeypatch.setattr(
        LaplaceMechanism, "sample", lambda self: sample(replace(self, epsilon=3 * self.epsilon))
    )
    outcome = cli(FAST)
    assert outcome.code == 10
    assert "above the claim" in outcome.out
    assert outcome.err.startswith("psd: error: grid is not private as claimed: epsilon is over ")
    assert outcome.err.count("\n") == 1
    check_refusals(subtests, WRONG_AUDITS, "check audit --method grid --epsilon 1")
