"""Whole units are removed, and the answers of the build before are given back.

As in `replay`, but from rows on: reading, bounding, choices and counting. What stands in the
release may differ in nothing, and the answers may tell no more than epsilon in all.
"""

from fractions import Fraction
from typing import get_args

import numpy as np
import pytest

from psd.decompositions.grid import Grid
from psd.privacy.unit import Kind, PrivacyUnit, counted_unit
from psd.testing import SCRIPTS, RecordingSampler
from support.privacy.replay import moved_loss, small_cases
from support.privacy.units_replay import (
    CASES,
    METHODS,
    SIDE,
    release_of,
    rows_of,
    worst,
    worst_of_rows,
)

UNITS = [name for name in CASES if name != "private bounds"]
CROWDS = ([9, 1, 1], [17])
BOUNDED = {"one": [3], "most of one": [9, 1, 1], "all alike": [2, 2, 2]}


each_unit = pytest.mark.parametrize("name", UNITS)
each_method = pytest.mark.parametrize("method", small_cases())


@each_unit
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.deep)])
def test_a_whole_unit_changes_no_more_than_epsilon(every, name):
    """And no less: some unit uses up the promise, so the check sees what it has to."""
    least = worst(CASES[name]) if every else worst(CASES[name], CROWDS, METHODS[:1])
    assert least >= Fraction(99, 100)
    assert least == 1 or name != "record"


@pytest.mark.deep
@each_unit
@each_method
def test_every_method_keeps_the_promise_to_every_unit(method, name):
    assert worst(CASES[name], crowds=([3, 1],), methods=(method,)) > 0


@pytest.mark.nightly
@each_unit
@each_method
def test_every_method_keeps_it_in_every_crowd(method, name):
    assert worst(CASES[name], methods=(method,)) > 0


@each_unit
def test_order_and_rows_outside_change_no_answer(name):
    rows = rows_of([4, 3, 2, 1], 1)
    outside = np.array([[user, day, 12, SIDE * SIDE + 1] for user in (0, 5) for day in (0, 2)])
    other = np.random.default_rng(3).permutation(np.concatenate([rows, outside]))
    how = {"scripts": SCRIPTS[:1], "measure": differing_answers, "claim": 0}
    for method in METHODS:
        worst_of_rows(CASES[name], method, rows, [other], **how)


def differing_answers(draws, others):
    return sum(not np.array_equal(a.true, b.true) for a, b in zip(draws, others, strict=True))


def test_every_unit_is_removed():
    """A user's rows in one slice are removed where slices are; no curator sees a report."""
    rows, grid = rows_of([2], 1), Grid(size=2)
    built = (release_of(case, grid, rows, RecordingSampler()) for case in CASES.values())
    found = {release.unit.kind for release in built}
    sliced = counted_unit(PrivacyUnit(kind="user", max_contributions=1), "slice").kind
    assert found | {sliced} == set(get_args(Kind)) - {"report"}


@pytest.mark.parametrize("crowd", BOUNDED.values(), ids=BOUNDED)
def test_bounds_and_counts_together_tell_no_more_than_epsilon(crowd):
    assert worst(CASES["private bounds"], [crowd], METHODS[:1]) == 1


def test_rows_outside_the_boundary_move_nothing():
    """They come and go; the answers must tell nothing at all of them."""
    inside = rows_of([4, 3, 2, 1], 1)
    inside = inside[inside[:, 3] != 8]
    outside = np.array([[user, 0, 0, 8] for user in (0, 0, 5, 6, 6, 6)])
    for method in (Grid(size=SIDE), *METHODS):
        more = np.concatenate([outside, inside])
        worst_of_rows(CASES["boundary"], method, inside, [more], claim=0)


def test_a_user_of_several_days_costs_an_epsilon_for_each():
    """What the unit user-day says in words: T days, T epsilon."""
    rows = np.array([[0, day, 12, 4] for day in range(3) for _ in range(2)])
    how = {"measure": moved_loss, "claim": 3}
    assert worst_of_rows(CASES["user-day"], Grid(size=2), rows, [rows[:0]], **how) == 3
