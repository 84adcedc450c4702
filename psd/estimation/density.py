"""Density inside the leaves: uniform, changing smoothly, or that of a public covariate.

A leaf keeps its count; only its distribution inside is estimated. By dasymetric mapping [1]_ it is
proportional to the covariate, and even where that is 0.

.. [1] Wright. "A Method of Mapping Densities of Population, with Cape Cod as an Example."
   Geographical Review 26(1), 1936.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from psd._util.arrays import Floats, Integers, sum_by
from psd.estimation.constants import DENSITY_RASTER, EVEN_SHARE, SMOOTHING_PASSES
from psd.estimation.least_squares import Estimates
from psd.estimation.nonuniformity import (
    children_of,
    family_batches,
    join_parts,
    overdispersion_of_leaves,
)
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.space.polygon_areas import ClippedPolygons, cover_by_pieces, divide_outlines
from psd.space.region_tree import RegionTree

__all__ = ["least_mass"]


PARTS = 4
"""A leaf is described by PARTS x PARTS parts of equal area."""

# Leaves worked on together; bounds the memory, not the result.
_LEAVES_PER_BATCH = 2048

# The shares of all leaves are computed for a request of at least this part of them.
_FEW = 64

# Nodes of a tree up to which the shares of all leaves are kept, about 300 MB.
_MOST_KEPT = 2**21

# Largest rounding error of a sum over a surface, beside the total of all leaves: errors of surfaces
# of 3,000 to 200,000 records were at most half of it.
_ROUNDING = 1e-12

RasterWindow = tuple[int, int, int, int]
"""West, south, east and north line of a part of the raster."""

WHOLE_RASTER: RasterWindow = (0, 0, DENSITY_RASTER, DENSITY_RASTER)
"""All of the raster."""

CoordinateTransform = Callable[[Floats], Floats]
"""Converts boxes in lattice units, shape (n, 4), to coordinates."""


class Density(Protocol):
    """Density of the points inside the leaves."""

    def part(self, tree: Tree, node: Integers, low: Floats, high: Floats) -> Floats:
        """Share of each leaf's count in a box; corners: (n, 2), x and y, 0 to 1 across the leaf."""

    def polygon(
        self,
        tree: Tree,
        node: Integers,
        outlines: ClippedPolygons,
        which: Integers,
        from_lattice: CoordinateTransform,
    ) -> Floats:
        """Share of each leaf's count in the outline of number `which`, (n,) float64."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RasterMesh:
    """Lines of the raster between which a surface bends nowhere.

    P1. A surface on these lines has the values of one on all lines of the raster, to rounding.
    """

    # (columns,) and (rows,) int64, ascending; the first and the last are the sides of a window.
    lines: tuple[Integers, Integers]

    @property
    def window(self) -> RasterWindow:
        """Part of the raster that the lines divide."""
        (west, *_, east), (south, *_, north) = self.lines
        return int(west), int(south), int(east), int(north)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of a surface."""
        return len(self.lines[1]), len(self.lines[0])

    @cached_property
    def _before(self) -> list[Integers]:
        """Index of the last line, but not the very last, up to each line of the window."""
        return [
            np.searchsorted(lines[:-1], np.arange(lines[0], lines[-1] + 1), side="right") - 1
            for lines in self.lines
        ]

    def place(self, axis: int, position: Floats) -> tuple[Integers, Floats]:
        """Index of the line before some positions, and their share of the way to the next one."""
        lines = self.lines[axis]
        index = self._before[axis].take(position.astype(np.int64) - lines[0])
        return index, (position - lines[index]) / np.diff(lines)[index]


def raster_mesh(
    tree: Tree,
    leaves: Integers,
    lattice: tuple[int, int],
    strips: int = PARTS,
    window: RasterWindow = WHOLE_RASTER,
) -> RasterMesh:
    """Lines of a window beside which equal strips of some leaves begin and end."""
    scale = raster_scale(lattice)
    # Few lines of a raster have an end of a strip: a mesh of these alone needs less memory.
    used = [np.zeros(window[axis + 2] - window[axis] + 1, bool) for axis in (0, 1)]
    for chunk in _chunks(len(leaves)):
        boxes = tree.boxes[leaves[chunk]] * scale
        for axis, of_axis in enumerate(used):
            for end in _strip_ends(boxes, axis, strips):
                # The line at or before each end, and the next one unless the end lies on a line.
                place = np.clip(end - window[axis], 0, len(of_axis) - 1)
                line = place.astype(np.int64)
                of_axis[line] = True
                of_axis[line + (place > line)] = True
        # Once all lines are used, further leaves add none.
        if all(of_axis.all() for of_axis in used):
            break
    # The sides of the window are lines of every mesh.
    for of_axis in used:
        of_axis[[0, -1]] = True
    x, y = (window[axis] + np.flatnonzero(of_axis) for axis, of_axis in enumerate(used))
    return RasterMesh(lines=(x, y))


