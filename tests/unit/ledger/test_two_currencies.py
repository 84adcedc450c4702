"""A dataset with a delta, from its registration to charges that are refused."""

import json
import re
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from fractions import Fraction

import pytest

from psd.errors import BudgetError, LedgerError, ParameterError
from psd.ingest.columns import reading_of
from psd.ingest.sources import Columns
from psd.ledger.account import Account
from psd.ledger.extents import BY_FIELDS, Region, slices_of
from psd.ledger.ledger import Ledger
from psd.ledger.state import MAX_FAULTS
from psd.privacy.loss import NANO, Loss
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_counts
from psd.publish.pipeline import run_build
from psd.publish.request import BuildRequest
from psd.space.time_slices import TimeSlices
from support.ledger_columns import columns_of, request_for
from support.ledger_edits import edit_charge

DELTA = Fraction(1, 10**6)
USER = PrivacyUnit(kind="user", max_contributions=4)
GAUSSIAN = Loss.gaussian(NANO, DELTA)
RHO = 88152688379  # of (2, 1e-6)


def request(loss, unit=USER, **more):
    return request_for(loss, unit, **more)


@pytest.fixture
def ledger(tmp_path):
    made = Ledger.create(tmp_path / "city.ledger")
    made.register("people", 2, delta="1e-6", unit="user", columns=columns_of("user"))
    return made


@pytest.fixture
def rows(ledger):
    """A dataset of records with a delta, whose charges may be for an area and for slices."""
    ledger.register("rows", 2, delta="0.000001", columns=columns_of("record"))
    return ledger


def test_the_delta_of_a_dataset_is_exact_and_charges_are_stored_with_theirs(ledger):
    assert ledger.state().datasets["people"].delta == DELTA
    with closing(sqlite3.connect(ledger.path)) as file:
        (body,) = file.execute("SELECT body FROM entry WHERE kind = 'register'").fetchone()
    assert json.loads(body)["delta"] == "1e-6"
    charge = ledger.charge("people", request(GAUSSIAN))
    assert ledger.verify().charges[charge].loss == GAUSSIAN
    ledger.charge("people", request(Loss.gaussian(NANO, DELTA, 5)))
    assert [each.loss.rho for each in ledger.state().charges.values()] == [GAUSSIAN.rho, 5]


def test_deltas_that_are_refused(ledger):
    with pytest.raises(ParameterError, match=r"^delta must be above 0 and below 0\.001"):
        ledger.register("roads", 2, delta="0")
    with pytest.raises(ParameterError, match=r"^budget must have a rho of at least 1e-12"):
        ledger.register("roads", "0.000001", delta="1e-9")  # whose rho rounds to 0
    assert list(ledger.state().datasets) == ["people"]


def test_gaussian_charges_fit_up_to_the_last_part_of_rho(ledger):
    ledger.charge("people", request(Loss.gaussian(2 * NANO, DELTA, RHO - 1)))
    with pytest.raises(BudgetError, match=r"rho 0\.000000000001 for Gaussian noise, and this"):
        ledger.charge("people", request(Loss.gaussian(NANO, DELTA, 2)))
    ledger.charge("people", request(Loss.gaussian(NANO, DELTA, 1)))
    account = Account(ledger, "people")
    assert (account.left, account.rho_left) == (0, 0)
    with pytest.raises(BudgetError):
        ledger.charge("people", request(GAUSSIAN))
    ledger.raise_budget("people", 3)
    ledger.charge("people", request(GAUSSIAN))
    assert ledger.state().balance("people").allowance.rho == 185069840653


def test_linear_and_rho_charges_are_not_mixed(ledger):
    """Epsilon 1 and rho of epsilon 1 would both be half a budget, each in its measure."""
    ledger.charge("people", request(Loss.pure(NANO)))
    with pytest.raises(BudgetError):
        ledger.charge("people", request(GAUSSIAN))
    ledger.charge("people", request(Loss.pure(NANO)))


