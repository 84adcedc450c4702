"""Arithmetic of boxes: four columns, west, south, east and north."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["SIDES", "all_inside", "any_empty", "box_sides", "quadrants"]

SIDES = ("west", "south", "east", "north")
"""Names of the four columns."""

Number = TypeVar("Number", bound=np.generic)


def box_sides(boxes: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Width and height of boxes in lattice cells, as integers that cannot overflow."""
    west, south, east, north = boxes.T
    return np.subtract(east, west, dtype=np.int64), np.subtract(north, south, dtype=np.int64)


def any_empty(boxes: NDArray[np.int32]) -> bool:
    """Whether a box has no width or no height.

    Examples
    --------
    >>> any_empty(np.array([[0, 0, 4, 2]])), any_empty(np.array([[0, 0, 4, 2], [1, 1, 3, 1]]))
    (False, True)
    """
    west, south, east, north = boxes.T
    return not ((west < east).all() and (south < north).all())


def all_inside(boxes: NDArray[np.int32], outer: NDArray[np.int32]) -> bool:
    """Whether each box lies in the outer box of the same row.

    Examples
    --------
    >>> all_inside(np.array([[0, 0, 4, 2]]), np.array([[0, 0, 4, 4]]))
    True
    >>> all_inside(np.array([[0, 0, 4, 2]]), np.array([[0, 0, 4, 1]]))
    False
    """
    # Whole rows are compared, which takes less time than parts of them.
    above, below = boxes >= outer, boxes <= outer
    return all(bool(side.all()) for side in (*above.T[:2], *below.T[2:]))


def quadrants(boxes: NDArray[Number], lines: NDArray[Number]) -> NDArray[Number]:
    """Divide boxes at a vertical and a horizontal line each; some parts may be empty.

    Parameters
    ----------
    boxes : ndarray, shape (n, 4)
        West, south, east, north.
    lines : ndarray, shape (n, 2)
        x and y of the lines, inside the boxes or on their edges.

    Returns
    -------
    ndarray, shape (n, 4, 4)
        South-west, south-east, north-west and north-east part of each box.

    Examples
    --------
    >>> quadrants(np.array([[0, 0, 4, 2]]), np.array([[1, 2]])).tolist()
    [[[0, 0, 1, 2], [1, 0, 4, 2], [0, 2, 1, 2], [1, 2, 4, 2]]]
    """
    west, south, east, north = boxes.T
    x, y = lines.T
    parts = [(west, south, x, y), (x, south, east, y), (west, y, x, north), (x, y, east, north)]
    divided = np.empty((len(boxes), 4, 4), boxes.dtype)
    for number, part in enumerate(parts):
        for side, values in enumerate(part):
            divided[:, number, side] = values
    return divided
