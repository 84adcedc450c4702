"""The usual workload of the field: rectangles of four sizes, uniform and centred on the data.

It looks at true points, so it belongs to evaluations and never to a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["AREAS", "Workload", "workload"]

AREAS = (1e-4, 1e-3, 1e-2, 1e-1)
_PER_CLASS = 500
_ASPECT = 4.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workload:
    """Query boxes and the class that each belongs to.

    Parameters
    ----------
    boxes : ndarray, shape (n, 4), float64
        West, south, east, north.
    classes : ndarray, shape (n,), str
        Such as ``"uniform 0.01 %"``, in order.
    """

    boxes: NDArray[np.float64]
    classes: NDArray[np.str_]


def workload(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    bounds: tuple[float, float, float, float],
    *,
    seed: int = 2024,
    areas: Sequence[float] = AREAS,
    per_class: int = _PER_CLASS,
) -> Workload:
    """Eight classes of 500 rectangles: four areas, uniform centres and centres on points.

    Parameters
    ----------
    x, y : ndarray, shape (n,), float64
        Points inside the bounds. Private.
    bounds : tuple of float
        West, south, east, north of the domain.
    seed : int
        The same seed and points give the same rectangles.
    areas : sequence of float
        Shares of the domain that the rectangles cover, in (0, 1].
    per_class : int
        Rectangles of each area and kind of centre.

    Returns
    -------
    Workload
        Aspect ratios are log-uniform in [1/4, 4] in units of the domain; a rectangle is moved
        until it lies inside.

    References
    ----------
    .. [1] Qardaji, Yang, Li. ICDE 2013, section V; Zhang, Xiao, Xie. "PrivTree." SIGMOD 2016.
    """
    random = np.random.RandomState(seed)
    west, south, east, north = bounds
    unit = [(x - west) / (east - west), (y - south) / (north - south)]
    boxes, classes = [], []
    for kind in ("uniform", "on data")[: 2 if len(x) else 1]:
        for area in areas:
            aspect = np.exp(random.uniform(-np.log(_ASPECT), np.log(_ASPECT), per_class))
            wide = np.minimum(np.sqrt(area * aspect), 1.0)
            high = np.minimum(area / wide, 1.0)
            wide = area / high
            if kind == "on data":
                centre = random.randint(0, len(x), per_class)
                at = [unit[0][centre], unit[1][centre]]
            else:
                at = [random.uniform(0, 1, per_class), random.uniform(0, 1, per_class)]
            boxes.append(_placed(at[0], at[1], wide, high))
            classes += [f"{kind} {100 * area:g} %"] * per_class
    size = np.array([east - west, north - south] * 2)
    scaled = np.array([west, south] * 2) + np.concatenate(boxes) * size
    return Workload(boxes=scaled, classes=np.array(classes))


def _placed(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    wide: NDArray[np.float64],
    high: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Rectangles around centres, moved into the unit square."""
    x, y = np.clip(x, wide / 2, 1 - wide / 2), np.clip(y, high / 2, 1 - high / 2)
    return np.stack([x - wide / 2, y - high / 2, x + wide / 2, y + high / 2], axis=1)
