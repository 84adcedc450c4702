"""Which counter and which law a stream has, by public numbers, and its facts, written and read."""

from dataclasses import replace

import numpy as np
import pytest

import psd
from psd.apps.streams.creation import choose_counter, noise_text, settled_noise
from psd.apps.streams.plan import (
    StreamPlan,
    StreamRequest,
    fault_charge,
    guarantee_of,
    stream_charge,
)
from psd.decompositions.grid import Grid
from psd.decompositions.quadtree import Quadtree
from psd.errors import InputDataError
from psd.ingest.sources import Columns
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit
from psd.publish.request_values import request_to_toml
from support.requests import request_of
from support.streams import WEEK

YEAR = psd.TimeSlices.parse("day", "2026-01-01..2026-12-31")
USER = {"user": "user", "max_contributions": 52, "max_per_slice": 1}
TALL = Quadtree(height=10, budget="uniform")


def request(method=Grid(size=8), **options):  # noqa: B008 - frozen
    return StreamRequest.of(request_of(
        domain=(0, 0, 8, 8), epsilon=1, method=method, slices=YEAR, time="time",
        **{"delta": "1e-6", **options},
    ))  # fmt: skip


def test_the_law_of_a_user_of_many_slices_is_gaussian():
    for counter in (None, "slices", "auto"):
        assert settled_noise(request(**USER), counter).noise == "gaussian"
    assert settled_noise(request(**USER, noise="laplace"), None).noise == "laplace"
    assert settled_noise(request(**USER, delta=None), None) == request(**USER, delta=None)
    # Totals are sums with the error of these.
    chosen = choose_counter(settled_noise(request(**USER), "auto"), "auto")
    [variance] = CountNoise.gaussian(52).variance(np.array([request(**USER).loss.rho]))
    assert (chosen.name, list(chosen.errors)) == ("slices", ["slices"])
    assert chosen.errors["slices"] == pytest.approx((float(variance) * len(YEAR)) ** 0.5)
    # A unit of one slice may have a counter, so auto is Laplace. Of a tall tree with little epsilon
    # per level, Gaussian slices are somewhat better.
    tall = request(TALL)
    assert tall.law == "gaussian"
    assert settled_noise(tall, "auto").noise == "laplace"
    assert settled_noise(tall, "slices").noise == "gaussian"
    assert settled_noise(tall, None).noise == "gaussian"


def test_what_is_said_of_a_delta():
    record, user, tall = request(), request(**USER), request(TALL)
    assert noise_text(request(delta=None), request(delta=None), None) is None
    assert noise_text(user, settled_noise(user, None), None) == "noise is discrete Gaussian (auto)"
    assert "no delta is spent" in noise_text(record, settled_noise(record, "auto"), "tree")
    assert "which spends delta" in noise_text(record, settled_noise(record, "auto"), "toeplitz")
    assert noise_text(tall, settled_noise(tall, "auto"), "tree") == (
        "noise is discrete Laplace; no delta is spent, and none is stated"
    )


# Facts of a stream: written, read back, and of one request


REQUEST = StreamRequest.of(request_of(
    domain=(0, 0, 8, 8), epsilon="0.5", method="grid", slices=WEEK, time="time", user="id",
    max_contributions=2, per="user-slice",
))  # fmt: skip
PLAN = StreamPlan(
    request=request_to_toml(REQUEST),
    folder="/",
    output="/city.psd.parquet",
    key="00" * 32,
    files={},
    clock="0" * 16,
    statement={"stream_slices": 7},
)


def test_a_plan_is_read_back():
    plan = StreamPlan.from_rows(PLAN.to_rows())
    assert plan == PLAN
    assert plan.build_request() == REQUEST
    assert repr(plan) == "<StreamPlan: private>"
    for missing in ("request", "ledger"):
        rows = PLAN.to_rows()
        del rows[missing]
        with pytest.raises(InputDataError, match="other facts than those of a stream"):
            StreamPlan.from_rows(rows)


def test_the_guarantee_of_a_stream_states_the_delta_of_its_slices_or_totals():
    gaussian = replace(REQUEST, delta="1e-6", noise="gaussian")
    assert guarantee_of(gaussian, None) == gaussian.guarantee_text
    assert guarantee_of(gaussian, None).startswith("epsilon 0.5 and delta 1e-6 (rho 0.00664")
    assert stream_charge(gaussian).loss == gaussian.loss
    assert fault_charge(gaussian).loss == Loss.pure(0)
    request = replace(REQUEST, unit=PrivacyUnit(), columns=Columns(time="time"))
    assert guarantee_of(request, "1e-6") == (
        "epsilon 0.5 and delta 1e-6 per record; with a probability of at most 1e-6 it may reveal "
        "more than epsilon allows"
    )
