"""The nodes of a release file or a series, read part by part, each checked before the next.

A footer may misstate its rows, and runs of equal values take no bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from psd._util.arrays import from_arrow, nulls_as_zeros
from psd.errors import ReleaseFormatError
from psd.privacy.count_noise import CountNoise
from psd.space.box_tree import Tree, check_next_nodes

_ROWS_PER_BATCH = 2**16

_SIDES = ("x0", "y0", "x1", "y1")

SPANS: Final = {"time": ("t0", "t1"), "category": ("c0", "c1"), "region": ("r0", "r1")}
"""Names of the columns of the spans of each further axis."""

SUMS = ("upper", "lower")
"""Names of the columns of sums of a value, towards its two bounds, before its number."""

_PARTS = "its nodes are not sorted by {0}, or a {0} has none"


def read_trees(
    file: pq.ParquetFile, noise: CountNoise, slices: int | None = None, *, values: int = 0
) -> list[Tree]:
    """Read the tree of a release, or of each slice in order; refuse bad nodes at the first part."""
    nodes = _Nodes.empty(file.metadata.num_rows, noise, values)
    return [nodes.tree(*rows) for rows in _read_parts(file, nodes, "slice", slices)]


def read_layers(
    file: pq.ParquetFile, noise: CountNoise, layers: int, axes: tuple[str, ...]
) -> list[tuple[Tree, NDArray[np.int32]]]:
    """Read the tree of each layer of a cube in order, and spans of nodes, (n, 2 A), not checked."""
    names = tuple(name for axis in axes for name in SPANS[axis])
    nodes = _Nodes.empty(file.metadata.num_rows, noise, 0, names)
    assert nodes.spans is not None  # asked for
    parts = _read_parts(file, nodes, "layer", layers)
    nodes.spans.flags.writeable = False
    return [(nodes.tree(first, stop), nodes.spans[first:stop]) for first, stop in parts]


def _read_parts(
    file: pq.ParquetFile, nodes: _Nodes, column: str, parts: int | None
) -> list[tuple[int, int]]:
    """Read and check the nodes of a file; the first row of each tree, and its end."""
    rows = file.metadata.num_rows
    starts, stop = [0], 0
    for batch in file.iter_batches(_ROWS_PER_BATCH):
        start, stop = stop, stop + len(batch)
        if stop > rows:
            break
        nodes.put(start, batch)
        begun = []
        if parts is not None:
            begun = _trees_begun(batch[column], start, len(starts), parts, column)
        # A part may end one tree and begin others: each stretch is checked in its own tree.
        edges = sorted({start, *begun, stop})
        for first, end in pairwise(edges):
            starts += [first] if first in begun else []
            nodes.check(starts[-1], first, end)
    if stop != rows:
        raise ReleaseFormatError("its rows are not as many as its footer says; it is damaged")
    if len(starts) != (parts or 1):
        raise ReleaseFormatError(_PARTS.format(column))
    return list(pairwise([*starts, rows]))


def _trees_begun(column: pa.Array, start: int, trees: int, parts: int, name: str) -> list[int]:
    """Rows of a part at which further trees begin; their nodes stand together and in order."""
    # The part goes on with the nodes of the last tree, so a step of 1 begins the next one.
    numbers = from_arrow(column)
    steps = np.diff(numbers, prepend=trees - 1)
    if not ((steps == 0) | (steps == 1)).all() or numbers[-1] >= parts:
        raise ReleaseFormatError(_PARTS.format(name))
    # Numbers rise by 0 or 1, so no tree is left out.
    begun = [start + int(row) for row in np.flatnonzero(steps)]
    if begun and begun[0] == 0:  # the first row of a file is of the first tree, which has begun
        raise ReleaseFormatError(_PARTS.format(name))
    return begun


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredNodes:
    """Arrays of the nodes of a slice, as a file has them."""

    boxes: NDArray[np.int32]
    parent: NDArray[np.int32]
    level: NDArray[np.int16]
    count: NDArray[np.int64]
    loss: NDArray[np.int64]


def nodes_of(table: pa.Table) -> StoredNodes:
    """Nodes of a slice, in columns of one part each."""
    columns = {name: table[name].chunk(0) for name in table.column_names}
    return StoredNodes(
        boxes=np.stack([from_arrow(columns[side]) for side in _SIDES], axis=1),
        parent=from_arrow(columns["parent"]),
        level=from_arrow(columns["level"]),
        count=nulls_as_zeros(columns["count"])[0],
        loss=from_arrow(columns["loss"]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Nodes(StoredNodes):
    """Nodes of one tree or of several, one after another."""

    sums: NDArray[np.int64] | None
    spans: NDArray[np.int32] | None
    span_names: tuple[str, ...]
    noise: CountNoise

    @classmethod
    def empty(
        cls, rows: int, noise: CountNoise, values: int, span_names: tuple[str, ...] = ()
    ) -> _Nodes:
        """Arrays for this number of nodes; the system allocates memory when they are written."""
        return cls(
            boxes=np.empty((rows, len(_SIDES)), np.int32),
            parent=np.empty(rows, np.int32),
            level=np.empty(rows, np.int16),
            count=np.empty(rows, np.int64),
            loss=np.empty(rows, np.int64),
            sums=np.empty((rows, values, len(SUMS)), np.int64) if values else None,
            spans=np.empty((rows, len(span_names)), np.int32) if span_names else None,
            span_names=span_names,
            noise=noise,
        )

    def put(self, start: int, batch: pa.RecordBatch) -> None:
        """Take in the columns of a part."""
        rows = slice(start, start + len(batch))
        # Sides of the boxes, then ends of further axes, column by column into the arrays.
        for side, name in enumerate(_SIDES):
            self.boxes[rows, side] = from_arrow(batch[name])
        if self.spans is not None:
            for side, name in enumerate(self.span_names):
                self.spans[rows, side] = from_arrow(batch[name])
        for name in ("parent", "level", "loss"):
            getattr(self, name)[rows] = from_arrow(batch[name])
        # Numbers of the nodes that were paid for; exactly the others have a null in the file.
        measured = {"count": self.count[rows]}
        if self.sums is not None:
            for number, side in np.ndindex(self.sums.shape[1:]):
                measured[f"{SUMS[side]}{number}"] = self.sums[rows, number, side]
        for name, kept in measured.items():
            numbers, is_null = nulls_as_zeros(batch[name])
            if not np.array_equal(is_null, self.loss[rows] == 0):
                raise ReleaseFormatError("counts and epsilons are not on the same nodes")
            kept[:] = numbers

    def check(self, first: int, start: int, stop: int) -> None:
        """Check nodes of the tree that begins at a row; those before them were checked."""
        tree = slice(first, stop)
        arrays = self.boxes[tree], self.parent[tree], self.level[tree], self.loss[tree]
        check_next_nodes(*arrays, start - first, self.noise.measure)

    def tree(self, first: int, stop: int) -> Tree:
        """Tree of some of the nodes; its arrays are not copied."""
        arrays = {each.name: getattr(self, each.name) for each in fields(StoredNodes)}
        if self.sums is not None:
            arrays["sums"] = self.sums
        for values in arrays.values():
            values.flags.writeable = False
        rows = {name: values[first:stop] for name, values in arrays.items()}
        return Tree(**rows, noise=self.noise)


MAX_NODES: Final = 2**22
"""Default limit on the nodes of a file, of all slices together."""

NODE_BYTES: Final = 64
"""Limit on the bytes of a node without compression: 42 of its columns, and some of the pages."""

OTHER_BYTES: Final = 2**26
"""Limit on the bytes of a file beside its nodes: its header and covariate."""


def check_node_count(nodes: int, max_nodes: int) -> None:
    """Refuse a file that states more nodes than the limit, before anything is decoded."""
    if nodes > max_nodes:
        raise ReleaseFormatError(
            f"a release must have at most {max_nodes:,} nodes in all slices together, got "
            f"{nodes:,}; allow more with max_nodes= if its sender is trusted, since "
            "memory and time grow with them"
        )
