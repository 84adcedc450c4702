"""Law of permute-and-flip, by chi-square, and of its ties."""

import numpy as np
import pytest
from scipy import stats

from psd.apps.choosing import select
from psd.mechanisms.choice_laws import permute_and_flip_probabilities
from psd.mechanisms.permute_and_flip import PermuteAndFlip
from psd.privacy.loss import NANO
from support.goodness_of_fit import holds, pooled_p_value

DRAWS = 5_000
SCORES = np.array([-9, -5, -4, 0, -1, 0, 0, -1, -3, -40])
EPSILONS = [(NANO // 10, 1), (NANO, 1), (NANO, 3), (3 * NANO, 2)]


def draws(epsilon, sensitivity, is_monotone):
    choice = PermuteAndFlip(
        scores=SCORES, epsilon=epsilon, sensitivity=sensitivity, is_monotone=is_monotone
    )
    return np.array([choice.sample()[0] for _ in range(DRAWS)])


def p_value(chosen, rate):
    """P-value of chosen candidates against the law at a rate."""
    expected = len(chosen) * permute_and_flip_probabilities(-rate * SCORES)
    return pooled_p_value(np.bincount(chosen, minlength=len(SCORES)), expected)


@pytest.mark.deep
@pytest.mark.parametrize("is_monotone", [True, False])
@pytest.mark.parametrize(("epsilon", "sensitivity"), EPSILONS)
def test_law(epsilon, sensitivity, is_monotone):
    rate = (1 if is_monotone else 0.5) * epsilon / NANO / sensitivity
    assert holds(lambda: p_value(draws(epsilon, sensitivity, is_monotone), rate))


def test_ties_are_broken_by_chance():
    def shares():
        chosen = draws(100 * NANO, 1, True)
        assert set(chosen.tolist()) <= {3, 5, 6}
        return stats.chisquare(np.bincount(chosen, minlength=10)[[3, 5, 6]]).pvalue

    assert holds(shares)


@pytest.mark.deep
def test_select_has_the_law():
    def fresh():
        chosen = [select(SCORES, epsilon=1, sensitivity=2) for _ in range(DRAWS)]
        return p_value(np.array(chosen), 0.25)

    assert holds(fresh)