@dataclass(frozen=True, kw_only=True, eq=False)
class SmoothDensity:
    """Share of each leaf's count in each of its parts."""

    tree: Tree  # cells
    scale: Floats  # (4,) float64; raster units of a lattice unit, for each side of a box
    # (rows, columns) float64; mass south and west of the lines of a mesh, before the last pass.
    surface: Floats
    mesh: RasterMesh  # the surroundings of leaves that are asked about lie in it
    # Mass of a part of the surroundings below which it is a rounding error; see `least_mass`.
    least: float = 0.0

    @cached_property
    def rank(self) -> Integers:
        """Index of each leaf among the leaves, shape (nodes,); undefined for other nodes."""
        return np.cumsum(self.tree.is_leaf) - 1

    @cached_property
    def share(self) -> Floats:
        """Shares of all leaves, shape (leaves, PARTS, PARTS); see `shares`."""
        leaves = np.flatnonzero(self.tree.is_leaf)
        share = np.empty((len(leaves), PARTS, PARTS))
        for chunk in _chunks(len(leaves)):
            share[chunk] = self.computed(leaves[chunk])
        return share

    @cached_property
    def strips(self) -> Floats:
        """Shares of all leaves in their columns, and rows, leaf by leaf, shape (2 n, PARTS)."""
        of_axes = [self.share.sum(axis=1), self.share.sum(axis=2)]
        return np.stack(of_axes, axis=1).reshape(-1, PARTS)

    def shares(self, leaf: Integers) -> Floats:
        """Shares of leaves, (n, PARTS, PARTS), from the south-west, not negative, 1 in all."""
        if self._keeps(leaf):
            return self.share.take(self.rank.take(leaf), axis=0)
        return np.concatenate(
            [np.empty((0, PARTS, PARTS)), *(self.computed(leaf[c]) for c in _chunks(len(leaf)))]
        )

    def _keeps(self, leaf: Integers) -> bool:
        """Whether the shares of all leaves are kept, also for others than these."""
        is_many = len(leaf) * _FEW >= len(self.tree) and len(self.tree) <= _MOST_KEPT
        return "share" in vars(self) or (is_many and self.mesh.window == WHOLE_RASTER)

    def keep(self) -> None:
        """Compute the shares of all leaves, if they are ever kept, since many will be asked for."""
        if len(self.tree) <= _MOST_KEPT and self.mesh.window == WHOLE_RASTER:
            self.share  # noqa: B018 - computed and kept

    def without_surface(self) -> SmoothDensity:
        """The same density, which keeps the shares of all leaves in place of the surface."""
        made = replace(self, surface=np.empty((0, 0)))
        vars(made)["share"] = self.share
        return made

    def computed(self, leaf: Integers) -> Floats:
        """Shares of leaves by the mean density of windows around their parts."""
        # Windows are as large as the leaf, around the middle of each of its PARTS x PARTS parts.
        boxes = self.tree.boxes[leaf]
        sides, middle = boxes * self.scale, (np.arange(PARTS) + 0.5) / PARTS
        width = sides[:, 2:] - sides[:, :2]
        # A window as large as the leaf around the middle of each part, (n, PARTS) along each axis.
        low, high = (
            [
                np.clip(sides[:, axis, None] + width[:, axis, None] * place, 0, DENSITY_RASTER)
                for axis in (0, 1)
            ]
            for place in (middle - 0.5, middle + 0.5)
        )
        (west, east), (south, north) = (
            (self.mesh.place(axis, low[axis]), self.mesh.place(axis, high[axis])) for axis in (0, 1)
        )
        surface = self.surface
        # Records of a window, by the corners of the summed raster.
        mass = _surface_at(surface, east, north) - _surface_at(surface, west, north)
        mass += _surface_at(surface, west, south) - _surface_at(surface, east, south)
        area = (high[1] - low[1])[:, :, None] * (high[0] - low[0])[:, None, :]
        density = np.where(mass > self.least, mass, 0.0) / area
        total = density.sum(axis=(1, 2), keepdims=True)
        # Without records around, all parts are equal; and some share is spread evenly in any leaf.
        even = 1 / PARTS**2
        smooth = np.where(total > 0, density / np.where(total > 0, total, 1.0), even)
        shares: Floats = (1 - EVEN_SHARE) * smooth + EVEN_SHARE * even
        for axis in (0, 1):  # even along the sides that are one cell of the lattice long
            single = np.flatnonzero(boxes[:, axis + 2] - boxes[:, axis] == 1)
            shares[single] = shares[single].mean(axis=2 - axis, keepdims=True)
        return shares

    def part(self, tree: Tree, node: Integers, low: Floats, high: Floats) -> Floats:
        """Share of each leaf's count in a box inside it; see `Density`."""
        inside, corner = np.empty(len(node)), np.arange(len(node))
        if self._keeps(node):
            # Most boxes go through a leaf from side to side: shares of its rows or columns will do.
            through = [(low[:, axis] <= 0) & (high[:, axis] >= 1) for axis in (0, 1)]
            ends = [np.where(through[0], end[:, 1], end[:, 0]) for end in (low, high)]
            strips = self.strips.take(2 * self.rank.take(node) + through[0], axis=0)
            covered = _overlap(*ends)
            # Sums of one order, however many leaves are asked for.
            inside = strips[:, 0] * covered[0]
            for part in range(1, PARTS):
                inside += strips[:, part] * covered[part]
            corner = np.flatnonzero(~(through[0] | through[1]))
        # Boxes with a corner inside their leaf: overlaps with its rows and its columns, (n, PARTS).
        wide, tall = (
            np.ascontiguousarray(_overlap(low[corner, axis], high[corner, axis]).T)
            for axis in (0, 1)
        )
        inside[corner] = np.einsum("nyx,ny,nx->n", self.shares(node[corner]), tall, wide)
        return np.asarray(np.minimum(inside, 1.0))

    def polygon(
        self,
        tree: Tree,
        node: Integers,
        outlines: ClippedPolygons,
        which: Integers,
        from_lattice: CoordinateTransform,
    ) -> Floats:
        """Share of each leaf's count in a polygon, by its parts; see `Density`."""
        # Rows of each leaf, (n PARTS,), then the parts of each row, (n PARTS^2,), row by row from
        # the south.
        rows = _strip_boxes(tree.boxes[node].astype(np.float64), 1)
        parts = _strip_boxes(rows, 0)
        in_rows = divide_outlines(outlines, np.repeat(which, PARTS), from_lattice(rows))
        in_parts = divide_outlines(
            in_rows, np.repeat(np.arange(len(rows)), PARTS), from_lattice(parts)
        )
        of_leaves = in_parts.fraction.reshape(len(node), PARTS, PARTS)
        return np.asarray((of_leaves * self.shares(node)).sum(axis=(1, 2)))


