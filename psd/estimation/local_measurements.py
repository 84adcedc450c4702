"""What was measured of each node by reports of devices: a value in records, and its variance.

The variance depends on the true share of the devices in a node. If it were computed from the node's
own estimate, an estimate that is too high would get a larger variance and a smaller weight, and
sums would drift: by one standard deviation in a box around a dense place, of 10,000 devices with
epsilon 4 (`pytest tests/apps/local/test_rounds.py -k drift`). So it is computed at shares that are
pooled over the whole tree, twice: first with the weights of the noise alone, then with those at the
first shares.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from psd._util.arrays import Floats
from psd.estimation.least_squares import Measurements, infer_counts, measure_counts
from psd.release.record import LevelReports, LocalReports, ReleaseRecord
from psd.space.box_tree import Hierarchy

__all__ = ["measure_record", "share_estimate", "share_variance"]

_ROUNDS = 2


def measure_record(record: ReleaseRecord) -> Measurements:
    """Measurements of the nodes of a record."""
    tree, local = record.tree, record.local
    if local is None:
        return measure_counts(tree, record.unit.scale)
    measured = _measure_at(tree, local, np.zeros(len(tree)))
    for _ in range(_ROUNDS):
        pooled = infer_counts(tree, measured=measured, projected=False).signed
        measured = _measure_at(tree, local, np.maximum(pooled, 0.0) / local.reports)
    return measured


def share_estimate(support: Floats, level: LevelReports) -> Floats:
    """Unbiased estimates of shares of the devices, from how many reports support each answer."""
    p, q = level.p, level.q
    estimate: Floats = (support / level.reports - float(q)) / float(p - q)
    return estimate


def share_variance(share: Floats, level: LevelReports, reports: int) -> Floats:
    """Variances of estimates of shares of all devices.

    The level has a part of all reports, `reports`; true shares, or estimates of them, are cut off
    at 0 and 1.

    P1. It is ``q (1 - q) / (p - q)^2 + f (1 - p - q) / (p - q) + f (1 - n / N)`` over n. Of n
    reports of the level, f n have the answer. The support is a sum of f n Bernoulli variables of p
    and (1 - f) n of q: divided by n (p - q), it has the first two terms. The n devices are a sample
    of N, so their share differs from that of all by the third, where the number in the cell is
    taken as a Poisson variable; that the total is fixed enters by the tree.
    """
    p, q = level.p, level.q
    noise = float(q * (1 - q) / (p - q) ** 2)
    slope = float((1 - p - q) / (p - q)) + float(1 - Fraction(level.reports, reports))
    variance: Floats = (noise + np.clip(share, 0.0, 1.0) * slope) / level.reports
    return variance


def _measure_at(tree: Hierarchy, local: LocalReports, shares: Floats) -> Measurements:
    """Measurements of support counts, with the variances that they have at these shares.

    The root is all reports less those outside.
    """
    total = local.reports
    value, variance = np.zeros(len(tree)), np.full(len(tree), np.inf)
    value[0], variance[0] = _measure_inside(local)
    for level in local.levels:
        nodes = tree.levels[level.level]
        if level.reports:
            value[nodes] = total * share_estimate(tree.count[nodes].astype(np.float64), level)
            variance[nodes] = total**2 * share_variance(shares[nodes], level, total)
    return Measurements(value=value, variance=variance)


def _measure_inside(local: LocalReports) -> tuple[float, float]:
    """Number of devices inside the domain, and its variance.

    Every level has an estimate of the share outside. They are pooled by the variances that they
    have at the share pooled by their noise alone, so that no weight depends on its own estimate.
    """
    total = local.reports
    levels = [level for level in local.levels if level.reports]
    shares = np.array([float(share_estimate(np.array(float(v.outside)), v)) for v in levels])

    def variances(share: float) -> Floats:
        at = np.array(share)
        return np.array([float(share_variance(at, level, total)) for level in levels])

    first = _weighted(shares, variances(0.0))[0]
    share, variance = _weighted(shares, variances(first))
    return total * (1 - share), total**2 * variance


def _weighted(values: Floats, variances: Floats) -> tuple[float, float]:
    """Mean by inverse variances, and its variance."""
    precision = 1 / variances
    return float((values * precision).sum() / precision.sum()), float(1 / precision.sum())
