"""Geometric variables by rejection: arithmetic that cannot wrap, and the largest draw."""

from itertools import product

import numpy as np

from psd.mechanisms import bernoulli
from psd.mechanisms.bernoulli import _scaled, geometric_each


def test_a_draw_is_the_floor_of_remainder_and_multiple(monkeypatch):
    monkeypatch.setattr(bernoulli, "bernoulli_exp", lambda n, _: np.ones(len(n), bool))
    rows = [(0, 0, 5, 1, 0), (4, 0, 5, 1, 4), (4, 2, 5, 1, 14), (4, 2, 5, 3, 4), (2, 1, 3, 6, 0)]
    for u, v, t, s, value in rows:
        monkeypatch.setattr(bernoulli, "uniform_below", lambda bounds, u=u: np.minimum(u, bounds))
        monkeypatch.setattr(bernoulli, "unit_geometric", lambda size, v=v: np.full(size, v))
        assert geometric_each(np.array([t]), np.array([s])).tolist() == [value]
    big = 2**62 - 1
    rows = [(1, 3, 5, 2), (big - 1, big, 7, 2**33), (0, big, 2, 2**10), (1, big, 2, 2**10)]
    times = (2**53 - 1, 2**53, 2**53 + 1, 10**18, 2**63 - 1)
    for t, v in product(times, (0, 1, 8, 9, 1022, 1023, 1024, 1025)):
        rows.append((t - 1, t, v, 10**6))
    for u, t, v, s in rows:
        assert _scaled(*(np.array([n]) for n in (u, t, v, s))).tolist() == [(u + t * v) // s]
    u, t, v, s = np.array(rows[:2]).T
    assert _scaled(u, t, v, s).tolist() == [(1 + 15) // 2, (8 * big - 1) // 2**33]


def test_elements_are_tried_until_each_is_accepted(monkeypatch):
    tried = []

    def uniform_below(bounds):
        tried.append((bounds - 1000).tolist())
        return 10 * len(tried) + bounds - 1000

    monkeypatch.setattr(bernoulli, "uniform_below", uniform_below)
    monkeypatch.setattr(bernoulli, "bernoulli_exp", lambda _, bounds: bounds >= 1004 - len(tried))
    monkeypatch.setattr(bernoulli, "unit_geometric", lambda size: np.zeros(size, np.int64))
    drawn = geometric_each(1000 + np.arange(5), np.ones(5, np.int64))
    assert drawn.tolist() == [40, 31, 22, 13, 14]
    assert tried == [[0, 1, 2, 3, 4], [0, 1, 2], [0, 1], [0]]
