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
from psd.tree import MAX_CHILDREN

if TYPE_CHECKING:
    from psd.inference import Estimates
    from psd.release import Release

__all__ = ["Packed", "compiled_sums", "compiled_totals", "pack"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Most queries walked down together; a chunk takes less than a second, then Ctrl-C is heard.
_CHUNK = 2**17

# Most entries of all lists from the root down: about 130 MB, of which few are ever touched.
_ROOM = 2**21

# Rows of the lists. One for each side of the boxes, for each sum, then work space: the slope,
# the share of the area, and the share of the points of each child.
_WEST, _SOUTH, _EAST, _NORTH = range(4)
_ESTIMATE, _SIGNED, _NOISE, _PUBLISHED, _UNEVEN, _SHIFT = range(4, 10)
_SLOPE, _OTHER_SLOPE, _AREA, _CHILD = range(10, 14)
_OTHER_CHILD = _CHILD + MAX_CHILDREN
_ROWS = _OTHER_CHILD + MAX_CHILDREN

# Columns of the frames, one frame for each level: the list, and children done and to be done.
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


class Errors(NamedTuple):
    """What the errors need of each node.

    The slope and the variance beside its parent of signed and of published counts, the signed
    count, and the spread. `other` says whether signed and published counts differ.
    """

    slope: Floats
    known: Floats
    other: bool
    other_slope: Floats
    other_known: Floats
    signed: Floats
    spread: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Packed:
    """A release as the compiled walk reads it.

    Parameters
    ----------
    boxes : ndarray, shape (nodes, 4), int32
        Of the tree.
    first : ndarray, shape (nodes + 1,), int64
        First child of each node, and with the next one's the end of its children.
    levels : int
        Of the tree.
    inside : Inside
        Density of the view.
    errors : Errors
        Of the estimates.
    """

    boxes: NDArray[np.int32]
    first: Integers
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
    slope, known = _recursion(estimates)
    other_slope, other_known = _recursion(release.published)
    return Packed(
        boxes=tree.boxes,
        first=np.append(tree.first_child, len(tree)),
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
    estimate, signed, noise, published, leaves, shift = _walked(packed, count, packed.errors, boxes)
    return Sums(
        estimate=estimate,
        signed=signed if packed.errors.other else estimate,
        perturbation_variance=noise,
        published_variance=published if packed.errors.other else noise,
        leaf_variance=leaves,
        shift=shift,
    )


def compiled_totals(packed: Packed, values: Floats, boxes: Floats) -> Floats:
    """Sum of covered share times value over the cells of boxes, shape (n,); see `compiled_sums`."""
    total: Floats = _walked(packed, values, None, boxes)[0]
    return total


def _walked(packed: Packed, values: Floats, errors: Errors | None, boxes: Floats) -> Floats:
    """Rows of sums, shape (6, n), from as many queries at a time as there is room for."""
    size = max(1, min(len(boxes), _CHUNK, _ROOM // packed.levels))
    lists = np.empty(_ROWS * size * packed.levels)
    places = np.empty(size * (packed.levels + 1), np.int32)
    frames = np.empty((packed.levels + 1, _FRAME), np.int64)
    sums = np.empty((_SLOPE - _ESTIMATE, len(boxes)))
    for start in range(0, len(boxes), size):
        chunk = boxes[start : start + size]
        whole = lists[: _ROWS * len(chunk)].reshape(_ROWS, len(chunk))
        whole[_WEST:_ESTIMATE], whole[_ESTIMATE:_SLOPE] = chunk.T, 0.0
        frames[0] = (0, len(chunk), 0, 0, 1)
        _walk(packed.boxes, packed.first, packed.inside, values, errors, lists, places, frames)
        sums[:, start : start + size] = whole[_ESTIMATE:_SLOPE]
    return sums


_step = njit(nogil=True, error_model="numpy")
_nonuniformity_variance: Any = _step(uniformity.nonuniformity_variance)


@_step
def _rows(lists: Floats, begin: int, end: int) -> Floats:
    """Rows of the list of some entries; each row is contiguous, or its passes would crawl."""
    return lists[_ROWS * begin : _ROWS * end].reshape(_ROWS, end - begin)


@_step
def _fill(cell: Any, lists: Floats, share: Floats) -> None:
    """Covered shares of the area of a cell by a list of boxes: 0 outside, exactly 1 inside."""
    west, south, east, north = float(cell[0]), float(cell[1]), float(cell[2]), float(cell[3])
    x0, y0, x1, y1 = lists[_WEST], lists[_SOUTH], lists[_EAST], lists[_NORTH]
    whole = (east - west) * (north - south)
    for i in range(len(share)):
        wide = max(min(x1[i], east) - max(x0[i], west), 0.0)
        tall = max(min(y1[i], north) - max(y0[i], south), 0.0)
        share[i] = wide * tall / whole


@_step
def _smooth(cell: Any, parts: Floats, lists: Floats, share: Floats) -> None:
    """Turn shares of the area of a leaf into shares of its points, which lie smoothly."""
    west, south = float(cell[0]), float(cell[1])
    across, up = PARTS / (cell[2] - west), PARTS / (cell[3] - south)
    x0, y0, x1, y1 = lists[_WEST], lists[_SOUTH], lists[_EAST], lists[_NORTH]
    for i in range(len(share)):
        left, right = (x0[i] - west) * across, (x1[i] - west) * across
        low, high = (y0[i] - south) * up, (y1[i] - south) * up
        total = 0.0
        for row in range(PARTS):
            line = 0.0
            for column in range(PARTS):
                wide = max(min(right, column + 1.0) - max(left, float(column)), 0.0)
                line += wide * parts[row, column]
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
def _dasymetric(cell: Any, whole: float, inside: Any, lists: Floats, share: Floats) -> None:
    """Turn shares of the area of a leaf into shares of its points, by the covariate."""
    (columns, rows), (wide, tall) = inside.cells, inside.lattice
    for i in range(len(share)):
        if whole > 0 and 0 < share[i] < 1:
            mass = _mass(
                inside.surface,
                max(lists[_WEST, i], float(cell[0])) * columns / wide,
                max(lists[_SOUTH, i], float(cell[1])) * rows / tall,
                min(lists[_EAST, i], float(cell[2])) * columns / wide,
                min(lists[_NORTH, i], float(cell[3])) * rows / tall,
            )
            share[i] = min(mass / whole, 1.0)


@_step
def _shares(node: int, cell: Any, inside: Any, lists: Floats, share: Floats) -> None:
    """Turn shares of the area of a leaf into shares of its points."""
    if inside.kind == _SMOOTH:
        _smooth(cell, inside.share[inside.rank[node]], lists, share)
    elif inside.kind == _COVARIATE:
        _dasymetric(cell, inside.mass[node], inside, lists, share)


@_step
def _add_part(value: float, share: Floats, sums: Floats) -> None:
    """Add the covered share of a value."""
    for i in range(len(share)):
        sums[i] += value * share[i]


@_step
def _add_uneven(count: float, spread: float, share: Floats, area: Floats, sums: Floats) -> None:
    """Add what a leaf adds to the non-uniformity variance; nothing where it is not cut."""
    for i in range(len(share)):
        sums[i] += _nonuniformity_variance(count, share[i], area[i], spread)


@_step
def _add_whole(value: float, share: Floats, sums: Floats) -> None:
    """Add the value of an inner cell for those boxes that hold it whole."""
    for i in range(len(share)):
        sums[i] += value if share[i] >= 1 else 0.0


@_step
def _cutting(share: Floats, places: Any) -> int:
    """List which boxes cut a cell; how many they are."""
    found = 0
    for i in range(len(share)):
        places[found] = i
        found += (share[i] > 0) & (share[i] < 1)
    return found


@_step
def _open(places: Any, parent: Floats, child: Floats) -> None:
    """Start the list of a child with the boxes that cut it."""
    for side in range(_ESTIMATE):
        source, target = parent[side], child[side]
        for i in range(len(places)):
            target[i] = source[places[i]]
    child[_ESTIMATE:_SLOPE] = 0.0


@_step
def _close(slopes: Floats, knowns: Floats, shares: Floats, mean: Floats, noise: Floats) -> None:
    """Slope of each answer with the parent of a family, and the variance that is left."""
    mean[:] = 0.0
    for child in range(len(slopes)):
        slope, share = slopes[child], shares[child]
        for i in range(len(mean)):
            mean[i] += slope * share[i]
    for child in range(len(slopes)):
        known, share = knowns[child], shares[child]
        for i in range(len(mean)):
            noise[i] += known * (share[i] - mean[i]) ** 2


@_step
def _close_all(first: int, last: int, errors: Any, here: Floats) -> None:
    """Close a family for the signed and, where they differ, for the published counts."""
    slope, known = errors.slope[first:last], errors.known[first:last]
    _close(slope, known, here[_CHILD:_OTHER_CHILD], here[_SLOPE], here[_NOISE])
    if errors.other:
        slope, known = errors.other_slope[first:last], errors.other_known[first:last]
        _close(slope, known, here[_OTHER_CHILD:_ROWS], here[_OTHER_SLOPE], here[_PUBLISHED])


@_step
def _leave(here: Floats, places: Any, up: Floats, child: int, errors: Any) -> None:
    """Hand the sums of a finished list to the one above, and its slopes as shares of a child."""
    if errors is None:
        for i in range(len(places)):
            up[_ESTIMATE, places[i]] += here[_ESTIMATE, i]
        return
    for row in range(_ESTIMATE, _SLOPE):
        target, source = up[row], here[row]
        for i in range(len(places)):
            target[places[i]] += source[i]
    share, other, slope, other_slope = (
        up[_CHILD + child],
        up[_OTHER_CHILD + child],
        here[_SLOPE],
        here[_OTHER_SLOPE],
    )
    for i in range(len(places)):
        share[places[i]] = slope[i]
        other[places[i]] = other_slope[i]


@_step
def _count_leaf(
    node: int, cell: Any, inside: Any, values: Floats, errors: Any, here: Floats, share: Floats
) -> None:
    """Add a leaf to the sums of a list."""
    if errors is not None and inside.kind == _SMOOTH:
        here[_AREA] = share
    _shares(node, cell, inside, here, share)
    _add_part(values[node], share, here[_ESTIMATE])
    if errors is not None:
        if errors.other:
            _add_part(errors.signed[node], share, here[_SIGNED])
        area = here[_AREA] if inside.kind == _SMOOTH else share
        _add_uneven(values[node], errors.spread[node], share, area, here[_UNEVEN])
        if inside.kind == _SMOOTH:
            moved = max(values[node], 0.0)
            _add_part(moved, share, here[_SHIFT])
            _add_part(-moved, area, here[_SHIFT])


def _walk_of(source: str) -> Any:
    """The walk, compiled when first called, and kept on disk where there is a place for it.

    Notes
    -----
    What is kept on disk is found by what the walk itself looks like. The formula that it calls
    is in another file, so its source is an argument here and thereby part of the key.
    """

    def walk(
        boxes: Any,
        first: Any,
        inside: Any,
        values: Any,
        errors: Any,
        lists: Any,
        places: Any,
        frames: Any,
    ) -> None:
        source  # noqa: B018
        depth = 0
        while depth >= 0:
            begin, end, start, node, last = frames[depth]
            here = _rows(lists, begin, end)
            if node == last:
                if errors is not None:
                    _close_all(start, last, errors, here)
                depth -= 1
                if depth >= 0:
                    up = _rows(lists, frames[depth, _BEGIN], frames[depth, _END])
                    child = frames[depth, _NEXT] - 1 - frames[depth, _FIRST]
                    _leave(here, places[begin:end], up, child, errors)
                continue
            frames[depth, _NEXT] += 1
            share = here[_CHILD + node - start]
            _fill(boxes[node], here, share)
            if first[node] == first[node + 1]:
                _count_leaf(node, boxes[node], inside, values, errors, here, share)
            else:
                _add_whole(values[node], share, here[_ESTIMATE])
                if errors is not None and errors.other:
                    _add_whole(errors.signed[node], share, here[_SIGNED])
            if errors is not None and errors.other:
                here[_OTHER_CHILD + node - start] = share
            if first[node] == first[node + 1]:
                continue
            found = _cutting(share, places[end:])
            if found:
                depth += 1
                frames[depth] = (end, end + found, first[node], first[node], first[node + 1])
                _open(places[end : end + found], here, _rows(lists, end, end + found))

    try:
        return njit(nogil=True, error_model="numpy", cache=True)(walk)
    except RuntimeError:  # neither beside this file nor in the home folder may anything be written
        return njit(nogil=True, error_model="numpy")(walk)


_walk = _walk_of(hashlib.sha256(Path(str(uniformity.__file__)).read_bytes()).hexdigest())
