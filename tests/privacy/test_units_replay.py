"""Whole units are removed, and the answers of the build before are given back.

As in `replay`, but from rows on: reading, bounding, choices and counting. What stands in the
release may differ in nothing, and the answers may tell no more than epsilon in all.
"""

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from psd.decompositions.grid import Grid
from psd.privacy.epsilon import NANO
from psd.privacy.unit import Kind, PrivacyUnit, counted_unit
from psd.testing import RecordingSampler, ReplayingSampler
from support.privacy.replay import small_cases
from support.privacy.units_replay import (
    CASES,
    EPSILON,
    METHODS,
    SIDE,
    SLOW,
    Case,
    compare,
    outside_alone,
    release_of,
    rows_of,
    worst,
)

EVERY = small_cases()
UNITS = [name for name in CASES if name not in SLOW]


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("record", *SLOW)])
def test_a_whole_unit_changes_no_more_than_epsilon(name, monkeypatch):
    """And no less: some unit uses up the promise, so the check sees what it has to."""
    assert worst(CASES[name], monkeypatch) >= EPSILON * 99 / 100


@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("method", EVERY)
def test_every_method_keeps_the_promise_to_every_unit(method, name, monkeypatch):
    assert worst(CASES[name], monkeypatch, crowds=([3, 1],), methods=(method,)) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("method", EVERY)
def test_every_method_keeps_it_in_every_crowd(method, name, monkeypatch):
    assert worst(CASES[name], monkeypatch, methods=(method,)) > 0


@pytest.mark.parametrize("name", UNITS)
def test_order_and_rows_outside_change_no_answer(name, monkeypatch):
    case, rows = CASES[name], rows_of([4, 3, 2, 1], 1)
    outside = np.array([[user, day, 12, SIDE * SIDE + 1] for user in (0, 5) for day in (0, 2)])
    other = np.random.default_rng(3).permutation(np.concatenate([rows, outside]))
    for method in METHODS:
        recorder = RecordingSampler()
        first = release_of(rows, case, method, recorder, monkeypatch)
        replayer = ReplayingSampler(recorder.draws)
        compare(first, release_of(other, case, method, replayer, monkeypatch))
        for a, b in zip(recorder.draws, replayer.draws, strict=True):
            assert np.array_equal(a.true, b.true)


def test_every_unit_is_removed(monkeypatch):
    """A user's rows in one slice are removed where slices are; no curator sees a report."""
    rows = rows_of([2], 1)
    found = {
        release_of(rows, case, Grid(size=2), RecordingSampler(), monkeypatch).unit.kind
        for case in CASES.values()
    }
    sliced = counted_unit(PrivacyUnit(kind="user", max_contributions=1), "slice").kind
    assert found | {sliced} == set(get_args(Kind)) - {"report"}


def test_bounds_and_counts_together_tell_no_more_than_epsilon(monkeypatch):
    crowds = ([3], [9, 1, 1], [2, 2, 2])
    found = worst(CASES["private bounds"], monkeypatch, crowds, METHODS[:1], seeds=(1,))
    assert found == EPSILON


def test_rows_outside_the_boundary_move_nothing(monkeypatch):
    outside_alone(monkeypatch)


def test_a_single_record_does_not_either(monkeypatch):
    crowds = ([1], [2, 2], [4, 3, 2, 1])
    assert worst(CASES["record"], monkeypatch, crowds=crowds, seeds=(1,)) == EPSILON


def test_a_user_of_several_days_costs_an_epsilon_for_each(monkeypatch):
    """What the unit user-day says in words: T days, T epsilon."""
    case = Case(CASES["user-day"].options, unit=(0,))
    rows = np.array([[0, day, 12, 4] for day in range(3) for _ in range(2)])
    recorder = RecordingSampler()
    first = release_of(rows, case, Grid(size=2), recorder, monkeypatch)
    replayer = ReplayingSampler(recorder.draws)
    compare(first, release_of(rows[:0], case, Grid(size=2), replayer, monkeypatch))
    total = Fraction(0)
    for a, b in zip(recorder.draws, replayer.draws, strict=True):
        moved = np.abs(a.true - b.true)
        parts = zip(moved.tolist(), a.epsilon.tolist(), a.sensitivity.tolist(), strict=True)
        total += sum((Fraction(m * e, s * NANO) for m, e, s in parts), Fraction(0))
    assert total == 3 * EPSILON
