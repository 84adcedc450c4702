"""Rounds of a campaign: cells with many devices are cut, and every device answers once."""

import json
import math
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from scipy.signal import fftconvolve
from scipy.stats import binom

import psd
from psd.apps.local import rounds
from psd.apps.local.aggregation import (
    aggregate_campaign,
    counted_groups,
    earlier_groups,
    release_of,
)
from psd.apps.local.campaign_design import PLANS, design
from psd.apps.local.campaigns import campaign_of, encode_campaign
from psd.apps.local.collection import collect
from psd.apps.local.device import NANO, Campaign, Store, Words, answer_place
from psd.apps.local.protocols import protocol_of
from psd.apps.local.rounds import next_round, round_after
from psd.errors import InputDataError, ParameterError
from psd.release.post_processing import PostProcessing
from psd.space.box_tree import locate
from support.local import (
    GRID,
    HASHING,
    all_rounds,
    campaign,
    counted_places,
    sum_inside,
    support_of,
)
from support.seeded_system import same_draws  # noqa: F401

BOUNDS = (0, 0, 8, 4)
DEVICES = 30_000


def skewed(size, seed=1):
    """Places of which most are in a small part of the bounds, and some outside."""
    generator = np.random.default_rng(seed)
    wide = generator.random(size) < 0.3
    x = np.where(wide, generator.uniform(-0.5, 8, size), generator.normal(2.2, 0.15, size))
    y = np.where(wide, generator.uniform(0, 4, size), generator.normal(1.3, 0.1, size))
    return x, y


@pytest.mark.parametrize("number", PLANS)
def test_rounds_cut_where_devices_are(number):
    first = design(BOUNDS, 4, DEVICES, rounds=number)
    assert [group.draw is not None for group in first.groups] == [True] + [False] * (number - 1)
    campaigns, release = all_rounds(first, *skewed(DEVICES))
    assert [len(one.earlier) for one in campaigns] == list(range(number))
    assert {one.earlier[0] for one in campaigns[1:]} <= {first.digest}
    levels = release.record.local.levels
    assert release.record.local.reports == DEVICES
    assert (release.epsilon, len(levels)) == (4, number)
    leaves = release.tree.boxes[release.tree.is_leaf]
    smallest = leaves[np.argmin(leaves[:, 2] - leaves[:, 0])]
    centre = smallest[:2] / 2**20 * [8, 4]
    assert np.abs(centre - [2.2, 1.3]).max() < 1
    assert len(leaves) < 4 ** (int(math.log2(2**20 / (smallest[2] - smallest[0]))))
    # The last campaign states all counts.
    last = earlier_groups(Campaign.parse(encode_campaign(campaigns[-1])))
    expected = [(level.reports, level.q) for level in levels[: number - 1]]
    assert [(group.reports, group.q) for group in last] == expected


CHANGES = [
    {"reports": -1}, {"reports": True}, {"outside": 10**9}, {"support": []}, {"support": 5},
    {"support": None}, {"cells": ["0"]}, {"cells": None}, {"protocol": {"name": "laplace"}},
    {"extra": 1},
]  # fmt: skip


def test_counts_of_earlier_rounds_are_checked(subtests, tmp_path):
    first = design(BOUNDS, 4, 2000, rounds=2)
    counted = counted_groups(first, counted_places(first, *skewed(2000)))
    second = encode_campaign(round_after(first, release_of(first, counted), counted))
    for changes in CHANGES:
        content = json.loads(second)
        content["groups"][0]["counted"] |= changes
        with subtests.test(str(changes)), pytest.raises(ParameterError):
            earlier_groups(campaign_of(content))
    campaigns, release = all_rounds(design(BOUNDS, 4, 4000, rounds=2), *skewed(4000))
    with pytest.raises(ParameterError, match="its last one"):
        round_after(campaigns[-1], release, [])
    with pytest.raises(ParameterError, match="asked together"):
        round_after(design(BOUNDS, 4, 4000, rounds=1), release, [])
    (tmp_path / "c.json").write_bytes(encode_campaign(campaigns[0]))
    with pytest.raises(InputDataError, match="must have parts"):
        next_round(str(tmp_path / "c.json"), str(tmp_path))
    cuts = np.array([10, 3, 0])
    cells = rounds._cut_cells(["0", "1", "2"], cuts)
    assert len(cells) == 4**7 + 4**3 + 1
    assert cells == sorted(cells)
    assert campaign(((1_000_000, [*cells, "3"], HASHING),))
    first = design(BOUNDS, 4, 4000, rounds=3, protocol="unary")
    release = all_rounds(first, *skewed(4000))[1]
    assert {level.protocol for level in release.record.local.levels} == {"unary"}


