"""Shares sum to the whole, whatever the whole and the number of levels."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from psd.errors import ParameterError
from psd.privacy.budget import geometric_shares, uniform_shares, weighted_shares
from psd.privacy.loss import MAX_EPSILON, NANO, epsilon_text, parse_epsilon

totals = st.integers(1, MAX_EPSILON * NANO)
levels = st.integers(1, 40)


@settings(derandomize=True)
@given(totals, levels, st.sampled_from([4, 2]))
def test_geometric_shares_sum_to_the_total(total, levels, fanout):
    shares = geometric_shares(total, levels, fanout=fanout)
    assert len(shares) == levels
    assert sum(shares) == total
    assert min(shares) >= 0
    assert max(shares) == shares[-1]


@settings(derandomize=True)
@given(totals, levels)
def test_uniform_shares_sum_to_the_total(total, levels):
    shares = uniform_shares(total, levels)
    assert sum(shares) == total
    assert set(shares[:-1]) <= {total // levels}
    assert 0 <= shares[-1] - total // levels < levels


@settings(derandomize=True)
@given(totals, st.lists(st.integers(0, 2**70), min_size=1, max_size=20).filter(any))
def test_no_level_but_the_last_gets_more_than_its_weight(total, weights):
    shares = weighted_shares(total, weights)
    assert sum(shares) == total
    for share, weight in zip(shares[:-1], weights[:-1], strict=True):
        assert share * sum(weights) <= total * weight < (share + 1) * sum(weights)


@settings(derandomize=True)
@given(totals, st.floats(allow_nan=True, allow_infinity=True))
def test_epsilon_is_read_as_its_text(nano, value):
    assert parse_epsilon(epsilon_text(nano)) == nano
    try:
        parsed = parse_epsilon(value)
    except ParameterError:
        with pytest.raises(ParameterError, match="epsilon"):
            parse_epsilon(repr(value))
    else:
        assert parsed == parse_epsilon(repr(value))
