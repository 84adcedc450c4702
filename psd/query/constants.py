"""Constants of the answers that were chosen by hand on public data sets, and where each is from.

Where a comment names neither of these, ``--data FOLDER``, no command is kept.

- calibration: ``python lab/calibration.py --runs 5``
- coverage: ``python lab/coverage_matrix.py``
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "LINE_PLACES",
    "RESTORED_VARIANCE",
    "ROUNDING_VARIANCE",
    "SHARE_ROUNDING",
    "SIDE_SLANT",
    "SKEW_DIVISOR",
    "SLANTING_SHIFT",
    "TAIL_SQUARE",
]

# --- answer table -------------------------------------------------------------------------------

GOOD_LIMIT: Final = 0.12
"""Largest relative error of a good estimate, where the caller states no other. A convention of
statistics offices, not fitted."""

# --- intervals ----------------------------------------------------------------------------------

RESTORED_VARIANCE: Final = 0.81
"""Part of the variance that post-processing removed which the upper end gets back: queries are made
where people are, and a cell that is published as empty often is not empty there. By calibration.
Times 1 - 1 / z^2, which gives 0.6 at 95 %."""

SKEW_DIVISOR: Final = 0.5
"""Divisor of the term in the third cumulant. 3 is derived for queries that lie anywhere; 0.5 by
coverage: squares on people."""

TAIL_SQUARE: Final = 3.84
"""Square of the normal quantile from which the divisor holds; that of 95 %. Below it, the term
falls to 0 at 1. By coverage: 80 % intervals of nearly all rows covered 82 to 88 %."""

ROUNDING_VARIANCE: Final = 0.25
"""Variance of rounding an integer count to its neighbour. Derived."""

SLANTING_SHIFT: Final = 0.5
"""Deviation of records along a slanting side, over that along a side on an axis. By coverage of
polygons with seven corners: `lab/polygon_coverage.py`."""

SIDE_SLANT: Final = 1e-3
"""A side of a polygon is along an axis if it leaves it by at most this part of its length. A
convention."""

LINE_PLACES: Final = 6
"""Decimals, in lattice cells, to which positions of one line agree. A convention."""

SHARE_ROUNDING: Final = 1e-14
"""A share of records nearer to 0 or 1 than this is 0 or 1: no records are cut. Rounding."""

# --- explanations -------------------------------------------------------------------------------

FINER_SHIFT: Final = 0.25
"""Part of the variance of what a smooth density moves that cells half as wide leave. Derived."""

# --- speed --------------------------------------------------------------------------------------

COMPILED_FROM: Final = 1000
"""Boxes from which the compiled walk is worth the seconds that it may take to compile."""

NOTED_FROM: Final = 10_000
"""Boxes from which `psd query` names the extra that answers them in a tenth of the time."""

MAX_MESH_CELLS: Final = 2**24
"""Largest summed-area table; one of 128 MB and more is no faster than the tree."""
