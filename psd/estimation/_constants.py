"""Constants of the estimates that were chosen rather than derived, and where each is from.

A change here changes the answers of releases that exist, so it takes another number of
`psd.release.post_processing.INFERENCE_VERSION`.

Two commands score candidates on the public data sets of ``../shared/data``. None of them fits a
constant by itself: candidates were tried by hand, and the one with the best score was chosen. Where
a comment names no command, none is kept.

- calibration: ``python tests/benchmarks/calibration.py --runs 5``
- spread: ``python tests/benchmarks/spread.py``
"""

from __future__ import annotations

from typing import Final

# --- non-uniformity -----------------------------------------------------------------------------

LUMP: Final = 4.0
"""Variance per point inside a leaf: points come in lumps of about four, such as people at one
address. By calibration: intervals have to cover as often as they state."""

LEFTOVER_OVERDISPERSION: Final = 0.8
"""Part of the overdispersion among siblings that is left inside a leaf. By calibration."""

SHIFT_ERROR: Final = 1.8
"""Standard deviation of what a smooth density moved, relative to it. By calibration."""

ENOUGH_FAMILIES: Final = 16
"""A level with fewer families is judged together with those above it. A convention, not fitted."""

# --- smooth density -----------------------------------------------------------------------------

SMOOTHING_PASSES: Final = 2
"""One pass takes the step out of an edge between two leaves, a second one its kink."""

EVEN_SHARE: Final = 0.02
"""Part of a leaf's count that is spread evenly in any case: no part of a leaf with points gets a
count of 0 and an error of 0. A convention, not fitted."""

DENSITY_RASTER: Final = 2048
"""Cells along a side of the raster on which windows are summed; finer than most leaves."""

# --- pooling ------------------------------------------------------------------------------------

POOLING_PEERS: Final = 8
"""Cells with the next smaller and next larger counts that a cell is compared with. By
``python tests/benchmarks/bias.py --view signed``: 4 to 32 are alike for the cascade; more than 16
smooth over the steps of adaptive grids. Since version 2."""

# --- posterior ----------------------------------------------------------------------------------

ONE_SIDED: Final = 0.4
"""Prior probability that one of two siblings holds all points; otherwise every division is
equally likely. No command is kept."""

SCALE_FREE: Final = 5.0
"""Below this number of standard deviations, the prior of a count is flat in its logarithm, above
them in the count itself: well-measured counts are not pulled by the prior. No command is kept."""

LIKELIHOOD_POINTS: Final = 33
"""Points of a likelihood. A trade of time for precision, not fitted."""

LIKELIHOOD_REACH: Final = 5.0
"""Standard deviations that these points reach to each side."""

SHARES_TRIED: Final = 49
"""Shares at which a division in two is evaluated. A trade of time for precision, not fitted."""

# --- published covariance -----------------------------------------------------------------------

EMPTY_VARIANCE: Final = 0.1
"""Part of its least-squares variance that a cell keeps when it is published as empty. By spread."""
