"""Scores of the curator's division question against a bin-by-bin twin, and their sensitivity."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from psd.curator.candidate_scores import deviations
from psd.curator.curator import Curator
from psd.errors import BudgetError, ParameterError
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.space.grids import BinGrid
from psd.testing import SCRIPTS, RecordingSampler, data_sets, neighbours, small_domain, small_tally


def part(rows, box, side, bins):
    """Floor of the sum over bins of abs(count - mean), with fractions and one bin at a time."""
    x0, y0, x1, y1 = box
    lines = [i * side // min(bins, side) for i in range(min(bins, side))]
    whose = [max(i for i, line in enumerate(lines) if line <= c) for c in range(side)]
    count = {(i, j): 0 for i in set(whose[x0:x1]) for j in set(whose[y0:y1])}
    for row in rows:
        x, y = row % side, row // side
        if x0 <= x < x1 and y0 <= y < y1:
            count[whose[x], whose[y]] += 1
    mean = Fraction(sum(count.values()), len(count))
    return sum(abs(n - mean) for n in count.values()) // 1


def naive(rows, side, box, axis, bins, most):
    """(line, score) of every candidate of a box; its edge alone where no bin line is inside."""
    size = min(bins, side)
    inside = [i * side // size for i in range(size) if box[axis] < i * side // size < box[axis + 2]]
    if not inside:
        return [(box[axis], 0)]
    if len(inside) > most:
        inside = [inside[(j + 1) * (len(inside) + 1) // (most + 1) - 1] for j in range(most)]
    found = []
    for line in inside:
        west, east = list(box), list(box)
        west[axis + 2] = east[axis] = line
        found.append((line, -part(rows, west, side, bins) - part(rows, east, side, bins)))
    return found


def asked(rows, side, *, k=1, script=SCRIPTS[0]):
    recorder = RecordingSampler(script)
    tally = small_tally(side, rows, k)
    return Curator(tally, small_domain(side), budget=Budget(NANO), sampler=recorder), recorder


@pytest.mark.parametrize("seed", range(40))
def test_scores_are_those_of_the_bins(seed):
    random = np.random.default_rng(seed)
    side, bins = int(random.integers(1, 14)), int(random.integers(1, 9))
    most = int(random.integers(1, 6))
    kinds = (random.integers(0, side**2, random.integers(0, 90)), [0] * 30, [], [side**2 - 1])
    rows = tuple(kinds[seed % 4])
    curator, recorder = asked(rows, side, script=SCRIPTS[seed % 3])
    cells = curator.root()
    for depth in range(4):
        axis = depth % 2
        lines = curator.homogeneous_split(cells, axis=axis, loss=NANO // 8, bins=bins, lines=most)
        call = recorder.draws[-1]
        for place, box in enumerate(cells.boxes.tolist()):
            here = call.group == place
            found = list(zip(call.line[here].tolist(), call.true[here].tolist(), strict=True))
            assert found == naive(rows, side, box, axis, bins, most)
            assert call.sensitivity[place] == 2
        # Every other level is cut where it likes, so that cells cut through bins.
        if depth == 1:
            lines = random.integers(cells.boxes[:, axis], cells.boxes[:, axis + 2] + 1)
        cells = curator.cut(cells, **{"xy"[axis]: lines})


@pytest.mark.parametrize("seed", range(20))
def test_deviations_are_exact_for_large_counts(seed):
    """Counts whose products with the number of bins leave 64 bits."""
    random = np.random.default_rng(seed)
    count = random.integers(1, 2**54, 50)
    times = random.integers(1, 9, 50)
    bins = int(times.sum() + random.integers(0, 2**20 - 500))
    total = int((count * times).sum())
    exact = sum(
        int(a) * abs(int(c) - Fraction(total, bins)) for c, a in zip(count, times, strict=True)
    )
    exact += (bins - int(times.sum())) * Fraction(total, bins)
    found = deviations(np.zeros(50, np.int64), count, times, np.array([bins]))
    assert found.tolist() == [exact // 1]


def largest_change(side, k, rows=3, bins=1024):
    """Largest change of any score between all small data sets and all their neighbours."""
    scores = {}

    def of(data):
        data = tuple(sorted(data))
        if data not in scores:
            calls = []
            for axis in (0, 1):
                curator, recorder = asked(data, side, k=k)
                curator.homogeneous_split(curator.root(), axis=axis, loss=1, bins=bins, lines=1023)
                calls.append(recorder.draws[0].true)
            scores[data] = np.concatenate(calls)
        return scores[data]

    pairs = itertools.product(data_sets(side, rows), neighbours(side, k))
    return max(int(np.abs(of(data) - of(data + more)).max()) for data, more in pairs)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("side", "k", "rows"), [(2, 1, 6), (2, 2, 5), (2, 3, 4), (3, 1, 3), (3, 2, 2)]
)
def test_no_score_moves_by_more_than_the_sensitivity(side, k, rows):
    worst = largest_change(side, k, rows)
    assert worst <= 2 * k
    # Parts of two bins move by 1 per record; those of six by 2 - 1/3, or 2 after rounding.
    assert worst >= (k if side == 2 else 2 * k - (k > 1))


def test_the_sensitivity_is_attained_where_bins_are_many():
    """From nothing to k records in one of 2,048 bins: 2k less a hair, before rounding."""
    bins, one, zero = np.array([2048]), np.ones(1, np.int64), np.zeros(1, np.int64)
    for k in (1, 2, 3):
        of = [int(deviations(zero, zero + n, one, bins)[0]) for n in range(1, 2048 + k)]
        assert max(of[n + k] - of[n] for n in range(2047)) == 2 * k
        assert 2 * k - Fraction(2 * k * 2047, 2048) < Fraction(1, 300)


def test_sensitivity_of_a_division_carries_k():
    curator, recorder = asked((), 3, k=5)
    curator.homogeneous_split(curator.root(), axis=0, loss=NANO, bins=3, lines=3)
    assert recorder.draws[0].sensitivity.tolist() == [10]


def test_a_division_outside_its_range_is_refused_before_the_charge():
    curator, _ = asked((), 3)
    for axis, bins, lines in ((2, 4, 4), (-1, 4, 4), (0, 0, 4), (0, 1025, 4), (0, 4, 0)):
        with pytest.raises(ParameterError):
            curator.homogeneous_split(curator.root(), axis=axis, loss=1, bins=bins, lines=lines)
    assert curator.spent == 0


def test_a_division_beyond_the_budget_is_refused():
    curator, recorder = asked((), 3)
    root = curator.root()
    curator.homogeneous_split(root, axis=0, loss=NANO - 1, bins=3, lines=3)
    with pytest.raises(BudgetError):
        curator.homogeneous_split(root, axis=1, loss=2, bins=3, lines=3)
    assert (curator.spent, len(recorder.draws)) == (NANO - 1, 1)


def test_bins_tile_the_lattice():
    for cells, bins in ((1, 1), (7, 3), (8, 8), (5, 1024), (2**30, 1024)):
        grid = BinGrid(lattice=(cells, 1), bins=bins)
        lines = grid.line(0, np.arange(min(bins, cells) + 1))
        assert (lines[0], lines[-1]) == (0, cells)
        assert (np.diff(lines) > 0).all()
        for number, (first, after) in enumerate(itertools.pairwise(lines.tolist())):
            assert grid.number(0, np.array([first, after - 1])).tolist() == [number, number]
