"""What was measured of each node: a value in records, and its variance.

The variance of a noisy count follows from the noise of its tree. Support counts of reports are
measured by `psd.estimation.local_measurements`.
"""

from __future__ import annotations

from dataclasses import dataclass

from psd._util.arrays import Floats
from psd.space.box_tree import Hierarchy

__all__ = ["Measurements", "measure_counts"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurements:
    """Value and variance of each node.

    Parameters
    ----------
    value : ndarray, shape (n,), float64
        Unbiased measurement, in records.
    variance : ndarray, shape (n,), float64
        Its variance; infinite where a node is not measured.
    """

    value: Floats
    variance: Floats


def measure_counts(tree: Hierarchy, scale: int) -> Measurements:
    """Measurements of noisy counts.

    Parameters
    ----------
    tree : Hierarchy
        Noisy counts with their noise.
    scale : int
        Amount that one record or user adds to a count.
    """
    variance = tree.noise.variance(tree.loss) / scale**2
    return Measurements(value=tree.count / scale, variance=variance)
