"""Draw a series from a tally by time slices, with one curator per slice. Private side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.api.release import Release
from psd.decompositions import Decomposition
from psd.errors import InputDataError, ParameterError
from psd.ingest.tally import Batch, Tally
from psd.privacy.budget import Budget
from psd.privacy.epsilon import epsilon_text
from psd.privacy.unit import ContributionScope, PrivacyUnit, counted_unit, squared_sensitivity
from psd.publish.drawing import draw_release
from psd.release.series import SeriesRecord

if TYPE_CHECKING:
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = [
    "check_shares",
    "draw_series",
    "rows_in_slices",
    "slice_budgets",
    "slice_tally",
    "squared_of",
]


def check_shares(epsilon: int, slices: int, unit: PrivacyUnit, scope: ContributionScope) -> None:
    """Refuse a budget that leaves a slice without epsilon.

    Raises
    ------
    ParameterError
        If the bound holds per slice and no user is bounded, or a slice has no epsilon left.
    """
    counted_unit(unit, scope)
    if scope == "slice" and epsilon < slices:
        raise ParameterError(
            f"epsilon must be at least {epsilon_text(slices)}, 1e-9 for each slice, got "
            f"{epsilon_text(epsilon)}; use fewer slices, or bound the records of a user over all "
            "slices together"
        )


def slice_budgets(
    budget: Budget, slices: int, unit: PrivacyUnit, scope: ContributionScope
) -> tuple[Budget, ...]:
    """Budgets of all slices, from that of their series; `draw_series` has the proof.

    Raises
    ------
    ParameterError
        As `check_shares`.
    """
    if not budget.measure.is_pure:  # the bound of a slice is in the sensitivity
        counted_unit(unit, scope)
        return budget.in_parallel(slices)
    check_shares(budget.left, slices, unit, scope)
    return budget.in_parallel(slices) if scope == "series" else budget.in_sequence(slices)


def draw_series(
    counts: Tally,
    domain: Domain,
    slices: TimeSlices,
    *,
    scope: ContributionScope = "series",
    budget: Budget,
    method: Decomposition,
    unit: PrivacyUnit,
    **common: Any,
) -> Release:
    """Draw the series of records that were tallied by slice.

    Guarantees
    ----------
    - The series is epsilon-differentially private for adding or removing one unit; the epsilons of
      several series or releases of the same records add up.

    Parameters
    ----------
    counts : Tally
        Exact counts with the slice of each, bounded by `counted_unit`. Private.
    domain, slices
        Of the tally. Public.
    scope : {"series", "slice"}
        Of the tally. Public.
    budget : Budget
        Budget of the whole series. Every slice states what was spent before. Public.
    method : Decomposition
        How to cut space, the same for every slice. Public.
    unit : PrivacyUnit
        Unit of privacy. Public.
    **common
        As in `psd.publish.drawing.draw_release`, the same for every slice.

    Returns
    -------
    Release

    Raises
    ------
    ParameterError
        If the tally is of other slices or of another unit.

    Notes
    -----
    Parallel composition if k bounds a unit in all slices together: the slice is one more coordinate
    of the cell. Every question of the curator of slice s reads only the records of slice s, so a
    record z in slice s(z) is in the cells of that curator's questions only, and the sum S(z) of
    epsilon over all questions of all slices whose cell contains z is at most what this curator
    enforces, epsilon. With every scale and sensitivity times k, the loss of a unit with m_z records
    at z, m_1 + m_2 + ... at most k, is at most sum of S(z) m_z / k, so at most epsilon, in however
    many slices its records lie. A record lies in one slice; all records of a user's day, if they
    are the unit, are bounded together in the same way.

    Sequential composition if k bounds a user in each slice: each of the T releases is (epsilon /
    T)-differentially private for all records of a user in its slice, and basic composition adds the
    T losses [1]_. Epsilon / T is rounded down to whole nano-units, so the sum never passes epsilon.

    In rho every slice has all of rho, whatever the scope: the points of the proof of
    `psd.curator.curator.Curator` are pairs of a lattice cell and a slice, and the squared
    sensitivity is k cap, with k = T m and cap = m where m records of a user are kept in each slice.

    References
    ----------
    .. [1] McSherry. "Privacy Integrated Queries." SIGMOD 2009, theorems 3 and 4.
    """
    if counts.slice is None or counts.slice.max(initial=0) >= len(slices):
        raise ParameterError("slices must be those that the tally was counted with")
    budgets = slice_budgets(budget, len(slices), unit, scope)
    squared = squared_of(budget, unit, scope, slices)
    releases = [
        draw_release(
            slice_tally(counts, number),
            domain,
            budget=part,
            method=method,
            unit=unit,
            squared_sensitivity=squared,
            **common,
        )
        for number, part in enumerate(budgets)
    ]
    # Not `Release.from_slices`, which adds the epsilons: a record is in the tally of one slice
    # only.
    records = tuple(release.model.record for release in releases)
    return Release(SeriesRecord(slices=slices, releases=records, scope=scope))


def squared_of(
    budget: Budget, unit: PrivacyUnit, scope: ContributionScope, slices: TimeSlices | None
) -> int | None:
    """Squared sensitivity of a budget in rho; None of one in epsilon."""
    if budget.measure.is_pure:
        return None
    return squared_sensitivity(unit, scope, 1 if slices is None else len(slices))


def slice_tally(counts: Tally, number: int) -> Tally:
    """Counts of one slice; a tally is sorted by slice."""
    if counts.slice is None:
        raise ParameterError("tally must be counted with time slices, got one without")
    low, high = np.searchsorted(counts.slice, [number, number + 1])
    return Tally(
        columns=counts.columns[low:high],
        rows=counts.rows[low:high],
        counts=counts.counts[low:high],
        region=None if counts.region is None else counts.region[low:high],
        contributions=counts.contributions,
    )


def rows_in_slices(batches: Iterable[Batch], slices: TimeSlices) -> Iterator[Batch]:
    """Coordinates of the records that lie in any of the slices."""
    for batch in batches:
        if batch.time is None:
            raise InputDataError(
                "the input must have times to be counted by time slice; name the column with "
                "time=NAME"
            )
        inside = slices.index(batch.time) >= 0
        yield Batch(x=batch.x[inside], y=batch.y[inside])
