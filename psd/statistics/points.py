"""Synthetic points: as many in each cell as its estimate rounded, spread by the density inside it.

A function of a fit and of a seed, which costs no epsilon; the points are no records. Numbers are
rounded as in the estimate ``integer``, so those of a cell, a region or a slice add up. A draw is
stratified, so that the number of points in a part of a leaf varies less, with the same mean: a leaf
is divided into pieces of even density, its points are shared out among these up to one, and those
of a piece lie one in each of as many equal parts of a Hilbert curve through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd.errors import ParameterError
from psd.estimation.density import PARTS, CovariateDensity, SmoothDensity
from psd.estimation.fit import Fit, rounded_counts
from psd.estimation.least_squares import round_counts
from psd.query.region_nodes import is_clipped
from psd.regions.hierarchy import RegionHierarchy
from psd.space.covariate import Covariate
from psd.space.grids import decode, encode
from psd.space.region_tree import RegionTree

# Leaves, pieces and points that are looked at together; bounds the memory. The draws depend on it
# as they do on the seed.
_LEAVES, _PIECES, _POINTS = 2**11, 2**16, 2**18

# Order of the Hilbert curve through a piece.
_ORDER = 10

# Of a cell that its region clips, pieces are halved until this share of each lies in the region, at
# most so many times; then points are drawn until they lie in it, at most so many times.
_ENOUGH, _HALVINGS, _DRAWS = 0.25, 24, 64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PointBatch:
    """Some points, (n,) each."""

    leaf: Integers  # leaf that a point lies in
    x: Floats  # in the CRS of the release
    y: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Pieces:
    """Parts of leaves in which the density is even."""

    leaf: Integers  # (n,) int64
    boxes: Floats  # (n, 4) float64; lattice units
    number: Integers  # (n,) int64; points in each, above 0


def point_generator(seed: int | None) -> np.random.Generator:
    """Generator of the places of points, by a seed or by the system; it protects no data."""
    return np.random.default_rng(seed)


def share_out(number: int, weights: Floats, generator: np.random.Generator) -> Integers:
    """Whole numbers in the proportions of weights, up to one each, that sum to a number."""
    sums = np.cumsum(weights)
    # Whole numbers that the running sum has passed, from one random start.
    marks = np.minimum(np.floor(sums / sums[-1] * number + generator.random()), number)
    marks[-1] = number
    shares: Integers = np.diff(marks, prepend=0.0).astype(np.int64)
    return shares


def whole_counts(
    fit: Fit, number: int | None = None, generator: np.random.Generator | None = None
) -> Integers:
    """Numbers of points in all cells, (nodes,) int64; the children of a node sum to it.

    P1. Without `number`, each is the estimate rounded down or up; those of a release with medians
    are the integers of the same release with the estimate ``integer``.
    P2. With `number`, all are in the proportions of the estimates, and the root has this number.
    It is 0 for an estimate of no records.
    """
    record, tree, count = fit.record, fit.tree, np.maximum(fit.estimates.count, 0.0)
    if number is None:
        is_whole = record.post_processing.estimate == "integer"
        rounded = np.rint(count if is_whole else rounded_counts(record, count))
        if not rounded[0] < 2.0**53:
            raise ParameterError(
                "n must be given where the estimate is 2^53 records and more, got an estimate of "
                f"{rounded[0]:.6g}; floats hold no such number exactly"
            )
        return rounded.astype(np.int64)
    total = float(count[tree.is_leaf].sum())
    if not total:
        return np.zeros(len(tree), np.int64)
    uniform = 0.5 if generator is None else generator.random()
    whole = round_counts(tree, count * (number / total), uniform).astype(np.int64)
    # Sums of floats may be off by one: the largest leaf, and what it is part of, make up for it.
    node = int(np.argmax(np.where(tree.is_leaf, whole, -1)))
    missing = number - int(whole[0])
    while node >= 0:
        whole[node] += missing
        node = int(tree.parent[node])
    return whole


def draw_points(fit: Fit, whole: Integers, generator: np.random.Generator) -> Iterator[PointBatch]:
    """Draw the points of all leaves, `whole` (nodes,) of `whole_counts`, batch by batch.

    P1. A leaf has as many points as stated, each inside it by `psd.space.domain.Domain.quantise`
    and, in a tree of regions, inside its region by `RegionHierarchy.assign`; but of a region in
    which no place was found, points are some place of it.
    P2. The mean number of points in a part of a leaf is its share by the density of the fit. With a
    boundary no point lies in a cell of its raster that is 0: a leaf that is cut by the boundary is
    even inside it, unless its density is that of the raster.
    P3. Memory does not grow with the number of points.
    """
    tree = fit.tree
    leaves = np.flatnonzero(tree.is_leaf & (whole > 0))
    for start in range(0, len(leaves), _LEAVES):
        leaf = leaves[start : start + _LEAVES]
        for pieces in _pieces_of(fit, leaf, whole[leaf], generator):
            # Points are numbered piece by piece: a piece has those from `first` to before `ends`.
            ends = np.cumsum(pieces.number)
            first = ends - pieces.number
            for begin in range(0, int(ends[-1]), _POINTS):
                stop = min(begin + _POINTS, int(ends[-1]))
                # Piece of each point, and its number there.
                low, high = np.searchsorted(ends, [begin, stop - 1], side="right")
                among = np.arange(low, high + 1)
                here = np.minimum(ends[among], stop) - np.maximum(first[among], begin)
                piece = np.repeat(among, here)
                place = np.arange(begin, stop) - first[piece]
                yield _points_in(fit, pieces, piece, place, generator)


def _pieces_of(
    fit: Fit, leaf: Integers, number: Integers, generator: np.random.Generator
) -> Iterator[_Pieces]:
    """Pieces of leaves with their points, batch by batch; see `draw_points`."""
    tree, record, density = fit.tree, fit.record, fit.density
    boxes = tree.boxes[leaf].astype(np.float64)
    if isinstance(tree, RegionTree):
        clipped = is_clipped(tree, leaf) & (record.domain.coordinate_resolution is None)
        whole, cut = np.flatnonzero(~clipped), np.flatnonzero(clipped)
        if len(whole):
            yield _Pieces(leaf=leaf[whole], boxes=boxes[whole], number=number[whole])
        yield from _halved_in_regions(tree, leaf[cut], boxes[cut], number[cut], generator)
        return

    # Leaves that follow a raster, or that the raster of the boundary cuts.
    covariate, rest = None, np.arange(len(leaf))
    if isinstance(density, CovariateDensity):
        covariate, rest = density.covariate, rest[:0]
    elif record.boundary and record.covariate is not None:
        inside = (record.covariate.raster > 0).astype(np.uint16)
        covariate = Covariate(domain=record.domain, raster=inside)
        sides = covariate.to_raster(boxes)
        area = (sides[:, 2:] - sides[:, :2]).prod(axis=1)
        rest = np.flatnonzero(covariate.raster_mass(sides) >= area * (1 - 1e-9))
    if covariate is not None and len(rest) < len(leaf):
        by_raster = np.setdiff1d(np.arange(len(leaf)), rest)
        yield from _halved_on_raster(
            covariate, leaf[by_raster], boxes[by_raster], number[by_raster], generator
        )
    if not len(rest):
        return
    leaf, boxes, number = leaf[rest], boxes[rest], number[rest]
    if not isinstance(density, SmoothDensity):
        yield _Pieces(leaf=leaf, boxes=boxes, number=number)
        return

    # The parts of smooth leaves, one after another along a Hilbert curve: as `round_counts`.
    row, column = (side.ravel() for side in np.indices((PARTS, PARTS)))
    order = np.argsort(encode(column, row, PARTS.bit_length() - 1))
    shares = density.shares(leaf).reshape(len(leaf), -1)[:, order]
    marks = np.floor(
        number[:, None] * np.cumsum(shares, axis=1) + generator.random(len(leaf))[:, None]
    )
    marks = np.minimum(marks, number[:, None])
    marks[:, -1] = number
    of_part = np.diff(marks, axis=1, prepend=0.0).astype(np.int64)
    # Parts with points, as boxes in lattice units.
    which, part = np.nonzero(of_part)
    corner = np.stack([column[order[part]], row[order[part]]], axis=1)
    size = (boxes[:, 2:] - boxes[:, :2])[which] / PARTS
    low = boxes[which, :2] + corner * size
    parts = np.concatenate([low, low + size], axis=1)
    yield _Pieces(leaf=leaf[which], boxes=parts, number=of_part[which, part])


def _halved_on_raster(
    covariate: Covariate,
    leaf: Integers,
    boxes: Floats,
    number: Integers,
    generator: np.random.Generator,
) -> Iterator[_Pieces]:
    """Pieces inside one cell of a raster each; a leaf without mass is one piece."""
    cell = np.array(covariate.domain.lattice) / [covariate.columns, covariate.rows]

    def middle(boxes: Floats) -> tuple[Integers, Floats]:
        """Axis along which each box has most lines of the raster inside, and the middle one."""
        first, last = np.floor(boxes[:, :2]) + 1, np.ceil(boxes[:, 2:]) - 1
        axis = np.argmax(last - first, axis=1)
        rows = np.arange(len(boxes))
        return axis, np.floor((first + last + 1)[rows, axis] / 2)

    def is_done(boxes: Floats, mass: Floats) -> NDArray[np.bool_]:
        has_line = (np.floor(boxes[:, :2]) + 1 < boxes[:, 2:]).any(axis=1)
        return np.asarray(~has_line | (mass == 0))

    # In cells of the raster its lines are whole numbers; then back to lattice units.
    for pieces in _halve(
        leaf,
        covariate.to_raster(boxes),
        number,
        generator,
        mass=lambda _, boxes: covariate.raster_mass(boxes),
        middle=middle,
        is_done=is_done,
    ):
        yield _Pieces(leaf=pieces.leaf, boxes=pieces.boxes * np.tile(cell, 2), number=pieces.number)


def _halved_in_regions(
    tree: RegionTree,
    leaf: Integers,
    boxes: Floats,
    number: Integers,
    generator: np.random.Generator,
) -> Iterator[_Pieces]:
    """Pieces of clipped leaves of which much lies in the region; see `_ENOUGH`."""

    def middle(boxes: Floats) -> tuple[Integers, Floats]:
        axis = np.argmax(boxes[:, 2:] - boxes[:, :2], axis=1)
        rows = np.arange(len(boxes))
        return axis, (boxes[rows, axis] + boxes[rows, axis + 2]) / 2

    def is_done(boxes: Floats, mass: Floats) -> NDArray[np.bool_]:
        # Enough of the piece lies in its region, or nothing does.
        area = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1)
        return np.asarray((mass >= _ENOUGH * area) | (mass == 0))

    def mass(leaf: Integers, boxes: Floats) -> Floats:
        return tree.regions.clipped_area(tree.region[leaf], boxes)

    yield from _halve(leaf, boxes, number, generator, mass=mass, middle=middle, is_done=is_done)


def _halve(
    leaf: Integers,
    boxes: Floats,
    number: Integers,
    generator: np.random.Generator,
    *,
    mass: Callable[[Integers, Floats], Floats],
    middle: Callable[[Floats], tuple[Integers, Floats]],
    is_done: Callable[[Floats, Floats], NDArray[np.bool_]],
) -> Iterator[_Pieces]:
    """Halve boxes, and share out their points by mass, until they are done."""
    waiting = [(leaf, boxes, number, mass(leaf, boxes), 0)]
    while waiting:
        leaf, boxes, number, of_box, depth = waiting.pop()
        if len(leaf) > _PIECES:  # depth first, so that few wait
            half = len(leaf) // 2
            for part in (slice(half, None), slice(half)):
                waiting.append((leaf[part], boxes[part], number[part], of_box[part], depth))
            continue
        done = is_done(boxes, of_box) | (depth == _HALVINGS)
        if done.any():
            yield _Pieces(leaf=leaf[done], boxes=boxes[done], number=number[done])
        open_ = np.flatnonzero(~done)
        if not len(open_):
            continue
        leaf, number, low = leaf[open_], number[open_], boxes[open_]
        axis, line = middle(low)
        high, rows = low.copy(), np.arange(len(low))
        # Both halves end at the line: one is cut on its far side, the other on its near side.
        low[rows, axis + 2] = high[rows, axis] = line
        masses = mass(leaf, low), mass(leaf, high)
        share = masses[0] / np.maximum(masses[0] + masses[1], np.finfo(float).tiny)
        # Up to one as many as the share, and as many in the mean.
        first = np.minimum(np.floor(number * share + generator.random(len(leaf))), number)
        numbers = np.concatenate([first, number - first]).astype(np.int64)
        kept = np.flatnonzero(numbers)
        halves = np.concatenate([low, high])[kept], np.concatenate(masses)[kept]
        waiting.append((np.tile(leaf, 2)[kept], halves[0], numbers[kept], halves[1], depth + 1))


def _points_in(
    fit: Fit, pieces: _Pieces, piece: Integers, place: Integers, generator: np.random.Generator
) -> PointBatch:
    """Points of pieces: each in its part of the curve through the piece."""
    # A random place in the point's own part of the curve, then one in the cell there.
    code = (place + generator.random(len(piece))) / pieces.number[piece] * 4**_ORDER
    cells = decode(np.minimum(code, 4**_ORDER - 1).astype(np.int64), _ORDER)
    share = (np.stack(cells) + generator.random((2, len(piece)))) / 2**_ORDER
    leaf = pieces.leaf[piece]
    x, y = _coordinates(fit, pieces, piece, share)
    if not isinstance(fit.tree, RegionTree):
        return PointBatch(leaf=leaf, x=x, y=y)

    # Points beside their region are drawn again; in the end they move to a place inside.
    tree, regions, left = fit.tree, fit.tree.regions, np.arange(len(leaf))
    assert isinstance(regions, RegionHierarchy)  # as in every release
    for _ in range(_DRAWS):
        left = left[regions.assign(x[left], y[left]) != tree.region[leaf[left]]]
        if not len(left):
            break
        x[left], y[left] = _coordinates(fit, pieces, piece[left], generator.random((2, len(left))))
    if len(left):
        import shapely

        # A place of the region, inside the leaf where there is one.
        nodes, which = np.unique(leaf[left], return_inverse=True)
        whole = tree.region_shapes[tree.region[nodes]]
        inside = shapely.intersection(
            whole, shapely.box(*fit.domain.from_lattice(tree.boxes[nodes]).T)
        )
        shapes = np.where(shapely.area(inside) > 0, inside, whole)
        places = shapely.get_coordinates(shapely.point_on_surface(shapes))[which]
        x[left], y[left] = places.T
    return PointBatch(leaf=leaf, x=x, y=y)


def _coordinates(
    fit: Fit, pieces: _Pieces, piece: Integers, share: Floats
) -> tuple[Floats, Floats]:
    """Coordinates (2, n) at shares of sides of pieces, inside their leaves; values if stepped."""
    domain, leaf, places = fit.domain, fit.tree.boxes[pieces.leaf].astype(np.int64), []
    for axis in (0, 1):
        of_axis, low = domain.axes[axis], pieces.boxes[:, axis]
        position = low[piece] + (pieces.boxes[:, axis + 2] - low)[piece] * share[axis]
        if domain.coordinate_resolution is not None:
            cell = np.floor(position).astype(np.int64)
            cell = np.clip(cell, leaf[piece, axis], leaf[piece, axis + 2] - 1)
            places.append(of_axis.centres(cell))
            continue
        # Rounding must not move a point into the next leaf, to which the far edge belongs.
        west, east = (of_axis.edges(leaf[:, side]) for side in (axis, axis + 2))
        inside = np.clip(of_axis.inner_line(position), west[piece], np.nextafter(east, west)[piece])
        places.append(inside)
    return places[0], places[1]