def smooth_density(
    tree: Tree,
    count: Floats,
    lattice: tuple[int, int],
    passes: Sequence[tuple[Integers, RasterWindow]] | None = None,
) -> SmoothDensity:
    """Smooth the density of leaves, each keeping its count, by pycnophylactic interpolation [1]_.

    count: (nodes,) float64, published, not negative; passes: leaves with mass in the surroundings
    of those of the next pass, and a window with them, by default all leaves; undefined elsewhere.

    P1. Shares of the leaves of the last of `passes` are those without `passes`, to rounding.

    .. [1] Tobler. "Smooth Pycnophylactic Interpolation for Geographical Regions." Journal of the
       American Statistical Association 74(367), 1979.
    """
    scale = raster_scale(lattice)
    density: SmoothDensity | None = None
    if passes is None:
        passes = [(np.flatnonzero(tree.is_leaf), WHOLE_RASTER)] * SMOOTHING_PASSES
    # The density of a part becomes the mean over a window of the leaf's own size around it, and the
    # parts of a leaf are scaled back to their sum. Windows end at the edge of the domain. An empty
    # leaf stays uniform, and a cell of the lattice even.
    for around, window in passes:
        leaves = around[count[around] > 0]
        # Boxes of leaves in raster units, and the mass of their parts; of all of each at first.
        parts = (
            (
                tree.boxes[leaf] * scale,
                count[leaf][:, None, None] * (1.0 if density is None else density.computed(leaf)),
            )
            for leaf in (leaves[chunk] for chunk in _chunks(len(leaves)))
        )
        strips = 1 if density is None else PARTS
        mesh = raster_mesh(tree, leaves, lattice, strips, window)
        density = SmoothDensity(
            tree=tree,
            scale=scale,
            surface=_summed_mass(parts, mesh),
            mesh=mesh,
            least=least_mass(count),
        )
    assert density is not None
    return density


