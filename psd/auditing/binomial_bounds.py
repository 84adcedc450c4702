"""Limits of a probability from successes counted, and of epsilon from two of them."""

from __future__ import annotations

import math

__all__ = ["accuracy", "epsilon_of", "log_ratio_limits", "lower_limit", "upper_limit"]


def lower_limit(successes: int, trials: int, beta: float) -> float:
    """Limit above the true probability with a chance of at most beta, by Clopper and Pearson.

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
    """Limit below the true probability with a chance of at most beta, by Clopper and Pearson.

    Examples
    --------
    >>> round(upper_limit(10, 100, 0.01), 3)
    0.191
    """
    return 1.0 - lower_limit(trials - successes, trials, beta)


def accuracy(epsilon: float) -> float:
    """Chance of a right guess of a fair bit that epsilon hides: exp(epsilon) / (1 + exp(epsilon)).

    Examples
    --------
    >>> round(accuracy(1), 3)
    0.731
    """
    return 1.0 / (1.0 + math.exp(-epsilon))


def epsilon_of(probability: float) -> float:
    """The epsilon with that chance of a right guess, the inverse of `accuracy`; at least 0.

    Examples
    --------
    >>> round(epsilon_of(accuracy(0.5)), 3), epsilon_of(0.4), epsilon_of(1)
    (0.5, 0.0, inf)
    """
    if probability >= 1:
        return math.inf
    return max(math.log(probability / (1 - probability)), 0.0) if probability > 0 else 0.0


def log_ratio_limits(
    likely: tuple[int, int], unlikely: tuple[int, int], beta: float
) -> tuple[float, float]:
    """Limits of ln(p / q) from successes of trials of each; each limit is wrong at most at beta.

    Parameters
    ----------
    likely, unlikely : tuple of int
        Successes and trials.
    beta : float
        Shared out over the two probabilities.

    Returns
    -------
    lower, upper : float
        The lower one is at least 0.

    Examples
    --------
    >>> [round(limit, 2) for limit in log_ratio_limits((500, 1000), (100, 1000), 0.001)]
    [1.2, 2.05]
    """
    low, high = lower_limit(*likely, beta / 2), upper_limit(*likely, beta / 2)
    smallest, largest = lower_limit(*unlikely, beta / 2), upper_limit(*unlikely, beta / 2)
    lower = math.log(low / largest) if low > 0 else 0.0
    return max(lower, 0.0), math.log(high / smallest) if smallest > 0 else math.inf