@pytest.mark.deep
def test_stated_settings_stay_over_all_rounds():
    for protocol, settings in (("unary", {"form": "symmetric"}), ("hashing", {"modulus": 2})):
        first = design(BOUNDS, 4, DEVICES, rounds=3, protocol=protocol, settings=settings)
        campaigns, _ = all_rounds(first, *skewed(DEVICES))
        draws = [one.groups[number].draw for number, one in enumerate(campaigns)]
        assert [{key: getattr(draw, key) for key in settings} for draw in draws] == [settings] * 3


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [1, 4])
def test_the_perturbation_error_is_predicted(epsilon):
    """Mean of z^2 over leaves and runs, all three terms of the variance in it."""
    squares = []
    for run in range(15):
        x, y = skewed(DEVICES, seed=run)
        release = all_rounds(design(BOUNDS, epsilon, DEVICES), x, y)[1]
        estimates, tree = release.index.fit.estimates, release.tree
        inside = (x >= 0) & (x <= 8) & (y >= 0) & (y <= 4)
        columns = (x[inside] / 8 * 2**20).astype(np.int32)
        rows = (y[inside] / 4 * 2**20).astype(np.int32)
        true = np.bincount(locate(tree, columns, rows), minlength=len(tree)).astype(float)
        for level in reversed(tree.levels[1:]):
            np.add.at(true, tree.parent[level], true[level])
        nodes = np.flatnonzero(tree.loss > 0)
        z = (estimates.signed[nodes] - true[nodes]) ** 2 / estimates.variance[nodes]
        squares.append(z.mean())
    assert 0.8 < np.mean(squares) < 1.2


@pytest.mark.deep
@pytest.mark.slow
def test_sums_do_not_drift():
    """Mean error of a box around a dense place, over 60 campaigns of the same devices.

    The mean of 60 errors has a standard deviation of 0.13 of theirs, and weights that follow
    estimates make it about as large as theirs. The draws are seeded.
    """
    x, y = skewed(10_000)
    box = (2, 1, 3, 2)
    errors = []
    for _ in range(60):
        release = all_rounds(design(BOUNDS, 4, 10_000), x, y)[1]
        signed = release.replace(post_processing=PostProcessing(estimate="signed"))
        answer = signed.query([box]).table.iloc[0]
        errors.append(
            (answer["estimate"] - sum_inside(x, y, box)[0]) / answer["perturbation_error"]
        )
    assert abs(np.mean(errors)) < 0.5
    assert 0.5 < np.mean(np.square(errors)) < 1.9