def least_mass(count: Floats) -> float:
    """Mass above the rounding errors of a surface, which would be shares where no records are."""
    return _ROUNDING * float(count[0])


def raster_scale(lattice: tuple[int, int]) -> Floats:
    """Raster units of a lattice unit, for each side of a box."""
    return DENSITY_RASTER / np.array([*lattice, *lattice])


def _chunks(size: int) -> list[slice]:
    """Batches of this number of leaves."""
    starts = range(0, size, _LEAVES_PER_BATCH)
    return [slice(start, min(start + _LEAVES_PER_BATCH, size)) for start in starts]


def _overlap(low: Floats, high: Floats) -> Floats:
    """Covered share of each of PARTS strips between two ends in [0, 1], shape (PARTS, n)."""
    strip = np.arange(PARTS, dtype=np.float64)[:, None]
    covered: Floats = np.minimum(high * PARTS, strip + 1)
    covered -= np.maximum(low * PARTS, strip)
    return np.maximum(covered, 0.0, out=covered)


def _strip_boxes(boxes: Floats, axis: int) -> Floats:
    """Boxes of PARTS equal strips of each box, shape (n PARTS, 4), side by side along an axis."""
    edges = _strip_edges(boxes, axis)
    strips = np.repeat(boxes, PARTS, axis=0)
    strips[:, axis], strips[:, axis + 2] = edges[:, :-1].ravel(), edges[:, 1:].ravel()
    return strips


def _strip_edges(boxes: Floats, axis: int) -> Floats:
    """Edges of PARTS equal strips of each box along an axis, shape (n, PARTS + 1)."""
    low, high = boxes[:, axis, None], boxes[:, axis + 2, None]
    return low + (high - low) * (np.arange(PARTS + 1) / PARTS)


def _summed_mass(batches: Iterable[tuple[Floats, Floats]], mesh: RasterMesh) -> Floats:
    """Mass south and west of every line of a mesh, (rows, columns).

    batches: boxes in raster units, and the mass of their p x p parts, (n, p, p), from the south.
    """
    corners, columns = np.zeros(mesh.shape), mesh.shape[1]
    # Each corner of a part adds a ramp in x times one in y, by its slope on the lines around it.
    # Sums along both axes are the slopes that hold at each line, and sums of these the surface.
    for boxes, mass in batches:
        (column, across), (row, along) = (
            _ramps(mesh, axis, boxes, mass.shape[1]) for axis in (0, 1)
        )
        # Of each part, row by row: the ramps in y, each with all ramps in x.
        weight = (mass[:, :, None] * along[..., None])[..., None] * across[:, None, None]
        index = (row * columns)[..., None, None] + column[:, None, None]
        np.add.at(corners.reshape(-1), index.reshape(-1), weight.reshape(-1))
    for axis in (0, 1):
        np.cumsum(corners, axis=axis, out=corners)
    # Slopes times the distances to the next lines; a ramp is 0 on the line where it begins.
    surface = np.zeros(mesh.shape)
    rise = surface[1:, 1:]
    np.multiply(corners[:-1, :-1], np.diff(mesh.lines[0]), out=rise)
    rise *= np.diff(mesh.lines[1])[:, None]
    for axis in (0, 1):
        np.cumsum(rise, axis=axis, out=rise)
    return surface


