"""Check the rules that hold for the first nodes of a tree while the nodes are read.

An untrusted file is refused at the first part that breaks a rule, before the next part is decoded.
The rule that children tile their parent needs complete families, so `psd.space.box_tree.check_tree`
checks it for the whole tree.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from psd.errors import ReleaseFormatError
from psd.privacy.loss import LossMeasure
from psd.space.box_tree import MAX_CHILDREN, MAX_LEVELS, all_inside, any_empty

__all__ = ["check_next_nodes"]


def check_next_nodes(
    boxes: NDArray[np.int32],
    parent: NDArray[np.int32],
    level: NDArray[np.int16],
    loss: NDArray[np.int64],
    start: int,
    measure: LossMeasure,
) -> None:
    """Refuse nodes that cannot follow the ones before them.

    The arrays have all nodes of a tree so far, as in `psd.space.box_tree.Tree`; those from `start`
    on were not checked yet.
    """
    for rule, holds in _rules(boxes, parent, level, loss, start, measure):
        if not holds:
            raise ReleaseFormatError(f"not a tree of cells: {rule}; the file is damaged or foreign")


def _rules(
    boxes: NDArray[np.int32],
    parent: NDArray[np.int32],
    level: NDArray[np.int16],
    loss: NDArray[np.int64],
    start: int,
    measure: LossMeasure,
) -> Iterator[tuple[str, bool]]:
    """Yield each rule and whether it holds; a rule may be evaluated only if all before it hold."""
    if start == 0:
        yield "the first node is not the root", bool(parent[0] == -1 and level[0] == 0)
    first = max(start, 1)
    number, above = np.arange(first, len(parent)), parent[first:].astype(np.int64)
    in_range = (above >= 0).all() and (above < number).all()
    in_order = (np.diff(above, prepend=max(parent[first - 1], 0)) >= 0).all()
    yield "a parent is missing or comes after its child", bool(in_range and in_order)
    # Families follow each other, so with four children to a node no parent is further away.
    yield (
        "a node has more than four children",
        bool((above >= (number - 1) // MAX_CHILDREN).all()),
    )
    steps = level[first:] - level[above].astype(np.int64)
    yield "a level is not one below its parent's", bool((steps == 1).all())
    yield f"it has more than {MAX_LEVELS} levels", int(level[-1]) < MAX_LEVELS
    spent = loss[start:]
    yield (
        f"{measure.one_text} is negative or above 1,000",
        bool(((spent >= 0) & (spent <= measure.largest)).all()),
    )
    yield "a box is empty", not any_empty(boxes[start:])
    yield "the children of a node do not tile it", all_inside(boxes[first:], boxes.take(above, 0))
