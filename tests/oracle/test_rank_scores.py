"""Scores of the curator's quantile question against a line-by-line twin."""

import numpy as np
import pytest

from psd.curator.curator import Curator
from psd.errors import BudgetError, ParameterError
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.testing import SCRIPTS, RecordingSampler, small_domain, small_tally


def naive(rows, side, box, axis, p, q):
    """(line, score) of every line inside a box; its edge alone where it is one cell thin."""
    x0, y0, x1, y1 = box
    inside = [
        (r % side, r // side)[axis] for r in rows if x0 <= r % side < x1 and y0 <= r // side < y1
    ]
    low, high = box[axis], box[axis + 2]
    lines = range(low + 1, high) if high - low > 1 else [low]
    return [(s, -abs(q * sum(v < s for v in inside) - p * len(inside))) for s in lines]


@pytest.mark.parametrize("seed", range(40))
def test_scores_are_those_of_the_definition(seed):
    random = np.random.default_rng(seed)
    side = int(random.integers(1, 12))
    kinds = (random.integers(0, side**2, random.integers(0, 60)), [0] * 30, [], [side**2 - 1])
    rows = tuple(kinds[seed % 4])
    recorder = RecordingSampler(SCRIPTS[seed % 3])
    curator = Curator(
        small_tally(side, rows), small_domain(side), budget=Budget(NANO), sampler=recorder
    )
    cells = curator.root()
    for depth in range(4):
        axis = depth % 2
        q = random.integers(2, 9, len(cells))
        p = random.integers(1, q)
        lines = curator.quantile(cells, axis=axis, loss=NANO // 8, p=p, q=q)
        call = recorder.draws[-1]
        for place, box in enumerate(cells.boxes.tolist()):
            here = call.group == place
            found = list(zip(call.line[here].tolist(), call.true[here].tolist(), strict=True))
            twin = naive(rows, side, box, axis, int(p[place]), int(q[place]))
            if box[axis + 2] - box[axis] == 1:
                assert [line for line, _ in found] == [box[axis]] == [lines[place]]
            else:
                assert found == twin
            assert call.sensitivity[place] == max(p[place], q[place] - p[place])
        cells = curator.cut(cells, **{"xy"[axis]: lines})


def asked(budget=10, k=1):
    """A curator of no rows on 3 x 3 cells, and what it drew."""
    recorder = RecordingSampler()
    tally = small_tally(3, (), k=k)
    return Curator(tally, small_domain(3), budget=Budget(budget), sampler=recorder), recorder


def test_a_quantile_outside_its_range_is_refused_before_the_charge():
    curator, _ = asked()
    for p, q in ((0, 2), (2, 2), (3, 2), (-1, 2), (1, 2**17)):
        with pytest.raises(ParameterError, match="0 < p < q"):
            curator.quantile(curator.root(), axis=0, loss=1, p=p, q=q)
    for axis in (-1, 2):
        with pytest.raises(ParameterError, match="axis"):
            curator.quantile(curator.root(), axis=axis, loss=1)
    assert curator.spent == 0
    assert curator.quantile(curator.root()[:0], axis=0, loss=1).tolist() == []


def test_a_quantile_beyond_the_budget_is_refused():
    curator, recorder = asked()
    root = curator.root()
    curator.quantile(root, axis=0, loss=6)
    with pytest.raises(BudgetError):
        curator.quantile(root, axis=1, loss=5)
    assert (curator.spent, len(recorder.draws)) == (6, 1)


def test_sensitivity_carries_k():
    curator, recorder = asked(NANO, k=5)
    curator.quantile(curator.root(), axis=0, loss=NANO, p=1, q=3)
    assert recorder.draws[0].sensitivity.tolist() == [10]


def test_the_log_keeps_what_was_charged():
    curator, _ = asked()
    epsilon = np.array([4])
    curator.quantile(curator.root(), axis=0, loss=epsilon)
    epsilon[0] = 10
    assert curator.questions[0].loss.tolist() == [4]
