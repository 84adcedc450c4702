"""Planted bugs of units of privacy: bounding, shares and choices that leak."""

from dataclasses import replace
from functools import wraps

import numpy as np
import pyarrow as pa

from privacy.planted_bugs.bug import around, instead, like, planted, replaced, together
from privacy.planted_bugs.metadata import box_around
from privacy.planted_bugs.selection import half_as_sensitivity_of_every_quantile
from psd.ingest.user_partitions import UserPartitions, _join
from support.privacy.samplers import AlteredSampler

REPLAY = "tests/privacy/test_units_replay.py::"
REMOVED = REPLAY + "test_a_whole_unit_changes_no_more_than_epsilon"
BOUNDS = REPLAY + "test_bounds_and_counts_together_tell_no_more_than_epsilon[one]"
OUTSIDE = REPLAY + "test_rows_outside_the_boundary_move_nothing"
IDS = "tests/unit/ingest/test_tally_builder.py::"

ORDER = "bounding that looks at more than the user's own rows"
PARTITION = "bounding by the order or the partition of a file"
OTHER_UNIT = "another unit than the release states"
CHOICE = "choices by the data that are not charged in full"


@instead("psd.ingest.tally_builder.keep_smallest")
def kept_by_row_numbers(units, salt, cells, time, k, values):
    hashes = (np.arange(len(units)) + 3) * 7919 % 31
    order = np.lexsort((hashes, units))
    starts = np.flatnonzero(np.diff(units[order], prepend=-1))
    number = np.arange(len(units)) - np.repeat(starts, np.diff(np.append(starts, len(units))))
    return order[number < k]


@planted(test=REMOVED + "[False-user]", like=ORDER)
def bounding_by_row_numbers():
    """The rows kept of a user follow from a hash of their numbers in the file."""
    return kept_by_row_numbers()


@planted(test=REMOVED + "[False-user-day]", like=ORDER)
def days_bounded_by_row_numbers():
    """The rows kept of a user's day follow from a hash of their numbers in the file."""
    return kept_by_row_numbers()


def kept_batch_by_batch():
    class Hasty(UserPartitions):
        def add_rows(self, *rows):
            super().add_rows(*rows)
            self._partition_waiting()

        def partitions(self, *, again=False):
            for piece in (piece for pieces in self._pieces for piece in pieces):
                yield _join([piece])

    return replaced("psd.ingest.tally_builder.UserPartitions", Hasty)


@planted(test=REMOVED + "[False-user]", like=PARTITION)
def bounding_batch_by_batch():
    """The bound k of a user holds for each batch that was read, not for all of them."""
    return kept_batch_by_batch()


@planted(test=REMOVED + "[False-user-day]", like=PARTITION)
def days_bounded_batch_by_batch():
    """The bound k of a user's day holds for each batch that was read, not for all of them."""
    return kept_batch_by_batch()


@planted(test=REMOVED + "[False-user]", like="global limits and samples")
@instead("psd.ingest.tally_builder.keep_smallest")
def a_quota_for_all(units, salt, cells, time, k, values):
    """A limited number of rows is kept in all, the first of the file."""
    return np.arange(min(len(units), 2 * k))


@planted(test=REMOVED + "[False-user-day]", like=OTHER_UNIT)
def days_bounded_by_user():
    """The bound k is that of a user, where a day of the user is the unit."""
    return replaced("psd.ingest.tally_builder.TallyBuilder._units", lambda self, part: part.users)


@planted(test=REMOVED + "[False-user-day]", like=OTHER_UNIT)
@around("psd.ingest.tally_builder.TallyBuilder._units")
def days_of_another_zone(original, self, part):
    """Days begin at midnight in another time zone than the release states."""
    return original(self, replace(part, time=part.time - 9 * 3_600_000_000))


@planted(test=REMOVED + "[False-user-day]", like="sensitivity 1 for k = 2")
@around("psd.publish.counting.count_rows")
def noise_of_a_day_for_one_row(original, *arguments, **options):
    """Each day is bounded to k rows, and the noise is that of one."""
    counted = original(*arguments, **options)
    unit, tally = replace(counted.unit, max_contributions=1), counted.tally
    return replace(counted, unit=unit, tally=replace(tally, contributions=1))


WEIGHTS = "psd.ingest.tally_builder.user_weights"
CHOOSE = "psd.publish.counting.choose_contribution_bound"
FIND = "psd.publish.counting.find_bounds"


@planted(test=REMOVED + "[False-users]")
@like("distinct counts at scale 1 / epsilon, where a user is in many cells")
def whole_users_in_every_cell():
    """Distinct users are counted in each cell, with noise for one of them."""
    return replaced(WEIGHTS, lambda units, weight: np.full(len(units), weight))


