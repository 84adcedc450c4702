"""A budget with a delta, through the command: what it grants, and what it shows."""

from fractions import Fraction

import pytest

from psd.ledger.charges import ChargeRequest
from psd.ledger.ledger import Ledger
from psd.privacy.loss import NANO, Loss
from psd.privacy.unit import PrivacyUnit
from support.cli_runner import as_json, check_refusals, fails, passes, write_points
from support.ledger_columns import readings_of

USER = PrivacyUnit(kind="user", max_contributions=4)
REGISTER = "ledger register city.ledger people --budget 2 --unit user --user user"
ASK = (
    "ask points.csv --box 0 0 1 1 --user user --max-contributions 4 --epsilon 0.02 "
    "--ledger city.ledger --dataset people"
)
STATUS = "ledger status city.ledger"
HISTORY = "ledger history city.ledger"


def request(loss):
    return ChargeRequest(loss=loss, unit=USER, what="ask", readings=readings_of(USER))


@pytest.fixture(autouse=True)
def ledger(here):
    write_points(here / "points.csv", [(0.5, 0.5, "a"), (1.5, 2.5, "b")], "lon,lat,user")
    passes("ledger create city.ledger")
    return Ledger("city.ledger")


def status():
    (row,) = as_json(STATUS)
    return row


@pytest.mark.deep
def test_answers_by_the_command_are_granted_in_rho_to_the_440th(ledger):
    """The first 438 are charged without the command, which takes longer for each."""
    passes(f"{REGISTER} --delta 1e-6")
    for _ in range(438):
        ledger.charge("people", request(Loss.pure(NANO // 50)))
    passes(ASK)
    passes(ASK)
    words = "left for a pure charge, rho 0.000155621419 for Gaussian noise, and this costs epsilon "
    assert f"{words}0.02; nothing was drawn" in fails(4, ASK)
    row = status()
    assert (row["spent"], row["charges"]) == ("8.8", "440")
    assert float(row["left"]) > 0
    assert (row["spent_rho"], row["left_rho"]) == ("0.08799706696", "0.000155621419")


def test_without_a_delta_the_101st_answer_is_refused(ledger):
    passes(REGISTER)
    ledger.charge("people", request(Loss.pure(2 * NANO - NANO // 50)))
    passes(ASK)
    assert "has epsilon 0 left, and this costs 0.02" in fails(4, ASK)
    assert {status()[name] for name in ("delta", "budget_rho")} == {""}
    assert "rho" not in passes(STATUS) + passes(HISTORY)


def test_status_shows_both_currencies_and_what_is_left_in_each(ledger):
    passes(f"{REGISTER} --delta 1e-6 --cap ann=1")
    delta = Fraction(1, 10**6)
    ledger.charge("people", request(Loss.pure(NANO // 50)), analyst="ann")
    row = status()
    assert (row["budget"], row["spent"], row["left"]) == ("2", "0.02", "1.98")
    assert (row["delta"], row["budget_rho"]) == ("1e-6", "0.088152688379")
    assert (row["spent_rho"], row["left_rho"]) == ("0.000199993334", "0.087952695045")
    assert row["left_of_caps"] == "ann 0.98 rho 0.024155977025"
    ledger.charge("people", request(Loss.gaussian(NANO // 2, delta)), analyst="ann")
    row = status()
    # What a pure charge may be, by the sum of rhos, though that of epsilons grants none.
    assert row["left_rho"] == "0.081311170689"
    assert row["left"].startswith("0.4")
    assert not row["left_of_caps"].startswith("ann 0 ")
    table = passes(STATUS)
    assert "0.00684151769" in table
    words = "people: with a probability of at most 1e-6, all releases together may reveal more than"
    assert f"{words} epsilon 2 allows\n" in table
    assert [(line["epsilon"], line["delta"], line["rho"]) for line in as_json(HISTORY)] == [
        ("0.02", "", "0.000199993334"),
        ("0.5", "1e-6", "0.006641524356"),
    ]


def test_registrations_say_budget_and_delta(subtests):
    check_refusals(subtests, [(2, "1e-2", "delta must be")], REGISTER, "--delta")
    said = passes(f"{REGISTER} --delta 0.000001")
    assert said.startswith("registered people in city.ledger: budget 2 and delta 1e-6 per user\n")


def test_the_balance_in_rho_is_a_table_of_its_own():
    passes("ledger register city.ledger rows --budget 1")
    for shown in ([("unit", False)], [("unit", False), ("delta", True)]):
        told = passes(STATUS).splitlines()
        heads = [line.split() for line in told if line.startswith("dataset")]
        assert [(head[1], "rho" in head) for head in heads] == shown
        if len(shown) == 1:
            passes(f"{REGISTER} --delta 1e-6")
    assert [line.split()[:2] for line in told if "0.088152688379" in line] == [["people", "1e-6"]]
