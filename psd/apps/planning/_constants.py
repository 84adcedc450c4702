"""Constants of plans, tried by hand until ranges held the true errors that `lab/plans.py` prints.

See `docs/guide/planning.md`. Their last digit means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CLUSTERING: Final[Mapping[str, tuple[float, ...]]] = {
    "clustered": (1.0,),
    "coastal": (0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 0.8, 1.0),
    "places": (2.0, 2.0, 2.0, 1.5, 1.0, 0.7, 0.4, 0.2, 0.1, 0.05),
}
"""Parameters of the Dirichlet distribution of the shares of the quarters of a cell, level by level
from the domain down; the last one holds for all further levels. 1 makes all shares equally likely,
less makes them more unequal. Fitted by truth."""

GOOD_ERROR: Final = 0.1
"""Mean relative error that the sentences of a plan call good. A convention, not fitted."""

METHODS: Final = ("auto", "quadtree")
"""Methods of a plan: the default and the most common one."""

QUERIES: Final = 200
"""Queries of each size and kind of centre in each population. Limits time, not fitted."""

CENTRES: Final = 10_000
"""Records that are drawn as possible centres of queries. Limits memory, not fitted."""

RECORDS_IN_ALL_RUNS: Final = 200_000
"""The default number of runs is this over the number of records. Limits time, not fitted."""

MAX_GROUPS: Final = 1_000_000
"""Above about this number of records, groups of records share coordinates. Limits time and memory,
not fitted."""

EXTRA_COVARIATE_LEVELS: Final = 6
"""Further levels that follow a covariate if cells cross the lines of its raster. Errors that remain
are below 2 % of the records, see ``tests/apps/planning/test_population.py``."""

TIME_EVENNESS: Final = 4.0
"""Parameter of the symmetric beta distribution of the part of a span of time that is in its first
half. Not fitted: slices of a day then differ by a factor of about e."""

TIME_BLOCKS: Final = 8
"""Columns and rows of blocks of the domain that have shares of time of their own. Not fitted."""

WINDOW_STARTS: Final = 3
"""Windows of each length that are queried in each population. Limits time, not fitted."""

REGION_POINTS: Final = 200_000
"""Positions of the synthetic records of all regions together. Limits time, not fitted."""

REGION_ROUNDS: Final = 6
"""Draws until the positions of a region suffice. Limits time, not fitted."""

MAX_PLAN_EPSILON: Final = "10"
"""Largest epsilon that is searched by default; builds warn above it."""

SOLVE_STEPS: Final = 12
"""Largest number of epsilons that are tried for a relative error. Limits time, not fitted."""

SIMULATED_STEPS: Final = 5
"""The same, where errors are simulated at each of them."""
