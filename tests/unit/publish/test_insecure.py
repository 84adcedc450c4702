"""Noise that a seed repeats: it has the law, it repeats, and it leaves by no door."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import ParameterError, ReleaseFormatError, WriteError
from psd.ledger.account import Account
from psd.ledger.ledger import Ledger
from psd.mechanisms import SecureNoise
from psd.mechanisms.exponential_mechanism import Candidates
from psd.privacy.epsilon import NANO
from psd.publish.insecure import SeededNoise, write
from psd.publish.single_count import ask

DOMAIN = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857")
POINTS = pd.DataFrame({"lon": [1.0, 2, 7], "lat": [1.0, 2, 7]})


def seeded(seed=7, method="kd-standard"):
    how = {"domain": DOMAIN, "epsilon": 1, "method": method}
    return psd.build(POINTS, noise=SeededNoise(seed), **how)


def seeded_series():
    slices = psd.TimeSlices.parse("day", "2024-01-01")
    table = POINTS.assign(time="2024-01-01 10:00:00")
    how = {"domain": DOMAIN, "epsilon": 1, "time": "time", "noise": SeededNoise(1)}
    return psd.build_series(table, slices=slices, **how)


@pytest.mark.parametrize("name", psd.methods())
def test_a_seed_repeats_every_method(name):
    first, again = seeded(method=name), seeded(method=name)
    for field in ("boxes", "parent", "count", "epsilon"):
        assert np.array_equal(getattr(first.tree, field), getattr(again.tree, field))
    other = seeded(8, method=name).tree
    assert other.boxes.shape != first.tree.boxes.shape or (other.count != first.tree.count).any()


def test_counts_have_the_variance_of_a_release():
    noise, size = SeededNoise(1), 100_000
    answers = noise.count(np.zeros(size, np.int64), np.full(size, NANO), 2)
    q = np.exp(-1 / 2)
    assert answers.mean() == pytest.approx(0, abs=0.05)
    assert answers.var() == pytest.approx(2 * q / (1 - q) ** 2, rel=0.05)


def test_selections_have_the_odds_of_a_release():
    noise, size = SeededNoise(1), 20_000
    group = np.repeat(np.arange(size), 3)
    candidates = Candidates(
        group=group,
        first=np.tile([10, 20, 30], size),
        length=np.tile([1, 0, 4], size),
        score=np.tile([0, 9, -2], size),
    )
    chosen = noise.select(candidates, np.full(size, NANO), np.ones(size, np.int64))
    assert set(chosen.tolist()) == {10, 30, 31, 32, 33}
    assert (chosen == 10).mean() == pytest.approx(1 / (1 + 4 * np.exp(-1)), abs=0.02)


def test_no_writer_takes_it(tmp_path):
    release = seeded()
    assert release.source == "insecure"
    for act in (
        lambda: release.save(tmp_path / "r.psd.parquet"),
        lambda: release.save(tmp_path / "r.insecure"),
        lambda: release.export(tmp_path / "cells.csv"),
        lambda: seeded_series().save(tmp_path / "s.psd.parquet"),
    ):
        with pytest.raises(ParameterError, match="seed"):
            act()
    assert not list(tmp_path.iterdir())


def test_a_subclass_of_the_secure_noise_is_not_secure(tmp_path):
    class Mine(SecureNoise):
        pass

    release = psd.build(POINTS, domain=DOMAIN, epsilon=1, method="grid", noise=Mine())
    assert release.source == "replay"


def test_its_own_file_says_what_it_is_and_no_reader_takes_it(tmp_path):
    path = tmp_path / "demo.insecure"
    write(seeded(), path, seed=7)
    content = json.loads(path.read_text())
    assert content["warning"].startswith("INSECURE")
    assert content["insecure_seed"] == 7
    assert [row[6] for row in content["nodes"]] == seeded().tree.count.tolist()
    for kind in (psd.Release, psd.Series):
        with pytest.raises(ReleaseFormatError, match=r"demo\.insecure was made by a seed"):
            kind.load(path)
        with pytest.raises(ReleaseFormatError, match="no readable release file"):
            kind.load(path.rename(path.with_name("demo.psd.parquet")))
        path.with_name("demo.psd.parquet").rename(path)
    with pytest.raises(WriteError, match="exists"):
        write(seeded(), path, seed=7)


def test_its_file_takes_no_release_and_no_other_name(tmp_path):
    with pytest.raises(ParameterError, match=r"does not end in \.insecure"):
        write(seeded(), tmp_path / "r.psd.parquet", seed=7)
    sound = psd.build(POINTS, domain=DOMAIN, epsilon=1, method="grid")
    with pytest.raises(ParameterError, match="only a release made with a seed"):
        write(sound, tmp_path / "r.insecure", seed=7)
    assert sound.source == "curator"
    assert not list(tmp_path.iterdir())


def test_no_ledger_pays_for_it(tmp_path):
    ledger = Ledger.create(tmp_path / "l")
    ledger.register("d", budget=5)
    account = Account(ledger, "d")
    how = {"domain": DOMAIN, "epsilon": 1, "account": account, "noise": SeededNoise(1)}
    with pytest.raises(ParameterError, match="no ledger pays"):
        psd.build(POINTS, **how)
    with pytest.raises(ParameterError, match="no ledger pays"):
        ask(
            POINTS,
            box=(0, 0, 1, 1),
            crs="EPSG:3857",
            epsilon=1,
            account=account,
            noise=how["noise"],
        )
    assert account.left == 5 * NANO
    assert account.last is None


@pytest.mark.parametrize("seed", [-1, 2**63, "x", 1.5, True])
def test_what_is_no_seed(seed):
    with pytest.raises(ParameterError, match="insecure_seed"):
        SeededNoise(seed)


def test_the_mark_stays_when_a_release_is_changed():
    assert replace(seeded(), view=seeded().view).source == "insecure"
