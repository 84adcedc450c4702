"""Planted bugs of time slices: users in several of them, and slices that the data name."""

from __future__ import annotations

import psd.ingest.contribution_bounding
import psd.ingest.tally_builder
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
    test="tests/oracle/test_counting_naive.py::"
    "test_every_engine_keeps_the_same_records_of_each_slice[(9, 2)]",
    like="a limit per user where one per user and slice is stated",
)
def limit_of_a_slice_for_the_user():
    """The limit of each slice is taken for a user in all slices."""
    return replaced(psd.ingest.tally_builder, "number_slices", lambda users, *_: users)


@planted(
    test="tests/oracle/test_marks_naive.py::"
    "test_kept_rows_with_a_limit_in_each_slice[0-2147483647-limits1]",
    like="slices that hold more records of a user than the noise is made for",
)
def limit_of_a_slice_forgotten():
    """Records of a user are limited in all slices, and not in each of them."""
    module = psd.ingest.contribution_bounding
    sound = module.smallest_in_order

    def smallest(order, users, of_slices, limits):
        return sound(order, users, of_slices, (limits[0], limits[0]))

    return replaced(module, "smallest_in_order", smallest)


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
