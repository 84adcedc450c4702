"""Canaries: units that are present or not by a coin, guessed from a release. Synthetic data alone.

One build holds thousands of them, in places far apart, so that it is thousands of trials of the
whole way: file, reading, tally, curator, noise, release file.

References
----------
.. [1] Steinke, Nasr, Jagielski. "Privacy Auditing with One (1) Training Run." NeurIPS 2023,
   https://arxiv.org/abs/2305.08846, theorem 5.2: of r guesses of fair bits, made in whatever
   way from an epsilon-private release, as few are right as of r coins of probability
   exp(epsilon) / (1 + exp(epsilon)).
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd.api.release import Release
from psd.auditing.binomial_bounds import epsilon_of, lower_limit
from psd.mechanisms.random_words import random_bits
from psd.privacy.epsilon import NANO

if TYPE_CHECKING:
    from psd.privacy.unit import PrivacyUnit
    from psd.space.box_tree import Tree

__all__ = ["Guesses", "Plot", "best_plot", "guesses", "one_run"]

Build = Callable[[Path, Path], None]

# Expected count of a place, in units of noise: as much as methods that size cells by noisy counts
# want in a cell, so that places come apart.
_SIGNAL = 20
_MAX_ROWS = 1_000_000
_MIN_SIDE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Places of canaries: a square of side x side points, with as many other units at each.

    Parameters
    ----------
    side : int
        Places per side; bounds are 0 to side on both axes.
    others : int
        Units at each place that are there for sure.
    unit : PrivacyUnit
        A record, or a user, who has k rows at one place.
    """

    side: int
    others: int
    unit: PrivacyUnit

    @staticmethod
    def of(side: int, epsilon: int, unit: PrivacyUnit) -> Plot:
        """Places whose counts stand out from the noise as far as a number of rows allows."""
        limit = _MAX_ROWS // (side * side * unit.contributions)
        return Plot(side=side, others=min(-(-_SIGNAL * NANO // epsilon), max(limit, 1)), unit=unit)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Of the domain."""
        return (0.0, 0.0, float(self.side), float(self.side))

    def write(self, path: Path, present: NDArray[np.bool_]) -> None:
        """Write a CSV with the columns lon, lat and, where users are the unit, user."""
        k, user = self.unit.contributions, self.unit.has_user
        with path.open("w", encoding="ascii") as file:
            file.write("lon,lat,user\n" if user else "lon,lat\n")
            for point, extra in enumerate(present.tolist()):
                y, x = divmod(point, self.side)
                for number in range(self.others + extra):
                    name = f",u{point}-{number}" if user else ""
                    file.write(f"{x}.5,{y}.5{name}\n" * k)

    def odds(self, release: Release) -> NDArray[np.float64]:
        """Log-odds of each canary by the cells that hold its place and no other.

        Worked out from the release and from what is there for sure: |c - b| - |c - b - k| of a
        noisy count c, times epsilon / k as it stands in the release. Cells with several places,
        and what cuts may tell, are left out.
        """
        tree, k = release.tree, self.unit.contributions
        first, number = self._points_in_cells(tree, release.domain.lattice)
        alone = (number.prod(axis=0) == 1) & (tree.epsilon > 0)
        off = tree.count[alone] - self.others * k
        nearer = (np.abs(off) - np.abs(off - k)) * (tree.epsilon[alone] / (NANO * k))
        point = first[1][alone] * self.side + first[0][alone]
        odds = np.zeros(self.side**2)
        np.add.at(odds, point, nearer)
        return odds

    def _points_in_cells(
        self, tree: Tree, lattice: tuple[int, int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First place along each axis that a cell holds, and how many."""
        first, number = [], []
        for axis in (0, 1):
            middles = (2 * np.arange(self.side) + 1) * lattice[axis] // (2 * self.side)
            low, high = (np.searchsorted(middles, tree.boxes[:, axis + end]) for end in (0, 2))
            first.append(low)
            number.append(high - low)
        return np.array(first), np.array(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """How many guesses were right.

    Parameters
    ----------
    number, right : int
        Canaries that were guessed, and those that were guessed right.
    expected : float
        Share that is right, by the epsilons in the releases.
    """

    number: int
    right: int
    expected: float


def one_run(build: Build, plot: Plot) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Toss the canaries, build, read the release: log-odds and truth of each.

    Parameters
    ----------
    build : callable
        Given the path of a CSV and the path of the release file that it is to write.
    plot : Plot
        Where the canaries are.
    """
    present = random_bits(plot.side**2)
    with tempfile.TemporaryDirectory(prefix="psd-audit-") as folder:
        rows, release = Path(folder) / "canaries.csv", Path(folder) / "canaries.psd.parquet"
        plot.write(rows, present)
        build(rows, release)
        return plot.odds(Release.load(release)), present


def best_plot(
    build: Callable[[Plot], Build],
    number: int,
    runs: int,
    epsilon: int,
    unit: PrivacyUnit,
    beta: float,
) -> Plot:
    """The plot of at most so many places that shows most, by a build of each.

    Many places are many guesses; of few, each has more cells to itself. What is compared follows
    from the epsilons in the releases, and these builds are not used again.
    """
    sides, scores = [], []
    side = math.isqrt(number)
    while side >= _MIN_SIDE:
        plot = Plot.of(side, epsilon, unit)
        odds, present = one_run(build(plot), plot)
        attempt = guesses(np.tile(odds, runs), np.tile(present, runs), beta)
        sides.append(side)
        scores.append(
            (_bound(attempt.expected, attempt.number, beta), attempt.number * attempt.expected)
        )
        side //= 2
    return Plot.of(sides[scores.index(max(scores))], epsilon, unit)


def _bound(share: float, number: int, beta: float) -> float:
    """Bound on epsilon from a share of right guesses."""
    return epsilon_of(lower_limit(int(share * number), number, beta)) if number else 0.0


def guesses(odds: NDArray[np.float64], present: NDArray[np.bool_], beta: float) -> Guesses:
    """Guess the clearest canaries, as many as bound epsilon best if the releases are right.

    Which are guessed depends on the releases alone, as theorem 5.2 of [1]_ asks for.
    """
    clear = np.sort(np.abs(odds[odds != 0]))[::-1]
    if not len(clear):
        return Guesses(number=0, right=0, expected=0.5)
    mean = np.cumsum(1 / (1 + np.exp(-clear))) / np.arange(1, len(clear) + 1)
    # Canaries that are equally clear are guessed together.
    ends = np.flatnonzero(np.append(clear[1:] < clear[:-1] - 1e-12, True))
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, 100).astype(int))]
    bounds = [_bound(float(mean[end]), int(end + 1), beta) for end in ends]
    if max(bounds) == 0:  # no number of guesses bounds epsilon: take those that tell most in all
        bounds = list((mean[ends] - 0.5) ** 2 * (ends + 1))
    end = ends[int(np.argmax(bounds))]
    guessed = np.abs(odds) >= clear[end]
    right = int(((odds > 0) == present)[guessed].sum())
    return Guesses(number=int(guessed.sum()), right=right, expected=float(mean[end]))
