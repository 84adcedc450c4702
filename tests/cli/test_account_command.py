"""psd account: what several spendings cost together."""

import json

import pytest

from support.cli_runner import fails, passes

ALL = ("--pure", "0.1x52", "--gaussian", "5x10", "--sampled", "0.01,1,1000", "--tree", "365,10")


def facts(*words):
    return json.loads(passes("account", *words, "--format", "json"))


def test_all_spendings_have_both_bounds():
    found = facts("--delta", "1e-6", *ALL)
    assert found["epsilon"] == found["rhos_added"] == "5.820959602"
    assert found["epsilons_added"] == "9.452762511"
    assert found["smaller_bound"] == "rhos added"
    assert found["rho"] == "0.504783549792"
    assert found["rho_is_of"] == "all but the sampled spendings"
    assert found["meaning"] == (
        "with a probability of at most 1e-6, these spendings together may reveal more of a person "
        "than epsilon says"
    )


def test_few_pure_releases_are_added():
    found = facts("--delta", "1e-6", "--pure", "0.1x12")
    assert found["smaller_bound"] == "epsilons added"
    assert (found["epsilon"], found["rho_is_of"]) == ("1.2", "all spendings")


@pytest.mark.parametrize(
    ("words", "epsilon"),
    [
        (("--delta", "1e-6", "--tree", "1024,5"), "3.3003"),
        (("--delta", "1e-6", "--tree", "8760,20"), "0.8379"),
        (("--delta", "1e-5", "--sampled", "0.01,1,1000"), "2.1078"),
        (("--delta", "1e-5", "--sampled", "0.02,1.1,3000"), "6.4101"),
    ],
)
def test_training_and_totals_cost_the_golden_numbers(words, epsilon):
    assert float(facts(*words)["epsilon"]) == pytest.approx(float(epsilon), abs=6e-5)


def test_an_option_may_be_repeated():
    twice = facts("--delta", "1e-6", "--pure", "0.1", "--pure", "0.2x2")
    assert twice["epsilons_added"] == "0.5"
    assert facts("--delta", "1e-6", "--gaussian", "5x4") == facts(
        "--delta", "1e-6", *["--gaussian", "5"] * 4
    )


def test_a_table_has_the_same_numbers():
    table = passes("account", "--delta", "1e-6", *ALL)
    assert all(text in table for text in ("5.820959602", "9.452762511", "0.504783549792"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--delta", "1e-6"), "at least one of --pure, --gaussian, --sampled and --tree"),
        (("--delta", "0", *ALL), "--delta must be above 0 and below 0.001, got 0"),
        (("--delta", "1", *ALL), "--delta must be above 0 and below 0.001, got 1"),
        (("--delta", "1e-2", *ALL), "--delta must be above 0 and below 0.001, got 1e-2"),
        (("--delta", "-1", *ALL), "--delta must be above 0 and below 0.001, got -1"),
        (("--delta", "NaN", *ALL), "--delta must be a decimal number such as 1e-6, got 'NaN'"),
        (("--delta", "1e-400", *ALL), "--delta must be at least 1e-300, got 1e-400"),
        (
            ("--delta", "1.00000000000000001e-6", *ALL),
            "--delta must be of at most 15 digits, got 1.00000000000000001e-6; round it down",
        ),
        (ALL, "Missing option '--delta'"),
        (("--delta", "1e-6", "--pure", "0"), "--pure: epsilon must be above 0, got 0"),
        (("--delta", "1e-6", "--pure", "1x"), "--pure must be EPSILON or EPSILONxTIMES, such as"),
        (("--delta", "1e-6", "--pure", "x5"), "--pure must be EPSILON or EPSILONxTIMES, such as"),
        (("--delta", "1e-6", "--pure", "1x0"), "--pure must have a whole number of times or"),
        (("--delta", "1e-6", "--pure", "1x1.5"), "--pure must have a whole number of times or"),
        (("--delta", "1e-6", "--gaussian", "0"), "--gaussian must have a multiplier from 0.01 to"),
        (("--delta", "1e-6", "--gaussian", "a"), "--gaussian: multiplier must be a decimal"),
        (("--delta", "1e-6", "--sampled", "1,1,1"), "--sampled: rate must be above 0 and below 1"),
        (("--delta", "1e-6", "--sampled", "a,1,1"), "--sampled: rate must be a decimal number"),
        (("--delta", "1e-6", "--tree", "4,b"), "--tree: multiplier must be a decimal number"),
        (("--delta", "1e-6", "--sampled", "1,1"), "--sampled must be RATE,MULTIPLIER,STEPS"),
        (("--delta", "1e-6", "--sampled", "0.1,1,-5"), "--sampled must have a whole number"),
        (("--delta", "1e-6", "--tree", "365"), "--tree must be STEPS,MULTIPLIER, such as 365,10"),
        (("--delta", "1e-6", "--tree", "0,1"), "--tree must have a whole number of times or"),
    ],
)
def test_other_words_are_refused_in_a_sentence(words, sentence):
    assert sentence in fails(2, "account", *words)
