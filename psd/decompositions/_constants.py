"""Constants of the methods that were chosen by hand on public data sets, and where each is from.

A change changes new releases alone: an old one states its parameters. Scores of one setting vary by
several per cent between builds. Where a comment names no command, ``--data FOLDER``, none is kept.

- accuracy: ``python lab/accuracy.py --methods NAME --runs 2``
- ablation: ``python lab/ablation.py --runs 3`` (cascade only)
- workload: ``python lab/workload.py --classes tiny``
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Final

# --- all methods that pay for a noisy total -----------------------------------------------------

TOTAL_SHARE: Final = Decimal("0.02")
"""Share of epsilon for the total. Compared with 0.05 for the cascade by ablation."""

TOTAL_SIGNAL: Final = 10
"""Total over the scale of its noise below which `grid` and the kd-trees count once more. There the
noise moves sizes by more than a tenth. A convention."""

TOTAL_SECOND_SHARE: Final = Decimal("0.1")
"""Share of what is left for this second count. By accuracy on parts of sets with 50 to 200 records
per unit of 1 / epsilon; compared with 0.05 and 0.2."""

# --- grid ---------------------------------------------------------------------------------------

GRID_SIGNAL: Final = 7.5
"""c of guideline 1 in Qardaji et al., ICDE 2013, where 5 to 15 are all close to the optimum, and 10
is chosen for plain counts. Posterior medians and smooth densities allow finer cells where many are
empty, which a total does not tell. By accuracy, with a set of uniform points
(docs/measured/accuracy.md)."""

GRID_TINY_FACTOR: Final = 8
"""Factor of the rule for tiny boxes, measured once on three public data sets. Workload compares the
rule with eleven fixed sizes."""

GRID_TINY_EXPONENT: Final = 0.4
"""Derived: see the notes of `psd.decompositions.grid.Grid`."""

# --- adaptive-grid: guidelines 1 and 2 in Qardaji et al., ICDE 2013 -----------------------------

FIRST_GRID_SHARE: Final = Decimal("0.5")
"""alpha; the paper finds 0.2 to 0.6 about equal."""

FIRST_GRID_SIGNAL: Final = 10
"""c."""

SECOND_GRID_SIGNAL: Final = 5
"""c / 2."""

FIRST_GRID_COARSENING: Final = 4
"""The first grid is a quarter as fine as a uniform grid."""

FIRST_GRID_MIN_SIZE: Final = 10
"""Smallest first grid of guideline 2."""

# --- cascade ------------------------------------------------------------------------------------

CASCADE_SIGNAL: Final = 5
"""Expected count of a finished cell over its noise. Compared with 3 and 8 by ablation."""

CASCADE_STEP_SHARE: Final = Decimal("0.2")
"""Share of a tier before the last. Compared with 0.1 and 0.3 by ablation."""

CASCADE_LAST_LEVELS: Final = 2
"""Largest number of levels that the last measurement covers. From a sketch of the method."""

CASCADE_FIRST_LEVELS: Final = 2
"""Smallest depth of the first tier: if epsilon is small, the total may be mostly noise."""

CASCADE_ROUGHNESS: Final = 0.3
"""Relative variance among four siblings at which cells get the size by the signal.
From a sketch of the method."""

CASCADE_MAX_ROUGHNESS: Final = 2.0
"""Largest factor by which roughness changes the area of cells. From a sketch of the
method."""

# --- auto ---------------------------------------------------------------------------------------

LOOK_SHARE: Final = TOTAL_SHARE
"""Share of epsilon for the noisy total."""

AUTO_CELLS: Final = 2_000_000
"""Approximate largest number of cells of a release. A limit on the size of files, not fitted."""

# --- regions ------------------------------------------------------------------------------------

REGIONS_ALONE_TOTAL_SHARE: Final = Decimal("0.01")
"""Share of the total where nothing is inside the regions: their counts are all that is published,
and are to have 98 % of the precision that all of epsilon would give. Derived."""

REGIONS_SHARE: Final = Decimal("0.25")
"""Share of all levels of regions, unless they have few or many records. By the bars of
docs/measured/regions.md."""

REGIONS_MIN_SHARE: Final = Decimal("0.15")
"""Smallest default share, for regions with many records: 30 districts at epsilon 1. By the bars of
docs/measured/regions.md."""

REGIONS_MAX_SHARE: Final = Decimal("0.4")
"""Largest default share, for regions with few records. A convention."""

REGIONS_SIGNALS: Final = (100, 500)
"""Expected records of a lowest region times epsilon below which the share grows, and above which it
falls. A convention."""

REGIONS_SHARE_EXPONENTS: Final = (1 / 8, 2 / 9)
"""How it grows and falls: to 0.3 for 600 regions with 140,000 records at epsilon 0.1, and to 0.15
for 30 regions at epsilon 1."""

# --- kd-standard, kd-hybrid, kd-cell: Cormode et al., ICDE 2012 ---------------------------------

KD_STRUCTURE_SHARE: Final = Decimal("0.3")
"""Share of epsilon for the grid of kd-cell; section 8.2."""

KD_MEDIAN_SHARE: Final = Decimal("0.15")
"""Share of epsilon for the medians of kd-standard and kd-hybrid. By accuracy better than the 0.3 of
section 8.2 at epsilon 0.1 and 1; 0.1 is not better, 0.2 about equal."""

KD_PRIVATE_LEVELS: Final = 6
"""Cuts at private medians: the published code switches after three levels of fan-out four."""

KD_SIGNAL: Final = 2.5
"""c of the height of kd-standard and kd-hybrid. Heights of 6 to 18 were compared by accuracy."""

KD_CELL_TOLERANCE: Final = 2
"""Numbers of standard deviations: of a leaf's count, which its distance from uniform may reach, and
of that distance as measured on the grid, which noise may hide. A convention, not fitted."""

# --- hilbert-rtree ------------------------------------------------------------------------------

HILBERT_STRUCTURE_SHARE: Final = Decimal("0.3")
"""Share of epsilon for the medians, as for the kd-trees."""

HILBERT_SIGNAL: Final = 20
"""Expected count of an interval over its noise. The best of 10 to 40 by accuracy."""

HILBERT_ROUNDING: Final = 1
"""Number of quarterings below an interval of the squares that ends are rounded to. The best of 0 to
2 by accuracy."""

# --- htree: To, Fan, Shahabi, GeoPrivacy 2015, its slides and its published code ----------------

HTREE_STRUCTURE_SHARE: Final = Decimal("0.4")
"""Share of epsilon for the quantiles."""

HTREE_FIRST_AXIS: Final = Fraction(2, 5)
"""Part of this share for the cuts in x."""

HTREE_SIGNAL: Final = 3
"""c of the granularity."""

# --- htf: Shaham et al., SIGSPATIAL 2021 --------------------------------------------------------

HTF_STRUCTURE_SHARE: Final = Decimal("0.1")
"""Share of epsilon for the lines."""

HTF_SIGNAL: Final = 2.5
"""c of the height; about 10 in the paper, but cuts far from the middle need more levels to come as
close. By accuracy 10, 5 and 2.5 are each clearly better than the one before, 1.25 slightly."""

# --- privtree: Zhang, Xiao, Xie, SIGMOD 2016 ----------------------------------------------------

PRIVTREE_STRUCTURE_SHARE: Final = Decimal("0.5")
"""Share of epsilon for the shape."""

# --- cube: by sketches of the method on public sets with times -----------------------------------

CUBE_STEP_SHARE: Final = Decimal("0.1")
"""Share of a tier before the last; with 0.2, and a plane of 10 %, the worst class was 1.22 times
that of slices in place of 0.96."""

CUBE_LAST_BITS: Final = 6
"""Largest number of halvings that the last measurement covers."""

CUBE_FIRST_BITS: Final = 6
"""Smallest number of halvings before the first tier."""

CUBE_PLANE_SHARE: Final = (0.02, 0.2)
"""Least and largest share of epsilon for the layer of the plane."""

CUBE_PLANE_SIGNAL: Final = 800
"""Records of a slice over the scale of the noise at which the plane has `CUBE_PLANE_MEAN`."""

CUBE_PLANE_MEAN: Final = 0.05
"""Share of the plane at this signal; it falls with the third root of the signal."""

CUBE_LABEL_SHARE: Final = Decimal("0.2")
"""Share of what the plane leaves that cubes with slices spend on space and categories in all time.
Of five categories that lie in places of their own, errors are half of those without it."""

CUBE_LABELS: Final = 16
"""Largest number of categories that are divided before time is. Each has estimates of its own."""

CUBE_LABEL_SIGNAL: Final = 300
"""Mean records of a category over the scale of the noise, about 25 finished cells."""

CUBE_TIME_FIRST: Final = 100
"""Records of a slice over the scale of the noise from which time is cut before space."""

CUBE_LOWEST_SHARE: Final = Decimal("0.75")
"""Share of the lowest level in the layer of regions, which says how regions are told apart that are
counted together. With even shares the errors of 24 x 24 wards in 504 hours at epsilon 0.1 were 1.14
to 1.29 times these, and those of their 25 districts over weeks .93."""

CUBE_LEVEL_BITS: Final = 3
"""Halvings that a slice may lack for the next level of regions. In 48 hours of 8,700 records wards
over all of them had 1.45, 1.26 and 1.12 times the errors of slices with one, two and three, in
single hours 1.18, 1.16 and 1.15, of one build each; in 504 hours of 830 records three changed
errors by no more than draws do."""

CUBE_TIMES_SHARE: Final = Decimal("0.1")
"""Share of what the plane leaves that cubes of hours spend on each hour of all places. With 0.05
errors of squares in windows of 1 to 504 hours were the same, within what draws do, and those of the
whole area in windows such as weekdays 07-09 larger."""

CUBE_TIMES_SIGNAL: Final = 10
"""Records of an hour over the scale of the noise from which this is done: with that share an hour
has as many records as its noise. Days of London differ too little for it: at epsilon 0.1, with 14,
errors were 1.07 times those without."""

CUBE_CELLS: Final = 1_000_000
"""About how many finished cells each tree has at most. Of 10^7 records in 168 slices twice as many
would take 1.8 GB, and a larger file than slices."""

CUBE_TIME_OFFSET: Final = 4
"""Halvings by which time is ahead of space below that, and by which categories are."""

CUBE_TIME_BITS: Final = 7
"""Largest number of halvings of time alone in one tier. With more slices, another tier before tells
which times have few records, whose slices are better counted together."""
