"""The cells of a release as a table, which every format writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psd._util.fields import choice
from psd.space.ground_areas import ground_areas

if TYPE_CHECKING:
    import geopandas

    from psd.estimation.model import CountModel

__all__ = ["cells_table"]


def cells_table(model: CountModel, cells: str = "leaves") -> geopandas.GeoDataFrame:
    """Cells with estimates and boxes as geometry; see `Release.to_geopandas`.

    Densities are per area on the ground, the unit of rankings, class breaks and rasters.
    If the counts are not of the curator, a column ``release_source`` states it in every row, so
    that every format of a table has it.
    """
    import geopandas as gpd
    import shapely

    choice("leaves", "all")("cells", cells)
    tree, estimates = model.tree, model.estimates
    which = np.flatnonzero(tree.is_leaf) if cells == "leaves" else np.arange(len(tree))
    source = model.record.source
    stated = {} if source == "curator" else {"release_source": [source] * len(which)}
    west, south, east, north = model.domain.from_lattice(tree.boxes[which]).T
    return gpd.GeoDataFrame(
        {
            "cell": which,
            "level": tree.level[which],
            "estimate": estimates.count[which],
            "perturbation_error": np.sqrt(estimates.variance[which]),
            "density": estimates.count[which]
            / ground_areas(model.domain, tree.boxes[which].astype(np.float64)),
            **stated,
        },
        geometry=shapely.box(west, south, east, north),
        crs=model.domain.crs,
    )
