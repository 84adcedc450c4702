"""Intervals from the sums of answers."""

from dataclasses import fields

import numpy as np
import pytest

from psd.query.answer_table import answer_intervals
from psd.query.totals import QueryTotals

FIELDS = [field.name for field in fields(QueryTotals)]


def sums(**given):
    """Sums of answers that cannot be off, but for what is given."""
    values = dict.fromkeys(FIELDS, 0.0) | {"beyond": np.inf} | given
    values["signed"] = given.get("signed", values["estimate"])
    size = max(np.size(value) for value in given.values())
    return QueryTotals(
        **{name: np.broadcast_to(np.asarray(v, float), size) for name, v in values.items()}
    )


def random_sums(rng, size=500):
    scale = 10 ** rng.uniform(-2, 5, size)
    noise = scale * rng.random(size)
    estimate = scale * rng.normal(size=size)
    return QueryTotals(
        estimate=estimate,
        signed=estimate + scale * rng.normal(size=size),
        perturbation_variance=noise,
        published_variance=noise * rng.random(size),
        leaf_variance=scale * rng.random(size),
        shift=np.sqrt(scale) * rng.normal(size=size),
        line_variance=scale * rng.random(size),
        edge_variance=np.zeros(size),
        beyond=np.sqrt(scale) * rng.random(size),
    )


def test_the_estimate_is_inside_and_nothing_below_zero():
    found = random_sums(np.random.default_rng(1))
    for confidence in (1e-6, 0.5, 0.95, 1 - 1e-9):
        lower, upper = answer_intervals(found, confidence)
        shown = np.maximum(found.estimate, 0)
        assert (lower >= 0).all()
        assert (lower <= shown).all()
        assert (shown <= upper).all()
        assert np.isfinite(upper).all()


def test_intervals_of_more_confidence_contain_those_of_less():
    found = random_sums(np.random.default_rng(2))
    low, high = answer_intervals(found, 0.01)
    for confidence in (0.3, 0.7, 0.9, 0.99, 0.9999):
        lower, upper = answer_intervals(found, confidence)
        assert (lower <= low).all()
        assert (upper >= high).all()
        low, high = lower, upper


def test_noise_alone_is_symmetric():
    known = sums(estimate=1e6, perturbation_variance=1e4, published_variance=1e4)
    lower, upper = answer_intervals(known, 0.95)
    reach = 1.959963985 * np.sqrt(1e4 + 0.25)
    assert upper[0] - 1e6 == pytest.approx(reach, rel=1e-9)
    assert 1e6 - lower[0] == pytest.approx(reach, rel=1e-9)


def test_every_part_widens_the_interval():
    for part in ("perturbation_variance", "leaf_variance", "shift", "line_variance"):
        more = [sums(estimate=50, **{part: value}) for value in (0, 10, 1000)]
        upper = [answer_intervals(each, 0.95)[1][0] for each in more]
        assert upper[0] < upper[1] < upper[2], part


def test_what_the_view_moved_beyond_chance_widens_the_interval():
    known = {"estimate": 500, "perturbation_variance": 400, "published_variance": 100}

    def upper(signed):
        return answer_intervals(sums(**known, signed=signed), 0.95)[1][0]

    by_chance = upper(500.0)
    assert upper(500 + np.sqrt(300)) == pytest.approx(by_chance, rel=1e-12)
    assert upper(530.0) > by_chance
    # All of it: the square of 100, less what chance moves.
    lower = answer_intervals(sums(**known, signed=600.0), 0.95)[0][0]
    assert lower == pytest.approx(500 - 1.959963985 * np.sqrt(100 + 100**2 - 300 + 0.25))


def test_an_uneven_small_count_reaches_further_up_than_down():
    lower, upper = answer_intervals(sums(estimate=20, leaf_variance=100), 0.95)
    assert upper[0] - 20 > 20 - lower[0]
    z, variance = 1.959963985, 100.25
    skew = 6 * (z**2 - 1) / 3 * 100**2 / (20 * variance)  # six times the derived term
    assert upper[0] == pytest.approx(20 + z * np.sqrt(variance) + skew, rel=1e-7)


def test_an_upper_end_is_bounded_by_what_the_touched_cells_may_hold():
    known = {"estimate": 20, "leaf_variance": 100, "published_variance": 4}
    free = answer_intervals(sums(**known), 0.95)
    bounded = answer_intervals(sums(**known, beyond=30), 0.95)
    assert bounded[0] == free[0]
    assert bounded[1][0] == pytest.approx(50 + 1.959963985 * np.sqrt(4.25), rel=1e-9)
    assert bounded[1] < free[1]
    assert answer_intervals(sums(**known, beyond=1e6), 0.95)[1] == free[1]


def test_a_published_zero_keeps_part_of_its_noise_upwards():
    known = sums(estimate=0, perturbation_variance=1e4, published_variance=1e3)
    lower, upper = answer_intervals(known, 0.95)
    assert lower[0] == 0
    z = 1.959963985
    restored = 0.81 * (1 - 1 / z**2) * 9e3
    assert upper[0] == pytest.approx(z * np.sqrt(1e3 + restored + 0.25), rel=1e-9)


def test_what_is_rare_widens_intervals_of_80_percent_by_less():
    known = sums(estimate=20, leaf_variance=100, perturbation_variance=400, published_variance=100)
    plain = sums(estimate=20, leaf_variance=100, perturbation_variance=100, published_variance=100)
    added = [
        answer_intervals(known, level)[1][0] / answer_intervals(plain, level)[1][0]
        for level in (0.5, 0.8, 0.95)
    ]
    assert added[0] == 1
    assert added[0] < added[1] < added[2]


@pytest.mark.parametrize("part", ["leaf_variance", "line_variance"])
def test_what_leaves_have_in_common_is_skewed_like_what_they_have_alone(part):
    alone = answer_intervals(sums(estimate=20, leaf_variance=100), 0.95)[1]
    assert answer_intervals(sums(estimate=20, **{part: 100}), 0.95)[1] == pytest.approx(alone)
