"""Noise that a seed repeats: it has the law, it repeats, and it leaves by no door."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import ParameterError
from psd.ledger.account import Account
from psd.ledger.ledger import Ledger
from psd.mechanisms import mechanisms
from psd.mechanisms.exponential_mechanism import Candidates, ExponentialMechanism
from psd.mechanisms.laplace import LaplaceMechanism
from psd.mechanisms.threshold import ThresholdMechanism
from psd.privacy.loss import NANO
from psd.publish.insecure import SeededSampler
from psd.publish.single_count import ask
from support.releases import changed

DOMAIN = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857")
POINTS = pd.DataFrame({"lon": [1.0, 2, 7], "lat": [1.0, 2, 7]})


def build(data=POINTS, **more):
    return psd.build(data, **{"domain": DOMAIN, "epsilon": 1, "sampler": SeededSampler(7), **more})


@pytest.mark.parametrize("method", psd.methods())
def test_a_seed_repeats_every_method(method):
    first, again = (build(method=method).tree for _ in range(2))
    for field in ("boxes", "parent", "count", "loss"):
        assert np.array_equal(getattr(first, field), getattr(again, field))
    other = build(method=method, sampler=SeededSampler(8)).tree
    assert other.boxes.shape != first.boxes.shape or (other.count != first.count).any()


def test_no_writer_takes_it(tmp_path):
    release = build()
    assert release.record.source == "insecure"
    assert (
        changed(release, post_processing=release.record.post_processing).record.source == "insecure"
    )
    slices = psd.TimeSlices.parse("day", "2024-01-01")
    series = build(POINTS.assign(time="2024-01-01 10:00:00"), slices=slices, time="time")
    for act in (
        lambda: release.save(tmp_path / "r.psd.parquet"),
        lambda: release.export(tmp_path / "cells.csv"),
        lambda: series.save(tmp_path / "s.psd.parquet"),
    ):
        with pytest.raises(ParameterError, match="seed"):
            act()
    assert not list(tmp_path.iterdir())


def test_the_stream_of_a_seed_stays_the_same():
    """The same seed gives the same answers in all versions."""
    zeros, four, sampler = np.zeros(4, np.int64), np.arange(1, 5), SeededSampler(7)
    tenth = np.full(4, NANO // 10)
    noise = sampler.draw(LaplaceMechanism(true=zeros, epsilon=tenth, sensitivity=1))
    above = sampler.draw(ThresholdMechanism(values=zeros, numerator=7, denominator=four, cost=four))
    starts, lengths, scores = (np.tile(e, 4) for e in ([10, 20, 30], [5, 1, 4], [0, 1, -2]))
    lines = sampler.draw(
        ExponentialMechanism(
            candidates=Candidates(
                group=np.repeat(np.arange(4), 3), first=starts, length=lengths, score=scores
            ),
            epsilon=10 * tenth,
            sensitivity=np.ones(4, np.int64),
        )
    )
    assert noise.tolist() == [-1, 6, 2, 0]
    assert above.tolist() == [False] * 4
    assert lines.tolist() == [33, 13, 10, 10]
    # What is no seed, and a mechanism without a seeded draw.
    for seed in (-1, 2**63, "x", 1.5, True):
        with pytest.raises(ParameterError, match="insecure_seed"):
            SeededSampler(seed)
    with pytest.raises(ParameterError, match="got SimpleNamespace"):
        SeededSampler(1).draw(SimpleNamespace(cost=None, public=None))


# Four draws of the first example of each mechanism, as lists.
STREAMS = {
    "exponential-mechanism": [[0, 2], [3, 1], [2, 2], [3, 1]],
    "gaussian": [[4, -4], [0, 1], [4, -7], [4, 3]],
    "laplace": [[-2, 2], [4, 0], [3, 1], [-1, -6]],
    "permute-and-flip": [[2], [0], [1], [2]],
    "price-maps": [[0, 1, 0, 1, 0, 1], [0, 0, 0, 0, 0, 0], [0, 1, 1, 1, 1, 1], [0, 1, 0, 1, 1, 0]],
    "threshold": [[False, True], [False, True], [False, True], [False, False]],
}


def test_the_stream_of_a_seed_stays_the_same_for_every_mechanism(subtests):
    assert set(STREAMS) == set(mechanisms())
    for name, kind in mechanisms().items():
        sampler, first = SeededSampler(7), kind.neighbours()[0]
        with subtests.test(name):
            draws = [sampler.draw(first) for _ in range(4)]
            assert [draw.ravel().tolist() for draw in draws] == STREAMS[name]
            assert {draw.dtype for draw in draws} == {first.sample().dtype}


def test_no_ledger_pays_for_it(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("d", budget=5)
    account, box = Account(ledger, "d"), {"area": (0, 0, 1, 1), "crs": "EPSG:3857", "epsilon": 1}
    for act in (
        lambda: build(account=account),
        lambda: ask(POINTS, **box, account=account, sampler=SeededSampler(1)),
    ):
        with pytest.raises(ParameterError, match="account must be left out"):
            act()
    assert (account.left, account.last) == (5 * NANO, None)
