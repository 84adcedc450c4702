"""Law of price maps, by chi-square against all maps; weights of few bits."""

import numpy as np
import pytest
from scipy import stats

from psd.mechanisms import exponential_tables
from psd.mechanisms.choice_laws import zone_layout
from psd.mechanisms.price_maps import PriceMaps
from psd.privacy.loss import NANO
from support.goodness_of_fit import holds
from support.privacy.price_markets import enumerated_law, score_table

pytestmark = pytest.mark.deep

DRAWS = 4_000
ZONES = (1, 2, 4)
TABLE = score_table(4, [0, 0, 1, 1, 1, 2, 3, 3], [1, 2, 3, 3, 1, 2, 3, 1], np.arange(1, 4))
SENSITIVITY = 3


def p_value(layout, epsilon, rate, is_monotone=True):
    """P-value of drawn maps against the law at a rate; maps that are rare count together."""
    asked = {"scores": TABLE, "zones": ZONES, "sensitivity": SENSITIVITY}
    maps = PriceMaps(layout=layout, epsilon=epsilon, is_monotone=is_monotone, **asked)
    drawn = [maps.sample()[0] for _ in range(DRAWS)]
    answers, law = enumerated_law(TABLE, zone_layout(layout, 4), ZONES, rate)
    number = {answer.tobytes(): i for i, answer in enumerate(answers)}
    observed = np.bincount([number[d.tobytes()] for d in drawn], minlength=len(law))
    expected = len(drawn) * law
    groups = groups_of(expected)
    return stats.chisquare(*(np.bincount(groups, v) for v in (observed, expected))).pvalue


def groups_of(expected):
    """Groups of maps, rare ones first, with at least 8 draws expected in each."""
    groups, number, total = np.zeros(len(expected), int), 0, 0.0
    for index in np.argsort(expected):
        groups[index] = number
        total += expected[index]
        if total >= 8:
            number, total = number + 1, 0.0
    return np.minimum(groups, number - 1)


@pytest.mark.parametrize("layout", ["runs", "halving-tree"])
@pytest.mark.parametrize("epsilon", [NANO // 10, NANO, 5 * NANO])
def test_law(layout, epsilon):
    assert holds(lambda: p_value(layout, epsilon, epsilon / NANO / SENSITIVITY))


def test_law_of_scores_that_are_not_monotone():
    assert holds(lambda: p_value("runs", 4 * NANO, 2.0 / SENSITIVITY, False))


@pytest.mark.parametrize("bits", [2, 7])
def test_the_law_does_not_depend_on_the_first_precision(bits, monkeypatch):
    """With two bits nearly every branch is undecided at first."""
    monkeypatch.setattr(exponential_tables, "FIRST_PRECISION", bits)
    assert holds(lambda: p_value("runs", 3 * NANO, 1.0))
