"""Pairs of divisions of one size on one line, against a search of all pairs."""

from types import SimpleNamespace

import numpy as np
import pytest

import psd
from psd.estimation._constants import LAGS
from psd.estimation.families import divisions
from psd.estimation.least_squares import infer_counts
from psd.estimation.line_moments import WIDTHS, _pairs, halvings, line_squares

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
    across, along = (halvings(tree, divisions.node, axis, LATTICE) for axis in (0, 1))
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


def family(boxes, counts, side):
    """Tree of a root and its children, and its estimates; counts have hardly any noise."""
    boxes = np.array([[0, 0, side, side], *boxes], np.int32)
    counts = np.array([sum(counts), *counts])
    tree = psd.Tree(
        boxes=boxes,
        parent=np.array([-1] + [0] * (len(boxes) - 1)),
        level=np.array([0] + [1] * (len(boxes) - 1)),
        count=counts,
        epsilon=np.full(len(boxes), 10**12),
    )
    return tree, infer_counts(tree)


def squares_of(boxes, counts, shares, side=4):
    """Squared deviations of children from their shares, and what lines explain of them."""
    tree, estimates = family(boxes, counts, side)
    share = np.array([1.0, *shares])
    common = np.full((2, WIDTHS), 0.25)
    along = divisions(tree, estimates, share)
    by_lines = line_squares(tree, along, common, (side, side))
    number = sum(counts)
    found = sum((c - number * s) ** 2 for c, s in zip(counts, shares, strict=True))
    return found, by_lines[0] * number**2


SOUTH, NORTH = [0, 0, 4, 2], [0, 2, 4, 4]
QUARTERS = [[0, 0, 2, 2], [2, 0, 4, 2], [0, 2, 2, 4], [2, 2, 4, 4]]


def test_records_on_one_side_of_a_line_are_explained():
    # All or nothing on the south of a line: the mean of both squares, by their probabilities.
    for g in (0.5, 0.2):
        found, explained = squares_of([SOUTH, NORTH], [800, 0], [g, 1 - g])
        other, same = squares_of([SOUTH, NORTH], [0, 800], [g, 1 - g])
        assert explained == same == pytest.approx(g * found + (1 - g) * other)


def test_quarters_have_what_lines_along_both_axes_explain():
    # All on the south, even from west to east; lines along x would explain as much again.
    found, explained = squares_of(QUARTERS, [400, 400, 0, 0], [0.25] * 4)
    assert explained == pytest.approx(2 * found)
    # Three quarters are on the east, in both halves.
    q = np.array([0.25, 0.75])
    shares = np.concatenate([0.5 * q, 0.5 * q])
    found, explained = squares_of(QUARTERS, [200, 600, 0, 0], shares)
    by_x = 2 * 0.5 * 4 * 0.25 * 0.75 * 0.25 * 800**2
    assert explained == pytest.approx(found + by_x)


def test_lines_explain_nothing_where_more_than_one_divides_an_axis():
    thirds = [[0, 0, 4, 1], [0, 1, 4, 2], [0, 2, 4, 4]]
    assert squares_of(thirds, [900, 0, 0], [0.25, 0.25, 0.5])[1] == 0
