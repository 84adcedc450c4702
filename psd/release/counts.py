"""Make a record from the noisy counts of another program, or of a test."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd.errors import ParameterError
from psd.privacy.loss import parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.release.record import GIVEN_METHOD, ReleaseRecord
from psd.space.box_tree import Tree
from psd.space.domain import Domain

__all__ = ["record_from_counts"]


def record_from_counts(
    tree: Tree,
    counts: ArrayLike,
    epsilons: ArrayLike | str | float,
    *,
    domain: Domain,
    unit: PrivacyUnit,
) -> ReleaseRecord:
    """Make a record of noisy counts; see `psd.Release.from_counts`.

    P1. Its source is ``given``: nothing here knows how the counts were drawn.
    """
    values = _in_leaf_order(tree, np.asarray(counts))
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise ParameterError(
            f"counts must be a list of integers, got an array of {values.dtype} with "
            f"{values.ndim} dimensions"
        )
    is_per_node = len(values) == len(tree)
    nodes = np.arange(len(tree)) if is_per_node else np.flatnonzero(tree.is_leaf)
    if values.shape != nodes.shape:
        raise ParameterError(
            f"counts must have one value per leaf ({int(tree.is_leaf.sum())}) or per node "
            f"({len(tree)}), got shape {values.shape}"
        )
    count, epsilon = np.zeros(len(tree), np.int64), np.zeros(len(tree), np.int64)
    count[nodes], epsilon[nodes] = values, _nano_epsilons(epsilons, nodes.shape)
    counted = Tree(
        boxes=tree.boxes, parent=tree.parent, level=tree.level, count=count, loss=epsilon
    )
    return ReleaseRecord(
        tree=counted,
        domain=replace(domain, min_cell=None),  # a rule of methods; given counts have none
        epsilon=max(counted.max_path_loss, 1),
        method=GIVEN_METHOD,
        unit=unit,
        source="given",
    )


def _in_leaf_order(tree: Tree, values: NDArray[Any]) -> NDArray[Any]:
    """Put values of a grid, with a row per line of cells from the south, in order of the leaves."""
    if values.ndim != 2:
        return values
    leaves = tree.boxes[tree.is_leaf]
    columns, rows = (np.unique(leaves[:, side], return_inverse=True) for side in (0, 1))
    if values.shape != (len(rows[0]), len(columns[0])) or values.size != len(leaves):
        raise ParameterError(
            f"counts must have {len(rows[0])} rows and {len(columns[0])} columns, as the grid of "
            f"the {len(leaves)} leaves, got shape {values.shape}"
        )
    ordered: NDArray[Any] = values[rows[1], columns[1]]
    return ordered


def _nano_epsilons(epsilons: ArrayLike | str | float, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Parse decimals to nano-epsilon; 0 is allowed."""
    decimals = np.asarray(epsilons, dtype=object)
    if decimals.shape not in ((), shape):
        raise ParameterError(
            f"epsilons must be one value or have the shape {shape} of the counts, got shape "
            f"{decimals.shape}"
        )
    flat = np.broadcast_to(decimals, shape)
    return np.array([0 if value == 0 else parse_epsilon(value) for value in flat], np.int64)
