"""Counts of records with values: sums of weights, their sensitivity, and the counts they give."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from psd.curator.curator import Curator
from psd.decompositions import method
from psd.errors import ParameterError
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO, Loss
from psd.privacy.values import WEIGHT, Value, check_values
from psd.testing import SCRIPTS, RecordingSampler, small_domain, small_tally

ECHO = SCRIPTS[0]


def tally_of(side, rows, shares, weight=WEIGHT, k=1):
    """Records in cells, each with values of given shares of their ranges."""
    counts = small_tally(side, rows, k)
    keys = (counts.rows.astype(int) * side + counts.columns).tolist()
    sums = np.zeros((len(keys), len(shares[0])), np.int64)
    for row, share in zip(rows, shares, strict=True):
        sums[keys.index(row)] += np.floor(np.array(share) * weight).astype(int)
    return replace(counts, values=sums, record_weight=weight)


def curator(tally, side, sampler, epsilon=NANO):
    return Curator(tally, small_domain(side), budget=Budget(epsilon), sampler=sampler)


@pytest.mark.parametrize("name", ["quadtree", "grid", "cascade", "privtree", "kd-standard", "htf"])
def test_sums_of_a_tree_are_those_of_the_records_below_each_node(name):
    rng = np.random.default_rng(1)
    rows = rng.integers(64, size=300).tolist()
    shares = [(int(a), int(b)) for a, b in rng.integers(2, size=(300, 2))]
    asked = curator(tally_of(8, rows, shares), 8, RecordingSampler(ECHO), 50 * NANO)
    tree = method(name).build(asked)
    column, line = np.array(rows) % 8, np.array(rows) // 8
    assert (tree.loss > 0).any()
    for node in np.flatnonzero(tree.loss):
        west, south, east, north = tree.boxes[node]
        inside = (column >= west) & (column < east) & (line >= south) & (line < north)
        high = np.array(shares)[inside].sum(axis=0) * WEIGHT
        assert tree.count[node] == inside.sum()
        assert tree.sums[node].tolist() == [[h, WEIGHT * inside.sum() - h] for h in high]


@pytest.mark.parametrize("values", [1, 2, 3])
def test_a_record_of_any_values_costs_what_a_count_costs(values):
    """The loss of the worst answers, for values at both ends and between them."""
    for share in product((0, 1 / 3, 1), repeat=values):
        with_record = tally_of(2, [0, 3], [share, (0,) * values])
        draws = []
        for tally in (with_record, tally_of(2, [3], [(0,) * values])):
            noise = RecordingSampler(ECHO)
            asked = curator(tally, 2, noise)
            asked.count(asked.root(), NANO)
            draws.append(noise.draws[0].mechanism)
        one, other = draws
        assert one.sensitivity == other.sensitivity == values * WEIGHT
        # Discrete Laplace: the loss of the worst answer is the L1 distance over the scale.
        distance = np.abs(one.true - other.true).sum()
        assert distance == values * WEIGHT
        assert distance * one.epsilon[0] == one.sensitivity * NANO


def test_a_record_costs_no_more_in_rho_than_it_states():
    for share in (0, 0.25, 0.5, 1):
        draws = []
        for rows, shares in (([0, 3], [(share, share), (0, 0)]), ([3], [(0, 0)])):
            noise = RecordingSampler(ECHO)
            budget = Budget(Loss.gaussian(NANO, Fraction(1, 10**6)))
            asked = Curator(
                tally_of(2, rows, shares), small_domain(2), budget=budget, sampler=noise
            )
            asked.count(asked.root(), asked.loss)
            draws.append(noise.draws[0].mechanism)
        one, other = draws
        squared = int(((one.true - other.true) ** 2).sum())
        assert squared <= one.squared_sensitivity == 2 * WEIGHT**2


@pytest.mark.parametrize("values", [1, 3])
def test_counts_have_the_variance_that_their_noise_states(values):
    tally = tally_of(4, [5] * 40, [(0.25,) * values] * 40)
    asked = curator(tally, 4, SecureSampler(), 10**6 * NANO)
    drawn = []
    for _ in range(400):
        fresh = asked.root()
        drawn.append(int(asked.count(fresh, NANO // 2)[0]))
    stated = float(asked.noise.variance(np.array([NANO // 2]))[0])
    assert stated == pytest.approx(2 * values * 8, rel=0.05)
    assert np.var(drawn) == pytest.approx(stated, rel=0.4)
    assert np.mean(drawn) == pytest.approx(40, abs=1.2 * values**0.5)


def test_bounds_of_values_are_checked():
    assert Value("fare", 0, 60).weights(np.array([30.0])).tolist() == [WEIGHT // 2]
    for lower, upper in ((60, 0), (1, 1), (0, np.inf), (np.nan, 1), (0, 1e300), (1e14, 1e14 + 1)):
        with pytest.raises(ParameterError, match="value 'fare' must have"):
            Value("fare", lower, upper)
    with pytest.raises(ParameterError, match="different names"):
        check_values([Value("fare", 0, 1), Value("fare", 0, 2)])
    with pytest.raises(ParameterError, match="at most 6"):
        check_values([Value(str(number), 0, 1) for number in range(20)])


def test_more_records_of_a_unit_than_noise_has_a_scale_for_are_refused():
    for values in (1, 6):
        most = (2**63 - 1) // (NANO * WEIGHT * values)
        tally = tally_of(2, [0], [(1,) * values], k=most)
        asked = curator(tally, 2, SecureSampler(), NANO + 7)
        assert len(asked.count(asked.root(), NANO + 7)) == 1
        with pytest.raises(ParameterError, match=f"at most {most} with values, got {most + 1}"):
            curator(replace(tally, contributions=most + 1), 2, SecureSampler())
