"""Whole units are removed, and the answers of the build before are given back.

As in `replay`, but from rows on: reading, bounding, choices and counting. What stands in the
release may differ in nothing, and the answers may tell no more than epsilon in all.
"""

from fractions import Fraction

import numpy as np
import pytest
from replay import SCRIPTS, Recorder, Replayer
from units_replay import (
    CASES,
    EPSILON,
    METHODS,
    SLOW,
    Case,
    compare,
    outside_alone,
    release_of,
    worst,
)

from psd.decompositions.grid import Grid
from psd.epsilon import NANO


@pytest.mark.parametrize("name", [name for name in CASES if name not in ("record", *SLOW)])
def test_a_whole_unit_changes_no_more_than_epsilon(name, monkeypatch):
    """And no less: some unit uses up the promise, so the check sees what it has to."""
    assert worst(CASES[name], monkeypatch) >= EPSILON * 99 / 100


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
    recorder = Recorder(SCRIPTS[0])
    first = release_of(rows, case, Grid(size=2), recorder, monkeypatch)
    replayer = Replayer(recorder.calls)
    compare(first, release_of(rows[:0], case, Grid(size=2), replayer, monkeypatch))
    total = Fraction(0)
    for a, b in zip(recorder.calls, replayer.calls, strict=True):
        moved = np.abs(a.true - b.true)
        parts = zip(moved.tolist(), a.epsilon.tolist(), a.sensitivity.tolist(), strict=True)
        total += sum((Fraction(m * e, s * NANO) for m, e, s in parts), Fraction(0))
    assert total == 3 * EPSILON
