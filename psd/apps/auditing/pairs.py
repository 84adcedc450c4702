"""Builds of small trees on two data sets that differ in one unit, and an event to tell them apart.

An event is learned on half of the builds; its frequencies on the other half bound epsilon from
below by the limits of Clopper and Pearson [1]_. Recorded builds give its expected loss if every
draw follows its law, and a build replayed on a neighbour a loss in rho. Synthetic data only.

.. [1] Jagielski, Ullman, Oprea. "Auditing Differentially Private Machine Learning." NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats
from psd._util.processes import map_tasks
from psd.curator.curator import Curator
from psd.errors import ParameterError
from psd.ingest.tally import Tally
from psd.mechanisms.base import Sampler
from psd.mechanisms.sampler import SecureSampler
from psd.mechanisms.threshold import ThresholdMechanism
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO, RHO, Loss
from psd.publish.drawing import draw_release
from psd.space.domain import Domain
from psd.testing.transcripts import Draw, LeakError, RecordingSampler, ReplayingSampler

if TYPE_CHECKING:
    from psd.decompositions import Decomposition
    from psd.privacy.unit import PrivacyUnit
    from psd.space.box_tree import Tree


def lower_limit(successes: int, trials: int, beta: float) -> float:
    """Lower limit of Clopper and Pearson; above the true value with probability <= beta."""
    from scipy.stats import beta as beta_law

    if successes == 0:
        return 0.0
    return float(beta_law.ppf(beta, successes, trials - successes + 1))


def upper_limit(successes: int, trials: int, beta: float) -> float:
    """Upper limit of Clopper and Pearson; below the true value with probability <= beta."""
    return 1.0 - lower_limit(trials - successes, trials, beta)


def guess_accuracy(epsilon: float) -> float:
    """Largest probability of guessing a fair bit under epsilon: e^epsilon / (1 + e^epsilon)."""
    return 1.0 / (1.0 + math.exp(-epsilon))


def epsilon_from_accuracy(probability: float) -> float:
    """Compute the epsilon whose `guess_accuracy` is the probability; at least 0."""
    if probability >= 1:
        return math.inf
    return max(math.log(probability / (1 - probability)), 0.0) if probability > 0 else 0.0


def accuracy_under_delta(right: int, guesses: int, trials: int, beta: float, delta: float) -> float:
    """Lower confidence limit of e^epsilon / (1 + e^epsilon) of (epsilon, delta)-private releases.

    `trials` are all fair bits of the releases, guessed or not; only the releases decide which are
    guessed. The limit is above the true value with probability at most beta.

    P1. Let q = e^epsilon / (1 + e^epsilon). Given the releases t and the bits before it, bit i
    equals its guess with probability q + x_i(t) at most, x_i(t) = max(0, p_i / (p_i + p'_i) - q),
    p_i and p'_i being the probabilities of t if the bit is as guessed, and if it is not. The mean
    of x_i over t is half the sum of max(0, (1 - q) p_i - q p'_i) = (1 - q) max(0, p_i - e^epsilon
    p'_i). For each value of the bit the sum over t is at most (1 - q) delta, so the mean is at most
    (1 - q) delta <= delta / 2. Let B_i be independent coins of probability q, and X_i a further
    coin of probability x_i(t) at most, such that the guess is right only if B_i + X_i >= 1. With F
    the sum of X_i, of mean at most trials delta / 2, v guesses or more are right only if the B_i
    sum to v - j, or F is above j, for any j. The latter has a probability of at most trials delta /
    (2 (j + 1)), by Markov. Both have half of beta here, for any number of guesses. By Steinke,
    Nasr, Jagielski, NeurIPS 2023, theorem 5.2, which has a sharper bound.
    """
    if delta == 0:
        return lower_limit(right, guesses, beta)
    beyond = max(math.ceil(trials * delta / beta) - 1, 0)
    return lower_limit(max(right - beyond, 0), guesses, beta / 2)


def log_ratio_limits(
    likely: tuple[int, int], unlikely: tuple[int, int], beta: float, delta: float = 0.0
) -> tuple[float, float]:
    """Compute confidence limits of ln((p - delta) / q); each is wrong with probability <= beta."""
    # Of an (epsilon, delta)-private release p <= e^epsilon q + delta, so epsilon is not below it.
    low, high = lower_limit(*likely, beta / 2), upper_limit(*likely, beta / 2)
    smallest, largest = lower_limit(*unlikely, beta / 2), upper_limit(*unlikely, beta / 2)
    lower = math.log((low - delta) / largest) if low > delta else 0.0
    upper = math.log(max(high - delta, smallest) / smallest) if smallest > 0 else math.inf
    return max(lower, 0.0), upper


def transcript_rho(draws: Sequence[Draw], others: Sequence[Draw]) -> Fraction:
    """Bound the rho, not in parts, of the difference of data sets that get the same answers."""
    total = Fraction(0)
    shapes: dict[int, Fraction] = {}
    for a, b in zip(draws, others, strict=True):
        if a.kind == "gaussian":
            # Noise of rho r and squared sensitivity s costs d^2 r / s where a count differs by d.
            change = [int(d) for d in a.true - b.true]
            parts = zip(change, a.loss.tolist(), a.sensitivity.tolist(), strict=True)
            total += sum((Fraction(d * d * r, RHO.parts * s) for d, r, s in parts), Fraction(0))
        elif a.kind == "select":
            # Log-ratios that lie in an interval of length e cost e^2 / 8: in each group, that is
            # the largest less the smallest change of a score.
            for index, (loss, sensitivity) in enumerate(zip(a.loss, a.sensitivity, strict=True)):
                changes = (a.true - b.true)[a.group == index]
                rate = Fraction(int(loss), 2 * NANO * int(sensitivity))
                total += (rate * int(np.ptp(changes))) ** 2 / 8
        elif a.kind == "threshold":
            # The comparisons of one question are those of a PrivTree: where a record costs e, which
            # is 7 / 3 over the scale, and the counts differ by at most n, they cost (n e)^2 / 2.
            assert isinstance(a.mechanism, ThresholdMechanism)
            off, numerator = np.abs(a.true - b.true).tolist(), a.mechanism.numerator
            scales = zip(off, a.mechanism.denominator.tolist(), strict=True)
            losses = [Fraction(7 * d * down, 3 * numerator) for d, down in scales]
            shapes[a.question] = max([shapes.get(a.question, Fraction(0)), *losses])
        else:
            raise LeakError(f"a draw of {type(a.mechanism).__name__} is not charged in rho")
    return total + sum((loss**2 / 2 for loss in shapes.values()), Fraction(0))


# One unit is in the west, one near the middle, and the one that differs in the east. Lines west and
# east of the middle then differ in rank, which is the largest effect on a median.
_COLUMNS, _ROWS, _MIDDLE = 16, 4, 8
_HEIGHT = 2
_LOT = 250
_SHRINK = 10
_THRESHOLDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A method on two data sets, one of which has one unit more."""

    method: Decomposition  # with public parameters
    loss: Loss  # of each release
    unit: PrivacyUnit  # a record, or a user with k records in one cell

    @staticmethod
    def of(method: Decomposition, loss: Loss, unit: PrivacyUnit) -> Pair:
        """Return a pair for a method; a method with a height gets at most two levels."""
        # If many levels share epsilon, every event with a large loss is too rare to observe.
        height = getattr(method, "height", None)
        if isinstance(height, int):
            with suppress(ParameterError):  # weights of a workload fit one height only
                method = replace(cast(Any, method), height=min(height, _HEIGHT))
        return Pair(method=method, loss=loss, unit=unit)

    @property
    def delta(self) -> float:
        """Delta of a release; 0 for pure epsilon."""
        return float(self.loss.delta or 0)

    @property
    def domain(self) -> Domain:
        """Domain with a small lattice."""
        return Domain(bounds=(0, 0, _COLUMNS, _ROWS), crs="EPSG:3857", lattice=(_COLUMNS, _ROWS))

    def tally(self, more: bool) -> Tally:
        """Return the tally with or without the unit that differs."""
        cells = [(0, 0), (_MIDDLE, 0), (_COLUMNS - 1, _ROWS - 1)][: 3 if more else 2]
        columns, rows = np.array(cells, np.int32).T
        k = self.unit.contributions
        return Tally(
            columns=columns, rows=rows, counts=np.full(len(cells), k, np.int64), contributions=k
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Samples:
    """Releases as an attacker sees them."""

    shape: NDArray[np.int64]  # (n,) int64; identifies the cells of a release
    log_odds: Floats  # (n,) float64; of the unit, from counts of its cells and epsilons

    def __getitem__(self, which: slice) -> Samples:
        return Samples(shape=self.shape[which], log_odds=self.log_odds[which])

    @staticmethod
    def join(parts: list[Samples]) -> Samples:
        """Concatenate samples."""
        return Samples(
            shape=np.concatenate([part.shape for part in parts]),
            log_odds=np.concatenate([part.log_odds for part in parts]),
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Threshold:
    """An event: releases that score beyond a threshold."""

    shapes: dict[int, float]  # log-odds of the unit by the shape
    least: float  # smallest score of a release in the event
    more: bool  # whether the event indicates the unit; else its absence, with negated scores

    def holds(self, samples: Samples) -> NDArray[np.bool_]:
        """Whether each release belongs to the event."""
        return _event_scores(samples, self.shapes, self.more) >= self.least


def draw_samples(pair: Pair, number: int, *, jobs: int = 1) -> tuple[Samples, Samples]:
    """Draw releases without and with the unit, ``number`` of each, with the noise of releases."""
    lots = [_LOT] * (number // _LOT) + [number % _LOT] * (number % _LOT > 0)
    tasks = [(more, lot) for lot in lots for more in (False, True)]
    parts = map_tasks(_draw_lot, pair, tasks, jobs=jobs, done=lambda number: None)
    return Samples.join(parts[::2]), Samples.join(parts[1::2])


def _draw_lot(pair: Pair, task: tuple[bool, int]) -> Samples:
    """Draw a lot of releases of one of the two data sets."""
    more, number = task
    domain, tally, fixed = pair.domain, pair.tally(more), pair.tally(more=False)
    trees = [
        draw_release(
            tally, domain, budget=Budget(pair.loss), method=pair.method, unit=pair.unit
        ).tree
        for _ in range(number)
    ]
    return _observe(trees, fixed)


def _observe(trees: list[Tree], fixed: Tally) -> Samples:
    """Samples of releases for an attacker who knows all but one unit."""
    shapes, log_odds, k = [], [], fixed.contributions
    for tree in trees:
        # The shape is a hash of the cells and their epsilons.
        content = tree.boxes.tobytes() + tree.loss.tobytes()
        shapes.append(int.from_bytes(blake2b(content, digest_size=8).digest(), signed=True))
        # The unit lies in the last lattice cell: the cells of the tree that contain it tell of it.
        x0, y0, x1, y1 = tree.boxes.T
        hit = (x1 == _COLUMNS) & (y1 == _ROWS) & (tree.loss > 0)
        inside = (fixed.columns >= x0[hit, None]) & (fixed.rows >= y0[hit, None])  # (hit, units)
        off = tree.count[hit] - (inside * fixed.counts).sum(axis=1)
        loss, noise = tree.loss[hit], tree.noise
        nearer = noise.log_density(off - k, loss) - noise.log_density(off, loss)
        log_odds.append(float(nearer.sum()))
    return Samples(shape=np.array(shapes, np.int64), log_odds=np.array(log_odds))


def learn_event(
    without: Samples, having: Samples, *, more: bool, beta: float, delta: float = 0.0
) -> Threshold:
    """Learn the event, a threshold, of the best bound on epsilon; test it on other samples."""
    # Odds of shapes and the threshold come from different builds. Otherwise shapes that were more
    # frequent on one side by chance would seem better than they are.
    half = len(without.log_odds) // 2
    # Shapes are learnt on the first half of the samples, the threshold on the second.
    both = np.concatenate([without.shape[:half], having.shape[:half]])
    names, which = np.unique(both, return_inverse=True)
    fewer, more_often = (
        np.bincount(part, minlength=len(names)) for part in (which[:half], which[half:])
    )
    odds = np.log((more_often + _SHRINK) / (fewer + _SHRINK))  # near 0 for rare shapes
    shapes = dict(zip(names.tolist(), odds.tolist(), strict=True))
    low, high = (_event_scores(samples[half:], shapes, more) for samples in (without, having))
    unlikely, likely = (low, high) if more else (high, low)
    limits = np.unique(np.quantile(np.concatenate([low, high]), np.linspace(0, 1, _THRESHOLDS)))
    bounds = [
        log_ratio_limits(_frequency(likely >= t), _frequency(unlikely >= t), beta, delta)[0]
        for t in limits
    ]
    return Threshold(shapes=shapes, least=float(limits[np.argmax(bounds)]), more=more)


def _event_scores(samples: Samples, shapes: dict[int, float], more: bool) -> Floats:
    """Log-odds of the unit, or of its absence, rounded so that equal sums stay equal."""
    odds = np.array([shapes.get(shape, 0.0) for shape in samples.shape.tolist()])
    return np.round((odds + samples.log_odds) * (1 if more else -1), 9)


def _frequency(hits: NDArray[np.bool_]) -> tuple[int, int]:
    """Successes and trials."""
    return int(hits.sum()), len(hits)


def record_losses(pair: Pair, number: int, *, more: bool) -> tuple[Samples, Floats]:
    """Record builds of one of the data sets, and compute their losses to the other."""
    builds = [_recorded_build(pair, more) for _ in range(number)]
    loss = np.array([replayed.loss for _, _, replayed in builds])
    return _observe([tree for tree, _, _ in builds], pair.tally(more=False)), loss


def largest_rho(pair: Pair, number: int, *, more: bool) -> float:
    """Largest rho that recorded builds spend on the unit; NaN if a draw has an unknown one."""
    builds = [_recorded_build(pair, more) for _ in range(number)]
    draws = [(recorded.draws, replayed.draws) for _, recorded, replayed in builds]
    if any(draw.kind == "other" for first, _ in draws for draw in first):
        return np.nan
    return max(float(transcript_rho(*both)) for both in draws)


def _recorded_build(pair: Pair, more: bool) -> tuple[Tree, RecordingSampler, ReplayingSampler]:
    """Record a build of one of the data sets, and replay its answers on the other."""
    recorded = RecordingSampler(SecureSampler())
    tree = _build_tree(pair, pair.tally(more), pair.domain, recorded)
    replayed = ReplayingSampler(recorded.draws)
    _build_tree(pair, pair.tally(not more), pair.domain, replayed)
    replayed.close()
    return tree, recorded, replayed


def _build_tree(pair: Pair, tally: Tally, domain: Domain, sampler: Sampler) -> Tree:
    """Build the tree of a method with a sampler."""
    budget = Budget(pair.loss)
    return pair.method.build(Curator(tally, domain, budget=budget, sampler=sampler))


def event_loss(
    event: Threshold, recorded: Samples, loss: Floats, delta: float = 0.0
) -> tuple[float, float]:
    """Estimate ln((P(A) - delta) / P'(A)) of an event A under the laws of draws, and its error."""
    # P'(A) = E[exp(loss); A], so P'(A) / P(A) is the mean of exp(loss) over the recorded builds in
    # A, which are of the data set that A indicates.
    ratios = np.exp(loss[event.holds(recorded)])
    if len(ratios) < 2:
        return np.nan, np.inf
    mean, excess = float(ratios.mean()), max(1 - delta * len(loss) / len(ratios), 0.0)
    error = float(ratios.std() / np.sqrt(len(ratios)) / mean)
    return (float(np.log(excess / mean)) if excess else -np.inf), error