def test_a_dataset_has_one_delta(ledger):
    other = request(Loss.gaussian(NANO, Fraction(1, 10**7)))
    with pytest.raises(LedgerError, match=r"registered with delta 1e-6, got 1e-7; a dataset has"):
        ledger.charge("people", other)
    assert ledger.verify().charges == {}


def test_caps_are_budgets_in_both_currencies(ledger):
    users, caps = {"unit": "user", "columns": columns_of("user")}, {"ann": 1, "bob": "0.02"}
    ledger.register("capped", 2, delta="1e-6", caps=caps, **users)
    ledger.charge("capped", request(GAUSSIAN), analyst="ann")
    with pytest.raises(BudgetError, match=r"^analyst 'ann' has epsilon 0 left .* rho 0 for"):
        ledger.charge("capped", request(Loss.gaussian(NANO, DELTA, 1)), analyst="ann")
    with pytest.raises(BudgetError, match=r"^analyst 'bob' has"):
        ledger.charge("capped", request(GAUSSIAN), analyst="bob")
    ledger.charge("capped", request(Loss.pure(20_000_000)), analyst="bob")
    assert ledger.state().balance("capped", analyst="bob").epsilon_left == 0


def region(west):
    bounds = (west, 0, west + 1, 1)
    return Region(bounds=bounds, crs="EPSG:4326", columns=(BY_FIELDS, "x=lon", "y=lat"))


def test_gaussian_charges_of_other_places_leave_pure_ones_their_epsilon(rows):
    """Each record is charged by one of the two sums; here one record by each."""
    row = PrivacyUnit()
    rows.charge("rows", request(Loss.gaussian(2 * NANO, DELTA), row, region=region(0)))
    pure = request(Loss.pure(2 * NANO), row, region=region(5))
    rows.charge("rows", pure)
    with pytest.raises(BudgetError):
        rows.charge("rows", replace(pure, loss=Loss.pure(1)))
    with pytest.raises(BudgetError):
        rows.charge("rows", replace(pure, region=region(0)))
    rows.charge("rows", replace(pure, region=region(9)))


def test_rhos_of_other_days_are_not_added(ledger):
    days = PrivacyUnit(kind="user-day", max_contributions=1, time_zone="UTC")
    ledger.register("days", 2, delta="1e-6", unit="user-day", columns=columns_of("user-day"))
    for day in ("2026-01-05", "2026-01-06"):
        slices = slices_of(TimeSlices.parse("day", day), "time")
        whole = request(Loss.gaussian(2 * NANO, DELTA), days, slices=slices)
        ledger.charge("days", whole)
        with pytest.raises(BudgetError):
            ledger.charge("days", replace(whole, loss=Loss.gaussian(NANO, DELTA, 1)))
    assert ledger.state().balance("days").rho_left == 0


