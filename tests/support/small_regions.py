"""Small hierarchies of regions, and a method that counts them and quarters the lowest ones."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from psd.regions.hierarchy import RegionHierarchy
from psd.testing.data import LatticeRegions


def drawn(pictures, parents):
    """Regions of a drawing each, rows from the south: a letter for each lowest region.

    A cell with two letters lies in both regions by halves; a dot is in none.
    """
    cells = [row.split() for row in pictures]
    letters = sorted({letter for row in cells for cell in row for letter in cell if letter != "."})
    area = [
        [[cell.count(letter) / len(cell) for cell in row] for row in cells] for letter in letters
    ]
    return LatticeRegions(area=np.array(area, float), parents=parents)


SHAPES = {
    # one level, of which two regions share a lattice cell and a cell is in none
    "flat": drawn(("a ab b b", "a a b .", "c c d d", "c cd d d"), ((0, 0, 0, 0),)),
    # six siblings, more than a node has children
    "wide": drawn(("a a b b", "a cd d b", "c c e f", "c e e f"), ((0,) * 6,)),
    # three levels; the second region of the first has one part on each level
    "deep": drawn(
        ("a a b b", "a ab b c", "d d c c", "d d e e"), ((0, 0), (0, 0, 1), (0, 0, 1, 1, 2))
    ),
    "one": drawn(("a a . .", "a a a .", ". a a .", ". . . ."), ((0,),)),
}
"""Hierarchies on a lattice of four columns and rows."""


def cells_of(domain, x, y):
    """Lattice cells of points."""
    columns, rows, _ = domain.quantise(x, y)
    return np.stack([columns, rows, columns + 1, rows + 1], axis=1)


def checked_places(found, x, y):
    """Regions of points: each meets their lattice cells, which lie in its box."""
    region, cells = found.assign(x, y), cells_of(found.domain, x, y)
    assert found.meets(region, cells).all()
    assert (found.boxes[region, :2] <= cells[:, :2]).all()
    assert (cells[:, 2:] <= found.boxes[region, 2:]).all()
    return region


def read_again(found):
    """The same hierarchy from what a release states of it."""
    return RegionHierarchy.from_table(found.domain, found.parameters(), found.to_table())


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepwise:
    """Counts the total, every level of regions and the quarters of the lowest, with equal shares.

    The noisy count of a region decides whether it is quartered once or twice.
    """

    name: ClassVar[str] = "stepwise"
    paper: ClassVar[str] = "-"

    def build(self, curator):
        root = curator.root()
        levels = curator.cut_regions(root)
        part = curator.loss // (len(levels) + 2)
        curator.count(root, part)
        for cells in levels:
            counts = curator.count(cells, part)
        left = curator.loss - part * (len(levels) + 1)
        cells = curator.cut(cells, x=cells.middle(0), y=cells.middle(1))
        deep = (counts > 1)[curator.tree().region[cells.nodes]]
        below = curator.cut(cells[deep], x=cells[deep].middle(0), y=cells[deep].middle(1))
        curator.count(cells[~deep], left)
        curator.count(below, left)
        return curator.tree()
