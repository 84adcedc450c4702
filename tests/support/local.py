"""What tests of local campaigns share: exact enumeration of a device, and small campaigns."""

import json
from collections import defaultdict
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from psd.apps.local.aggregation import GroupCounts, counted_groups, release_of
from psd.apps.local.campaigns import encode_campaign
from psd.apps.local.collection import collect
from psd.apps.local.device import NANO, UNIT, Campaign, Words, campaign_digest, canonical_json
from psd.apps.local.protocols import protocol_of
from psd.apps.local.randomization import (
    ManyWords,
    draw_groups,
    find_answers,
    format_reports,
    randomise_group,
)
from psd.apps.local.rounds import round_after

GRID = [a + b for a in "0123" for b in "0123"]
HASHING = {"name": "hashing", "modulus": 3}
KARY = {"name": "k-ary"}


class Script(Words):
    """Words that follow a list of choices, and note how many each decision had."""

    def __init__(self, path):
        self.path, self.taken, self.weight = path, [], Fraction(1)

    def branch(self, weights):
        i = self.path[len(self.taken)] if len(self.taken) < len(self.path) else 0
        self.taken.append((i, len(weights)))
        self.weight *= weights[i]
        return i

    def keeps(self, threshold):
        keep = Fraction(threshold, UNIT)
        return bool(self.branch((1 - keep, keep)))

    def below(self, limit):
        return self.branch([Fraction(1, limit)] * limit)

    def choose(self, runs):
        total = sum(size * weight for size, weight in runs)
        return self.branch([Fraction(weight, total) for size, weight in runs for _ in range(size)])


def law_of(draw):
    """Exact law of a function of words: every path of its decisions, with its probability."""
    law, pending = defaultdict(Fraction), [()]
    while pending:
        path = pending.pop()
        script = Script(path)
        law[draw(script)] += script.weight
        for depth in range(len(path), len(script.taken)):
            before = tuple(i for i, _ in script.taken[:depth])
            pending += [(*before, i) for i in range(1, script.taken[depth][1])]
    return dict(law)


class Listed(Words):
    """Words of a list."""

    def __init__(self, words):
        self.words = iter(words)

    def word(self):
        return next(self.words)


def log_ratio(ratio):
    """Logarithm of a fraction, to 40 digits."""
    with localcontext() as context:
        context.prec = 60
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


def epsilon_of(nano):
    return Decimal(nano) / NANO


def worst_ratio(laws):
    """Largest ratio of two answers' chances of one report."""
    reports = set().union(*laws)
    return max(max(law[r] for law in laws) / min(law[r] for law in laws) for r in reports)


def support_of(protocol, report):
    """Answers that a report supports, as the collector counts it."""
    value = json.loads(report)
    if isinstance(value, str):
        masks = np.frombuffer(bytes.fromhex(value), np.uint8)[None]
        assert protocol.read_masks(masks).all()
        return protocol.support(protocol.tabulate(masks))
    first, second = (np.array([v], np.int64) for v in (*value, 0)[:2])
    codes, valid = protocol.read(first, second)
    assert valid.all()
    return protocol.support(protocol.tabulate(codes))


def campaign_value(groups=((1_000_000, GRID, HASHING),), **fields):
    """Content of a campaign, with its digest."""
    value = {
        "psd-campaign": 1,
        "question": "places",
        "title": "a test",
        "domain": {"bounds": ["0", "0", "8", "4"], "crs": "EPSG:4326", "lattice": [2**20, 2**20]},
        "nano_epsilon": NANO,
        "devices": 1000,
        "groups": [{"share": s, "cells": c, "protocol": p, "counted": None} for s, c, p in groups],
        "earlier": [],
        **fields,
    }
    return {**value, "digest": campaign_digest(value)}


def campaign_bytes(*args, **fields):
    return canonical_json(campaign_value(*args, **fields)).encode()


def campaign(*args, **fields):
    return Campaign.parse(campaign_bytes(*args, **fields))


def counted_places(one, x, y):
    """Counts of the reports of devices at places, without lines and parts."""
    groups = draw_groups(one, ManyWords(len(x)))
    counts = []
    for number, group in enumerate(one.groups):
        if group.draw is not None:
            mine = np.flatnonzero(groups == number)
            answers = find_answers(one, number, x[mine], y[mine])
            reports = randomise_group(one, number, answers, ManyWords(len(mine)))
            protocol = protocol_of(group)
            support = protocol.support(protocol.tabulate(reports.codes))
            counts.append(
                GroupCounts(group=number, protocol=protocol, reports=len(mine), support=support)
            )
    return counts


def all_rounds(first, x, y):
    """Campaigns of all rounds, and the release: each device keeps its group."""
    groups, counted, campaigns = draw_groups(first, ManyWords(len(x))), [], [first]
    for number in range(len(first.groups)):
        if campaigns[-1].groups[number].draw is None:
            last = campaigns[-1]
            campaigns.append(round_after(last, release_of(last, counted), counted))
        one, mine = campaigns[-1], np.flatnonzero(groups == number)
        answers = find_answers(one, number, x[mine], y[mine])
        codes = randomise_group(one, number, answers, ManyWords(len(mine))).codes
        protocol = protocol_of(one.groups[number])
        support = protocol.support(protocol.tabulate(codes))
        counts = GroupCounts(group=number, protocol=protocol, reports=len(mine), support=support)
        counted += counted_groups(one, [counts])
    return campaigns, release_of(campaigns[-1], counted)


def sum_inside(x, y, boxes):
    """Places in each box."""
    west, south, east, north = np.reshape(boxes, (-1, 4)).T
    x, y = np.asarray(x)[:, None], np.asarray(y)[:, None]
    return ((x >= west) & (x < east) & (y >= south) & (y < north)).sum(axis=0)


def collected(folder, one, values):
    """Paths of a campaign and of the parts of devices with these answers, of one group."""
    values = np.asarray(values)
    answers = find_answers(one, 0, values, values)
    reports = randomise_group(one, 0, answers, ManyWords(len(answers)))
    path, lines, parts = (str(folder / name) for name in ("c.json", "r", "parts"))
    (folder / "c.json").write_bytes(encode_campaign(one))
    (folder / "r").write_text("".join(f"{line}\n" for line in format_reports(one, reports)))
    collect(path, [lines], parts)
    return path, parts


def local_release(one, x, y):
    """Release of devices at places."""
    return release_of(one, counted_groups(one, counted_places(one, x, y)))


def places(size, seed=1):
    """Places in and around the bounds of `campaign_value`."""
    generator = np.random.default_rng(seed)
    return generator.normal(3, 1.5, size), generator.normal(2, 0.8, size)
