"""The walk down the tree, compiled: for many boxes, where numba is installed.

Many queries walk together. At each cell is the list of the queries that cut it; one pass over the
list measures how much of a child each of them covers, and those that cut the child go on to it
as a shorter list. So each cell is read once for many queries, the numbers of a list lie side by
side, and the passes have no branches that a processor could mispredict.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from psd.dasymetric import CovariateDensity
from psd.density import PARTS, SmoothDensity
from psd.query import uniformity
from psd.query.sums import Sums
from psd.tree import MAX_CHILDREN, Tree

if TYPE_CHECKING:
    from psd.inference import Estimates
    from psd.release import Release

__all__ = ["Packed", "compiled_sums", "compiled_totals", "pack"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Most queries walked down together; a chunk takes less than a second, then Ctrl-C is heard.
_CHUNK = 2**17

# Most entries of all lists from the root down: about 350 MB, of which few are ever touched.
_ROOM = 2**21

# Columns of the frames, one frame for each level: its list, and its children, done and to be done.
_BEGIN, _END, _FIRST, _NEXT, _LAST = range(5)
_FRAME = 5

_EVEN, _SMOOTH, _COVARIATE = range(3)


class Inside(NamedTuple):
    """How counts lie inside the leaves; what a kind does not need is empty."""

    kind: int
    rank: Integers
    share: Floats
    mass: Floats
    surface: Integers
    cells: Floats
    lattice: Floats


class Family(NamedTuple):
    """First node that each node is divided into, and the one after the last; the same of a leaf."""

    start: Integers
    stop: Integers


class Errors(NamedTuple):
    """What the errors need of each node: its slope, its variance beside its parent, its spread.

    `other` says whether published counts differ from signed ones; then they have their own.
    """

    slope: Floats
    known: Floats
    other: bool
    other_slope: Floats
    other_known: Floats
    signed: Floats
    spread: Floats


class Lists(NamedTuple):
    """Lists of boxes, one after another in flat arrays, which are cheaper to cut than tables.

    The sides of each box; its sums; and work space: how its answer grows with the estimate of
    the cell, and the covered shares of the area of a child and of the points of all children.
    What is `other` is that of published counts.
    """

    west: Floats
    south: Floats
    east: Floats
    north: Floats
    estimate: Floats
    noise: Floats
    uneven: Floats
    shift: Floats
    signed: Floats
    published: Floats
    slope: Floats
    other_slope: Floats
    area: Floats
    share: Floats
    other_share: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Packed:
    """A release as the compiled walk reads it.

    Parameters
    ----------
    boxes : ndarray, shape (nodes, 4), int32
        Of the tree.
    children : Family
        Of each node.
    descendants : Family
        Children of each node, or grandchildren where these are no more than a family may have:
        fewer lists where nobody asks for errors.
    levels : int
        Of the tree.
    inside : Inside
        Density of the view.
    errors : Errors
        Of the estimates.
    """

    boxes: NDArray[np.int32]
    children: Family
    descendants: Family
    levels: int
    inside: Inside
    errors: Errors


def pack(release: Release) -> Packed:
    """Arrays of a release for the compiled walk; those of the tree are not copied.

    Notes
    -----
    The walk begins at a virtual parent of the root that is known exactly: there the root has
    the slope 0 and its own variance, and the recursion of `psd.query.cover` ends without a
    special case.
    """
    tree, estimates = release.tree, release.estimates
    children = Family(tree.first_child, tree.first_child + tree.children)
    slope, known = _recursion(estimates)
    other_slope, other_known = _recursion(release.published)
    return Packed(
        boxes=tree.boxes,
        children=children,
        descendants=_descendants(tree, children),
        levels=len(tree.levels),
        inside=_inside(release),
        errors=Errors(
            slope=slope,
            known=known,
            other=release.published is not estimates,
            other_slope=other_slope,
            other_known=other_known,
            signed=estimates.signed,
            spread=release.spread,
        ),
    )


def _recursion(estimates: Estimates) -> tuple[Floats, Floats]:
    """Slope of each node and its variance beside its parent, the root's beside nothing."""
    slope = estimates.slope.copy()
    known = np.where(np.isinf(estimates.upward_variance), 0.0, estimates.upward_variance)
    slope[0], known[0] = 0.0, estimates.variance[0]
    return slope, known


