"""Constants of the answers that were chosen rather than derived, and where each is from.

Two commands score candidates on the public data sets of ``../shared/data``. They do not fit a
constant by themselves: candidates were tried by hand, and the one with the best score was chosen.
Where a comment does not name one, no command is kept.

- calibration: ``python tests/benchmarks/calibration.py --runs 5``
- coverage: ``python tests/benchmarks/coverage_matrix.py``
"""

from __future__ import annotations

from typing import Final

# --- answer table -------------------------------------------------------------------------------

SANITY_SHARE: Final = 0.001
"""rho of the field's relative error: the denominator is at least this share of the total, so that
small counts do not have huge relative errors."""

# --- intervals ----------------------------------------------------------------------------------

RESTORED_VARIANCE: Final = 0.6
"""Part of the variance that post-processing removed which the upper end gets back: queries are
made where people are, and a cell that is published as empty often is not empty there. By
calibration."""

SKEW_DIVISORS: Final = {1: 3, 2: 1}
"""Divisor of the term in the third cumulant, by version. 3 is derived for queries that lie
anywhere; 1 by coverage: squares on people at epsilon 0.05 and 0.1."""

MAX_BIAS: Final = 2.0
"""Largest squared bias of an answer, in least-squares variances. By calibration."""

ROUNDING_VARIANCE: Final = 0.25
"""Variance of rounding an integer count to its neighbour. Derived."""

# --- explanations -------------------------------------------------------------------------------

FINER_SHIFT: Final = 0.25
"""Part of the variance of what a smooth density moves that cells half as wide leave. Derived."""

# --- speed --------------------------------------------------------------------------------------

COMPILED_FROM: Final = 1000
"""Boxes from which the compiled walk is worth the seconds that it may take to compile."""

MAX_MESH_CELLS: Final = 2**24
"""Largest summed-area table; one of 128 MB and more is no faster than the tree."""
