"""Planted bugs of units: bounding, shares and choices that leak, each to be caught by replay."""

from __future__ import annotations

import dataclasses
from contextlib import contextmanager

import numpy as np
from planted import half_as_sensitivity_of_every_quantile, replaced

import psd.intake
import psd.reading
from psd import bound_choice, private_bounds
from psd.curator import Curator
from psd.shelf import Shelf, _joined


def bounding_by_row_numbers():
    """The kept rows of a user are those whose numbers in the file hash to the smallest marks."""

    def keep(units, salt, cells, time, k):
        mark = (np.arange(len(units)) + 3) * 7919 % 31
        order = np.lexsort((mark, units))
        starts = np.flatnonzero(np.diff(units[order], prepend=-1))
        number = np.arange(len(units)) - np.repeat(starts, np.diff(np.append(starts, len(units))))
        return order[number < k]

    return _in_module(psd.intake, "keep", keep)


def bounding_batch_by_batch():
    """k rows of a user are kept of each batch that was read."""

    class Hasty(Shelf):
        def add(self, *rows):
            super().add(*rows)
            self._put_away()

        def parts(self, *, again=False):
            for piece in (piece for pieces in self._pieces for piece in pieces):
                yield _joined([piece])

    return _in_module(psd.intake, "Shelf", Hasty)


def a_quota_for_all():
    """So many rows are kept in all, whoever they are of."""

    def keep(units, salt, cells, time, k):
        return np.arange(min(len(units), 2 * k))

    return _in_module(psd.intake, "keep", keep)


def whole_users_in_every_cell():
    """Distinct users per cell at scale 1 / epsilon: a user counts as one in each of them."""
    return _in_module(psd.intake, "shares", lambda units, weight: np.full(len(units), weight))


