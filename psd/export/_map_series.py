"""Maps of a series as small multiples: one class, one scale, one key for all slices."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from psd._util.declared_parameters import choice
from psd._util.extras import require_matplotlib
from psd.errors import ParameterError
from psd.export._maps import (
    KINDS,
    add_key,
    classes_of,
    draw_scale_bar,
    fill_cells,
    frame_map,
    named_rows,
    shown_values,
    title_of,
    view_of,
)
from psd.query.reliability import Threshold, reliability_limits

if TYPE_CHECKING:
    import geopandas
    from matplotlib.figure import Figure

    from psd.release.record import ReleaseRecord

__all__ = ["MOST_MAPS", "draw_series"]

MOST_MAPS = 48
"""Most maps of a figure; more are too small to be read."""

# Inches of a map, and of the title and the key.
_SIZE, _ROOM = 2.3, 1.4

_BELOW = 8


def draw_series(
    record: ReleaseRecord,
    cells: Mapping[str, geopandas.GeoDataFrame],
    kind: str,
    *,
    guarantee: str,
    outline: Any,
    threshold: Threshold,
    cmap: Any = None,
) -> Figure:
    """Draw tables of cells, or of named regions, by slice; see `Release.plot`.

    The record is that of any slice, for the domain and the units; the guarantee is that of the
    series.
    """
    require_matplotlib("a map")
    choice(*KINDS)("kind", kind)
    if not 0 < len(cells) <= MOST_MAPS:
        raise ParameterError(
            f"slices must be 1 to {MOST_MAPS} to be drawn together, got {len(cells):,}; name some"
        )
    from matplotlib import pyplot

    columns = min(len(cells), ceil(sqrt(1.4 * len(cells))))
    rows = ceil(len(cells) / columns)
    figure, grid = pyplot.subplots(
        rows,
        columns,
        figsize=(max(_SIZE * columns + _ROOM, 6), _SIZE * rows + _ROOM),
        layout="compressed",
        squeeze=False,
    )
    tables = [table[named_rows(table)] for table in cells.values()]
    view = view_of(record.domain, tables[0], next(iter(cells.values())))
    values = np.concatenate([shown_values(table, kind) for table in tables])
    areas = np.concatenate([shapely.area(table.geometry.to_numpy()) for table in tables])
    classes = classes_of(record, kind, values, areas).recoloured(cmap)
    for axes, name, table in zip(grid.flat, cells, tables, strict=False):
        shown = fill_cells(axes, table, kind, classes)
        frame_map(axes, view, outline)
        axes.set_title(name, fontsize=9)
    for axes in grid.flat:
        axes.set(xticks=[], yticks=[], xlabel="", ylabel="")
    for axes in grid.flat[len(cells) :]:
        axes.set_axis_off()
    draw_scale_bar(grid[-1, 0], view, below=_BELOW)
    add_key(figure, grid, shown, classes, kind, reliability_limits(threshold))
    figure.suptitle(title_of(record, kind, guarantee), fontsize=10)
    return figure
