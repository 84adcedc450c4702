"""Constants of evaluations, none fitted: the workload of the papers, and presentation."""

from __future__ import annotations

from typing import Final

# --- workload: Qardaji et al., ICDE 2013; Zhang et al., SIGMOD 2016 -----------------------------

AREAS: Final = (1e-4, 1e-3, 1e-2, 1e-1)
"""Shares of the domain that the rectangles of the classes cover."""

PER_CLASS: Final = 500
"""Rectangles of each class."""

MAX_ASPECT: Final = 4.0
"""Largest ratio of the sides of a rectangle, in units of the domain."""

SANITY: Final = 0.001
"""Share of all records below which this share replaces the count in relative errors."""

# --- evaluation and comparison ------------------------------------------------------------------

CONFIDENCE: Final = 0.95
"""Confidence of the intervals whose coverage is measured."""

EPSILONS: Final = ("0.1", "1")
"""Epsilons of a comparison: those of the tables in the papers."""

RUNS: Final = 3
"""Builds of each method at each epsilon. Fewer give no useful standard error."""

MIN_CLASS_ERROR: Final = 1e-9
"""Smallest error of a class in a score; keeps the logarithm of 0 finite."""

# --- reports ------------------------------------------------------------------------------------

RASTER: Final = 50
"""Columns and rows of the maps. 50 is not a power of two, so cells of the maps cross the edges of
cells that were halved."""

WORST_QUERIES: Final = 10
"""Rows of the table of the worst queries."""

TIE: Final = 2.0
"""Scores that differ by fewer standard errors are reported as a tie."""