def _descendants(tree: Tree, children: Family) -> Family:
    """Nodes that the walk goes on to from each node if it need not stop at every level."""
    start, stop = children
    inner = np.concatenate([[0], np.cumsum(~tree.is_leaf)])
    divided = ~tree.is_leaf & (inner[stop] - inner[start] == tree.children)
    first = start[np.minimum(start, len(tree) - 1)]
    last = np.maximum(stop[np.maximum(stop, 1) - 1], first)
    skip = divided & (last - first <= MAX_CHILDREN)
    return Family(np.where(skip, first, start), np.where(skip, last, stop))


def _inside(release: Release) -> Inside:
    """Density of a release, for the compiled walk."""
    density, none = release.density, np.zeros(0, np.int64)
    kind, rank, share, mass = _EVEN, none, np.zeros((0, PARTS, PARTS)), np.zeros(0)
    surface, cells = np.zeros((0, 0), np.int64), np.ones(2)
    if isinstance(density, SmoothDensity):
        kind, rank, share = _SMOOTH, density.rank, density.share
    elif isinstance(density, CovariateDensity):
        covariate = density.covariate
        kind, mass, surface = _COVARIATE, covariate.mass(release.tree.boxes), covariate.surface
        cells = np.array([covariate.columns, covariate.rows], float)
    lattice = np.array(release.domain.lattice, float)
    return Inside(kind, rank, share, mass, surface, cells, lattice)


def compiled_sums(packed: Packed, count: Floats, boxes: Floats) -> Sums:
    """Sums of boxes, as `psd.query.sums.cover_sums` has them, to rounding.

    Parameters
    ----------
    packed : Packed
        What is asked.
    count : ndarray, shape (nodes,), float64
        Estimated records of each node.
    boxes : ndarray, shape (n, 4), float64
        Inside the lattice.
    """
    children, errors = packed.children, packed.errors
    sums = _walked(packed, children, count, errors, boxes)
    estimate, noise, uneven, shift, signed, published = sums
    return Sums(
        estimate=estimate,
        signed=signed if errors.other else estimate,
        perturbation_variance=noise,
        published_variance=published if errors.other else noise,
        leaf_variance=uneven,
        shift=shift,
    )


def compiled_totals(packed: Packed, values: Floats, boxes: Floats) -> Floats:
    """Sum of covered share times value over the cells of boxes, shape (n,); see `compiled_sums`."""
    total: Floats = _walked(packed, packed.descendants, values, None, boxes)[0]
    return total


