"""Predicted errors of named regions in windows of slices, which a cube counts together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Floats
from psd.apps.planning._constants import WINDOW_STARTS
from psd.apps.planning.cube_plan import hours_of, spread_in_time
from psd.estimation.cube import fit_cube
from psd.estimation.fit import predicts_published
from psd.publish.drawing import draw_cube
from psd.query.areas import named_areas
from psd.query.cubes import Windows, cube_totals
from psd.release.cube import CubeRecord

if TYPE_CHECKING:
    from psd.ingest.tally import Tally
    from psd.regions.hierarchy import RegionHierarchy

__all__ = ["in_slices", "window_errors"]


def in_slices(people: Tally, slices: int, random: np.random.Generator) -> Tally:
    """Give synthetic records a slice each: the shares of slices differ from region to region."""
    assert people.region is not None  # of a population of regions
    place = people.region.astype(np.int64)
    return spread_in_time(people, slices, int(people.counts.sum()), place, random)


def window_errors(
    people: Tally, hierarchy: RegionHierarchy, slices: int, windows: Sequence[int], **drawn: Any
) -> list[list[Floats]]:
    """Predicted standard deviations of the regions of each level, for each number of slices.

    They are root mean squares over a few windows, by the noise and by uneven cells.
    """
    release = draw_cube(
        people,
        hierarchy.domain,
        hours_of(slices),
        regions=hierarchy,
        about=None,
        values=(),
        **drawn,
    )
    assert isinstance(release.record, CubeRecord)  # `draw_cube` makes one
    fit, tree = fit_cube(release.record), release.record.plane.tree
    published = predicts_published(release.record.plane)
    # Windows of each size begin at a few slices, evenly spaced.
    starts = [
        np.unique(np.linspace(0, slices - size, WINDOW_STARTS).astype(np.int64)) for size in windows
    ]
    asked = Windows.of_cells(
        [
            np.arange(start, start + size)
            for size, of_size in zip(windows, starts, strict=True)
            for start in of_size.tolist()
        ],
        [slices],
    )
    # Numbers of the windows of each size, among all that are asked.
    edges = np.cumsum([0, *map(len, starts)]).tolist()
    squares = []
    for level in hierarchy.levels:
        totals = cube_totals(fit, named_areas(tree, level.name), asked)
        variance = np.stack(
            [each.noise_variance(published) + each.nonuniformity_variance for each in totals]
        )
        squares.append(variance)
    return [
        [np.sqrt(each[first:stop].mean(axis=0)) for each in squares]
        for first, stop in pairwise(edges)
    ]