def shares_of_all_rows():
    """The weight of a row follows from the number of all rows instead of its user's."""

    def shares(units, weight):
        return np.full(len(units), weight * len(np.unique(units)) // max(len(units), 1))

    return _in_module(psd.intake, "shares", shares)


def shares_rounded_up():
    """Shares are rounded up, so that those of a user add up to more than M."""
    return _in_module(psd.intake, "shares", lambda units, M: -(-M // np.bincount(units))[units])


def days_bounded_by_user_alone():
    """k rows of a user in all, where a day of the user is the unit."""
    return replaced(psd.intake.Intake, "_units", lambda self, part: part.users)


def days_of_another_zone():
    """Days begin at midnight in UTC, nine hours after those of the zone."""
    original, nine_hours = psd.intake.Intake._units, 9 * 3_600_000_000

    def units(self, part):
        return original(self, dataclasses.replace(part, time=part.time - nine_hours))

    return replaced(psd.intake.Intake, "_units", units)


def days_share_one_bound():
    """Each day is bounded, and the noise is that of one row."""
    original = psd.reading.count_rows

    def count_rows(*arguments, **options):
        counted = original(*arguments, **options)
        unit = dataclasses.replace(counted.unit, max_contributions=1)
        tally = dataclasses.replace(counted.tally, contributions=1)
        return dataclasses.replace(counted, unit=unit, tally=tally)

    return _in_module(psd.publish, "count_rows", count_rows)


def choice_counts_rows():
    """The choice of a bound counts rows over it, of which a user has many."""
    original = bound_choice.choose_bound
    return _in_module(
        psd.reading,
        "choose_bound",
        lambda rows, *rest: original(np.repeat(rows, rows), *rest),
    )


def choice_of_sensitivity_one_half():
    """The choice of a bound is drawn as if a user changed a score by 1/2."""
    original = bound_choice.choose_bound

    def choose_bound(rows, choice, epsilon, noise):
        class Halved:
            def select(_, candidates, nano, sensitivity):
                return noise.select(candidates, 2 * nano, sensitivity)

        return original(rows, choice, epsilon, Halved())

    return _in_module(psd.reading, "choose_bound", choose_bound)


def choice_without_charge():
    """The bound is a quantile of the data, for nothing."""
    return _in_module(
        psd.reading,
        "choose_bound",
        lambda rows, *rest: int(np.sort(rows)[int(0.8 * len(rows))]) if len(rows) else 1,
    )


def choice_that_is_not_deducted():
    """The bound is chosen for its price, and the method gets all of epsilon."""
    original = psd.reading.count_rows

    def count_rows(*arguments, **options):
        return dataclasses.replace(original(*arguments, **options), paid=0)

    return _in_module(psd.publish, "count_rows", count_rows)


def outside_dropped_only_at_counting():
    """Rows outside the boundary stay in the tally; the cells outside are said to be empty."""
    return replaced(psd.intake.Intake, "_wanted", lambda *_: None)


@contextmanager
def exact_counts_outside():
    """The same, and cells outside are answered with what is in them, without noise."""
    original = Curator.count

    def count(self, cells, epsilon):
        found, (growing, points) = original(self, cells, epsilon), self._layers[cells.layer]
        outside = ~self.held(cells)
        found[outside] = points.count(cells.nodes[outside])
        growing.measure(cells.nodes[outside], found[outside], 0)
        return found

    with outside_dropped_only_at_counting(), replaced(Curator, "count", count):
        yield


def sides_that_are_not_added():
    """Each side of the bounds is paid as if it were the only one."""
    original = private_bounds.find_bounds

    def find_bounds(counts, how, epsilon, noise):
        class Dearer:
            def select(_, candidates, nano, sensitivity):
                return noise.select(candidates, 4 * nano, sensitivity)

        return original(counts, how, epsilon, Dearer())

    return _in_module(psd.reading, "find_bounds", find_bounds)


def bounds_of_the_data():
    """The bounds are the box around the rows, for nothing."""

    def find_bounds(counts, how, epsilon, noise):
        sides = [counts.columns.min(initial=0), counts.rows.min(initial=0)]
        sides += [counts.columns.max(initial=0) + 1, counts.rows.max(initial=0) + 1]
        bounds = tuple(how.outer.from_lattice(np.array([sides]))[0].tolist())
        return dataclasses.replace(how.outer, bounds=bounds, lattice=how.lattice)

    return _in_module(psd.reading, "find_bounds", find_bounds)


def _in_module(module, name, value):
    """Replace a function where it is used."""
    return replaced(module, name, value)


# A patch, and the unit that shows it.
LEAKS = {
    "bounding by row numbers": (bounding_by_row_numbers, "user"),
    "bounding batch by batch": (bounding_batch_by_batch, "user"),
    "days bounded batch by batch": (bounding_batch_by_batch, "user-day"),
    "a quota for all": (a_quota_for_all, "user"),
    "days bounded by user alone": (days_bounded_by_user_alone, "user-day"),
    "days of another zone": (days_of_another_zone, "user-day"),
    "days bounded by row numbers": (bounding_by_row_numbers, "user-day"),
    "noise of a day for one row": (days_share_one_bound, "user-day"),
    "whole users in every cell": (whole_users_in_every_cell, "users"),
    "shares of all rows": (shares_of_all_rows, "users"),
    "shares rounded up": (shares_rounded_up, "users"),
    "choice counts rows": (choice_counts_rows, "auto"),
    "choice of sensitivity 1/2": (choice_of_sensitivity_one_half, "auto"),
    "choice without charge": (choice_without_charge, "auto"),
    "choice that is not deducted": (choice_that_is_not_deducted, "auto"),
    "quantiles of the bounds with 1/2": (half_as_sensitivity_of_every_quantile, "private bounds"),
    "sides that are not added": (sides_that_are_not_added, "private bounds"),
    "bounds of the data": (bounds_of_the_data, "private bounds"),
    "bounds that are not deducted": (choice_that_is_not_deducted, "private bounds"),
}
