"""Geometric variables by rejection: arithmetic that cannot wrap, and the largest draw."""

import numpy as np
import pytest

from psd.mechanisms import geometric
from psd.mechanisms.geometric import (
    LIMIT,
    _scaled,
    geometric_each,
    refuse_beyond_limit,
    until_kept,
)


def script(monkeypatch, remainder, multiple):
    """Uniform and unit geometric draws of given values, every candidate accepted."""
    monkeypatch.setattr(geometric, "uniform_below", lambda bounds: np.minimum(remainder, bounds))
    monkeypatch.setattr(geometric, "bernoulli_exp", lambda n, _: np.ones(len(n), bool))
    monkeypatch.setattr(geometric, "unit_geometric", lambda size: np.full(size, multiple))


@pytest.mark.parametrize(
    ("u", "v", "t", "s", "value"),
    [(0, 0, 5, 1, 0), (4, 0, 5, 1, 4), (4, 2, 5, 1, 14), (4, 2, 5, 3, 4), (2, 1, 3, 6, 0)],
)
def test_a_draw_is_the_floor_of_remainder_and_multiple(u, v, t, s, value, monkeypatch):
    script(monkeypatch, u, v)
    assert geometric_each(np.array([t]), np.array([s])).tolist() == [value]


def test_elements_are_tried_until_each_is_accepted():
    tried = []

    def attempt(pending):
        tried.append(pending.tolist())
        return 10 * len(tried) + pending, pending >= 4 - len(tried)

    assert until_kept(5, attempt).tolist() == [40, 31, 22, 13, 14]
    assert tried == [[0, 1, 2, 3, 4], [0, 1, 2], [0, 1], [0]]
    assert until_kept(0, attempt).tolist() == []


def test_products_beyond_64_bits_are_exact():
    big = 2**62 - 1
    u, t, v, s = (np.array(values) for values in ((1, big - 1), (3, big), (5, 7), (2, 2**33)))
    assert _scaled(u, t, v, s).tolist() == [(1 + 15) // 2, (8 * big - 1) // 2**33]


@pytest.mark.parametrize("remainder", [0, 1])
def test_the_last_product_of_64_bits_does_not_wrap(remainder):
    u, t, v, s = (np.array([n]) for n in (remainder, 2**62 - 1, 2, 2**10))
    assert _scaled(u, t, v, s).tolist() == [(remainder + 2 * (2**62 - 1)) // 2**10]


def test_a_draw_of_2_to_the_62_is_refused(monkeypatch):
    refuse_beyond_limit(LIMIT - 1)
    for magnitude in (LIMIT, 2**80):
        with pytest.raises(OverflowError, match="does not depend on the data"):
            refuse_beyond_limit(magnitude)
    script(monkeypatch, 0, 2**40)
    with pytest.raises(OverflowError):
        geometric_each(np.array([2**30]), np.array([1]))
