"""Exact loss of the real mechanisms, enumerated over data sets, neighbours and shapes.

Where record and replay trusts the noise object to keep to what it was asked, this check reads
the scales off the noise that `SecureSampler` draws and the rates off its selections, walks
through every shape that selections and splits can lead to, and sums exact log-ratios.
"""

import pytest

from psd.decompositions import Grid, PrivTree
from psd.testing import SCRIPTS
from support.privacy.exact_loss import ROUNDING, OneCut, worst_exact_loss, worst_loss_of_a_move
from support.privacy.replay import has_selections, small_cases
from support.privacy.shapes import worst_with_half

METHODS, DEEP = small_cases(), pytest.mark.deep


def least_worst(method, side, k, rows) -> float:
    """What the worst loss has to reach for the check to have seen enough.

    Counts attain their share exactly. Selections approach theirs on long lattices only. A shape
    does so over more records than delta only; what it pays for a few is that of the worst path.
    """
    if isinstance(method, PrivTree):
        return worst_with_half(k, levels=(side - 1).bit_length(), most=rows)
    return 0.6 if has_selections(method) else 1


def check_loss(method, side, k, rows):
    """The worst loss keeps the promise, and the counts use up their share of it."""
    # Noisy counts steer the shapes of methods that select only where a size is drawn from a total.
    drawn = None in (getattr(method, "size", 0), getattr(method, "height", 0))
    steered = drawn or not has_selections(method)
    scripts = SCRIPTS if steered else SCRIPTS[:1]
    worst = worst_exact_loss(method, side=side, rows=rows, k=k, scripts=scripts)
    assert worst <= 1 + ROUNDING
    assert worst >= least_worst(method, side, k, rows) - ROUNDING


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize(("side", "k"), [(3, 1), (2, 2)])
@pytest.mark.parametrize("method", METHODS)
def test_loss_is_at_most_epsilon_and_uses_it(method, side, k):
    # These have up to hundreds of shapes per data set.
    check_loss(method, side, k, rows=1 if method.name in ("hilbert-rtree", "htf", "htree") else 2)


# Those with few enough shapes that a larger lattice, or one row more, takes seconds.
MANY_SHAPES = ("auto", "hilbert-rtree", "htf", "htree", "kd-cell")
FEW = [method for method in METHODS if method.values[0].name not in MANY_SHAPES]
FEWER = [m for m in FEW if m.values[0].name not in ("kd-standard", "privtree")]


@pytest.mark.parametrize("method", FEWER)
def test_loss_beside_no_row(method):
    """Users of two rows, who use up the promise of counts as beside others."""
    worst = worst_exact_loss(method, side=2, rows=0, k=2, scripts=SCRIPTS[:1])
    assert least_worst(method, 2, 2, 0) - ROUNDING <= worst <= 1 + ROUNDING


# Lattice side, k and rows beside the user.
LARGER = [(3, 1, 2, METHODS), (2, 2, 2, METHODS), (4, 1, 1, FEW), (3, 1, 3, FEWER)]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("side", "k", "rows", "method"),
    [
        pytest.param(*space, method.values[0], id=f"{space}-{method.id}")
        for *space, methods in LARGER
        for method in methods
    ],
)
def test_loss_over_more_data(method, side, k, rows):
    check_loss(method, side, k, rows=rows)


@pytest.mark.parametrize(
    "method", [m if m in FEWER else pytest.param(*m.values, id=m.id, marks=DEEP) for m in FEW]
)
def test_a_row_that_moves_costs_two_steps_at_most(method):
    assert worst_loss_of_a_move(method, side=3, rows=0) <= 2 + ROUNDING


@pytest.mark.nightly
@pytest.mark.parametrize("method", FEWER)
def test_a_row_that_moves_beside_others_costs_no_more(method):
    assert worst_loss_of_a_move(method, side=3, rows=1) <= 2 + ROUNDING


def test_a_move_between_disjoint_cells_costs_both_steps():
    """More than epsilon: replacing a row is not what one epsilon is for."""
    worst = worst_loss_of_a_move(Grid(size=2), side=3, rows=1)
    assert worst == pytest.approx(2, rel=1e-9)


@pytest.mark.parametrize("rows", [1, pytest.param(2, marks=DEEP)])
@pytest.mark.parametrize(("p", "q"), [(1, 2), (1, 3), (3, 4)])
def test_one_cut_tells_no_more_than_epsilon(p, q, rows):
    """Epsilon is approached on long lattices; this one has four lines, and a cut sees x alone."""
    space = {"side": 5, "rows": rows, "k": 1, "places": range(5)}
    assert 0.5 <= worst_exact_loss(OneCut(p, q), scripts=SCRIPTS[:1], **space) <= 1 + ROUNDING
