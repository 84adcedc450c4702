"""Joint answers of one call: their covariance, totals, differences and ratios.

Answers that share cells share noise. The errors of totals, differences and ratios of answers follow
from the covariance of the answers, and so does the level at which all intervals hold together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from psd._util.arrays import Floats
from psd.errors import ParameterError
from psd.query.answer_table import answer_columns, check_levels
from psd.query.covariance import nonuniformity_covariance, perturbation_covariance
from psd.query.derived import Derived, combine_answers, divide_answers
from psd.query.region_overlaps import check_size
from psd.query.reliability import Threshold
from psd.query.simultaneous import simultaneous_level

if TYPE_CHECKING:
    import pandas

    from psd.query.areas import Areas
    from psd.query.index import QueryIndex

__all__ = ["Joint", "answer_jointly"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joint:
    """Answers with their covariance.

    Guarantees
    ----------
    - The diagonals are the squares of the answers' errors, and both matrices are positive
      semi-definite, to rounding.
    - The perturbation error of a `total` of disjoint regions is that of their union.

    Parameters
    ----------
    answers : DataFrame or GeoDataFrame, m rows
        As in `Answers.table`, and ``joint_lower, joint_upper``: all m of these intervals hold
        together with probability ``confidence``.
    perturbation_covariance : ndarray, shape (m, m), float64
        Of the errors from the noise, in records squared; exact for signed estimates.
    nonuniformity_covariance : ndarray, shape (m, m), float64
        Of the errors from cells that are covered in part.
    confidence : float
        Of single intervals, and of all joint ones together.
    level : float
        Confidence at which each joint interval is made.
    overlap : tuple of int, optional
        Two regions that overlap, if any do; `total` then raises an error.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.decompositions.grid_tree(domain, 2)
    >>> release = psd.Release.from_counts(tree, [50, 10, 0, 20], 1.0, domain=domain)
    >>> joint = release.query([(0, 0, 1, 1), (1, 0, 2, 1)]).joint()
    >>> np.diagonal(joint.covariance).round(2).tolist()
    [2.01, 2.01]
    >>> total = joint.total()
    >>> round(total.estimate, 1), round(total.error, 2)
    (60.0, 2.09)
    >>> round(joint.ratio(0, 1).estimate, 1)
    5.0
    """

    answers: pandas.DataFrame
    perturbation_covariance: Floats
    nonuniformity_covariance: Floats
    confidence: float
    level: float
    overlap: tuple[int, int] | None

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def covariance(self) -> Floats:
        """Of the answers' errors, both kinds together, shape (m, m)."""
        return self.perturbation_covariance + self.nonuniformity_covariance

    @property
    def correlation(self) -> Floats:
        """Of the answers' errors, shape (m, m); 0 for answers without error."""
        return correlation(self.covariance)

    def combine(self, weights: ArrayLike) -> Derived:
        """Sum of weights times answers, with its error.

        Parameters
        ----------
        weights : array_like of float, shape (m,)
            One for each region.
        """
        values = np.asarray(weights, dtype=np.float64)
        if values.shape != (len(self),) or not np.isfinite(values).all():
            raise ParameterError(
                f"weights must be {len(self)} finite numbers, one for each region, got shape "
                f"{values.shape}"
            )
        return combine_answers(self._estimates, self._parts, values, self.confidence)

    def total(self) -> Derived:
        """All answers together, with the error of their union.

        Raises
        ------
        ParameterError
            If regions overlap: points in both would be counted twice.
        """
        if self.overlap is not None:
            a, b = self.overlap
            raise ParameterError(
                f"regions must be disjoint for a total, but regions {a + 1} and {b + 1} overlap; "
                "joint().combine(weights) sums overlapping regions"
            )
        return self.combine(np.ones(len(self)))

    def difference(self, first: int, second: int) -> Derived:
        """First answer minus second, with its error; regions are numbered from 0."""
        weights = np.zeros(len(self))
        weights[self._number(first)] += 1
        weights[self._number(second)] -= 1
        return self.combine(weights)

    def ratio(self, first: int, second: int) -> Derived:
        """First answer over second; regions are numbered from 0.

        The error is by the delta method. The interval is Fieller's: it has its stated coverage
        for small denominators too, where its upper end may be infinite.
        """
        both = [self._number(first), self._number(second)]
        parts = [part[np.ix_(both, both)] for part in self._parts]
        return divide_answers(self._estimates[both], parts, self.confidence)

    @property
    def _estimates(self) -> Floats:
        return self.answers["estimate"].to_numpy(np.float64)

    @property
    def _parts(self) -> list[Floats]:
        return [self.perturbation_covariance, self.nonuniformity_covariance]

    def _number(self, number: int) -> int:
        """Check the number of a region."""
        if not 0 <= number < len(self):
            raise ParameterError(f"region must be from 0 to {len(self) - 1}, got {number}")
        return number


def answer_jointly(
    index: QueryIndex, areas: Areas, *, confidence: float, threshold: Threshold
) -> Joint:
    """Answer areas with the covariance of the answers."""
    check_levels(confidence, threshold)
    check_size(len(areas))
    fit, totals, regions = index.fit, areas.totals(index), areas.overlaps(index.fit)
    noise = perturbation_covariance(fit, regions)
    spread = nonuniformity_covariance(fit, regions)
    level = simultaneous_level(correlation(noise + spread), confidence)
    columns, together = (
        answer_columns(totals, fit.record, confidence=each, threshold=threshold)
        for each in (confidence, level)
    )
    joint = {"joint_lower": together["lower"], "joint_upper": together["upper"]}
    pairs = regions.overlapping_pairs()
    return Joint(
        answers=areas.table({**columns, **joint}),
        perturbation_covariance=noise,
        nonuniformity_covariance=spread,
        confidence=confidence,
        level=level,
        overlap=(int(pairs[0, 0]), int(pairs[0, 1])) if len(pairs) else None,
    )


def correlation(covariance: Floats) -> Floats:
    """Correlation of a covariance; 0 for constants, 1 on the diagonal."""
    deviation = np.sqrt(np.diagonal(covariance))
    scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1.0), 0.0)
    matrix: Floats = np.clip(covariance * scale * scale[:, None], -1.0, 1.0)
    np.fill_diagonal(matrix, 1.0)
    return matrix
