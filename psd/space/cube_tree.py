"""A tree over the plane and further axes: every node is a box and a span of each axis.

A family divides one axis or two, so no node has more than four children. Where a unit has at most M
records in each time slice and k in all, a cell of t slices holds at most min(k, M t) of them
(`SliceCap`), which the noise of a law in rho depends on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers, read_only_copy
from psd.privacy.count_noise import CountNoise
from psd.privacy.unit import PrivacyUnit
from psd.space.axes import REGION, Axis
from psd.space.box_tree import Tree, box_rules, refuse_broken

__all__ = ["CubeTree", "SliceCap", "check_cube", "divide_cells", "filled_parts", "noises_by"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceCap:
    """Most records of one unit in a cell of several time slices. Public."""

    most: int  # k, in all slices together
    per_slice: int  # M, in each slice

    @classmethod
    def of_unit(cls, unit: PrivacyUnit) -> SliceCap:
        """Cap of a unit whose bound holds in all slices together; without M a slice may have k."""
        most = unit.contributions
        return cls(most=most, per_slice=unit.max_per_slice or most)

    def squared_sensitivity(self, slices: int) -> int:
        """S^2 = k min(k, M t) of a cell of t slices; proof in `psd.curator.curator.Curator`."""
        return self.most * min(self.most, self.per_slice * slices)


def filled_parts(divided: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which of 2^D parts there are, (n, 2^D), for axes divided (n, D); bit a: above line a."""
    filled = np.ones((len(divided), 1), bool)
    for axis in divided.T:
        filled = np.concatenate([filled, filled & axis[:, None]], axis=1)
    return filled


