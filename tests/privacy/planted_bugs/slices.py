"""Planted bugs of time slices: users in several of them, and slices that the data name."""

from __future__ import annotations

import psd.publish.series
from privacy.planted_bugs.mutant import Mutant, replaced
from psd.privacy.budget import Budget
from psd.privacy.unit import PrivacyUnit
from psd.space.time_slices import TimeSlices
from support.privacy import slices_replay
from support.privacy.slices_replay import loss_of

USER = PrivacyUnit(kind="user", max_contributions=1)
EVERY_DAY = [("u", day, 0) for day in range(3)]


def user_of_every_day(bound, _):
    loss_of(EVERY_DAY, USER, bound)


def row_of_another_day(*_):
    loss_of([("u", 3, 0)], PrivacyUnit(), "series")


def k_per_slice():
    """Users are bounded slice by slice, where epsilon is that of a bound over all."""
    counted = psd.publish.series.counted_unit
    return replaced(slices_replay, "counted_unit", lambda unit, bound: counted(unit, "slice"))


def epsilon_for_each_slice():
    return replaced(Budget, "in_sequence", Budget.in_parallel)


def slices_of_the_data():
    """The days that occur."""

    class Found(TimeSlices):
        def __init__(self, rows):
            names = tuple(sorted({f"2024-01-0{1 + day}" for _, day, _ in rows}))
            super().__init__(by="day", names=names)

    original = slices_replay.run

    def peeking(rows, unit, bound, noises, **options):
        return original(rows, unit, bound, noises, slices=Found(rows), **options)

    return replaced(slices_replay, "run", peeking)


USERS = "tests/privacy/test_slices_replay.py::test_a_user_of_many_slices_costs_no_more_than_epsilon"

MUTANTS = (
    Mutant(
        id="k-per-slice-in-parallel",
        wrong="users are bounded slice by slice, and the slices accounted as parallel",
        like="time slices taken for disjoint users",
        plant=k_per_slice,
        check=user_of_every_day,
        sound="series",
        test=USERS,
    ),
    Mutant(
        id="epsilon-for-each-slice",
        wrong="each slice of a bound per slice is given all of epsilon",
        like="time slices taken for disjoint users",
        plant=epsilon_for_each_slice,
        check=user_of_every_day,
        sound="slice",
        test=USERS,
    ),
    Mutant(
        id="slices-of-the-data",
        wrong="the slices are the days that occur, so that a lone row makes one",
        like="categories and groups from the data",
        plant=slices_of_the_data,
        check=row_of_another_day,
        test="tests/privacy/test_slices_replay.py::test_one_row_and_the_days_of_a_user_lie_in_one_"
        "slice",
    ),
)
