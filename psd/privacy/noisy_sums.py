"""What a model may ask of people: noisy sums of one bounded part of each person. Public."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np

from psd._util.arrays import Floats, Integers

__all__ = ["NoisySums", "PersonPart", "Statistic", "deviation", "fill_symmetric", "triangle"]

PersonPart: TypeAlias = Callable[[Integers], Sequence[tuple[Integers, Floats]]]
"""From the regions of one person's records to the rows and values that the person adds to each
statistic; the rows of a statistic are distinct. It reads one person and public numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """One table of sums over people. Public.

    Parameters
    ----------
    name : str
        What is summed, in one or two words.
    rows, width : int
        Size of the table.
    share : int
        Its part of rho, relative to those of the other statistics of the question.

    Examples
    --------
    >>> Statistic(name="visits", rows=64, width=1)
    Statistic(name='visits', rows=64, width=1, share=1)
    """

    name: str
    rows: int
    width: int
    share: int = 1


class NoisySums(Protocol):
    """How a model asks; `psd.curator.person_sums.PersonSums` answers.

    Examples
    --------
    >>> class Nobody:
    ...     rho = 10**12
    ...     def sums(self, part, statistics, rho):
    ...         return [np.zeros((each.rows, each.width)) for each in statistics]
    >>> visits = Statistic(name="visits", rows=2, width=1)
    >>> Nobody().sums(len, [visits], 10**12)[0].tolist()
    [[0.0], [0.0]]
    """

    @property
    def rho(self) -> int:
        """Rho in units of 1e-12 that is left for questions."""

    def sums(self, part: PersonPart, statistics: Sequence[Statistic], rho: int) -> list[Floats]:
        """Noisy sums of the clipped parts of all people, one table for each statistic."""


def deviation(statistics: Sequence[Statistic], index: int, rho: int) -> float:
    """Standard deviation of the noise of a statistic, whose parts have norm 1."""
    share = statistics[index].share / sum(statistic.share for statistic in statistics)
    return math.sqrt(1e12 / (2 * rho * share))


def triangle(matrix: Floats) -> Floats:
    """Upper triangle of symmetric matrices as rows."""
    return matrix[(..., *np.triu_indices(matrix.shape[-1]))]


def fill_symmetric(rows: Floats, size: int) -> Floats:
    """Symmetric matrices from the rows of `triangle`."""
    first, second = np.triu_indices(size)
    matrices = np.zeros((*rows.shape[:-1], size, size))
    matrices[..., first, second] = rows
    matrices[..., second, first] = rows
    return matrices
