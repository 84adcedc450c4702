"""Which counter and which law of noise a stream has, by public numbers."""

import numpy as np
import pytest

import psd
from psd.decompositions.grid import Grid
from psd.decompositions.quadtree import Quadtree
from psd.privacy.count_noise import CountNoise
from psd.publish.request_arguments import request_from_arguments
from psd.streams.choice import choose_counter, noise_text, settled_noise

YEAR = psd.TimeSlices.parse("day", "2026-01-01..2026-12-31")
USER = {"user": "user", "max_contributions": 52, "max_per_slice": 1}


def request(method=Grid(size=8), **options):  # noqa: B008 - frozen
    return request_from_arguments(
        domain=(0, 0, 8, 8), epsilon=1, method=method, slices=YEAR, time="time",
        **{"delta": "1e-6", **options},
    )  # fmt: skip


def test_the_law_of_a_user_of_many_slices_is_gaussian():
    for counter in (None, "slices", "auto"):
        assert settled_noise(request(**USER), counter).noise_law == "gaussian"
    assert settled_noise(request(**USER, noise_law="laplace"), None).noise_law == "laplace"
    assert settled_noise(request(**USER, delta=None), None) == request(**USER, delta=None)


def test_a_unit_of_one_slice_may_have_a_counter_so_auto_is_laplace():
    """Of a tall tree with little epsilon per level, Gaussian slices are somewhat better."""
    tall = request(Quadtree(height=10, budget="uniform"))
    assert tall.law == "gaussian"
    assert settled_noise(tall, "auto").noise_law == "laplace"
    assert settled_noise(tall, "slices").noise_law == "gaussian"
    assert settled_noise(tall, None).noise_law == "gaussian"


def test_totals_of_gaussian_slices_are_sums_with_the_error_of_these():
    chosen = choose_counter(settled_noise(request(**USER), "auto"), "auto")
    [variance] = CountNoise.gaussian(52).variance(np.array([request(**USER).loss.rho]))
    assert (chosen.name, list(chosen.errors)) == ("slices", ["slices"])
    assert chosen.errors["slices"] == pytest.approx((float(variance) * len(YEAR)) ** 0.5)


def test_what_is_said_of_a_delta():
    record, user = request(), request(**USER)
    assert noise_text(request(delta=None), request(delta=None), None) is None
    assert noise_text(user, settled_noise(user, None), None) == "noise is discrete Gaussian (auto)"
    assert "no delta is spent" in noise_text(record, settled_noise(record, "auto"), "tree")
    assert "which spends delta" in noise_text(record, settled_noise(record, "auto"), "toeplitz")
    tall = request(Quadtree(height=10, budget="uniform"))
    assert noise_text(tall, settled_noise(tall, "auto"), "tree") == (
        "noise is discrete Laplace; no delta is spent, and none is stated"
    )