def _walked(
    packed: Packed, family: Family, values: Floats, errors: Errors | None, boxes: Floats
) -> Floats:
    """Sums of boxes, shape (6, n), from as many at a time as there is room for."""
    size = max(1, min(len(boxes), _CHUNK, _ROOM // packed.levels))
    room = size * packed.levels
    shares = (np.empty(MAX_CHILDREN * room) for _ in range(2))
    lists = Lists(*(np.empty(room) for _ in Lists._fields[:-2]), *shares)
    places = np.empty(room + size, np.int32)
    frames = np.empty((packed.levels + 1, _FRAME), np.int64)
    sums = (lists.estimate, lists.noise, lists.uneven, lists.shift, lists.signed, lists.published)
    result = np.empty((len(sums), len(boxes)))
    for start in range(0, len(boxes), size):
        chunk = boxes[start : start + size]
        for row, side in zip(lists, chunk.T, strict=False):
            row[: len(chunk)] = side
        for row in sums:
            row[: len(chunk)] = 0.0
        frames[0] = (0, len(chunk), 0, 0, 1)
        _walk(packed.boxes, family, packed.inside, values, errors, lists, places, frames)
        for row, found in zip(sums, result, strict=True):
            found[start : start + size] = row[: len(chunk)]
    return result


_step = njit(nogil=True, error_model="numpy")
_nonuniformity_variance: Any = _step(uniformity.nonuniformity_variance)


@_step
def _fill(
    boxes: Any, node: int, x0: Floats, y0: Floats, x1: Floats, y1: Floats, share: Floats
) -> None:
    """Covered shares of the area of a cell by a list of boxes: 0 outside, exactly 1 inside."""
    west, south = float(boxes[node, 0]), float(boxes[node, 1])
    east, north = float(boxes[node, 2]), float(boxes[node, 3])
    whole = (east - west) * (north - south)
    for i in range(len(share)):
        wide = max(min(x1[i], east) - max(x0[i], west), 0.0)
        tall = max(min(y1[i], north) - max(y0[i], south), 0.0)
        share[i] = wide * tall / whole


@_step
def _smooth(
    inside: Any,
    boxes: Any,
    node: int,
    x0: Floats,
    y0: Floats,
    x1: Floats,
    y1: Floats,
    share: Floats,
) -> None:
    """Turn shares of the area of a leaf into shares of its points, which lie smoothly."""
    west, south = float(boxes[node, 0]), float(boxes[node, 1])
    across, up = PARTS / (boxes[node, 2] - west), PARTS / (boxes[node, 3] - south)
    parts, leaf = inside.share, inside.rank[node]
    for i in range(len(share)):
        left, right = (x0[i] - west) * across, (x1[i] - west) * across
        low, high = (y0[i] - south) * up, (y1[i] - south) * up
        total = 0.0
        for row in range(PARTS):
            line = 0.0
            for column in range(PARTS):
                wide = max(min(right, column + 1.0) - max(left, float(column)), 0.0)
                line += wide * parts[leaf, row, column]
            total += line * max(min(high, row + 1.0) - max(low, float(row)), 0.0)
        cut = (share[i] > 0) & (share[i] < 1)
        share[i] = min(total, 1.0) if cut else share[i]


@_step
def _blocks(low: float, high: float) -> tuple[Any, Any]:
    """Lines of the first, inner and last raster cells of an interval, and what is in each."""
    first, last = int(np.floor(low)), int(np.ceil(high))
    second = min(first + 1, last)
    third = max(last - 1, second)
    return (first, second, third, last), (min(high, float(second)) - low, 1.0, high - third)


@_step
def _mass(surface: Integers, west: float, south: float, east: float, north: float) -> float:
    """Mass of a box in units of raster cells; see `psd.covariate.Covariate.raster_mass`."""
    columns, across = _blocks(west, east)
    rows, up = _blocks(south, north)
    mass = 0.0
    for y in range(3):
        for x in range(3):
            upper = surface[rows[y + 1], columns[x + 1]] - surface[rows[y + 1], columns[x]]
            lower = surface[rows[y], columns[x + 1]] - surface[rows[y], columns[x]]
            mass += (upper - lower) * across[x] * up[y]
    return mass


@_step
def _dasymetric(
    inside: Any,
    boxes: Any,
    node: int,
    x0: Floats,
    y0: Floats,
    x1: Floats,
    y1: Floats,
    share: Floats,
) -> None:
    """Turn shares of the area of a leaf into shares of its points, by the covariate."""
    columns, rows, whole = inside.cells[0], inside.cells[1], inside.mass[node]
    wide, tall = inside.lattice[0], inside.lattice[1]
    for i in range(len(share)):
        if whole > 0 and 0 < share[i] < 1:
            mass = _mass(
                inside.surface,
                max(x0[i], float(boxes[node, 0])) * columns / wide,
                max(y0[i], float(boxes[node, 1])) * rows / tall,
                min(x1[i], float(boxes[node, 2])) * columns / wide,
                min(y1[i], float(boxes[node, 3])) * rows / tall,
            )
            share[i] = min(mass / whole, 1.0)


@_step
def _add(value: float, share: Floats, sums: Floats) -> None:
    """Add to each sum a share of a value."""
    for i in range(len(share)):
        sums[i] += value * share[i]


@_step
def _add_whole(value: float, share: Floats, sums: Floats) -> None:
    """Add the value of an inner cell for those boxes that hold it whole."""
    for i in range(len(share)):
        sums[i] += value if share[i] >= 1 else 0.0


@_step
def _add_uneven(count: float, spread: float, share: Floats, area: Floats, sums: Floats) -> None:
    """Add what a leaf adds to the non-uniformity variance; nothing where it is not cut."""
    for i in range(len(share)):
        sums[i] += _nonuniformity_variance(count, share[i], area[i], spread)


@_step
def _cutting(share: Floats, places: Any) -> int:
    """List which boxes cut a cell; how many they are."""
    found = 0
    for i in range(len(share)):
        places[found] = i
        found += (share[i] > 0) & (share[i] < 1)
    return found


@_step
def _take(places: Any, parent: Floats, child: Floats) -> None:
    """Numbers of some boxes of a list."""
    for i in range(len(places)):
        child[i] = parent[places[i]]


@_step
def _put(places: Any, child: Floats, parent: Floats) -> None:
    """Put numbers of a child's list in their places in its parent's."""
    for i in range(len(places)):
        parent[places[i]] = child[i]


@_step
def _hand_up(places: Any, child: Floats, parent: Floats) -> None:
    """Add a sum of a child's list to that of its parent's."""
    for i in range(len(places)):
        parent[places[i]] += child[i]


@_step
def _regress(slope: float, share: Floats, mean: Floats) -> None:
    """Add what a child's covered share, or slope, adds to that of its parent."""
    for i in range(len(share)):
        mean[i] += slope * share[i]


@_step
def _add_noise(known: float, share: Floats, mean: Floats, noise: Floats) -> None:
    """Add the variance that a child has beside its parent."""
    for i in range(len(share)):
        off = share[i] - mean[i]
        noise[i] += known * off * off


@_step
def _close_other(start: int, stop: int, errors: Any, room: int, a: int, b: int, lists: Any) -> None:
    """Close a family for the published counts, as the walk does for the signed ones."""
    slope, noise, shares = lists.other_slope[a:b], lists.published[a:b], lists.other_share
    slope[:] = 0.0
    for child in range(start, stop):
        at = (child - start) * room
        _regress(errors.other_slope[child], shares[at + a : at + b], slope)
    for child in range(start, stop):
        at, known = (child - start) * room, errors.other_known[child]
        _add_noise(known, shares[at + a : at + b], slope, noise)


def _walk_of(source: str) -> Any:
    """The walk, compiled when first called, and kept on disk where there is a place for it.

    Notes
    -----
    What is kept on disk is found by what the walk itself looks like. The formula that it calls
    is in another file, so its source is an argument here and thereby part of the key.
    """

    def walk(
        boxes: Any,
        family: Any,
        inside: Any,
        values: Any,
        errors: Any,
        lists: Any,
        places: Any,
        frames: Any,
    ) -> None:
        source  # noqa: B018
        west, south, east, north = lists.west, lists.south, lists.east, lists.north
        estimate, noise, uneven = lists.estimate, lists.noise, lists.uneven
        shift, signed, published = lists.shift, lists.signed, lists.published
        slope, area, shares = lists.slope, lists.area, lists.share
        other_slope, other_shares = lists.other_slope, lists.other_share
        room = len(west)
        depth = 0
        while depth >= 0:
            a, b = frames[depth, _BEGIN], frames[depth, _END]
            start, node = frames[depth, _FIRST], frames[depth, _NEXT]
            if node == frames[depth, _LAST]:
                if errors is not None:
                    slope[a:b] = 0.0
                    for child in range(start, node):
                        at = (child - start) * room
                        _regress(errors.slope[child], shares[at + a : at + b], slope[a:b])
                    for child in range(start, node):
                        at, known = (child - start) * room, errors.known[child]
                        _add_noise(known, shares[at + a : at + b], slope[a:b], noise[a:b])
                    if errors.other:
                        _close_other(start, node, errors, room, a, b, lists)
                depth -= 1
                if depth >= 0:
                    place = places[a:b]
                    c, d = frames[depth, _BEGIN], frames[depth, _END]
                    _hand_up(place, estimate[a:b], estimate[c:d])
                    if errors is not None:
                        _hand_up(place, noise[a:b], noise[c:d])
                        _hand_up(place, uneven[a:b], uneven[c:d])
                        at = (frames[depth, _NEXT] - 1 - frames[depth, _FIRST]) * room
                        _put(place, slope[a:b], shares[at + c : at + d])
                        if inside.kind == _SMOOTH:
                            _hand_up(place, shift[a:b], shift[c:d])
                        if errors.other:
                            _hand_up(place, signed[a:b], signed[c:d])
                            _hand_up(place, published[a:b], published[c:d])
                            _put(place, other_slope[a:b], other_shares[at + c : at + d])
                continue
            frames[depth, _NEXT] += 1
            at = (node - start) * room
            share = shares[at + a : at + b]
            x0, y0, x1, y1 = west[a:b], south[a:b], east[a:b], north[a:b]
            _fill(boxes, node, x0, y0, x1, y1, share)
            first, last = family.start[node], family.stop[node]
            if first == last:
                if errors is not None:
                    area[a:b] = share
                if inside.kind == _SMOOTH:
                    _smooth(inside, boxes, node, x0, y0, x1, y1, share)
                elif inside.kind == _COVARIATE:
                    _dasymetric(inside, boxes, node, x0, y0, x1, y1, share)
                _add(values[node], share, estimate[a:b])
                if errors is not None:
                    spread = errors.spread[node]
                    _add_uneven(values[node], spread, share, area[a:b], uneven[a:b])
                    if inside.kind == _SMOOTH:
                        moved = max(values[node], 0.0)
                        _add(moved, share, shift[a:b])
                        _add(-moved, area[a:b], shift[a:b])
                    if errors.other:
                        _add(errors.signed[node], share, signed[a:b])
                        other_shares[at + a : at + b] = share
                continue
            _add_whole(values[node], share, estimate[a:b])
            if errors is not None and errors.other:
                _add_whole(errors.signed[node], share, signed[a:b])
                other_shares[at + a : at + b] = share
            found = _cutting(share, places[b:])
            if found:
                depth += 1
                c = b + found
                frames[depth, _BEGIN], frames[depth, _END] = b, c
                frames[depth, _FIRST], frames[depth, _NEXT] = first, first
                frames[depth, _LAST] = last
                place = places[b:c]
                _take(place, x0, west[b:c])
                _take(place, y0, south[b:c])
                _take(place, x1, east[b:c])
                _take(place, y1, north[b:c])
                estimate[b:c] = 0.0
                if errors is not None:
                    noise[b:c] = 0.0
                    uneven[b:c] = 0.0
                    shift[b:c] = 0.0
                    signed[b:c] = 0.0
                    published[b:c] = 0.0

    try:
        return njit(nogil=True, error_model="numpy", cache=True)(walk)
    except RuntimeError:  # neither beside this file nor in the home folder may anything be written
        return njit(nogil=True, error_model="numpy")(walk)


_walk = _walk_of(hashlib.sha256(Path(str(uniformity.__file__)).read_bytes()).hexdigest())
