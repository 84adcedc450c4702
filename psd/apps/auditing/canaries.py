"""Canaries: units whose presence a coin decides; an attack guesses it. Synthetic data only.

A build has thousands of canaries at separate points, so one build tests the entire pipeline
thousands of times: file, reading, tally, curator, noise, release file.

References
----------
.. [1] Steinke, Nasr, Jagielski. "Privacy Auditing with One (1) Training Run." NeurIPS 2023,
   https://arxiv.org/abs/2305.08846, theorem 5.2: the number of right guesses of r fair
   bits from an epsilon-private release is at most that of r coins of probability
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
from psd.apps.auditing.bounds import epsilon_from_accuracy, lower_limit
from psd.mechanisms.random_words import random_bits
from psd.privacy.loss import NANO, RHO

if TYPE_CHECKING:
    from psd.privacy.loss import Loss
    from psd.privacy.unit import PrivacyUnit


Build = Callable[[Path, Path], None]

# Expected count at a point, in units of the noise scale. Methods that size cells by noisy counts
# require about this count in a cell, so points are in separate cells. Chosen by hand.
_SIGNAL = 20
_MAX_ROWS = 1_000_000
_MIN_SIDE = 4
# Metres of the south-west corner on both axes: numbers that no degrees have.
_CORNER = 1_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Points of canaries: a square of side x side points, with other units at each."""

    side: int  # points per side, which are 1 m apart
    others: int  # units at each point that are always present
    unit: PrivacyUnit  # a record, or a user with k records at one point

    @staticmethod
    def of(side: int, loss: Loss, unit: PrivacyUnit) -> Plot:
        """Return points whose counts exceed the noise as far as the limit of records allows."""
        limit = _MAX_ROWS // (side * side * unit.contributions)
        epsilon = loss.epsilon
        if not loss.is_pure:  # that of pure mechanisms of this rho: their noise is about as large
            epsilon = max(int(RHO.of_pure(np.array([loss.rho]))[0]), 1)
        return Plot(side=side, others=min(-(-_SIGNAL * NANO // epsilon), max(limit, 1)), unit=unit)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Bounds of the domain."""
        return (_CORNER, _CORNER, _CORNER + self.side, _CORNER + self.side)

    def write(self, path: Path, present: NDArray[np.bool_]) -> None:
        """Write a CSV with the columns lon, lat and, if users are the unit, user."""
        k, user = self.unit.contributions, self.unit.has_user
        with path.open("w", encoding="ascii") as file:
            file.write("lon,lat,user\n" if user else "lon,lat\n")
            for point, extra in enumerate(present.tolist()):
                y, x = divmod(point, self.side)
                for number in range(self.others + extra):
                    name = f",u{point}-{number}" if user else ""
                    file.write(f"{x + _CORNER + 0.5},{y + _CORNER + 0.5}{name}\n" * k)

    def log_odds(self, release: Release) -> NDArray[np.float64]:
        """Log-odds of each canary from the cells that contain its point and no other."""
        tree, k = release.tree, self.unit.contributions
        # Points from `low` to below `high`, (2, cells) by axis, are those that a cell contains.
        middles = np.outer(release.domain.lattice, 2 * np.arange(self.side) + 1) // (2 * self.side)
        low, high = (
            np.stack([np.searchsorted(middles[axis], tree.boxes[:, axis + end]) for axis in (0, 1)])
            for end in (0, 2)
        )
        # Cells with several points, and the information in cuts, are not used.
        is_single = ((high - low).prod(axis=0) == 1) & (tree.loss > 0)
        off = tree.count[is_single] - self.others * k
        # A cell with noisy count c adds ln P(c - b - k) - ln P(c - b). Here b is the count of the
        # units that are always present, and P the law of the noise of the cell in the release.
        loss, noise = tree.loss[is_single], tree.noise
        nearer = noise.log_density(off - k, loss) - noise.log_density(off, loss)
        point = low[1][is_single] * self.side + low[0][is_single]
        odds = np.zeros(self.side**2)
        np.add.at(odds, point, nearer)
        return odds


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """Number of guesses and of right guesses."""

    number: int  # of canaries that were guessed
    right: int  # of those that were guessed right
    expected: float  # share of right guesses, from the epsilons in the releases


def run_canaries(build: Build, plot: Plot) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Draw canaries, build, load the release; return the log-odds and presence of each canary."""
    present = random_bits(plot.side**2)
    with tempfile.TemporaryDirectory(prefix="psd-audit-") as folder:
        rows, release = Path(folder) / "canaries.csv", Path(folder) / "canaries.psd.parquet"
        plot.write(rows, present)
        build(rows, release)
        return plot.log_odds(Release.load(release)), present


def choose_plot(
    build: Callable[[Plot], Build],
    number: int,
    runs: int,
    loss: Loss,
    unit: PrivacyUnit,
    beta: float,
) -> Plot:
    """Choose the plot with the best expected bound, by one build of each size."""
    sides, scores = [], []
    # More points give more guesses; with fewer points, more cells contain a single point. The
    # choice depends on the epsilons in the releases only, and these builds are not used again.
    side = math.isqrt(number)
    while side >= _MIN_SIDE:
        plot = Plot.of(side, loss, unit)
        odds, present = run_canaries(build(plot), plot)
        attempt = guess_canaries(np.tile(odds, runs), np.tile(present, runs), beta)
        sides.append(side)
        scores.append(
            (_bound(attempt.expected, attempt.number, beta), attempt.number * attempt.expected)
        )
        side //= 2
    return Plot.of(sides[scores.index(max(scores))], loss, unit)


def _bound(share: float, number: int, beta: float) -> float:
    """Bound on epsilon from a share of right guesses."""
    return epsilon_from_accuracy(lower_limit(int(share * number), number, beta)) if number else 0.0


def guess_canaries(odds: NDArray[np.float64], present: NDArray[np.bool_], beta: float) -> Guesses:
    """Guess the canaries with the largest log-odds, as many as give the best expected bound."""
    # The choice depends on the releases only, as theorem 5.2 of [1] requires.
    clarity = np.sort(np.abs(odds[odds != 0]))[::-1]
    if not len(clarity):
        return Guesses(number=0, right=0, expected=0.5)
    # Expected share of right guesses among the first 1, 2, ... of the clearest canaries.
    mean = np.cumsum(1 / (1 + np.exp(-clarity))) / np.arange(1, len(clarity) + 1)
    # Canaries that are equally clear are guessed together.
    ends = np.flatnonzero(np.append(clarity[1:] < clarity[:-1] - 1e-12, True))
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, 100).astype(int))]
    bounds = [_bound(float(mean[end]), int(end + 1), beta) for end in ends]
    if max(bounds) == 0:  # no number of guesses bounds epsilon: use the largest total signal
        bounds = list((mean[ends] - 0.5) ** 2 * (ends + 1))
    end = ends[int(np.argmax(bounds))]
    is_guessed = np.abs(odds) >= clarity[end]
    right = int(((odds > 0) == present)[is_guessed].sum())
    return Guesses(number=int(is_guessed.sum()), right=right, expected=float(mean[end]))