def _ramps(mesh: RasterMesh, axis: int, boxes: Floats, strips: int) -> tuple[Integers, Floats]:
    """Lines in the mesh where ramps of strips begin, and their slopes, (n, strips, ramps)."""
    low, high = _strip_ends(boxes, axis, strips)
    first, last = mesh.lines[axis][[0, -1]]
    slope = 1 / (high - low)
    # A ramp between two lines is two ramps that begin on them, shared by how near each is.
    ends = np.stack([low, high], axis=2).clip(first, last)
    line, share = mesh.place(axis, ends)
    seen = ends < last  # a ramp that begins on the last line rises nowhere
    share *= seen
    slopes = np.stack([slope, -slope], axis=2) * seen
    if not share.any():
        return line, slopes
    line = np.concatenate([line, line + 1], axis=2)
    return line, np.concatenate([slopes * (1 - share), slopes * share], axis=2)


def _strip_ends(boxes: Floats, axis: int, strips: int) -> tuple[Floats, Floats]:
    """Low and high ends of strips of boxes on an axis, (n, strips), a raster cell or wider."""
    if strips == 1:
        low, high = boxes[:, axis, None], boxes[:, axis + 2, None]
    else:
        edges = _strip_edges(boxes, axis)
        low, high = edges[:, :-1], edges[:, 1:]
    # Thinner strips become the raster cell in which they begin.
    is_thin = high - low < 1
    cell = np.minimum(np.floor(low), DENSITY_RASTER - 1)
    return np.where(is_thin, cell, low), np.where(is_thin, cell + 1, high)


def _surface_at(surface: Floats, x: tuple[Integers, Floats], y: tuple[Integers, Floats]) -> Floats:
    """Mass south and west of the places x[i, k], y[i, j] in its mesh, shape (n, j, k)."""
    (column, across), (row, along) = x, y
    index = (row * surface.shape[1])[:, :, None] + column[:, None, :]
    across, along = across[:, None, :], along[:, :, None]
    # Bilinear between the four lines around each place, two at a time.
    flat, next_row = surface.ravel(), surface.shape[1]
    south = flat.take(index) * (1 - across) + flat.take(index + 1) * across
    index += next_row
    north = flat.take(index) * (1 - across) + flat.take(index + 1) * across
    value: Floats = south * (1 - along) + north * along
    return value


_TINY = 1e-300


def parent_shares(tree: Tree, covariate: Covariate | None) -> Floats:
    """Share of each node in the mass of its parent, or in the area if that is 0; (nodes,)."""
    area = tree.area.astype(np.float64)
    share = np.ones(len(tree))
    # By area first, which stays where the covariate says that nobody is.
    share[1:] = area[1:] / area[tree.parent[1:]]
    if covariate is not None:
        # Where the parent has mass, by mass.
        mass = covariate.mass(tree.boxes)
        parent_mass = mass[tree.parent[1:]]
        share[1:] = np.where(
            parent_mass > 0, mass[1:] / np.where(parent_mass > 0, parent_mass, 1.0), share[1:]
        )
    return share


def region_shares(tree: RegionTree, covariate: Covariate | None) -> Floats:
    """Share of cells in the mass of their parent inside their region, or in its area, (nodes,)."""
    mass = tree.clipped_area
    if covariate is not None:
        # Of a cell that an outline cuts, the covariate is taken as even over the cell.
        mass = mass * covariate.mass(tree.boxes) / np.maximum(tree.area, 1)
    # Named regions, and the nodes between them, have no share: records are not shared out to them.
    share, first = np.zeros(len(tree)), len(tree.frame)
    above = tree.parent[first:]
    # Shares are of the sum of the siblings, so that they add up to 1 where cells are cut.
    total = sum_by(above, mass[first:], len(tree))[above]
    area = tree.clipped_area[first:] / np.maximum(tree.clipped_area[above], _TINY)
    share[first:] = np.where(total > 0, mass[first:] / np.maximum(total, _TINY), area)
    return share


