"""Builds whose loss is counted in rho: from the request to the record, and what is refused."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import psd
from psd.curator.private_bounds import PrivateBounds
from psd.decompositions import Quadtree
from psd.errors import BudgetError, LedgerError, ParameterError
from psd.privacy.count_noise import CountNoise
from psd.privacy.unit import PrivacyUnit, squared_sensitivity
from psd.publish.drawing import draw_counts
from psd.publish.insecure import SeededSampler
from psd.publish.pipeline import run_build
from support.noise import LOSS
from support.requests import request_of

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(64, 64))
DAYS = psd.TimeSlices.parse("day", "2024-01-01..2024-01-04")
ROWS = 400
STATED = "epsilon 1 and delta 1e-6 (rho 0.024355970359)"


def table():
    """Records of 40 users on four days."""
    row = np.arange(ROWS)
    return pd.DataFrame({
        "lon": row * 7 % 40 / 10 + 0.01,
        "lat": row * 3 % 37 / 10 + 0.01,
        "id": (row % 40).astype(str),
        "time": pd.to_datetime("2024-01-01", utc=True) + pd.to_timedelta(row * 6 % 96, unit="h"),
    })  # fmt: skip


def request(**arguments):
    """Request with Gaussian noise."""
    made = {"domain": DOMAIN, "epsilon": 1, "method": Quadtree(height=2), **arguments}
    return replace(request_of(**made), delta="1e-6", noise="gaussian")


def paid(folder, **registration):
    """The records as a file, and the account of a dataset for them."""
    ledger = psd.Ledger.create(folder / "city.ledger")
    ledger.register("visits", **registration)
    table().to_csv(folder / "visits.csv", index=False)
    return str(folder / "visits.csv"), psd.ledger.Account(ledger, "visits")


def series(**arguments):
    """Series of the records by user and day, with a repeatable sampler."""
    asked = request(slices=DAYS, time="time", user="id", **arguments)
    return run_build(asked, table(), draw_counts, sampler=SeededSampler(1))


def test_a_release_states_epsilon_delta_and_rho(tmp_path):
    release = run_build(request(user="id", max_contributions=3), table(), draw_counts)
    assert release.record.loss == LOSS
    assert release.tree.noise == CountNoise.gaussian(9)
    assert release.tree.max_path_loss == LOSS.rho
    assert release.record.guarantee_text == (
        f"{STATED} per user, at most 3 records of each; "
        "with a probability of at most 1e-6 it may reveal more than epsilon allows"
    )
    assert release.record.guarantee_text == request(user="id", max_contributions=3).guarantee_text
    release.save(tmp_path / "r.psd.parquet")
    assert psd.load(tmp_path / "r.psd.parquet").digest == release.digest


def test_every_slice_has_all_of_rho_and_the_noise_of_k_times_cap(subtests):
    for bounds, squared in (
        ({"max_contributions": 3}, 9),
        ({"max_contributions": 4, "max_per_slice": 1}, 4),
        ({"max_contributions": 4, "max_per_slice": 3}, 12),
        ({"max_contributions": 2, "per": "slice"}, 16),
    ):
        with subtests.test(str(bounds)):
            built = series(**bounds)
            noises = {release.tree.noise for release in built._releases}
            assert noises == {CountNoise.gaussian(squared)}
            assert {release.tree.max_path_loss for release in built._releases} == {LOSS.rho}
            assert built.record.epsilon == LOSS.epsilon
            assert built.record.guarantee_text.startswith(f"{STATED} per user")


def test_the_squared_sensitivity_of_units():
    """K cap: k in all slices, cap in one."""
    user = PrivacyUnit(kind="user", max_contributions=6)
    day = PrivacyUnit(kind="user-day", max_contributions=2, time_zone="UTC")
    assert squared_sensitivity(PrivacyUnit(), "series", 12) == 1
    assert squared_sensitivity(user, "series", 1) == squared_sensitivity(user, "series", 12) == 36
    assert squared_sensitivity(replace(user, max_per_slice=2), "series", 12) == 12
    assert squared_sensitivity(user, "slice", 12) == 12 * 36
    assert squared_sensitivity(day, "series", 12) == 4
    assert squared_sensitivity(PrivacyUnit(kind="user", weight=720), "series", 12) == 720**2


@pytest.mark.parametrize("method", ["auto", "privtree", "kd-standard", "hilbert-rtree", "htf"])
def test_methods_share_out_rho_as_they_share_out_epsilon(method):
    release = run_build(request(method=method), table(), draw_counts)
    assert 0 < release.tree.max_path_loss <= LOSS.rho
    assert release.record.rho == LOSS.rho
    assert not any("epsilon" in name for name in release.record.parameters)


def test_a_chosen_limit_and_private_bounds_are_paid_in_rho():
    asked = request(domain=PrivateBounds(), user="id", max_contributions="auto")
    release = run_build(asked, table(), draw_counts)
    stated = release.record.parameters
    paid = Fraction(stated["bound_rho"]) + Fraction(stated["bounds_rho"])
    spent = Fraction(release.tree.max_path_loss, 10**12)
    assert paid > 0
    assert paid + spent <= Fraction(LOSS.rho, 10**12)
    assert "bound_epsilon" not in stated
    k = release.unit.max_contributions
    assert release.tree.noise == CountNoise.gaussian(k**2)


def test_noise_has_the_deviation_that_is_stated():
    """2,000 empty cells against 12.8, S / sqrt(2 rho) of two records: false alarms below 1e-6."""
    method = psd.decompositions.Grid(size=45)
    release = run_build(
        request(method=method, user="id", max_contributions=2), table()[:0], draw_counts
    )
    measured = release.tree.loss > 0
    variance = release.tree.noise.variance(release.tree.loss[measured])
    squares = release.tree.count[measured] ** 2 / variance
    assert len(squares) == 45**2
    assert abs(squares.sum() - len(squares)) < 6.1 * (2 * len(squares)) ** 0.5


def test_losses_that_do_not_exist_are_refused():
    for changes, message in (
        ({"delta": None}, 'delta must be given with noise="gaussian"'),
        ({"delta": "0.01"}, "delta must be above 0 and below 0.001"),
        ({"delta": "1e-400"}, "delta must be"),
        ({"delta": 0}, "delta must be"),
        ({"noise": "cauchy"}, "noise must be one of"),
        ({"epsilon": "1e-9", "delta": "1e-300"}, "delta must allow a rho of at least 1e-12"),
    ):
        with pytest.raises(ParameterError, match=message):
            replace(request(), **changes)


def test_with_laplace_noise_no_delta_is_spent_or_stated():
    asked = replace(request(), noise="laplace")
    release = run_build(asked, table(), draw_counts)
    assert asked.guarantee_text == release.record.guarantee_text == "epsilon 1 per record"
    assert (release.record.rho, release.record.delta) == (None, None)


def test_a_ledger_is_charged_rho_and_refuses_what_is_left_of_no_rho(tmp_path):
    path, account = paid(tmp_path, budget="1.5", delta="1e-6")
    first = run_build(request(), path, draw_counts, account=account)
    assert first.record.rho == LOSS.rho
    assert first.record.parameters["charge"]
    run_build(
        request(), path, draw_counts, account=account
    )  # .049 of the .053 that (1.5, 1e-6) has
    with pytest.raises(BudgetError):
        run_build(request(), path, draw_counts, account=account)


def test_a_dataset_without_delta_refuses_gaussian_noise(tmp_path):
    path, account = paid(tmp_path, budget=2)
    with pytest.raises(LedgerError, match="has no delta, so it takes no Gaussian noise"):
        run_build(request(), path, draw_counts, account=account)


def test_explained_errors_fall_with_epsilon():
    release = run_build(request(), table(), draw_counts, sampler=SeededSampler(2))
    (explained,) = release.query([(0.2, 0.2, 3.1, 3.3)]).explain()
    noise = explained.remedies.set_index("change")["perturbation_error"]
    assert 0 < noise["2 times the epsilon"] < 0.8 * noise["as it is"]
