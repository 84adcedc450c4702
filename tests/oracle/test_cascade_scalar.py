"""The cascade's tiers against a scalar twin that goes down the domain cell by cell.

The twin is told the noisy counts and works out which cells are asked, and with what epsilon.
"""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from psd.decompositions._constants import (
    CASCADE_FIRST_LEVELS,
    CASCADE_LAST_LEVELS,
    CASCADE_MAX_ROUGHNESS,
    CASCADE_ROUGHNESS,
)
from psd.decompositions.cascade import Cascade
from psd.privacy.budget import split_total
from psd.privacy.loss import NANO
from psd.testing import SCRIPTS, RecordingSampler, run_method, small_domain, small_tally
from support.noise import noise_variance


def quarters(box):
    """Children of a cell, by y then x; a cell of one lattice cell has itself."""
    x0, y0, x1, y1 = box
    x, y = (x0 + x1) // 2, (y0 + y1) // 2
    columns = [(x0, x), (x, x1)] if x > x0 else [(x0, x1)]
    rows = [(y0, y), (y, y1)] if y > y0 else [(y0, y1)]
    return [(a, c, b, d) for c, d in rows for a, b in columns]


def plan(method, count, left, rough, k, depth, side):
    """Levels to the next tier, its epsilon and the rest; a lattice of one cell is not divided."""
    height = min(method.height, math.ceil(math.log2(side)))
    told = max(count, 0) * left / (NANO * k)
    levels = math.log2(max(told / (method.signal * rough), 0.25)) / 2
    levels = levels if depth else max(levels, CASCADE_FIRST_LEVELS)
    now, room = int(left * Fraction(method.step_share)), height - depth
    if levels <= CASCADE_LAST_LEVELS or now == 0 or math.ceil(levels / 2) >= room:
        return max(min(round(levels), room), 0), left, 0
    return math.ceil(levels / 2), now, left - now


def roughness(counts, epsilon, k):
    """Factors on the signal of siblings that are counted together."""
    mean = sum(counts) / len(counts)
    if len(counts) == 1 or mean <= 0:
        return [1.0] * len(counts)
    spread = sum((count - mean) ** 2 for count in counts) / (len(counts) - 1)
    excess = max(spread - float(noise_variance(np.array([epsilon]), k)[0]), 0.0)
    worst = CASCADE_MAX_ROUGHNESS
    if excess == 0:
        return [worst] * len(counts)
    factor = math.sqrt(CASCADE_ROUGHNESS * mean**2 / excess)
    return [min(max(factor, 1 / worst), worst)] * len(counts)


def go_down(method, boxes, steps, now, later, k, depth, side, count_of, asked):
    """Follow one plan from a family of cells that share it."""
    if steps > 1:
        for box in boxes:
            go_down(
                method, quarters(box), steps - 1, now, later, k, depth + 1, side, count_of, asked
            )
        return
    counts = [count_of(box, now) for box in boxes]
    asked += [(depth, box, now) for box in boxes]
    if later == 0:
        return
    for box, count, rough in zip(boxes, counts, roughness(counts, now, k), strict=True):
        more = plan(method, count, later, rough, k, depth, side)
        # A tier on the spot is a child of its own.
        kids = quarters(box) if more[0] else [box]
        go_down(method, kids, *more, k, depth + 1, side, count_of, asked)


def asked_by_twin(method, side, epsilon, k, count_of):
    left, paid = split_total(epsilon, method.total_share)
    root = (0, 0, side, side)
    asked = [(0, root, paid)]
    first = plan(method, count_of(root, paid), left, 1.0, k, 0, side)
    kids = quarters(root) if first[0] else [root]
    go_down(method, kids, *first, k, 1, side, count_of, asked)
    return asked


METHODS = [
    Cascade(),
    Cascade(signal=1),
    Cascade(signal=1, height=2),
    Cascade(signal=1, height=0),
    Cascade(signal=1, step_share=Decimal(0)),
    Cascade(signal=30, step_share=Decimal("0.7"), total_share=Decimal("0.3")),
]


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize("side", [1, 3, 8, 37])
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
@pytest.mark.parametrize(("epsilon", "k"), [(2, 1), (NANO // 10, 1), (NANO, 3), (8 * NANO, 1)])
def test_questions_are_those_of_the_scalar_plan(method, side, script, epsilon, k):
    rows = np.random.default_rng(side).integers(0, side * side, 900) ** 2 // (side * side)
    tally, recorder = small_tally(side, tuple(rows), k), RecordingSampler(script)
    curator, tree = run_method(method, tally, small_domain(side), epsilon, recorder)
    measured = np.flatnonzero(tree.loss)
    made = {(int(tree.level[node]), (*tree.boxes[node].tolist(),)): node for node in measured}
    told, depths = {}, {}
    for (depth, box), node in made.items():
        told[box, int(tree.loss[node]), depth] = int(tree.count[node])
        depths.setdefault((box, int(tree.loss[node])), []).append(depth)

    def count_of(box, nano):
        # Cells that are counted twice have a chain of themselves; the twin takes them in order.
        found = depths[box, nano]
        return told[box, nano, found.pop(0)]

    for found in depths.values():
        found.sort()
    asked = asked_by_twin(method, side, epsilon, k, count_of)
    assert sorted(asked) == sorted(
        (depth, box, int(tree.loss[node])) for (depth, box), node in made.items()
    )
    assert curator.spent == epsilon
