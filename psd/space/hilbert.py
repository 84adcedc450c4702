"""The Hilbert curve over the domain: codes of lattice cells, 0 to 4^order - 1. Public geometry.

References
----------
.. [1] Hilbert. "Ueber die stetige Abbildung einer Linie auf ein Flächenstück." Mathematische
   Annalen 38, 1891.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# Codes stay below 2^36; what selects among them needs the rest of the 64 bits for weights.
MAX_ORDER = 18


def encode(x: NDArray[np.int64], y: NDArray[np.int64], order: int) -> NDArray[np.int64]:
    """Position on the Hilbert curve of cells of a square of 2^order x 2^order.

    x, y: (n,) int64, columns and rows from 0 to 2^order - 1, order at most 18; returns (n,) int64.

    P1. One to one onto 0 to 4^order - 1; cells that follow each other share an edge.

    P2. Each dyadic square of side 2^j holds the codes of one interval [c 4^j, (c + 1) 4^j), with c
    its own position on the curve of order - j.

    Of each square the curve visits the quarters SW, NW, NE, SE in its own frame. The frame of a
    quarter is that of the square, with the axes swapped in its first and last quarter, and both
    turned round in the last: two flags, which only the bits above can have set. So two bits of the
    code follow from one bit of each coordinate and the bits above, which is P2.
    """
    code, swapped, turned = (np.zeros(len(x), np.int64) for _ in range(3))
    for bit in reversed(range(order)):
        # Which quarter, by one bit of each coordinate, then in the frame of the square.
        across, up = x >> bit & 1, y >> bit & 1
        change = (across ^ up) & swapped ^ turned
        across, up = across ^ change, up ^ change
        # SW, NW, NE, SE are 0, 1, 2, 3.
        code = code << 2 | 3 * across ^ up
        swapped ^= 1 - up
        turned ^= across & (1 - up)
    return code


def decode(code: NDArray[np.int64], order: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Columns and rows of positions on the curve, (n,) int64 each: the inverse of `encode`."""
    x, y, swapped, turned = (np.zeros(len(code), np.int64) for _ in range(4))
    for bit in reversed(range(order)):
        digit = code >> 2 * bit
        across = digit >> 1 & 1
        # The quarter in the frame of the square, then turned back to column and row.
        up = across ^ digit & 1
        change = (across ^ up) & swapped ^ turned
        x = x << 1 | across ^ change
        y = y << 1 | up ^ change
        swapped ^= 1 - up
        turned ^= across & (1 - up)
    return x, y


def lattice_codes(
    columns: NDArray[np.integer], rows: NDArray[np.integer], lattice: tuple[int, int], order: int
) -> NDArray[np.int64]:
    """Codes of lattice cells, with the lattice scaled to 2^order x 2^order.

    If the lattice is finer, several cells share a code; if it is coarser, some codes have no
    cell.
    """
    x, y = (
        (values.astype(np.int64) << order) // cells
        for values, cells in zip((columns, rows), lattice, strict=True)
    )
    return encode(x, y, order)


def square_lines(positions: NDArray[np.int64], cells: int, order: int) -> NDArray[np.int64]:
    """First lattice line of an axis whose cells, scaled, lie at or beyond each position."""
    # Rounded up, as the negative of what is rounded down.
    return -(-positions * cells >> order)
