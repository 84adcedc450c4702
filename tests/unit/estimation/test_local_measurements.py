"""Values and variances of nodes, from noisy counts and from reports."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from psd.apps.local.device import NANO
from psd.estimation.least_squares import measure_record, share_estimate, share_variance
from psd.release.record import LevelReports
from support.local import GRID, KARY, campaign, local_release, places


def level(reports, p=Fraction(3, 5), q=Fraction(1, 5), outside=0):
    return LevelReports(level=1, protocol="k-ary", reports=reports, p=p, q=q, outside=outside)


def test_estimates_and_variances_are_exact_for_fixed_answers():
    """All outcomes of four reports, of which one has the answer; every device is in the level."""
    one = level(4)
    chances = [one.p, one.q, one.q, one.q]
    mean = square = 0.0
    for bits in product((0, 1), repeat=4):
        weight = float(np.prod([c if b else 1 - c for b, c in zip(bits, chances, strict=True)]))
        estimate = float(share_estimate(np.array(float(sum(bits))), one))
        mean, square = mean + weight * estimate, square + weight * estimate**2
    assert mean == pytest.approx(1 / 4)
    predicted = float(share_variance(np.array(1 / 4), one, 4))
    assert square - mean**2 == pytest.approx(predicted)


def test_the_sampling_of_the_level_adds_its_term():
    one = level(100)
    alone, sampled = (float(share_variance(np.array(0.3), one, n)) for n in (100, 400))
    assert sampled - alone == pytest.approx(0.3 * (1 - 100 / 400) / 100)
    low, high = (share_variance(np.array(f), one, 100) for f in (-1.0, 2.0))
    assert low == share_variance(np.array(0.0), one, 100)
    assert high == share_variance(np.array(1.0), one, 100)


def test_the_root_is_what_is_not_outside():
    one = campaign(
        ((500_000, ["0", "1", "2", "3"], KARY), (500_000, GRID, KARY)), nano_epsilon=4 * NANO
    )
    release = local_release(one, *places(8000))
    measured = measure_record(release.record)
    local = release.record.local
    shares = [float(share_estimate(np.array(float(v.outside)), v)) for v in local.levels]
    inside = 1 - measured.value[0] / local.reports
    assert min(shares) <= inside <= max(shares)
    single = [share_variance(np.array(inside), v, local.reports) for v in local.levels]
    assert measured.variance[0] < min(single) * local.reports**2
    assert np.isinf(measured.variance[release.tree.loss == 0][1:]).all()