@planted(test=REMOVED + "[False-users]", like=ORDER)
@instead(WEIGHTS)
def shares_of_all_rows(units, weight):
    """The weight of a row follows from the number of all rows, not of its user's."""
    return np.full(len(units), weight * len(np.unique(units)) // max(len(units), 1))


@planted(test=REMOVED + "[False-users]", like="weights without the floor")
def weights_rounded_up():
    """The weights of a user's rows are rounded up, and add up to more than one user."""
    return replaced(WEIGHTS, lambda units, weight: -(-weight // np.bincount(units))[units])


@planted(test=REMOVED + "[False-auto]", like=CHOICE)
@around(CHOOSE)
def choice_counts_rows(original, rows, *rest):
    """The bound per user is chosen by a score over rows, of which a user has many."""
    return original(np.repeat(rows, rows), *rest)


def of_epsilon(times, sampler):
    """Draws as if epsilon were larger than what is charged."""
    return AlteredSampler(lambda m: replace(m, epsilon=times * m.epsilon), sampler)


@planted(test=REMOVED + "[False-auto]", like=CHOICE)
@around(CHOOSE)
def choice_of_sensitivity_half(original, rows, choice, budget, sampler):
    """The bound per user is drawn as if a user changed a score by 1/2."""
    return original(rows, choice, budget, of_epsilon(2, sampler))


@planted(test=REMOVED + "[False-auto]", like=CHOICE)
@instead(CHOOSE)
def choice_without_charge(rows, *rest):
    """The bound per user is a quantile of the data, for nothing."""
    return int(np.sort(rows)[int(0.8 * len(rows))]) if len(rows) else 1


@around("psd.privacy.budget.Budget.allot")
def spent_and_given_again(allot, self, *arguments, **options):
    """What is allotted to a private choice is not deducted from what the method gets."""
    part = allot(self, *arguments, **options)
    self._spent -= part.total
    return part


@planted(test=REMOVED + "[False-auto]", like=CHOICE)
def choice_not_deducted():
    """The bound per user is paid for, and the method gets all of epsilon."""
    return spent_and_given_again()


@planted(test=BOUNDS, like="bounds from min and max")
@instead(FIND)
def bounds_of_the_data(counts, how, budget, sampler):
    """The bounds are the box around the rows, for nothing."""
    return replace(how.outer, bounds=box_around(counts, how.outer), lattice=how.lattice)


@planted(test=BOUNDS, like="quantiles other than the median (h-trees, private bounds)")
def bounds_with_half():
    """The quantiles of private bounds have the sensitivity of the median."""
    return half_as_sensitivity_of_every_quantile()


@planted(test=BOUNDS, like=CHOICE)
@around(FIND)
def bounds_sides_not_added(original, counts, how, budget, sampler):
    """Each side of private bounds is paid as if it were the only one."""
    return original(counts, how, budget, of_epsilon(4, sampler))


@planted(test=BOUNDS, like=CHOICE)
def bounds_not_deducted():
    """Private bounds are paid for, and the method gets all of epsilon."""
    return spent_and_given_again()


def outside_dropped_only_at_counting():
    """Rows outside the boundary stay in the tally; the cells outside are said to be empty."""
    return replaced("psd.ingest.tally_builder.RecordFilter._select", lambda *_: None)


@planted(test=OUTSIDE, like="points whose cells get no budget, and which answers still read")
def boundary_at_counting():
    """Rows outside a boundary are dropped only where counts are published."""
    return outside_dropped_only_at_counting()


@planted(test=OUTSIDE, like="cells that are said to be empty and are not")
def boundary_counts_exact():
    """Cells outside a boundary are answered without noise with what is in them."""

    @around("psd.curator.curator.Curator.count")
    def count(original, self, cells, epsilon):
        answer, layer = original(self, cells, epsilon), self._layers[cells.layer]
        outside = ~self.inside_boundary(cells)
        answer[outside] = layer.points.count(cells.nodes[outside])
        layer.growing.measure(cells.nodes[outside], answer[outside], 0)
        return answer

    return together(outside_dropped_only_at_counting(), count())


def ids_by(change):
    """Make a patch that changes ids, with the help of the sound rule."""

    @around("psd.ingest.tally_builder.normalise_ids")
    @wraps(change)
    def changed(original, ids):
        return pa.array(change(ids, original), pa.string())

    return changed


@planted(test=IDS + "test_spellings_that_nobody_tells_apart_are_one_user", like="aliases of ids")
@ids_by
def ids_as_they_are(ids, _):
    """One user is several, by accents, spaces and marks that cannot be seen."""
    return ids.cast(pa.string())


@planted(test=IDS + "test_ids_that_look_like_numbers_are_text")
@like("columns of ids that a table without types takes for numbers")
@ids_by
def ids_as_numbers(ids, original):
    """The ids 007 and 7 are one user, and so are integers beyond 2^53."""

    def plain(name):
        return str(float(name)) if name and name.replace(".", "").isdigit() else name

    return [plain(name) for name in original(ids).to_pylist()]


@planted(test=IDS + "test_a_row_without_id_is_refused_wherever_it_lies")
@like("missing values that become a user")
@ids_by
def ids_missing(ids, original):
    """Rows without an id are each a user of their own."""
    names = original(ids).to_pylist()
    return [name or f"missing {at}" for at, name in enumerate(names)]
