"""Constants of the estimates that were chosen by hand rather than derived.

A change alters answers of existing releases, so it takes a new
`psd.release.post_processing.INFERENCE_VERSION`. ``python lab/constants.py --data FOLDER`` compares
values of each (docs/measured/data/constants.csv).
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "CEILING_ERRORS",
    "DENSITY_RASTER",
    "EMPTY_VARIANCE",
    "EVEN_SHARE",
    "POOLING_PEERS",
    "SMOOTHING_PASSES",
]

# --- how records lie inside cells ---------------------------------------------------------------

EXPECTED_CLUSTER_SIZE: Final = 2.0
"""Prior mean, and standard deviation, of the variance per point, which the counts determine unless
their noise hides it."""

EXPECTED_OVERDISPERSION: Final = 0.12
"""Variance per squared point in the weights of regressions; results depend little on it."""

SMOOTH_SHIFT: Final = 1.26
"""Standard deviation of what a smooth density moved, relative to it. With 1.8, the predicted
non-uniformity error of tenfold and thinned data was 1.7 times the true one."""

SLOPE_OVERDISPERSION: Final = 1.4
"""Factor of the overdispersion where the density follows a covariate or a boundary. Neighbouring
leaves have slopes in common, which a smooth density knows and others do not, so that leaves along a
side of a box err together."""

CEILING_ERRORS: Final = 2.0
"""Standard deviations above its count that a cell hardly exceeds."""

ENOUGH_FAMILIES: Final = 16
"""Families of a level, pairs of cells of one width, or families that a step moves, below which they
tell nothing by themselves. A convention."""

LARGEST_FAMILY: Final = 0.03
"""Part of the counted squares of its level up to which a family counts: two cells with a city, or
three colonies, would decide for all others."""

FEW_FAMILIES: Final = 1.5
"""The same over the mean of its level, where that is more."""

# --- smooth density -----------------------------------------------------------------------------

SMOOTHING_PASSES: Final = 2
"""One pass takes the step out of an edge between two leaves, a second one its kink."""

EVEN_SHARE: Final = 0.02
"""Part of a leaf's count that is spread evenly in any case: no part of a leaf with points gets a
count of 0 and an error of 0. A convention."""

DENSITY_RASTER: Final = 2048
"""Cells along a side of the raster on which windows are summed; finer than most leaves. A trade of
memory for precision, and the one constant that the command does not vary."""

# --- pooling and posterior ----------------------------------------------------------------------

POOLING_PEERS: Final = 8
"""Cells with the next smaller and next larger counts that a cell is compared with."""

ONE_SIDED: Final = 0.4
"""Prior probability that one of two siblings holds all points; otherwise every division is
equally likely."""

SCALE_FREE: Final = 5.0
"""Standard deviations beyond which a count is well measured: there its prior is flat in the count,
and below in its logarithm; and to which the points of a likelihood reach."""

MEDIAN_REACH: Final = 1.0
"""Standard deviations of a division by least squares, by which a median may differ from it."""

LARGE_REACH: Final = 0.2
"""The same where both parts are more than `SCALE_FREE` standard deviations."""

LIKELIHOOD_POINTS: Final = 33
"""Points of a likelihood. A trade of time for precision."""

SHARES_TRIED: Final = 49
"""Shares at which a division in two is evaluated. A trade of time for precision."""

EMPTY_VARIANCE: Final = 0.1
"""Part of its least-squares variance that a cell keeps when it is published as empty."""

# --- records along lines ------------------------------------------------------------------------

SEEN_ERRORS: Final = 4.0
"""Standard errors above 0 from which a step, a line, or a product of deviations is seen; about
forty patterns are tried. A convention."""

SEEN_SHARES: Final = (0.05, 2.0)
"""Share of the records that lie along lines, or at the multiples of a step, below which they do not
matter, and above which a fit is wrong. Gradients look like a share of 0.01."""

STEP_COLUMN_ERRORS: Final = 2.5
"""`SEEN_ERRORS` of a step where the families of a column, or of a row, are one term of the error:
rounded data have 2.7 and more, points on one line less than 2."""

LAGS: Final = (4, 6, 8, 12, 16)
"""Cells between two whose deviations are multiplied. Up to three apart cells of all data are
alike; from four on only those of rounded data and streets are."""

APART_VARIANCE: Final = 0.5
"""Part of the variance of cuts of leaves that lie apart, where all is at one place in each, that
they have in common; times the eighth power of the overdispersion."""

CUT_SHARE_VARIANCE: Final = 1.3
"""Variance of a cut at any share, over that of a cut in the middle, where points move by much less
than a cell; 1 where they move by more than one, and in between by the part of the largest variance.
1.7 by derivation for a lattice much finer than the cells."""