@dataclass(frozen=True, kw_only=True, eq=False)
class CovariateDensity:
    """Share of a leaf's count in a part of it: the share of the leaf's mass there."""

    covariate: Covariate

    def part(self, tree: Tree, node: Integers, low: Floats, high: Floats) -> Floats:
        """Share of each leaf's count in a box inside it; see `psd.estimation.density.Density`."""
        leaf = tree.boxes[node].astype(np.float64)
        corner, size = leaf[:, :2], leaf[:, 2:] - leaf[:, :2]
        box = np.concatenate([corner + low * size, corner + high * size], axis=1)
        mass, leaf_mass = self.covariate.mass(box), self.covariate.mass(leaf)
        return _share(mass, leaf_mass, (high - low).prod(axis=1))

    def polygon(
        self,
        tree: Tree,
        node: Integers,
        outlines: ClippedPolygons,
        which: Integers,
        from_lattice: CoordinateTransform,
    ) -> Floats:
        """Share of each leaf's count in a polygon, divided along the lines of the raster."""
        covariate, leaf = self.covariate, tree.boxes[node]
        mass, covered = np.zeros(len(node)), np.zeros(len(node))
        boxes = covariate.to_raster(leaf)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
        # A polygon becomes boxes of raster lines with the share of each that it covers.
        for part in cover_by_pieces(outlines, which, boxes, covariate.from_raster_units):
            inside = covariate.raster_mass(part.boxes) * part.fraction
            mass += np.bincount(part.owner, inside, len(node))
            size = (part.boxes[:, 2:] - part.boxes[:, :2]).prod(axis=1) * part.fraction
            covered += np.bincount(part.owner, size, len(node))
        # Where a leaf has no mass, the share of its area answers.
        return _share(mass, covariate.mass(leaf), covered / area)


def _share(mass: Floats, leaf_mass: Floats, even: Floats) -> Floats:
    """Share of the mass, or of the area if the mass is 0."""
    share = np.where(leaf_mass > 0, mass / np.where(leaf_mass > 0, leaf_mass, 1.0), even)
    return np.clip(share, 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Products:
    """By family: deviations times what the covariate moved, and squares of the latter."""

    level: Integers
    along: Floats
    square: Floats


def covariate_error(tree: Tree, estimates: Estimates, share: Floats, even: Floats) -> float:
    """Relative error of what a covariate moves in leaves: 1 if it should move nothing, or twice.

    share, even: (nodes,) float64, of its parent's records that each node has by the covariate, and
    without it. The result is the mean over the records of the leaves.
    """
    # A covariate that is only roughly right is wrong in the same direction in all leaves of a
    # query. So the deviations z - g Z of children from their shares g of Z records are regressed on
    # (g - a) Z, a the share without the covariate, less what the noise adds to both products. Sums
    # are over the levels just above the leaves, as in `overdispersion_of_leaves`.
    products = join_parts(
        _Products,
        [_products_of(tree, estimates, share, even, parents) for parents in family_batches(tree)],
    )
    # Sums of products by level, (levels,).
    levels = len(tree.levels)
    along = sum_by(products.level, products.along, levels)
    square = sum_by(products.level, products.square, levels)
    families = np.bincount(products.level, minlength=levels).astype(np.float64)
    # Two estimates by one product, the one of each sign: the larger states no error too small.
    error = np.maximum(
        overdispersion_of_leaves(along, square, families),
        overdispersion_of_leaves(-along, square, families),
    )
    # Levels weigh as many records as their leaves hold.
    count = np.maximum(estimates.count, 0.0) * tree.is_leaf
    total = float(count.sum())
    return float((count * error[tree.level]).sum()) / total if total > 0 else 0.0


def _products_of(
    tree: Tree, estimates: Estimates, share: Floats, even: Floats, parents: Integers
) -> _Products:
    """Products of the families whose children are all measured."""
    child, owner = children_of(tree, parents)
    g, value, variance = share[child], estimates.upward[child], estimates.upward_variance[child]
    noise, count = (sum_by(owner, values, len(parents)) for values in (variance, value))
    # A family with a child that was not measured says nothing, but keeps its place.
    measured = np.isfinite(noise)
    noise = np.where(measured, noise, 0.0)
    variance = np.where(measured[owner], variance, 0.0)
    moved, total = g - even[child], count[owner]
    # Products of noisy numbers, less what their common noise adds on average.
    along = moved * ((value - g * total) * total - (variance - g * noise[owner]))
    square = moved**2 * (total**2 - noise[owner])
    along, square = (sum_by(owner, values, len(parents)) for values in (along, square))
    return _Products(
        level=tree.level[parents[measured]].astype(np.int64),
        along=along[measured],
        square=square[measured],
    )
