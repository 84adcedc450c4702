"""Probability of shapes: exact tails of the discrete Laplace law, and the worst path."""

import numpy as np

from psd.curator.path_charges import split_rule
from psd.privacy.loss import NANO

# Log-probabilities are sums of a few dozen floats of magnitude 1.
ROUNDING = 1e-9


def log_above(biased, scale):
    """ln P(b + L > 0) for discrete Laplace noise L; b is rounded up, as L is an integer.

    With q = exp(-1 / scale) it is q^(1 - b) / (1 + q) for b <= 0, else 1 - q^b / (1 + q).
    """
    b = np.ceil(np.asarray(biased, float))
    q = np.exp(-1 / np.asarray(scale, float))
    low = np.minimum(b, 0) / scale - 1 / scale - np.log1p(q)
    high = np.log1p(-np.exp(-np.maximum(b, 1) / scale) / (1 + q))
    return np.where(b <= 0, low, high)


def answers_log_probability(call, scale=None) -> float:
    """Log-probability of the answers of one draw; the other answer has the tail at 1 - b."""
    scale = call.sensitivity / call.loss if scale is None else scale
    answer = np.asarray(call.answer, bool)
    return float(log_above(np.where(answer, call.true, 1 - np.ceil(call.true)), scale).sum())


def worst_path(scale: float, delta, *, records: int = 1, levels: int = 20, most=None):
    """Largest log-ratio of splits along a path to which records are added, and its counts.

    Counts fall from each node to its child as they like, from at most ``most`` where that is
    given; by dynamic programming over the count of the nodes, from the deepest up.
    """
    most = int((levels + 1) * delta + 40 * scale) + 1 if most is None else most
    counts = np.arange(most + 1)
    best, choices = np.zeros(len(counts)), []
    for depth in reversed(range(levels)):
        # b(v) of the rule, delta an integer or not.
        more, less = (np.maximum(counts + add - depth * delta, -delta) for add in (records, 0))
        value = log_above(more, scale) - log_above(less, scale) + best
        top = np.maximum.accumulate(value)
        choices.append(np.maximum.accumulate(np.where(value >= top, counts, 0)))
        best = top
    path = []
    for choice in reversed(choices):
        most = int(choice[most])
        path.append(most)
    return float(best[-1]), path


def worst_with_half(k: int, *, levels: int, most: int) -> float:
    """Worst loss of epsilon 1, half of it for a shape, half for its leaves, which use it up."""
    rule = split_rule(np.array([NANO // 2]), k)
    scale = rule.numerator / int(rule.denominator[0])
    return 1 / 2 + worst_path(scale, int(rule.delta[0]), records=k, levels=levels, most=most)[0]
