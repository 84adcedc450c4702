"""psd ledger account: what it prints, and what it refuses."""

import pytest

from psd import accounting
from support.cli_runner import as_json, check_refusals, passes

ALL = "--pure 0.1x52 --gaussian 5x10 --sampled 0.01,1,1000 --tree 365,10"


def facts(words, delta="1e-6"):
    return as_json(f"ledger account --delta {delta} {words}")


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
    table = passes("ledger account --delta 1e-6", *ALL.split())
    assert all(text in table for text in ("5.790939974", "9.441723842", "0.504783549792"))
    found = facts("--pure 0.1x12")
    assert found["smallest_bound"] == "epsilons added"
    assert (found["epsilon"], found["rho_is_of"]) == ("1.2", "all spendings")
    assert facts("--pure 0.1 --pure 0.2x2")["epsilons_added"] == "0.5"
    assert facts("--gaussian 5x4") == facts("--gaussian 5 " * 4)


@pytest.mark.parametrize(
    ("delta", "words", "epsilon"),
    [
        ("1e-6", "--tree 1024,5", 3.3003),
        ("1e-6", "--tree 8760,20", 0.8379),
        ("1e-5", "--sampled 0.01,1,1000", 2.1014),
        ("1e-5", "--sampled 0.02,1.1,3000", 6.3949),
    ],
)
def test_golden_numbers(delta, words, epsilon):
    assert float(facts(words, delta)["rhos_added"]) == pytest.approx(epsilon, abs=6e-5)


REFUSED_DELTAS = [
    ("0", "must be above 0 and below 0.001, got 0"),
    ("1e-2", "must be above 0 and below 0.001, got 1e-2"),
    ("1e-400", "must be at least 1e-300, got 1e-400"),
    ("1.00000000000000001e-6", "at most 15 digits, got 1.00000000000000001e-6; round it down"),
]
REFUSED = [
    ("", "at least one of --pure, --gaussian, --sampled and --tree"),
    ("--pure 0", "--pure: epsilon must be above 0, got 0"),
    ("--pure 1x", "--pure must be EPSILON or EPSILONxTIMES, such as"),
    ("--pure 1x0", "--pure must have a whole number of times or"),
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
    check_refusals(subtests, [*deltas, *others, missing], "ledger account")
