"""Sentences on what answers leave out, by public geometry alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psd.query.areas import Areas, BoxAreas, NamedAreas
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    from psd.space.box_tree import Tree
    from psd.space.domain import Domain

__all__ = ["SLIVER"]

SLIVER = 1e-3
"""Share of an area up to which its part in no region says nothing."""

# Share of the bounds up to which a side beyond them is rounding.
_SLACK = 1e-9


def notes_of(areas: Areas, domain: Domain, tree: Tree) -> tuple[str, ...]:
    """What the answers to areas leave out: parts beyond the bounds, and parts in no region."""
    notes = []
    if beyond := _number_beyond(areas, domain):
        several = "1 region reaches" if beyond == 1 else f"{beyond:,} regions reach"
        notes.append(
            f"{several} beyond the bounds of the release; the part outside was never counted and "
            "is not in the answer"
        )
    if uncounted := _number_in_gaps(areas, domain, tree):
        several = "1 area reaches" if uncounted == 1 else f"{uncounted:,} areas reach"
        notes.append(
            f"{several} into parts of the bounds that lie in no region of the release; nothing was "
            "counted there, so 0 there is no estimate"
        )
    return tuple(notes)


def _number_beyond(areas: Areas, domain: Domain) -> int:
    """Number of areas that reach beyond the bounds."""
    if isinstance(areas, NamedAreas):  # of the lowest regions
        regions: Any = areas.tree.regions
        return int((regions.part_outside > _SLACK).sum())
    if isinstance(areas, BoxAreas):
        sides = areas.boxes
    else:
        import shapely

        sides = shapely.bounds(areas.shapes(domain))
    low, high = np.array(domain.bounds[:2]), np.array(domain.bounds[2:])
    slack = _SLACK * (high - low)
    is_low, is_high = sides[:, :2] < low - slack, sides[:, 2:] > high + slack
    return int((is_low | is_high).any(axis=1).sum())


def _number_in_gaps(areas: Areas, domain: Domain, tree: Tree) -> int:
    """Number of areas of which a part inside the bounds lies in no region."""
    if not isinstance(tree, RegionTree) or isinstance(areas, NamedAreas):
        return 0
    regions: Any = tree.regions
    gap = regions.gap
    if gap is None:
        return 0
    import shapely

    shapely.prepare(gap)
    shapes = areas.shapes(domain)
    shapes = shapes[shapely.intersects(gap, shapes)]
    counted = shapely.area(shapely.intersection(shapes, shapely.box(*domain.bounds)))
    uncounted = shapely.area(shapely.intersection(shapes, gap))
    return int((uncounted > SLIVER * counted).sum())
