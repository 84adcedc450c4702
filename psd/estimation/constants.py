"""Constants of the estimates that were chosen rather than derived, and where each is from.

A change here changes the answers of releases that exist, so it takes another number of
`psd.release.post_processing.INFERENCE_VERSION`.

Three commands score candidates on public data sets, ``--data FOLDER``. None of them fits a
constant by itself: candidates were tried by hand, and the one with the best score was chosen. Where
a comment names no command, none is kept.

- calibration: ``python lab/calibration.py --runs 5``
- spread: ``python lab/spread.py``
- coverage: ``python lab/coverage_matrix.py``; constants were chosen on its variants,
  not on the sets as they are
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "APART_PAIRS",
    "APART_VARIANCE",
    "CEILING_ERRORS",
    "CLUSTER_SIZES",
    "CUT_SHARE_VARIANCE",
    "DENSITY_RASTER",
    "DIAGONAL_PART",
    "EMPTY_VARIANCE",
    "ENOUGH_FAMILIES",
    "EVEN_SHARE",
    "EXPECTED_CLUSTER_SIZE",
    "FEW_FAMILIES",
    "HIDDEN_SHARE",
    "LAGS",
    "LARGEST_FAMILY",
    "LARGE_REACH",
    "LIKELIHOOD_POINTS",
    "LIKELIHOOD_REACH",
    "LINE_ERRORS",
    "LINE_SHARES",
    "MAX_SHARE_VARIANCE",
    "MEDIAN_REACH",
    "MIDDLE_SHARE",
    "ONE_SIDED",
    "PAIRS_ENOUGH",
    "PAIRS_ERRORS",
    "POOLING_PEERS",
    "SCALE_FREE",
    "SHARES_TRIED",
    "SHIFT_ERROR",
    "SLOPE_OVERDISPERSION",
    "SMOOTHING_PASSES",
    "SMOOTH_SHIFT",
    "STEPS_ACROSS",
    "STEP_CLUSTER_SIZE",
    "STEP_COLUMN_ERRORS",
    "STEP_ERRORS",
    "STEP_FAMILIES",
    "STEP_OVERDISPERSION",
    "STEP_SHARES",
    "STEP_SHARE_VARIANCE",
]

# --- non-uniformity -----------------------------------------------------------------------------

EXPECTED_CLUSTER_SIZE: Final = (3.0, 2.0)
"""Prior mean and standard deviation of the variance per point, which the counts determine unless
their noise hides it. By coverage."""

CLUSTER_SIZES: Final = (1.0, 10.0)
"""Least and largest variance per point: points thrown at random have 1."""

SHIFT_ERROR: Final = 1.8
"""Standard deviation of what a smooth density moved, relative to it. By calibration, before
only a part of it was taken."""

SMOOTH_SHIFT: Final = 0.7
"""Part of `SHIFT_ERROR` that holds for a smooth density. By coverage: on tenfold and thinned data
the predicted non-uniformity error was 1.7 times the true one, and more than half of its variance
was of the shift."""

SLOPE_OVERDISPERSION: Final = 1.4
"""Factor of the overdispersion where the density follows a covariate or a boundary. Neighbouring
leaves have slopes in common, which a smooth density knows and others do not, so that leaves along a
side of a box err together. By coverage: `lab/coverage_matrix.py --rows
"boundary;covariate"`; with 1, the non-uniformity error was predicted 0.84 times as large as it is
in the median row."""

CEILING_ERRORS: Final = 2.0
"""Standard deviations above its count that a cell hardly exceeds. By coverage: with 2, as many
intervals cover as without this limit; with 0, a class of heavy places had 88 in place of 95 %."""

ENOUGH_FAMILIES: Final = 16
"""A level with fewer families is judged together with those above it. A convention, not fitted."""

LARGEST_FAMILY: Final = 0.03
"""Part of the counted squares of its level up to which a family counts. By coverage: without it,
the error of a grid on uk_road_accidents at epsilon 0.1 followed from two cells of London, and was
predicted 1.5 times too large, and that of three colonies 3.5 times (`--kind hard --rows colonies`);
with 0.015, that of a grid on uk_road_accidents at epsilon 1 is 1.69 times."""

FEW_FAMILIES: Final = 1.5
"""The same over the mean of its level, where that is more. By coverage; with 3, colonies are worse
and nothing else changes."""

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
``python lab/bias.py --view signed``: 4 to 32 are alike for the cascade; more than 16
smooth over the steps of adaptive grids."""

# --- posterior ----------------------------------------------------------------------------------

ONE_SIDED: Final = 0.4
"""Prior probability that one of two siblings holds all points; otherwise every division is
equally likely. No command is kept."""

SCALE_FREE: Final = 5.0
"""Below this number of standard deviations, the prior of a count is flat in its logarithm, above
them in the count itself: well-measured counts are not pulled by the prior. No command is kept."""

