"""Bounds of a loss: from counts of two outcomes, and from a build that is replayed on a neighbour.

The counterpart of `psd.testing.transcripts.transcript_loss` for builds with a loss in rho.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from psd.mechanisms.threshold import ThresholdMechanism
from psd.privacy.loss import NANO, RHO
from psd.testing.transcripts import Draw, LeakError


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

    P1. Proof [1]_. Let q = e^epsilon / (1 + e^epsilon), and go through the bits one by one. Given
    the releases t and the bits before it, bit i equals its guess with probability q + x_i(t) at
    most, x_i(t) = max(0, p_i / (p_i + p'_i) - q), p_i and p'_i being the probabilities of t if the
    bit is as guessed, and if it is not. The mean of x_i over t is half the sum of max(0, (1 - q)
    p_i - q p'_i) = (1 - q) max(0, p_i - e^epsilon p'_i). For each value of the bit the sum over t
    is at most (1 - q) delta, so the mean is at most (1 - q) delta <= delta / 2. Let B_i be
    independent coins of probability q, and X_i a further coin that is 1 with probability x_i(t) at
    most, such that the guess is right only if B_i + X_i >= 1. With F the sum of X_i, of mean at
    most trials delta / 2, v guesses or more are right only if the B_i sum to v - j, or F is above
    j, for any j. The latter has a probability of at most trials delta / (2 (j + 1)), by Markov.
    Both have half of beta here. For releases with any number of guesses it holds at each.

    References
    ----------
    .. [1] Steinke, Nasr, Jagielski. NeurIPS 2023, theorem 5.2, which has a sharper bound.
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
