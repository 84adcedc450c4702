"""What lines explain of the divisions of cells, by hand; and where in cells lines are."""

import numpy as np
import pytest

import psd
from psd.estimation.least_squares import infer_counts
from psd.estimation.lines import WIDTHS, line_squares, side_factors
from psd.estimation.nonuniformity import divisions
from psd.space.box_tree import locate


def family(boxes, counts, side):
    """Tree of a root and its children, and its estimates; counts have hardly any noise."""
    boxes = np.array([[0, 0, side, side], *boxes], np.int32)
    counts = np.array([sum(counts), *counts])
    tree = psd.decompositions.Tree(
        boxes=boxes,
        parent=np.array([-1] + [0] * (len(boxes) - 1)),
        level=np.array([0] + [1] * (len(boxes) - 1)),
        count=counts,
        loss=np.full(len(boxes), 10**12),
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


def factors_of(column, row, side=256):
    """Factors along both axes for records in cells of a square lattice, with little noise."""
    domain = psd.Domain(bounds=(0.0, 0.0, 1.0, 1.0), lattice=(side, side))
    tree = psd.decompositions.grid_tree(domain, side)
    exact = np.bincount(locate(tree, column, row), minlength=len(tree))[tree.is_leaf]
    model = psd.Release.from_counts(tree, exact, 10.0, domain=domain).index.fit
    along = divisions(tree, model.estimates, model.parent_shares)
    return [side_factors(tree, cut, axis, domain.lattice) for axis, cut in enumerate(along)]


@pytest.mark.parametrize(("place", "factor"), [(0.0, 2.0), (0.5, 2 / 3)])
def test_cuts_err_by_where_columns_are_in_cells(place, factor):
    # Columns on the sides, or in the middle, of cells of which the domain has 64 across.
    xy = np.random.default_rng(1).beta(1.2, 2, (40_000, 2))
    column, row = ((np.floor(xy * 64) + place) * 4).astype(int).T
    for found in factors_of(column, row):
        # Wider cells have several columns, and of narrower ones the children are leaves.
        assert found[6] == pytest.approx(factor, rel=0.12)
        assert found[[4, 7]] == pytest.approx(1.0, abs=0.12)


@pytest.mark.deep
@pytest.mark.parametrize("row", [120, 425, 82, 347])
def test_cuts_err_by_where_a_line_is_in_cells(row):
    # Cells of 2^k across have the line at u of their height; there are too few wide ones to tell.
    column = np.random.default_rng(1).integers(0, 512, 40_000)
    found = factors_of(column, np.full(len(column), row), 512)[1]
    halved = np.array([6, 7])
    true = 0.5 + 1.5 * (2 * ((row + 0.5) / 512 * 2**halved % 1) - 1) ** 2
    # Products count as far as they are above their errors, so both are drawn towards 1.
    assert found[halved] / true == pytest.approx(1.0, abs=0.5)