@pytest.mark.deep
@pytest.mark.parametrize("loss", [Loss.pure(1), Loss.gaussian(NANO // 1000, DELTA, 1), GAUSSIAN])
def test_no_more_faults_than_use_up_a_budget(loss, ledger):
    """Each fault costs a twentieth of both currencies, with its build."""
    faults, account = 0, Account(ledger, "people")
    with suppress(BudgetError):
        while account.left:
            ledger.charge("people", request(loss))
            ledger.charge_fault("people", request(loss))
            faults += 1
    assert 0 < faults <= MAX_FAULTS


def test_a_fault_costs_the_smallest_epsilon_that_makes_up_the_twentieth_of_rho(ledger, subtests):
    state, share = ledger.state(), -(-RHO // MAX_FAULTS)
    for missing in (-1, 0, 1, 2, 5, 10**6, share - 1):
        built = request(Loss.gaussian(NANO, DELTA, share - missing))
        price = state.fault_charge("people", built, None).loss.epsilon
        with subtests.test(missing=missing):
            assert Loss.pure(price).rho >= missing
            if price:
                assert Loss.pure(price - 1).rho < missing


def test_a_fault_of_some_slices_and_a_charge_that_is_read_otherwise_count_always(rows):
    slices = slices_of(TimeSlices.parse("day", "2026-01-05"), "time")
    placed = request(Loss.gaussian(NANO, DELTA, 1), PrivacyUnit(), slices=slices)
    other = replace(placed, readings=(reading_of(Columns(x="home_lon")),))
    assert rows.state().check("rows", placed, None).slices == slices
    assert rows.state().check("rows", other, None).slices is None
    rows.charge("rows", placed)
    rows.charge_fault("rows", placed)
    build, fault = rows.state().charges_of("rows")
    assert (build.slices, fault.slices) == (slices, None)


def test_a_price_is_told_in_both_currencies_where_a_dataset_has_both(ledger):
    over = Loss.gaussian(5 * NANO, DELTA)
    with pytest.raises(BudgetError, match=f"this costs {re.escape(over.text)};"):
        ledger.charge("people", request(over))
    ledger.register("plain", 1, unit="user", columns=columns_of("user"))
    with pytest.raises(BudgetError, match=r"this costs 1\.5;"):
        ledger.charge("plain", request(Loss.pure(3 * NANO // 2)))
    words = r"^dataset 'plain' has no delta, so it takes no Gaussian"
    with pytest.raises(LedgerError, match=words):
        ledger.check("plain", request(GAUSSIAN))
    assert Account(ledger, "plain").rho_left == 0


def test_a_charge_that_contradicts_itself_or_its_dataset_is_an_edit(ledger, subtests):
    ledger.charge("people", request(GAUSSIAN))
    sound = {"rho": GAUSSIAN.rho, "delta": "1e-6", "epsilon": NANO}
    for changes in (
        {"rho": None},
        {"delta": None},
        {"delta": "1e-7"},
        {"rho": GAUSSIAN.rho + 1},
        {"epsilon": NANO - 1},
    ):
        edit_charge(ledger, 3, **{**sound, **changes})
        changed = "entry 3 of the ledger was changed"
        with subtests.test(changes=changes), pytest.raises(LedgerError, match=changed):
            ledger.state()


DAYS = TimeSlices.parse("day", "2026-01-05..2026-01-06")


WANTED = BuildRequest(
    domain=(0, 0, 4, 4), epsilon=1, method="grid", delta="1e-6", noise="gaussian",
    unit=USER, columns=Columns(user="user"),
)  # fmt: skip


def gaussian_release(tmp_path, ledger, **more):
    """Release, or series, with Gaussian noise that a ledger paid for."""
    data, path, account = tmp_path / "p.csv", tmp_path / "r.parquet", Account(ledger, "people")
    data.write_text("lon,lat,user,seen\n1,1,a,2026-01-05\n2,3,a,2026-01-06\n3,3,b,2026-01-06\n")
    columns = Columns(user="user", time="seen" if more else None)
    run_build(replace(WANTED, columns=columns, **more), data, draw_counts, account=account).save(
        path
    )
    account.finish(path)


@pytest.mark.parametrize(
    "more", [{}, {"slices": DAYS}, {"slices": DAYS, "contribution_scope": "slice"}]
)
def test_a_gaussian_release_is_charged_in_rho_and_agrees_with_its_charge(more, ledger, tmp_path):
    gaussian_release(tmp_path, ledger, **more)
    (charge,) = ledger.verify(releases=tmp_path).charges.values()
    assert (charge.loss, charge.done) == (GAUSSIAN, True)
    for changes, field in (
        ({"rho": GAUSSIAN.rho - 1}, "rho"),
        ({"rho": None, "delta": None}, "delta"),  # as if it had been pure
    ):
        edit_charge(ledger, 3, **changes)
        with pytest.raises(LedgerError, match=f"states another {field} than charge"):
            ledger.verify(releases=tmp_path)


def test_a_gaussian_build_is_refused_before_it_reads(ledger, tmp_path):
    ledger.register("roads", 2, unit="user", columns=columns_of("user"))
    for dataset, delta in (("roads", "1e-6"), ("people", "1e-7")):
        wanted, account = replace(WANTED, delta=delta), Account(ledger, dataset)
        with pytest.raises(LedgerError, match=r"no delta|one delta"):
            run_build(wanted, tmp_path / "missing.csv", draw_counts, account=account)
