"""Pairs of divisions of one size on one line, against a search of all pairs."""

from types import SimpleNamespace

import numpy as np
import pytest

from psd.estimation.constants import LAGS
from psd.estimation.lines import _pairs, levels_halved

LATTICE = (1024, 1024)


def cells(seed, size, is_even):
    """Cells, each with a line in the middle; with uneven heights some have one rank."""
    random = np.random.default_rng(seed)
    width = 2 ** random.integers(4, 8, size)
    height = 2 ** random.integers(0, 4, size) if is_even else random.integers(1, 30, size)
    west = random.integers(0, 1024, size) // width * width
    south = random.integers(0, 1024, size) // height * height
    boxes = np.stack([west, south, west + width, south + height], axis=1).astype(np.int32)
    if is_even:
        boxes = np.unique(boxes, axis=0)
    line = (boxes[:, 0] + boxes[:, 2]).astype(np.int64) // 2
    return SimpleNamespace(boxes=boxes), SimpleNamespace(node=np.arange(len(boxes)), line=line)


def rank_of(tree, divisions):
    """Line, halvings of both axes, and rank along the line, of each division."""
    across, along = (levels_halved(tree, divisions.node, axis, LATTICE) for axis in (0, 1))
    rank = np.rint(tree.boxes[:, 1] / LATTICE[1] * 2.0**along).astype(np.int64)
    return list(
        zip(divisions.line.tolist(), across.tolist(), along.tolist(), rank.tolist(), strict=True)
    )


@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_each_division_is_paired_with_one_each_lag_further(seed, is_even):
    tree, divisions = cells(seed, 1_500, is_even)
    keys = rank_of(tree, divisions)
    assert (len(set(keys)) == len(keys)) is is_even
    found = list(_pairs(tree, divisions, 0, LATTICE))
    for lag, (first, second) in zip(LAGS, found, strict=True):
        pairs = [(keys[a], keys[b]) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
        further = {key: (*key[:3], key[3] + lag) for key in keys}
        assert sorted(a for a, _ in pairs) == sorted(k for k in keys if further[k] in further)
        assert all(b == further[a] for a, b in pairs)
    assert sum(len(first) for first, _ in found) > 100


def test_without_divisions_there_are_no_pairs():
    tree, divisions = cells(0, 0, is_even=False)
    assert list(_pairs(tree, divisions, 0, LATTICE)) == []
