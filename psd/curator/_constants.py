"""Constants of private choices that a person chose on public data sets, and where each is from.

- bounds: ``python lab/bounds.py --data FOLDER --tune``
- private bounds: ``python lab/private_bounds.py --data FOLDER``
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

# --- private choice of max_contributions --------------------------------------------------------

CHOICE_SHARE: Final = Decimal("0.05")
"""Share of epsilon for the choice. By the bounds command, with `CHOICE_OVER`."""

CHOICE_OVER: Final = 250
"""Users above the bound, times epsilon. By the bounds command; figures in docs/guide/units.md."""

CHOICE_MAX: Final = 1_000
"""Largest bound that is a candidate by default."""

BOUND_STEPS: Final = (10, 12, 15, 20, 25, 30, 40, 50, 60, 80)
"""Candidates of each decade: steps of about a quarter, so that one of them is near the best."""

SMALL_BOUNDS: Final = (1, 2, 3, 4, 5, 6, 8)
"""Candidates below 10."""

# --- private bounds -----------------------------------------------------------------------------

BOUNDS_SHARE: Final = Decimal("0.1")
"""Share of epsilon for the four sides. By the private bounds command."""

BOUNDS_BEYOND: Final = 50
"""One record in this number may lie beyond each side. By the private bounds command."""

OUTER_LINES: Final = 2**16
"""Lattice lines of an axis of the outer domain. With more lines, more records are needed."""

# --- privtree -----------------------------------------------------------------------------------

MAX_SHAPE_NODES: Final = 2**24
"""Nodes of a layer at which a shape stops growing: a limit on memory."""
