"""Polygons over rounded coordinates: a lattice cell is in a polygon if its value is.

With a coordinate resolution, records lie on values alone. A leaf that an outline cuts has the share
of its values inside, not the share of its area: a street along which no value lies takes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, ranges, sum_by

if TYPE_CHECKING:
    from psd.estimation.fit import Fit

__all__ = ["MAX_VALUES", "has_few_values", "value_shares"]

MAX_VALUES = 1024
"""Values of a leaf up to which each is tested; larger leaves are measured by area."""

# Values tested together, about 50 MB.
_VALUES_PER_BATCH = 2**17


def has_few_values(fit: Fit, node: Integers) -> NDArray[np.bool_]:
    """Whether a share of values is used for leaves: a coordinate resolution, and few values.

    node: (n,) int64, leaves; returns (n,) bool.
    """
    if fit.domain.coordinate_resolution is None:
        return np.zeros(len(node), bool)
    few: NDArray[np.bool_] = fit.tree.area[node] <= MAX_VALUES
    return few


def value_shares(
    fit: Fit, shapes: NDArray[np.object_], query: Integers, node: Integers
) -> tuple[Floats, Floats]:
    """Shares of the records and of the values of leaves that lie in polygons.

    shapes: (m,), in the CRS of the release; query, node: (n,) int64, polygon and leaf of each pair;
    returns (n,) float64 twice: of the records, by the density of the fit, and of the values. The
    domain has a coordinate resolution.

    A value on the outline is inside where the polygon continues to the north-east, so a polygon
    that is a box has the answer of the box, and polygons that tile share no value.
    """
    import shapely

    shapely.prepare(shapes)
    values = fit.tree.area[node]
    share, area = np.empty(len(node)), np.empty(len(node))
    batch = np.cumsum(values) // _VALUES_PER_BATCH
    for pairs in np.split(np.arange(len(node)), np.flatnonzero(np.diff(batch)) + 1):
        if len(pairs):
            share[pairs], area[pairs] = _batch_shares(fit, shapes, query[pairs], node[pairs])
    return share, area


def _batch_shares(
    fit: Fit, shapes: NDArray[np.object_], query: Integers, node: Integers
) -> tuple[Floats, Floats]:
    """Shares of some pairs; see `value_shares`."""
    import shapely

    tree, domain = fit.tree, fit.domain
    boxes, values = tree.boxes[node].astype(np.int64), tree.area[node]
    # All lattice cells of all leaves, row by row.
    owner = np.repeat(np.arange(len(node)), values)
    row, column = np.divmod(ranges(np.zeros(len(node), np.int64), values), _width(boxes)[owner])
    corner = np.stack([column, row], axis=1)
    cell = boxes[owner, :2] + corner
    x, y = (domain.axes[axis].probe(cell[:, axis], axis) for axis in (0, 1))
    inside = np.flatnonzero(shapely.contains_xy(shapes[query[owner]], x, y))
    owner, corner = owner[inside], corner[inside]
    area = np.bincount(owner, minlength=len(node)) / values
    if fit.density is None:
        return area, area
    # Those inside, as boxes in shares of their leaf.
    size = (boxes[:, 2:] - boxes[:, :2])[owner]
    part = fit.density.part(tree, node[owner], corner / size, (corner + 1) / size)
    share = np.minimum(sum_by(owner, part, len(node)), 1.0)
    return np.where((area > 0) & (area < 1), share, area), area


def _width(boxes: Integers) -> Integers:
    """Columns of boxes."""
    width: Integers = boxes[:, 2] - boxes[:, 0]
    return width
