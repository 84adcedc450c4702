"""Noise that a seed repeats: it has the law, it repeats, and it leaves by no door."""

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import ParameterError
from psd.ledger.account import Account
from psd.ledger.ledger import Ledger
from psd.mechanisms.exponential_mechanism import Candidates, ExponentialMechanism
from psd.mechanisms.laplace import LaplaceMechanism
from psd.mechanisms.sampler import SecureSampler
from psd.mechanisms.threshold import ThresholdMechanism
from psd.privacy.epsilon import NANO
from psd.publish.insecure import SeededSampler
from psd.publish.single_count import ask
from support.releases import changed

DOMAIN = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857")
POINTS = pd.DataFrame({"lon": [1.0, 2, 7], "lat": [1.0, 2, 7]})


def seeded(seed=7, method="kd-standard"):
    how = {"domain": DOMAIN, "epsilon": 1, "method": method}
    return psd.build(POINTS, sampler=SeededSampler(seed), **how)


def seeded_series():
    slices = psd.TimeSlices.parse("day", "2024-01-01")
    table = POINTS.assign(time="2024-01-01 10:00:00")
    how = {"domain": DOMAIN, "epsilon": 1, "time": "time", "sampler": SeededSampler(1)}
    return psd.build(table, slices=slices, **how)


@pytest.mark.parametrize("name", psd.methods())
def test_a_seed_repeats_every_method(name):
    first, again = seeded(method=name), seeded(method=name)
    for field in ("boxes", "parent", "count", "epsilon"):
        assert np.array_equal(getattr(first.tree, field), getattr(again.tree, field))
    other = seeded(8, method=name).tree
    assert other.boxes.shape != first.tree.boxes.shape or (other.count != first.tree.count).any()


def test_counts_have_the_variance_of_a_release():
    size = 100_000
    answers = SeededSampler(1).draw(
        LaplaceMechanism(true=np.zeros(size, np.int64), epsilon=np.full(size, NANO), sensitivity=2)
    )
    q = np.exp(-1 / 2)
    assert answers.mean() == pytest.approx(0, abs=0.05)
    assert answers.var() == pytest.approx(2 * q / (1 - q) ** 2, rel=0.05)


def test_selections_have_the_odds_of_a_release():
    size = 20_000
    group = np.repeat(np.arange(size), 3)
    candidates = Candidates(
        group=group,
        first=np.tile([10, 20, 30], size),
        length=np.tile([1, 0, 4], size),
        score=np.tile([0, 9, -2], size),
    )
    chosen = SeededSampler(1).draw(
        ExponentialMechanism(
            candidates=candidates, epsilon=np.full(size, NANO), sensitivity=np.ones(size, np.int64)
        )
    )
    assert set(chosen.tolist()) == {10, 30, 31, 32, 33}
    assert (chosen == 10).mean() == pytest.approx(1 / (1 + 4 * np.exp(-1)), abs=0.02)


def test_no_writer_takes_it(tmp_path):
    release = seeded()
    assert release.source == "insecure"
    for act in (
        lambda: release.save(tmp_path / "r.psd.parquet"),
        lambda: release.export(tmp_path / "cells.csv"),
        lambda: seeded_series().save(tmp_path / "s.psd.parquet"),
    ):
        with pytest.raises(ParameterError, match="seed"):
            act()
    assert not list(tmp_path.iterdir())


def test_a_mechanism_without_a_seeded_draw_is_refused():
    class Other:
        cost = public = None

    with pytest.raises(ParameterError, match="got Other"):
        SeededSampler(1).draw(Other())


def test_the_stream_of_a_seed_stays_the_same():
    """The same seed gives the same answers in all versions."""
    zeros, four, sampler = np.zeros(4, np.int64), np.arange(1, 5), SeededSampler(7)
    tenth = np.full(4, NANO // 10)
    noise = sampler.draw(LaplaceMechanism(true=zeros, epsilon=tenth, sensitivity=1))
    above = sampler.draw(ThresholdMechanism(values=zeros, numerator=7, denominator=four, cost=four))
    candidates = Candidates(
        group=np.repeat(np.arange(4), 3),
        first=np.tile([10, 20, 30], 4),
        length=np.tile([5, 1, 4], 4),
        score=np.tile([0, 1, -2], 4),
    )
    lines = sampler.draw(
        ExponentialMechanism(
            candidates=candidates, epsilon=10 * tenth, sensitivity=np.ones(4, np.int64)
        )
    )
    assert noise.tolist() == [-1, 6, 2, 0]
    assert above.tolist() == [False] * 4
    assert lines.tolist() == [33, 13, 10, 10]


def test_a_subclass_of_the_secure_noise_is_not_secure(tmp_path):
    class Mine(SecureSampler):
        pass

    release = psd.build(POINTS, domain=DOMAIN, epsilon=1, method="grid", sampler=Mine())
    assert release.source == "replay"


def test_no_ledger_pays_for_it(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("d", budget=5)
    account = Account(ledger, "d")
    how = {"domain": DOMAIN, "epsilon": 1, "account": account, "sampler": SeededSampler(1)}
    with pytest.raises(ParameterError, match="account must be left out"):
        psd.build(POINTS, **how)
    with pytest.raises(ParameterError, match="account must be left out"):
        ask(
            POINTS,
            box=(0, 0, 1, 1),
            crs="EPSG:3857",
            epsilon=1,
            account=account,
            sampler=how["sampler"],
        )
    assert account.left == 5 * NANO
    assert account.last is None


@pytest.mark.parametrize("seed", [-1, 2**63, "x", 1.5, True])
def test_what_is_no_seed(seed):
    with pytest.raises(ParameterError, match="insecure_seed"):
        SeededSampler(seed)


def test_the_mark_stays_when_a_release_is_changed():
    assert changed(seeded(), post_processing=seeded().post_processing).source == "insecure"
