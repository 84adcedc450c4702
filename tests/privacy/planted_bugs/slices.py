"""Planted bugs of time slices: users in several of them, and slices that the data name."""

from dataclasses import replace

from privacy.planted_bugs.bug import around, like, planted, replaced
from psd.apps.spark.expression import is_inside
from psd.privacy.budget import Budget
from psd.space.time_slices import TimeSlices

REPLAY = "tests/privacy/test_slices_replay.py::"
USERS = REPLAY + "test_a_user_of_many_slices_costs_no_more_than_epsilon"
NAIVE = "tests/oracle/test_counting_naive.py::"
ENGINE = "tests/apps/spark/test_expression.py::"
MARKS = "tests/oracle/test_marks_naive.py::"
DISJOINT = "time slices taken for disjoint users"


@planted(test=USERS + "[everywhere-series-1]", like=DISJOINT)
@around("support.privacy.slices_replay.counted_unit")
def k_per_slice_in_parallel(counted, unit, bound):
    """Users are bounded slice by slice, and the slices accounted as parallel."""
    return counted(unit, "slice")


@planted(test=USERS + "[everywhere-slice-1]", like=DISJOINT)
def epsilon_for_each_slice():
    """Each slice of a bound per slice is given all of epsilon."""
    return replaced("psd.privacy.budget.Budget.in_sequence", Budget.in_parallel)


@planted(test=NAIVE + "test_every_engine_keeps_the_same_records_of_each_slice[(9, 2)]")
@like("a limit per user where one per user and slice is stated")
def limit_of_a_slice_for_the_user():
    """The limit of each slice is taken for a user in all slices."""
    return replaced("psd.ingest.tally_builder.number_slices", lambda users, *_: users)


@planted(test=MARKS + "test_kept_rows_with_a_limit_in_each_slice[0-2147483647-limits1]")
@like("slices that hold more records of a user than the noise is made for")
@around("psd.ingest.contribution_bounding.smallest_in_order")
def limit_of_a_slice_forgotten(sound, order, users, of_slices, limits):
    """Records of a user are limited in all slices, and not in each of them."""
    return sound(order, users, of_slices, (limits[0], limits[0]))


@planted(test=ENGINE + "test_slice_by_slice[user, some in each slice-day]")
@like("slices that hold more records of a user than the noise is made for")
@around("psd.apps.spark.expression._keep_smallest")
def limit_of_a_slice_forgotten_by_an_engine(original, rows, unit, key):
    """An engine limits the records of a user in all slices, and not in each of them."""
    return original(rows, replace(unit, max_per_slice=None), key)


@planted(test=ENGINE + "test_slice_by_slice[user-slice-hour]")
@like("a limit per user and part of the table where one per user is stated")
@around("psd.apps.spark.expression.add_slices")
def times_outside_all_slices_counted_by_an_engine(original, rows, slices, domain, share):
    """An engine counts a record outside all slices in the first of them."""
    made = original(rows, slices, domain, share)
    made = made.mutate(slice=made["slice"].fill_null(0))
    return made.mutate(inside=is_inside(made, domain))


@planted(test=REPLAY + "test_one_row_lies_in_one_slice")
@like("categories and groups from the data")
@around("support.privacy.slices_replay.run")
def slices_of_the_data(original, rows, unit, bound, noises, **options):
    """The slices are the days that occur, so that a lone row makes one."""
    names = tuple(sorted({f"2024-01-0{1 + day}" for _, day, _ in rows}))
    occurring = TimeSlices(by="day", names=names)
    return original(rows, unit, bound, noises, slices=occurring, **options)
