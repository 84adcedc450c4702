"""Planted bugs of time slices: users in several of them, and slices that the data name."""

from __future__ import annotations

import psd.privacy.unit
from privacy.planted_bugs.bug import planted, replaced
from psd.privacy.budget import Budget
from psd.space.time_slices import TimeSlices
from support.privacy import slices_replay

REPLAY = "tests/privacy/test_slices_replay.py::"
USERS = REPLAY + "test_a_user_of_many_slices_costs_no_more_than_epsilon"
DISJOINT = "time slices taken for disjoint users"


@planted(test=USERS + "[series-1]", like=DISJOINT)
def k_per_slice_in_parallel():
    """Users are bounded slice by slice, and the slices accounted as parallel."""
    counted = psd.privacy.unit.counted_unit
    return replaced(slices_replay, "counted_unit", lambda unit, bound: counted(unit, "slice"))


@planted(test=USERS + "[slice-1]", like=DISJOINT)
def epsilon_for_each_slice():
    """Each slice of a bound per slice is given all of epsilon."""
    return replaced(Budget, "in_sequence", Budget.in_parallel)


@planted(
    test=REPLAY + "test_one_row_and_the_days_of_a_user_lie_in_one_slice",
    like="categories and groups from the data",
)
def slices_of_the_data():
    """The slices are the days that occur, so that a lone row makes one."""

    class Occurring(TimeSlices):
        def __init__(self, rows):
            names = tuple(sorted({f"2024-01-0{1 + day}" for _, day, _ in rows}))
            super().__init__(by="day", names=names)

    original = slices_replay.run

    def peeking(rows, unit, bound, noises, **options):
        return original(rows, unit, bound, noises, slices=Occurring(rows), **options)

    return replaced(slices_replay, "run", peeking)
