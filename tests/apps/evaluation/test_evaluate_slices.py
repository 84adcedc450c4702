"""psd check evaluate of one slice of a series."""

import pandas as pd
import pytest

from support.cli_runner import check_refusals, fails, passes
from support.visits_of_months import SURE, USER, build, link, prepare, truth

REFUSED = [
    (5, "check evaluate s v.csv", "series of time slices"),
    (2, "check evaluate one v.csv --time time", "must be left out"),
    (2, "check evaluate s v.csv --slice 2024-01", "--time must name the column"),
]


@pytest.fixture(autouse=True)
def folder(here, tmp_path_factory):
    """The visits, their series and a single release."""
    prepared = tmp_path_factory.mktemp("prepared")
    prepare(prepared)
    link(prepared, here)


def test_a_slice_is_evaluated_and_a_series_is_refused(subtests):
    assert passes("check evaluate s v.csv --time time --boxes boxes.csv --slice 2024-02")
    check_refusals(subtests, REFUSED)


def test_errors_of_a_slice_need_its_tally():
    build(f"{SURE} {USER} --keep-tally kept", output="made")
    line = "check evaluate made v.csv --slice 2024-03 --time time"
    assert "needs --tally, the private tally of its build" in fails(2, line)
    passes(f"{line} --tally kept --boxes boxes.csv -o errors.csv")
    found = pd.read_csv("errors.csv", comment="#")
    assert found["true_count"][0] == truth()["2024-03"]
    parts = found[[f"true_{n}_error" for n in ("perturbation", "nonuniformity", "bounding")]]
    assert parts.sum(axis=1)[0] == pytest.approx(found["true_error"][0])
    assert abs(found["true_perturbation_error"][0]) < 0.01


UNITS = ("--user user --count users", "--user user --max-contributions auto", USER)


@pytest.mark.parametrize("unit", UNITS)
def test_slices_of_every_unit_are_evaluated(unit):
    build(f"{SURE} {unit} --keep-tally kept", output="made")
    line = "check evaluate made v.csv --slice 2024-02 --time time --tally kept --boxes boxes.csv"
    assert "PRIVATE" in passes(line)