MEDIAN_REACH: Final = 1.0
"""Standard deviations of a division by least squares, by which a median may differ from it. By
coverage and by errors; no command is kept: with 0.5 a grid on london_stop_search is 2 % worse, with
1.5 its least class on tenfold data has 90 in place of 96 %."""

LARGE_REACH: Final = 0.2
"""The same where both parts are more than `SCALE_FREE` standard deviations. No command is kept:
docs/measured/bias.md has the figures."""

LIKELIHOOD_POINTS: Final = 33
"""Points of a likelihood. A trade of time for precision, not fitted."""

LIKELIHOOD_REACH: Final = 5.0
"""Standard deviations that these points reach to each side."""

SHARES_TRIED: Final = 49
"""Shares at which a division in two is evaluated. A trade of time for precision, not fitted."""

# --- published covariance -----------------------------------------------------------------------

EMPTY_VARIANCE: Final = 0.1
"""Part of its least-squares variance that a cell keeps when it is published as empty. By spread."""

# --- records along lines ------------------------------------------------------------------------

MAX_SHARE_VARIANCE: Final = 0.25
"""Variance of the share of one half where all points are in one of the halves. Derived."""

MIDDLE_SHARE: Final = 0.5**0.5
"""Deviation of a cut in a cell whose records are in its middle, over one in a cell whose records
are all on either side: the mean of min(f, 1 - f)^2 over f is half of that of f (1 - f). Derived."""

LAGS: Final = (4, 6, 8, 12, 16)
"""Cells between two whose deviations are multiplied. Up to three apart cells of all data are
alike; from four on only those of rounded data and streets are. By coverage."""

PAIRS_ENOUGH: Final = 8
"""Pairs of cells of one width below which their products tell nothing. A convention."""

PAIRS_ERRORS: Final = 4.0
"""Standard errors above 0 from which products of deviations count. A convention."""

LINE_ERRORS: Final = 3.5
"""Standard errors above 0 from which records are taken to lie along lines; about forty patterns
are tried. A convention."""

LINE_SHARES: Final = (0.05, 2.0)
"""Share of the records that lie along lines below which they do not matter, and above which a fit
is wrong. By coverage: gradients look like a share of 0.01."""

DIAGONAL_PART: Final = 1 / 3
"""Part of the largest squared deviations of four quarters that lines along the axes cannot explain:
that of both diagonals. Derived."""

APART_PAIRS: Final = 0.02
"""Pairs of cells on a line, per division, below which cells have no lines in common. `htree` and
`kd-standard` have 0.016 at most, other methods 0.03 at least, on sets as they are, lines and heavy
places at epsilon 0.1 and 1. No command is kept."""

APART_VARIANCE: Final = 0.5
"""Part of the variance of cuts of leaves that lie apart, where all is at one place in each, that
they have in common; times the eighth power of the overdispersion. By coverage: with 1, 80 %
intervals of heavy places cover 96 %; with the fourth power, `htree` on london_stop_search at
epsilon 1 has 99.4 in place of 98.4 % pooled, and a ratio of 2.1 in place of 1.5."""

CUT_SHARE_VARIANCE: Final = 1.3
"""Variance of a cut at any share, over that of a cut in the middle, where points move by much less
than a cell; 1 where they move by more than one, and in between by the part of the largest variance.
By coverage; 1.7 by derivation for a lattice much finer than the cells."""

STEP_SHARE_VARIANCE: Final = 0.21
"""Variance of the share beside a line in the middle of a cell of many steps, in squared steps per
cell: a mean of (1 + f^2 + (1 - f)^2) / 12 over f, over that of 4 f (1 - f). Derived."""

STEP_ERRORS: Final = 3.5
"""Standard errors above 0 from which a step is taken to be seen; about seven are tried. A
convention."""

STEP_COLUMN_ERRORS: Final = 2.5
"""The same where the families of a column, or of a row, are one term of the error. By coverage:
rounded data have 2.7 and more, points on one line less than 2."""

STEP_SHARES: Final = (0.2, 2.0)
"""Share of rounded records below which they do not matter, and above which a regression is wrong.
A convention."""

STEP_FAMILIES: Final = 30
"""Families that a step has to move for its error to be estimated. A convention."""

HIDDEN_SHARE: Final = 0.5
"""Share of the records that leaves of the smallest cell have if they hide a step. A convention."""

STEPS_ACROSS: Final = 8
"""Steps across the domain, at least. A convention."""

STEP_CLUSTER_SIZE: Final = 2.0
"""Variance per point in the weights of the regression; the result depends little on it."""

STEP_OVERDISPERSION: Final = 0.12
"""Overdispersion in these weights; the result depends little on it."""
