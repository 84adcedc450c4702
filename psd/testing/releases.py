"""Releases with chosen counts, for tests of code that reads releases."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from psd.errors import ParameterError
from psd.space.domain import Domain
from psd.space.grids import grid_tree

if TYPE_CHECKING:
    from psd.api.release import Release

__all__ = ["release_from_counts"]


def release_from_counts(
    counts: ArrayLike, *, epsilon: str | float | Decimal = 1, domain: Domain | None = None
) -> Release:
    """Return a release of a grid with these noisy counts.

    Parameters
    ----------
    counts : array_like of int, shape (rows, columns)
        Noisy counts, the first row in the south.
    epsilon : str, int, float or Decimal
        Epsilon of each count.
    domain : Domain, optional
        Bounds of the grid; by default each cell is one unit wide, in metres.

    Raises
    ------
    ParameterError
        If the counts are not a table of integers.

    Examples
    --------
    >>> release = release_from_counts([[5, 1], [0, 2]])
    >>> release.query([(0, 0, 2, 1)])["estimate"].round(1).tolist()
    [6.0]
    """
    from psd.api.release import Release

    table = np.asarray(counts)
    if table.ndim != 2 or table.dtype.kind not in "iu" or table.size == 0:
        raise ParameterError(f"counts must be a table of integers, got shape {table.shape}")
    rows, columns = table.shape
    if domain is None:
        domain = Domain(bounds=(0, 0, columns, rows), crs="EPSG:3857", lattice=(columns, rows))
    tree = grid_tree(domain, (columns, rows))
    return Release.from_counts(tree, table, str(epsilon), domain=domain)