def divide_cells(
    low: Integers, high: Integers, lines: Integers
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Parts of cells that are divided at one line of each axis, those that are not empty.

    low, high: (n, D) int64, edges of the cells; lines: (n, D) int64, inside of them, or `high` of
    an axis that is not divided. Returns which of the (n, 2^D) parts there are, see `filled_parts`,
    and the low and high edges of these, (m, 2 D), cell by cell.
    """
    size, axes = low.shape
    divided = lines < high
    is_filled = filled_parts(divided)
    # Of a cut, most axes are divided in no cell, so few parts are looked at.
    active = np.flatnonzero(divided.any(axis=0)).tolist()
    edges = np.empty((size, 2 ** len(active), 2 * axes), low.dtype)
    parts = []
    # Part `number` is above the lines of the active axes whose bits are set, and below the others.
    for number in range(2 ** len(active)):
        above = [axis for bit, axis in enumerate(active) if number >> bit & 1]
        parts.append(sum(1 << axis for axis in above))
        part = edges[:, number]
        part[:, :axes], part[:, axes:] = low, lines
        part[:, above], part[:, [axes + axis for axis in above]] = lines[:, above], high[:, above]
    filled = is_filled[:, parts]
    flat = edges.reshape(-1, 2 * axes) if filled.all() else edges[filled]
    return is_filled, flat


@dataclass(frozen=True, kw_only=True, eq=False)
class CubeTree(Tree):
    """A hierarchy of boxes with a span of each further axis; arrays are read-only.

    spans: (n, 2 A) int32, first cell of each axis and the one after the last, axis by axis; axes:
    public; if the last is that of regions, which are places, no node divides the plane; cap: of
    noise in rho, by which the noise of a node depends on its slices: `noise` is then that of a cell
    of all slices, and time is the first axis. Other axes change no noise.
    """

    spans: NDArray[np.int32]
    axes: tuple[Axis, ...]
    cap: SliceCap | None = None

    def __post_init__(self) -> None:
        """Give every array its type and make it read-only."""
        super().__post_init__()
        object.__setattr__(self, "spans", read_only_copy(self.spans, "int32"))

    @property
    def has_regions(self) -> bool:
        """Whether the last axis is that of regions."""
        return self.axes[-1].name == REGION

    @property
    def window_spans(self) -> NDArray[np.int32]:
        """Spans of the axes that windows are of, all but that of regions, shape (n, 2 A)."""
        return self.spans[:, :-2] if self.has_regions else self.spans

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Cells of each of these axes in each node, shape (n, A)."""
        spans = self.window_spans
        return np.subtract(spans[:, 1::2], spans[:, 0::2], dtype=np.int64)

    @cached_property
    def volume(self) -> Floats:
        """Lattice cells, or regions, times cells of the axes in each node, shape (n,)."""
        places = self.spans[:, -1] - self.spans[:, -2] if self.has_regions else self.area
        volume: Floats = places.astype(np.float64) * self.lengths.prod(axis=1)
        return volume

    def _noises(self) -> Iterator[tuple[CountNoise, Integers | slice]]:
        """Noise of nodes of equally many slices, which the first axis has if there is a cap."""
        yield from noises_by(self.noise, self.cap, self.lengths[:, 0])

    def noise_variance(self) -> Floats:
        """Variance of each count by its noise, in records squared; infinite where not measured."""
        variance = np.empty(len(self))
        for noise, at in self._noises():
            variance[at] = noise.variance(self.loss[at])
        return variance

    def noise_rate(self, scale: int = 1) -> Floats:
        """Parameter of the likelihood of each count; see `CountNoise.rate`."""
        rate = np.empty(len(self))
        for noise, at in self._noises():
            rate[at] = noise.rate(self.loss[at], scale)
        return rate


def noises_by(
    noise: CountNoise, cap: SliceCap | None, slices: Integers
) -> Iterator[tuple[CountNoise, Integers | slice]]:
    """Noise of cells of each number of slices (n,), with their places; `noise`: of all slices."""
    if cap is None:
        yield noise, slice(None)  # a view: a fixed grid has millions of cells
        return
    for number in np.unique(slices).tolist():
        of_cell = replace(noise, squared_sensitivity=cap.squared_sensitivity(number))
        yield of_cell, np.flatnonzero(slices == number)


def check_cube(tree: CubeTree, lattice: tuple[int, int]) -> None:
    """Refuse arrays that are not a tree of cells over the plane and the axes.

    P1. The root is the whole lattice and all of each axis; the children of a node, at most four,
    tile it and divide one axis or two; levels, parents and counts as in every tree.
    """
    refuse_broken("tree of cells", _rules(tree, lattice))


def _rules(tree: CubeTree, lattice: tuple[int, int]) -> Iterator[tuple[str, bool]]:
    """Yield each rule and whether it holds; a rule may be evaluated only if all before it hold."""
    yield from box_rules(tree, lattice)
    yield "its spans are not those of the axes", tree.spans.shape == (len(tree), 2 * len(tree.axes))
    whole = [edge for axis in tree.axes for edge in (0, axis.size)]
    yield "the root is not all of each axis", tree.spans[0].tolist() == whole
    yield "a span is empty", bool((tree.spans[:, 0::2] < tree.spans[:, 1::2]).all())
    yield "the children of a node do not tile it", _children_tile(tree)


def _children_tile(tree: CubeTree) -> bool:
    """Whether children lie inside their parent, divide one axis or two, and tile it."""
    parent = tree.parent[1:].astype(np.int64)
    if not len(parent):
        return True
    low = np.concatenate([tree.boxes[:, :2], tree.spans[:, 0::2]], axis=1)
    high = np.concatenate([tree.boxes[:, 2:], tree.spans[:, 1::2]], axis=1)
    first = np.flatnonzero(np.diff(parent, prepend=-1))  # of each family, its place in `parent`
    family = np.cumsum(np.diff(parent, prepend=-1) != 0) - 1
    # Parent of each family; low and high ends of its children.
    up, below, above = parent[first], low[1:], high[1:]
    # The line of each axis in a family is where its first child ends.
    line = above[first][family]
    is_low = (below == low[parent]) & (above == line)
    is_high = (below == line) & (above == high[parent]) & (line < high[parent])
    is_whole = (below == low[parent]) & (above == high[parent])
    divided = line < high[parent]
    if not np.where(divided, is_low | is_high, is_whole).all() or (line <= low[parent]).any():
        return False
    axes = divided[first].sum(axis=1)
    number = (is_high * 2 ** np.arange(low.shape[1])).sum(axis=1)
    # A family of as many parts as there are halves tiles its parent if none is there twice: the
    # numbers of the halves ascend.
    again = (np.diff(number) <= 0) & (np.diff(family) == 0)
    size = tree.children[up]
    return bool((axes <= 2).all() and not again.any() and (size == 2**axes).all())
