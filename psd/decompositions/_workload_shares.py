"""Divide epsilon among the levels of a quadtree for a declared, public workload of boxes.

The variance of least squares on a complete quadtree follows from boxes and shares alone, so the
best shares are computed before the build and cost no epsilon.

References
----------
.. [1] Cormode, Procopiuc, Srivastava, Shen, Yu. "Differentially Private Spatial Decompositions."
   ICDE 2012, sections 4 and 5. https://doi.org/10.1109/ICDE.2012.16
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np
from numpy.typing import ArrayLike

from psd._util.arrays import Floats
from psd.errors import ParameterError
from psd.space.domain import Domain

CLASSES = ("tiny", "small", "medium", "large", "huge")

# Smallest and largest area of each class, as fractions of the domain, and largest aspect ratio.
_AREAS = {
    "tiny": (0.002**2, 0.00275**2),
    "small": (1e-4, 1e-4),
    "medium": (1e-3, 1e-3),
    "large": (1e-2, 1e-2),
    "huge": (1e-1, 1e-1),
}
_ASPECT = {"tiny": 1.0}
_USUAL_ASPECT = 4.0

# Boxes that represent a class, spread evenly over sizes, aspect ratios and positions by the
# multiples of the powers of 1/g, g^5 = g + 1.
_BOXES = 4096
_SPREAD = 1.1673039782614187

# Weights are integers of 1e-6. The search takes _STEPS steps with exponent _EXPONENT, from starts
# in which other levels have the share _FAINT; these numerical choices change results by rounding
# only.
_WEIGHT_UNIT = 10**6
_STEPS = 2000
_EXPONENT = 0.2
_FAINT = 1e-3
_LEAST = 1e-9
_TINY = 1e-300

_WEIGHTS = re.compile(r"\d{1,18}( \d{1,18})*", re.ASCII)


def check_workload(name: str, value: object) -> str:
    """Check a size class, or weights of the levels, root first."""
    text = str(value)
    if text not in CLASSES and not _WEIGHTS.fullmatch(text):
        raise ParameterError(
            f"{name} must be one of {', '.join(CLASSES)}, or weights of levels, got {text[:80]!r}"
        )
    if text not in CLASSES and int(text.split()[-1]) == 0:
        raise ParameterError(
            f"{name} must have a last weight above 0, for the leaves, got {text[:80]!r}"
        )
    return text


def class_boxes(name: str) -> Floats:
    """Boxes of one of `CLASSES`, (4096, 4) float64, spread evenly over the unit square."""
    steps = _SPREAD ** -np.arange(1.0, 5.0)
    # Fractional parts of the multiples of powers of one number fill a cube of four sides evenly.
    size, shape, *position = np.modf(np.outer(steps, np.arange(_BOXES) + 0.5))[0]
    # Tiny: squares with sides of 0.2 to 0.275 % of the domain's. The others: 0.01, 0.1, 1 and 10 %
    # of its area, aspect ratios log-uniform in [1/4, 4], as those of an evaluation.
    # Sides between the two of the class, evenly, and ratios from 1 / aspect to aspect by their log.
    smallest, largest = np.sqrt(_AREAS[name])
    side = smallest + (largest - smallest) * size
    aspect = _ASPECT.get(name, _USUAL_ASPECT) ** (2 * shape - 1)
    width = np.minimum(side * np.sqrt(aspect), 1.0)
    sides = np.stack([width, side**2 / width], axis=1)
    # Corners that leave room for the box, so that none is cut off.
    corner = np.stack(position, axis=1) * (1 - sides)
    return np.concatenate([corner, corner + sides], axis=1)


@cache
def class_weights(name: str, height: int) -> tuple[int, ...]:
    """Shares of the levels for the boxes of a size class; see `level_weights`."""
    return level_weights(class_boxes(name), height)


def weights_for_boxes(boxes: ArrayLike, domain: Domain, height: int) -> tuple[int, ...]:
    """`level_weights` for public boxes, (n, 4), in the CRS of the domain, cut off at its edge."""
    boxes = np.asarray(boxes, float).reshape(-1, 4)
    if not len(boxes):
        raise ParameterError("the workload must have at least one box; leave it out or declare one")
    lattice = domain.to_lattice(boxes)
    # What is cut off at the bounds may leave a box without area, which no level could answer.
    is_finite = np.isfinite(boxes).all(axis=1)
    is_empty = ~(is_finite & (lattice[:, :2] < lattice[:, 2:]).all(axis=1))
    if is_empty.any():
        index = int(is_empty.argmax())
        sides = " ".join(f"{side:.10g}" for side in boxes[index])
        raise ParameterError(
            f"box {index + 1} ({sides}) of the workload has no area inside the bounds "
            f"{domain.bounds}; the order is west south east north"
        )
    return level_weights(lattice / np.array([*domain.lattice, *domain.lattice]), height)


def level_weights(boxes: Floats, height: int) -> tuple[int, ...]:
    """Shares of epsilon of the levels that minimise the mean variance of answers to boxes.

    boxes: (n, 4) float64, in the unit square, each with an area, public. Returns integers of 1e-6,
    root first, at least 1 for the leaves, often 0.
    """
    energies, shares = detail_energies(boxes, height), _start_shares(height + 1)
    # At the minimum, more epsilon has the same benefit on every counted level. Several starts,
    # since a share near 0 has little benefit. Privacy holds for any weights.
    # Many small steps of all starts, (starts, levels), towards levels that gain from more epsilon.
    for _ in range(_STEPS):
        slope = np.cumsum(energies / _information(shares) ** 2, axis=-1)
        gain = shares * _weights(shares) * slope
        gain = gain / gain.max(axis=-1, keepdims=True)
        moved = np.maximum(shares * gain**_EXPONENT, _LEAST)
        shares = np.asarray(moved / moved.sum(axis=-1, keepdims=True), np.float64)
    best = shares[mean_variance(energies, shares).argmin()]
    # Integers as a release has them; leaves keep some weight.
    *inner, last = np.rint(best * _WEIGHT_UNIT).astype(int).tolist()
    return (*inner, max(last, 1))


def _start_shares(levels: int) -> Floats:
    """Shares on the leaves and on every set of one or two other levels; the rest near 0."""
    # A level with itself is a set of one.
    inner = np.eye(levels)[:-1]
    pairs = (inner[:, None] + inner[None]).reshape(-1, levels)
    chosen = np.unique(np.minimum(pairs, 1.0), axis=0)
    starts = np.concatenate([np.zeros((1, levels)), chosen]) + np.eye(levels)[-1] + _FAINT
    scaled: Floats = starts / starts.sum(axis=1, keepdims=True)
    return scaled


def detail_energies(boxes: Floats, height: int) -> Floats:
    """Mean energy of boxes that a level of a quadtree resolves, those above not; (height + 1,)."""
    # Each axis is summed separately; of each level, what it has less the level above.
    # Squared lengths of the covered fractions, averaged over the nodes of each level.
    lengths = [
        np.prod([_squares(boxes[:, [a, a + 2]] * 2.0**level) for a in (0, 1)], axis=0).mean()
        * 4.0 ** (height - level)
        for level in range(height + 1)
    ]
    # Rounding may leave a value slightly below 0.
    return np.maximum(np.diff(lengths, prepend=0.0), 0.0)


def _squares(ends: Floats) -> Floats:
    """Sum of the squared covered fractions of the intervals of length 1 between two ends."""
    low, high = ends.T
    first, last = np.floor(low), np.ceil(high) - 1
    # The first and the last interval may be cut; those between are covered.
    parts = (first + 1 - low) ** 2 + (high - last) ** 2 + (last - first - 1)
    squares: Floats = np.where(first == last, (high - low) ** 2, parts)
    return squares


def mean_variance(energies: Floats, shares: Floats) -> Floats:
    """Mean variance of least-squares answers, (...), for an epsilon of 1 and Laplace noise.

    energies: (levels,) float64, of `detail_energies`; shares: (..., levels) float64, root first.

    P1. It is the sum over levels l of the energy of l times 2 / sum_{j >= l} 4^(h - j) epsilon_j^2.
    A pattern that is constant within the nodes of level l and sums to zero among siblings is
    resolved by every level j from l down, with the weight 4^(h - j) if leaves are the unit, and not
    by those above. These patterns are the eigenvectors of the information of all levels together,
    so least squares [1]_, section 5, gives each of them that variance; the variance of an answer is
    their sum, weighted by its energy on every level.
    """
    total: Floats = (energies / _information(shares)).sum(axis=-1)
    return total


def _information(shares: Floats) -> Floats:
    """Inverse variance of the patterns of each level."""
    seen = shares**2 * _weights(shares) / 2
    return np.maximum(np.cumsum(seen[..., ::-1], axis=-1)[..., ::-1], _TINY)


def _weights(shares: Floats) -> Floats:
    """Leaves per node of each level."""
    return np.power(4.0, np.arange(shares.shape[-1], dtype=np.float64)[::-1])
