"""psd account and psd audit: what they print, and what they refuse."""

from dataclasses import replace

import pytest

from psd import accounting
from psd.mechanisms.laplace import LaplaceMechanism
from support.cli_runner import as_json, check_refusals, cli, passes

ALL = "--pure 0.1x52 --gaussian 5x10 --sampled 0.01,1,1000 --tree 365,10"


def facts(words, delta="1e-6"):
    return as_json(f"account --delta {delta} {words}")


def test_spendings_have_both_bounds(monkeypatch):
    monkeypatch.setattr(accounting, "compose_losses", lambda *_: None)
    found = facts(ALL)
    assert found["epsilon"] == found["rhos_added"] == "5.790939974"
    assert found["epsilons_added"] == "9.441723842"
    assert found["smallest_bound"] == "rhos added"
    assert found["rho"] == "0.504783549792"
    assert found["rho_is_of"] == "all but the sampled spendings"
    assert found["meaning"] == (
        "with a probability of at most 1e-6, these spendings together may reveal more of a person "
        "than epsilon says"
    )
    table = passes("account --delta 1e-6", *ALL.split())
    assert all(text in table for text in ("5.790939974", "9.441723842", "0.504783549792"))
    found = facts("--pure 0.1x12")
    assert found["smallest_bound"] == "epsilons added"
    assert (found["epsilon"], found["rho_is_of"]) == ("1.2", "all spendings")
    assert facts("--pure 0.1 --pure 0.2x2")["epsilons_added"] == "0.5"
    assert facts("--gaussian 5x4") == facts("--gaussian 5 " * 4)


def test_golden_numbers(subtests):
    for delta, words, epsilon in (
        ("1e-6", "--tree 1024,5", 3.3003),
        ("1e-6", "--tree 8760,20", 0.8379),
        ("1e-5", "--sampled 0.01,1,1000", 2.1014),
        ("1e-5", "--sampled 0.02,1.1,3000", 6.3949),
    ):
        with subtests.test(words):
            assert float(facts(words, delta)["rhos_added"]) == pytest.approx(epsilon, abs=6e-5)


REFUSED_DELTAS = [
    ("0", "must be above 0 and below 0.001, got 0"),
    ("1e-2", "must be above 0 and below 0.001, got 1e-2"),
    ("NaN", "must be a decimal number such as 1e-6, got 'NaN'"),
    ("1e-400", "must be at least 1e-300, got 1e-400"),
    ("1.00000000000000001e-6", "at most 15 digits, got 1.00000000000000001e-6; round it down"),
]
REFUSED = [
    ("", "at least one of --pure, --gaussian, --sampled and --tree"),
    ("--pure 0", "--pure: epsilon must be above 0, got 0"),
    ("--pure 1x", "--pure must be EPSILON or EPSILONxTIMES, such as"),
    ("--pure x5", "--pure must be EPSILON or EPSILONxTIMES, such as"),
    ("--pure 1x0", "--pure must have a whole number of times or"),
    ("--pure 1x1.5", "--pure must have a whole number of times or"),
    ("--gaussian 0", "--gaussian must have a multiplier from 0.01 to"),
    ("--gaussian a", "--gaussian: multiplier must be a decimal"),
    ("--sampled 1,1,1", "--sampled: rate must be above 0 and below 1"),
    ("--sampled a,1,1", "--sampled: rate must be a decimal number"),
    ("--tree 4,b", "--tree: multiplier must be a decimal number"),
    ("--sampled 1,1", "--sampled must be RATE,MULTIPLIER,STEPS"),
    ("--sampled 0.1,1,-5", "--sampled must have a whole number"),
    ("--tree 365", "--tree must be STEPS,MULTIPLIER, such as 365,10"),
    ("--tree 0,1", "--tree must have a whole number of times or"),
]


def test_other_words_are_refused_in_a_sentence(subtests, here):
    deltas = [(2, f"--delta {delta} {ALL}", told) for delta, told in REFUSED_DELTAS]
    others = [(2, f"--delta 1e-6 {words}", told) for words, told in REFUSED]
    missing = (2, ALL, "Missing option '--delta'")
    check_refusals(subtests, [*deltas, *others, missing], "account")


SMALL = "audit --method grid --epsilon 1 --set size=16 --canaries 256"
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
    check_refusals(subtests, WRONG_AUDITS, "audit --method grid --epsilon 1")
