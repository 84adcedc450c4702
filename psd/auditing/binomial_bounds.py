"""Confidence limits of a probability, and of epsilon from two probabilities."""

from __future__ import annotations

import math

__all__ = [
    "epsilon_from_accuracy",
    "guess_accuracy",
    "log_ratio_limits",
    "lower_limit",
    "upper_limit",
]


def lower_limit(successes: int, trials: int, beta: float) -> float:
    """Lower confidence limit of Clopper and Pearson; above the true value with probability <= beta.

    Examples
    --------
    >>> round(lower_limit(90, 100, 0.01), 3)
    0.809
    """
    from scipy.stats import beta as beta_law

    if successes == 0:
        return 0.0
    return float(beta_law.ppf(beta, successes, trials - successes + 1))


def upper_limit(successes: int, trials: int, beta: float) -> float:
    """Upper confidence limit of Clopper and Pearson; below the true value with probability <= beta.

    Examples
    --------
    >>> round(upper_limit(10, 100, 0.01), 3)
    0.191
    """
    return 1.0 - lower_limit(trials - successes, trials, beta)


def guess_accuracy(epsilon: float) -> float:
    """Largest probability of guessing a fair bit under epsilon: e^epsilon / (1 + e^epsilon).

    Examples
    --------
    >>> round(guess_accuracy(1), 3)
    0.731
    """
    return 1.0 / (1.0 + math.exp(-epsilon))


def epsilon_from_accuracy(probability: float) -> float:
    """Compute the epsilon whose `guess_accuracy` is the probability; at least 0.

    Examples
    --------
    >>> round(epsilon_from_accuracy(guess_accuracy(0.5)), 3)
    0.5
    >>> epsilon_from_accuracy(0.4), epsilon_from_accuracy(1)
    (0.0, inf)
    """
    if probability >= 1:
        return math.inf
    return max(math.log(probability / (1 - probability)), 0.0) if probability > 0 else 0.0


def log_ratio_limits(
    likely: tuple[int, int], unlikely: tuple[int, int], beta: float
) -> tuple[float, float]:
    """Compute confidence limits of ln(p / q); each is wrong with probability <= beta.

    Parameters
    ----------
    likely, unlikely : tuple of int
        Successes and trials.
    beta : float
        Probability of error, divided between the two proportions.

    Returns
    -------
    lower, upper : float
        The lower limit is at least 0.

    Examples
    --------
    >>> [round(limit, 2) for limit in log_ratio_limits((500, 1000), (100, 1000), 0.001)]
    [1.2, 2.05]
    """
    low, high = lower_limit(*likely, beta / 2), upper_limit(*likely, beta / 2)
    smallest, largest = lower_limit(*unlikely, beta / 2), upper_limit(*unlikely, beta / 2)
    lower = math.log(low / largest) if low > 0 else 0.0
    return max(lower, 0.0), math.log(high / smallest) if smallest > 0 else math.inf