def through_files(folder, stores):
    """A campaign of devices with stores: lines, parts and rounds, by the public functions."""
    devices = len(stores)
    x, y = skewed(devices)
    places = list(zip(x.tolist(), y.tolist(), strict=True))
    for store in stores:
        Store.create(store, 4 * NANO)
    path = folder / "c0.json"
    path.write_bytes(encode_campaign(design(BOUNDS, 4, devices, rounds=4)))
    in_rounds = []
    for number in range(4):
        one = Campaign.load(str(path))
        reports = [
            answer_place(store, one, *place, Words())
            for store, place in zip(stores, places, strict=True)
        ]
        # A device that answered an earlier round sends nothing.
        lines = [report for report in reports if report is not None]
        (folder / f"r{number}").write_text("".join(f"{line}\n" for line in lines))
        parts = str(folder / f"p{number}")
        done = collect(str(path), [str(folder / f"r{number}")], parts)
        assert (done.refused["campaign"], done.reports) == (0, len(lines))
        answers = [
            (json.loads(report)["answer"], one.answer_of(number, *place))
            for report, place in zip(reports, places, strict=True)
            if report is not None
        ]
        assert len(answers) == done.reports
        group = one.groups[number]
        true = np.bincount([answer for _, answer in answers], minlength=group.draw.answers)
        in_rounds.append(([json.dumps(report) for report, _ in answers], true, protocol_of(group)))
        if number < 3:
            path = folder / f"c{number + 1}.json"
            path.write_bytes(encode_campaign(next_round(str(folder / f"c{number}.json"), parts)))
    release = psd.apps.local.aggregate(str(path), parts)
    assert release.record.local.reports == devices
    groups = aggregate_campaign(Campaign.load(str(path)), Path(parts))[1]
    for store in stores[:50]:
        with Store.locked(store) as opened:
            assert opened.spent == 4 * NANO
    return release, x, y, zip(groups, in_rounds, strict=True)


def chance_of(count, devices, reports, p, q):
    """Exact chance of a support count as far from its mean, or farther, on its side; doubled.

    The reports of a round are drawn alone, so of ``reports`` the ``devices`` in a cell support it
    with p and the others with q, whatever the cells are.
    """
    in_cell = binom.pmf(np.arange(devices + 1), devices, p)
    others = binom.pmf(np.arange(reports - devices + 1), reports - devices, q)
    law = np.clip(fftconvolve(in_cell, others), 0, None)
    return 2 * min(law[: count + 1].sum(), law[count:].sum())


@pytest.mark.deep
@pytest.mark.parametrize(
    "devices",
    [400, pytest.param(50_000, marks=[pytest.mark.nightly, pytest.mark.slow])],
    ids=["few", "many"],
)
def test_real_devices_from_start_to_end(tmp_path, devices):
    """Counts by their exact laws, the release by its intervals, from seeded draws.

    - Support counts are those of the reports that left the devices, counted by hand (400 devices).
    - Each count is tested by its exact law, at 5e-5 over the number of counts: by the union bound
      a false alarm of other draws has a probability of at most 5e-5. FFT adds errors below 1e-13.
    - Each of four intervals has the confidence 1 - 1e-6.
    """
    # In memory, since a disk takes minutes to sync many stores.
    with TemporaryDirectory(dir="/dev/shm") as memory:
        stores = [f"{memory}/{number}.store" for number in range(devices)]
        release, x, y, counted = through_files(tmp_path, stores)
    chances = []
    for group, (reports, true, protocol) in counted:
        support = [*group.support.tolist(), group.outside]
        if devices == 400:
            assert support == sum(support_of(protocol, report) for report in reports).tolist()
        rates = group.reports, float(group.p), float(group.q)
        chances += [chance_of(*counts, *rates) for counts in zip(support, true, strict=True)]
    assert min(chances) > 5e-5 / len(chances)
    boxes = [(0, 0, 4, 4), (2, 1, 3, 2), (0, 0, 8, 2), (4, 0, 8, 4)]
    answers = release.query(boxes, confidence=1 - 1e-6).table
    true = sum_inside(x, y, boxes)
    assert ((answers["lower"] <= true) & (true <= answers["upper"])).all()


def counted_of(cells):
    one = campaign(((1_000_000, cells, HASHING),))
    return one, counted_groups(one, counted_places(one, *skewed(2000)))


def test_trees_of_uneven_campaigns_and_of_several_rounds_are_sound():
    uneven, counts = counted_of(["0", "1", "2", *(f"3{d}" for d in "0123")])
    assert release_of(uneven, counts).tree.is_leaf.sum() == 7
    with pytest.raises(ParameterError, match="at least as fine"):
        release_of(uneven, [*counts, *counted_of(["0", "1", "2", "3"])[1]])
    grid, [group] = counted_of(GRID)
    chain = release_of(grid, [group, replace(group, outside=3)])
    assert [level.level for level in chain.record.local.levels] == [2, 3]
    assert (chain.tree.children[chain.tree.levels[2]] == 1).all()
