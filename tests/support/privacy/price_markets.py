"""Markets of bids with places, their score tables, and their maps, one by one."""

import itertools
import math

import numpy as np

from psd.mechanisms.choice_laws import HalvingTree, Runs, leaf_numbers


def score_table(bins, bin_of, bids, prices):
    """Price times the number of bids at or above it, shape (bins, prices)."""
    table = np.zeros((bins, len(prices)), np.int64)
    for place, bid in zip(bin_of, bids, strict=True):
        table[place] += np.where(bid >= prices, prices, 0)
    return table


def line_market():
    """The market on a line: 600 bids in 12 bins, prices 1 to 100."""
    i = np.arange(600)
    bins = i % 12
    bids = 1 + (37 * i + 11 * (i // 12) ** 2) % 60 + 39 * bins // 11
    return score_table(12, bins, bids, np.arange(1, 101))


def area_market():
    """The market on a map: 600 bids in 8 x 8 cells, prices 1 to 100."""
    i = np.arange(600)
    x, y = 5 * i % 8, (3 * i + i // 8) % 8
    bids = 1 + (37 * i + 11 * (i // 64) ** 2) % 40 + 5 * x + 3 * y
    return score_table(64, leaf_numbers(x, y, 3), bids, np.arange(1, 101))


def trees(first, stop, zones):
    """Spans of the zones of every pruned halving tree with a number of leaves."""
    if zones == 1:
        yield ((first, stop),)
    elif stop - first > 1:
        middle = (first + stop) // 2
        for in_left in range(1, zones):
            left, right = trees(first, middle, in_left), trees(middle, stop, zones - in_left)
            yield from (a + b for a, b in itertools.product(left, right))


def all_zonings(layout, zones):
    """Every division of the bins into a number of zones."""
    if isinstance(layout, Runs):
        cuts = itertools.combinations(range(1, layout.bins), zones - 1)
        return [tuple(itertools.pairwise((0, *each, layout.bins))) for each in cuts]
    assert isinstance(layout, HalvingTree)
    return list(trees(0, layout.bins, zones))


def all_maps(layout, zones, prices):
    """Every map as an answer of the mechanism, shape (bins, 2)."""
    for spans in all_zonings(layout, zones):
        for chosen in itertools.product(range(prices), repeat=zones):
            answer = np.zeros((layout.bins, 2), np.int64)
            for zone, ((first, stop), price) in enumerate(zip(spans, chosen, strict=True)):
                answer[first:stop] = zone, price
            yield answer


def score_of(table, answer):
    return sum(int(table[b, price]) for b, (_, price) in enumerate(answer))


def enumerated_law(table, layout, numbers, rate):
    """Maps with the probability of each; every number of zones has the same base measure."""
    answers, weights = [], []
    for zones in numbers:
        maps = list(all_maps(layout, zones, table.shape[1]))
        answers += maps
        weights += [math.exp(rate * score_of(table, a)) / len(maps) for a in maps]
    return answers, np.array(weights) / math.fsum(weights)
