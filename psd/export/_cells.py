"""The cells of a release as a table, which every format writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psd._util.declared_parameters import choice
from psd.errors import ParameterError
from psd.export._reliability import judge_nodes
from psd.query.reliability import Threshold, relative_to, reliability_limits
from psd.space.ground_areas import ground_areas, ground_densities

if TYPE_CHECKING:
    import geopandas

    from psd._util.arrays import Integers
    from psd.estimation.fit import Fit
    from psd.space.box_tree import Tree

__all__ = ["cells_table"]


def cells_table(
    fit: Fit,
    cells: str = "leaves",
    *,
    level: int | str | None = None,
    threshold: Threshold = 0.3,
) -> geopandas.GeoDataFrame:
    """Cells with estimates and boxes as geometry; see `Release.to_geopandas`.

    Densities are per area on the ground, the unit of rankings, class breaks and rasters.
    If the counts are not of the curator, a column ``release_source`` states it in every row, so
    that every format of a table has it.
    """
    import geopandas as gpd
    import shapely

    choice("leaves", "all")("cells", cells)
    tree, estimates = fit.tree, fit.estimates
    which = _select_cells(tree, cells, level)
    count, error = estimates.count[which], np.sqrt(fit.noise_covariance.variance[which])
    relative = relative_to(count, error)
    judged = judge_nodes(fit, which, relative, reliability_limits(threshold))
    source = fit.record.source
    stated = {} if source == "curator" else {"release_source": [source] * len(which)}
    west, south, east, north = fit.domain.from_lattice(tree.boxes[which]).T
    areas = ground_areas(fit.domain, tree.boxes[which].astype(np.float64))
    return gpd.GeoDataFrame(
        {
            "cell": which,
            "level": tree.level[which],
            "estimate": count,
            "perturbation_error": error,
            "density": ground_densities(count, areas),
            "relative_error": relative,
            "reliable": judged.reliable,
            "quality": judged.quality,
            **stated,
        },
        geometry=shapely.box(west, south, east, north),
        crs=fit.domain.crs,
    )


def _select_cells(tree: Tree, cells: str, level: int | str | None) -> Integers:
    """Nodes of a table: the leaves, all of them, or those that tile the domain at a level."""
    if level is None:
        return np.flatnonzero(tree.is_leaf) if cells == "leaves" else np.arange(len(tree))
    deepest = int(tree.level.max())
    if cells != "leaves":
        raise ParameterError(f"level must be left out with cells={cells!r}, got {level}")
    if isinstance(level, bool) or not isinstance(level, int) or not 0 <= level <= deepest:
        raise ParameterError(
            f"level must be an integer from 0, the domain, to {deepest}, the finest cells, got "
            f"{level}"
        )
    return np.flatnonzero((tree.level == level) | (tree.is_leaf & (tree.level < level)))
