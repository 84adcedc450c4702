"""Planted bugs of units: bounding, shares and choices that leak, each to be caught by replay."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

import psd.ingest.tally_builder
import psd.publish.count_rows
from privacy.planted_bugs.mutant import Mutant, replaced
from privacy.planted_bugs.selection import half_as_sensitivity_of_every_quantile
from psd.curator import contribution_choice as bound_choice
from psd.curator import private_bounds
from psd.curator.curator import Curator
from psd.errors import InputDataError, ReleaseFormatError
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.ingest.user_partitions import UserPartitions, _joined
from psd.privacy.budget import Budget
from psd.privacy.unit import PrivacyUnit
from psd.space.domain import Domain
from support.privacy.samplers import AlteredSampler
from support.privacy.units_replay import CASES, CROWDS, METHODS, SLOW, outside_alone, worst

# Checks


@dataclass(frozen=True)
class Removed:
    """Whole units are removed, and the answers given back."""

    unit: str
    methods: int = 1

    def __call__(self, *_):
        crowds = ([3], [9, 1, 1], [2, 2, 2]) if self.unit in SLOW else CROWDS
        with pytest.MonkeyPatch.context() as patch:
            worst(CASES[self.unit], patch, crowds, METHODS[: self.methods])


def rows_outside_move_nothing(*_):
    with pytest.MonkeyPatch.context() as patch:
        outside_alone(patch)


def _kept(*ids, k=1):
    """Number of rows that are kept of users with these ids, all at one place."""
    domain = Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857", lattice=(1, 1))
    places = np.full(len(ids), 0.5)
    batch = Batch(x=places, y=places, user=pa.array(ids, pa.string()))
    unit = PrivacyUnit(kind="user", max_contributions=k)
    return int(tally_batches([batch], domain, unit=unit).counts.sum())


def one_user_has_one_id(*_):
    """Spellings of an id that nobody tells apart."""
    assert _kept("Zoe\u0301", "Zo\u00e9", " Zo\u00e9", "Zo\u00e9\ufeff") == 1


def two_users_have_two_ids(*_):
    assert _kept("007", "7", "7.0", "9007199254740993", "9007199254740992") == 5


def rows_without_an_id_are_refused(*_):
    try:
        kept = _kept("ann", None, "NULL", "")
    except InputDataError:
        return
    raise AssertionError(f"{kept} rows were kept")


# Bugs


def bounding_by_row_numbers():
    """The kept rows of a user are those whose numbers in the file hash to the smallest marks."""

    def keep(units, salt, cells, time, k):
        mark = (np.arange(len(units)) + 3) * 7919 % 31
        order = np.lexsort((mark, units))
        starts = np.flatnonzero(np.diff(units[order], prepend=-1))
        number = np.arange(len(units)) - np.repeat(starts, np.diff(np.append(starts, len(units))))
        return order[number < k]

    return replaced(psd.ingest.tally_builder, "keep_smallest", keep)


def bounding_batch_by_batch():
    """k rows of a user are kept of each batch that was read."""

    class Hasty(UserPartitions):
        def add_rows(self, *rows):
            super().add_rows(*rows)
            self._put_away()

        def partitions(self, *, again=False):
            for piece in (piece for pieces in self._pieces for piece in pieces):
                yield _joined([piece])

    return replaced(psd.ingest.tally_builder, "UserPartitions", Hasty)


def a_quota_for_all():
    """So many rows are kept in all, whoever they are of."""

    def keep(units, salt, cells, time, k):
        return np.arange(min(len(units), 2 * k))

    return replaced(psd.ingest.tally_builder, "keep_smallest", keep)


def whole_users_in_every_cell():
    """Distinct users per cell at scale 1 / epsilon: a user counts as one in each of them."""
    return replaced(
        psd.ingest.tally_builder, "user_weights", lambda units, weight: np.full(len(units), weight)
    )


def shares_of_all_rows():
    """The weight of a row follows from the number of all rows instead of its user's."""

    def shares(units, weight):
        return np.full(len(units), weight * len(np.unique(units)) // max(len(units), 1))

    return replaced(psd.ingest.tally_builder, "user_weights", shares)


def shares_rounded_up():
    """Shares are rounded up, so that those of a user add up to more than M."""
    return replaced(
        psd.ingest.tally_builder,
        "user_weights",
        lambda units, M: -(-M // np.bincount(units))[units],
    )


def days_bounded_by_user_alone():
    """k rows of a user in all, where a day of the user is the unit."""
    return replaced(psd.ingest.tally_builder.TallyBuilder, "_units", lambda self, part: part.users)


def days_of_another_zone():
    """Days begin at midnight in UTC, nine hours after those of the zone."""
    original, nine_hours = psd.ingest.tally_builder.TallyBuilder._units, 9 * 3_600_000_000

    def units(self, part):
        return original(self, dataclasses.replace(part, time=part.time - nine_hours))

    return replaced(psd.ingest.tally_builder.TallyBuilder, "_units", units)


def days_share_one_bound():
    """Each day is bounded, and the noise is that of one row."""
    original = psd.publish.count_rows.count_rows

    def count_rows(*arguments, **options):
        counted = original(*arguments, **options)
        unit = dataclasses.replace(counted.unit, max_contributions=1)
        tally = dataclasses.replace(counted.tally, contributions=1)
        return dataclasses.replace(counted, unit=unit, tally=tally)

    return replaced(psd.publish.build, "count_rows", count_rows)


def choice_counts_rows():
    """The choice of a bound counts rows over it, of which a user has many."""
    original = bound_choice.choose_bound
    return replaced(
        psd.publish.count_rows,
        "choose_bound",
        lambda rows, *rest: original(np.repeat(rows, rows), *rest),
    )


def _of_epsilon(times, sampler):
    """Draws as if epsilon were so many times what is charged."""
    return AlteredSampler(lambda m: dataclasses.replace(m, epsilon=times * m.epsilon), sampler)


def choice_of_sensitivity_one_half():
    """The choice of a bound is drawn as if a user changed a score by 1/2."""
    original = bound_choice.choose_bound

    def choose_bound(rows, choice, budget, sampler):
        return original(rows, choice, budget, _of_epsilon(2, sampler))

    return replaced(psd.publish.count_rows, "choose_bound", choose_bound)


def choice_without_charge():
    """The bound is a quantile of the data, for nothing."""
    return replaced(
        psd.publish.count_rows,
        "choose_bound",
        lambda rows, *rest: int(np.sort(rows)[int(0.8 * len(rows))]) if len(rows) else 1,
    )


def choice_that_is_not_deducted():
    """The bound is chosen for its price, and the method gets all of epsilon."""
    allot = Budget.allot

    def undeducted(self, *arguments, **options):
        part = allot(self, *arguments, **options)
        self._spent -= part.total
        return part

    return replaced(Budget, "allot", undeducted)


def outside_dropped_only_at_counting():
    """Rows outside the boundary stay in the tally; the cells outside are said to be empty."""
    return replaced(psd.ingest.tally_builder.TallyBuilder, "_wanted", lambda *_: None)


@contextmanager
def exact_counts_outside():
    """The same, and cells outside are answered with what is in them, without noise."""
    original = Curator.count

    def count(self, cells, epsilon):
        found, layer = original(self, cells, epsilon), self._layers[cells.layer]
        outside = ~self.inside_boundary(cells)
        found[outside] = layer.points.count(cells.nodes[outside])
        layer.growing.measure(cells.nodes[outside], found[outside], 0)
        return found

    with outside_dropped_only_at_counting(), replaced(Curator, "count", count):
        yield


def sides_that_are_not_added():
    """Each side of the bounds is paid as if it were the only one."""
    original = private_bounds.find_bounds

    def find_bounds(counts, how, budget, sampler):
        return original(counts, how, budget, _of_epsilon(4, sampler))

    return replaced(psd.publish.count_rows, "find_bounds", find_bounds)


def bounds_of_the_data():
    """The bounds are the box around the rows, for nothing."""

    def find_bounds(counts, how, budget, sampler):
        sides = [counts.columns.min(initial=0), counts.rows.min(initial=0)]
        sides += [counts.columns.max(initial=0) + 1, counts.rows.max(initial=0) + 1]
        bounds = tuple(how.outer.from_lattice(np.array([sides]))[0].tolist())
        return dataclasses.replace(how.outer, bounds=bounds, lattice=how.lattice)

    return replaced(psd.publish.count_rows, "find_bounds", find_bounds)


def ids_as_they_are():
    return replaced(psd.ingest.tally_builder, "normalise_ids", lambda ids: ids.cast(pa.string()))


def ids_as_numbers():
    """Ids that look like numbers are numbers, as a table without types has them."""
    original = psd.ingest.tally_builder.normalise_ids

    def plain(name):
        return str(float(name)) if name and name.replace(".", "").isdigit() else name

    def numbers(ids):
        return pa.array([plain(name) for name in original(ids).to_pylist()], pa.string())

    return replaced(psd.ingest.tally_builder, "normalise_ids", numbers)


def a_user_for_each_missing_id():
    original = psd.ingest.tally_builder.normalise_ids

    def filled(ids):
        names = original(ids).to_pylist()
        return pa.array([name or f"nobody {at}" for at, name in enumerate(names)], pa.string())

    return replaced(psd.ingest.tally_builder, "normalise_ids", filled)


REMOVED = "tests/privacy/test_units_replay.py::test_a_whole_unit_changes_no_more_than_epsilon"
BOUNDS = (
    "tests/privacy/test_units_replay.py::test_bounds_and_counts_together_tell_no_more_than_epsilon"
)
OUTSIDE = "tests/privacy/test_units_replay.py::test_rows_outside_the_boundary_move_nothing"


def _removed(id, unit, plant, wrong, like, methods=1):
    """A bug that the removal of a unit shows."""
    test = BOUNDS if unit in SLOW else REMOVED
    check = Removed(unit, methods)
    return Mutant(id=id, wrong=wrong, like=like, plant=plant, check=check, test=test)


ORDER = "bounding that looks at more than the user's own rows"
CHOICE = "choices by the data that nobody charges in full"
MUTANTS = (
    _removed(
        "bounding-by-row-numbers",
        "user",
        bounding_by_row_numbers,
        "the rows kept of a user follow from a hash of their numbers in the file",
        ORDER,
    ),
    _removed(
        "days-bounded-by-row-numbers",
        "user-day",
        bounding_by_row_numbers,
        "the rows kept of a user's day follow from a hash of their numbers in the file",
        ORDER,
    ),
    _removed(
        "bounding-batch-by-batch",
        "user",
        bounding_batch_by_batch,
        "k rows of a user are kept of each batch that was read",
        "bounding by the order or the partition of a file",
    ),
    _removed(
        "days-bounded-batch-by-batch",
        "user-day",
        bounding_batch_by_batch,
        "k rows of a user's day are kept of each batch that was read",
        "bounding by the order or the partition of a file",
    ),
    _removed(
        "a-quota-for-all",
        "user",
        a_quota_for_all,
        "so many rows are kept in all, the first of the file",
        "global limits and samples",
    ),
    _removed(
        "days-bounded-by-user",
        "user-day",
        days_bounded_by_user_alone,
        "k rows of a user are kept in all, where a day of the user is the unit",
        "another unit than the promise has",
    ),
    _removed(
        "days-of-another-zone",
        "user-day",
        days_of_another_zone,
        "days begin at midnight in another time zone than the promise says",
        "another unit than the promise has",
    ),
    _removed(
        "noise-of-a-day-for-one-row",
        "user-day",
        days_share_one_bound,
        "each day is bounded to k rows, and the noise is that of one",
        "sensitivity 1 for k = 2",
    ),
    _removed(
        "whole-users-in-every-cell",
        "users",
        whole_users_in_every_cell,
        "distinct users are counted in each cell, with noise for one of them",
        "distinct counts at scale 1 / epsilon, where a user is in many cells",
    ),
    _removed(
        "shares-of-all-rows",
        "users",
        shares_of_all_rows,
        "the weight of a row follows from the number of all rows, not of its user's",
        ORDER,
    ),
    _removed(
        "weights-rounded-up",
        "users",
        shares_rounded_up,
        "the weights of a user's rows are rounded up, and add up to more than one user",
        "weights without the floor",
    ),
    _removed(
        "choice-counts-rows",
        "auto",
        choice_counts_rows,
        "the bound per user is chosen by a score over rows, of which a user has many",
        CHOICE,
    ),
    _removed(
        "choice-of-sensitivity-half",
        "auto",
        choice_of_sensitivity_one_half,
        "the bound per user is drawn as if a user changed a score by 1/2",
        CHOICE,
    ),
    _removed(
        "choice-without-charge",
        "auto",
        choice_without_charge,
        "the bound per user is a quantile of the data, for nothing",
        CHOICE,
    ),
    _removed(
        "choice-not-deducted",
        "auto",
        choice_that_is_not_deducted,
        "the bound per user is paid for, and the method gets all of epsilon",
        CHOICE,
    ),
    _removed(
        "bounds-of-the-data",
        "private bounds",
        bounds_of_the_data,
        "the bounds are the box around the rows, for nothing",
        "bounds from min and max",
    ),
    _removed(
        "bounds-with-half",
        "private bounds",
        half_as_sensitivity_of_every_quantile,
        "the quantiles of private bounds have the sensitivity of the median",
        "quantiles other than the median (h-trees, private bounds)",
    ),
    _removed(
        "bounds-sides-not-added",
        "private bounds",
        sides_that_are_not_added,
        "each side of private bounds is paid as if it were the only one",
        CHOICE,
    ),
    _removed(
        "bounds-not-deducted",
        "private bounds",
        choice_that_is_not_deducted,
        "private bounds are paid for, and the method gets all of epsilon",
        CHOICE,
    ),
    Mutant(
        id="boundary-at-counting",
        wrong="rows outside a boundary are dropped only where counts are published",
        like="points whose cells get no budget, and which answers still read",
        plant=outside_dropped_only_at_counting,
        check=rows_outside_move_nothing,
        test=OUTSIDE,
    ),
    Mutant(
        id="boundary-counts-exact",
        wrong="cells outside a boundary are answered without noise with what is in them",
        like="cells that are said to be empty and are not",
        plant=exact_counts_outside,
        check=rows_outside_move_nothing,
        caught=ReleaseFormatError,
        test=OUTSIDE,
    ),
    Mutant(
        id="ids-as-they-are",
        wrong="one user is several, by accents, spaces and marks that nobody sees",
        like="aliases of ids",
        plant=ids_as_they_are,
        check=one_user_has_one_id,
        test="tests/unit/ingest/test_tally_builder.py::test_spellings_that_nobody_tells_apart_are_one_user",
    ),
    Mutant(
        id="ids-as-numbers",
        wrong="007 and 7 are one user, and so are whole numbers beyond 2^53",
        like="columns of ids that a table without types takes for numbers",
        plant=ids_as_numbers,
        check=two_users_have_two_ids,
        test="tests/unit/ingest/test_tally_builder.py::test_ids_that_look_like_numbers_are_text",
    ),
    Mutant(
        id="ids-missing",
        wrong="rows without an id are each a user of their own",
        like="missing values that become somebody",
        plant=a_user_for_each_missing_id,
        check=rows_without_an_id_are_refused,
        test="tests/unit/ingest/test_tally_builder.py::test_a_row_inside_without_id_is_refused",
    ),
)
