"""Prices and price maps of markets: exact laws, bounds, losses, and what liars gain.

    python lab/markets.py [--rows 1000000] [--markets 1000] [--splits 2000]
        [-o docs/measured/market-choices.md]

Laws are those of the mechanisms, without a draw. Random are the splits of the random sampling
auction and the thousand markets, which have a seed, and the time of the last table.
"""

import itertools
import math
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
from common import command, cpu_seconds, study

import psd
from psd.apps.choosing.choice import liar_gain, map_shortfall, shortfall
from psd.mechanisms.choice_laws import (
    HalvingTree,
    Runs,
    leaf_numbers,
    map_law,
    permute_and_flip_probabilities,
)
from psd.mechanisms.price_maps import PriceMaps
from psd.privacy.loss import NANO
from support.privacy.choice_markets import E, changed, multisets, price_law, worst
from support.privacy.price_markets import all_zonings, area_market, line_market

EPSILONS = (0.1, 0.5, 1.0)
SIDE, PRICES, ZONES = 64, 1_000, 16


def bids_of():
    """Bids and prices of three markets."""
    i = np.arange(1_000)
    yield "bids 1 to 100", np.arange(1, 101), 100
    yield "1,000 bids of 1 to 100", 1 + (37 * i * i + 11 * i) % 100, 100
    yield "500 bids of 1,000 / (i + 1)", -(-1000 // (i[:500] + 1)), 1_000


def revenues(bids, highest):
    """Revenue of each price from 1 to the highest, in units of the highest."""
    prices = np.arange(1, highest + 1)
    above = len(bids) - np.searchsorted(np.sort(bids), prices)
    return prices * above / highest


def exponential(gaps, epsilon):
    """Law of the exponential mechanism at the rate of monotone scores."""
    weights = np.exp(-epsilon * gaps)
    return weights / weights.sum()


def noisy_best(revenue, epsilon):
    """Law of the best price plus discrete Laplace noise of scale m / epsilon, cut to the list."""
    size = len(revenue)
    q = math.exp(-epsilon / size)
    distance = np.abs(np.arange(size) - revenue.argmax())
    law = (1 - q) / (1 + q) * q**distance
    law[[0, -1]] = q ** distance[[0, -1]] / (1 + q)  # and all beyond
    return law


def random_sampling(bids, highest, splits):
    """Mean revenue of the auction in which each half pays the best price of the other."""
    random = np.random.default_rng(24)
    values = []
    for _ in range(splits):
        first = random.random(len(bids)) < 0.5
        halves = bids[first], bids[~first]
        revenue = 0.0
        for asked, paying in (halves, halves[::-1]):
            price = revenues(asked, highest).argmax() + 1 if len(asked) else highest
            revenue += price * np.count_nonzero(paying >= price) / highest
        values.append(revenue)
    return float(np.mean(values))


def price_rows(splits):
    """Rows of the table of single prices."""
    laws = {
        "permute-and-flip (`psd choose price`)": lambda r, e: permute_and_flip_probabilities(
            e * (r.max() - r)
        ),
        "exponential mechanism": lambda r, e: exponential(r.max() - r, e),
        "noise on the best price": noisy_best,
    }
    yield "| market | best | rule | " + " | ".join(f"epsilon {e:g}" for e in EPSILONS) + " |"
    yield "|---|---|---|---|---|---|"
    for name, bids, highest in bids_of():
        revenue = revenues(bids, highest)
        for rule, law in laws.items():
            means = [law(revenue, epsilon) @ revenue for epsilon in EPSILONS]
            yield row(name, f"{revenue.max():.2f}", rule, *(f"{mean:.2f}" for mean in means))
        bounds = [revenue.max() - shortfall(1 / e, math.log(highest)) for e in EPSILONS]
        yield row(name, "", "bound, OPT - (P/E) ln m", *(f"{b:.2f}" for b in bounds))
        mean = f"{random_sampling(bids, highest, splits):.2f}"
        yield row(name, "", "random sampling, not private", mean, mean, mean)


def row(*cells):
    """A row of a table."""
    return "| " + " | ".join(cells) + " |"


def best_map(table, layout, zones):
    """Best score of a map of a number of zones."""
    return max(
        sum(int(table[first:stop].sum(axis=0).max()) for first, stop in spans)
        for spans in all_zonings(layout, zones)
    )


def map_rows(table, layout, numbers):
    """Rows of the table of price maps of one market."""
    heads = ("zones", "maps", "best", "revenue 1", "ln Z 1", "bound 1", "revenue 0.1", "ln Z 0.1")
    yield row(*heads)
    yield "|" + "---|" * len(heads)
    for zones in numbers:
        best = best_map(table, layout, zones) / 100
        laws = [map_law(table, layout, zones, epsilon / 100) for epsilon in (1, 0.1)]
        cells = [[f"{x.expected_score / 100:.6f}", f"{x.log_sum:.6f}"] for x in laws]
        bound = f"{best - map_shortfall(1, layout, zones, 1, 100):.2f}"
        yield row(str(zones), str(layout.count(zones)), f"{best:.2f}", *cells[0], bound, *cells[1])


def random_markets(number):
    """Revenues of random markets, with the number of bidders and epsilon."""
    random = np.random.default_rng(24)
    for _ in range(number):
        bidders, highest = (int(10 ** random.uniform(*e)) for e in ((0.7, 3.3), (1, 3)))
        epsilon = float(10 ** random.uniform(math.log10(0.05), math.log10(2)))
        bids = np.ceil(random.random(bidders) ** random.choice([1, 6]) * highest).astype(int)
        yield revenues(bids, highest), bidders, epsilon


def random_rows(number):
    """Rows of the table of random markets."""
    gaps, sources, below, behind = [], 0, 0, 0
    for revenue, bidders, epsilon in random_markets(number):
        best = revenue.max()
        width = shortfall(1 / epsilon, math.log(len(revenue)))
        source = best - 3 * math.log(math.e + epsilon**2 * best * bidders) / epsilon
        flipped = permute_and_flip_probabilities(epsilon * (best - revenue)) @ revenue
        mean = exponential(best - revenue, epsilon) @ revenue
        gaps.append([(best - flipped) / width, (best - mean) / width])
        sources += source > 0
        below += flipped < max(best - width, source) - 1e-9
        behind += flipped < mean - 1e-9
    means, largest = np.mean(gaps, axis=0), np.max(gaps, axis=0)
    yield row("markets", f"{number:,}")
    yield "|---|---|"
    yield row("below one of the bounds", str(below))
    yield row("permute-and-flip below the exponential mechanism", str(behind))
    yield row("where the bound of the source is above 0", str(sources))
    names = ("permute-and-flip", "exponential mechanism")
    for name, mean, most in zip(names, means, largest, strict=True):
        yield row(f"{name}: shortfall over (P/E) ln m, mean and largest", f"{mean:.2f}, {most:.2f}")


def loss_rows():
    """Rows of the table of losses and lies: bids 0 to 6, prices 1 to 6, epsilon 0.7."""
    bids, prices = range(7), tuple(range(1, 7))

    def law(market):
        return price_law(tuple(sorted(market)), prices)

    markets = list(multisets(bids, 4))
    one_more = ((m, tuple(sorted((*m, b)))) for m in markets for b in bids)
    yield row("permute-and-flip, up to four bidders", "at most", "enumerated")
    yield "|---|---|---|"
    yield row("a bid more, loss / epsilon", "1", f"{worst(one_more, law):.3f}")
    for number, name in ((1, "another bid"), (2, "two other bids")):
        pairs = ((m, other) for m in markets for other in changed(m, bids, number))
        yield row(f"{name}, loss / epsilon", str(number), f"{worst(pairs, law):.3f}")
    yield row(
        "gain of a false bid over the largest utility",
        f"{liar_gain(E):.4f}",
        f"{best_lie(prices):.4f}",
    )


def best_lie(prices):
    """Largest gain of a bidder among up to three others, as a share of the largest utility."""
    gains = []
    for others, value in itertools.product(multisets(prices, 3), prices):
        surplus = np.maximum(0, value - np.array(prices))
        means = [
            np.exp(price_law(tuple(sorted((*others, bid))), prices)) @ surplus for bid in prices
        ]
        gains.append(max(means) - means[value - 1])
    return max(gains) / (prices[-1] - prices[0])


def time_rows(rows):
    """Rows of the table of times: one price map, beside a build of the same file."""
    random = np.random.default_rng(24)
    x, y = random.beta(2, 4, (2, rows)) * SIDE
    bids = np.minimum(PRICES, 1 + (random.gamma(2, 120, rows) + 4 * x).astype(int))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "bids.parquet")
        pd.DataFrame({"x": x, "y": y, "bid": bids}).to_parquet(file)
        domain = psd.Domain(bounds=(0, 0, SIDE, SIDE), crs="EPSG:3857")
        built = cpu_seconds(
            lambda: psd.build(file, domain=domain, epsilon=1, method="quadtree", x="x", y="y")
        )
    drawn = cpu_seconds(lambda: draw_map(x.astype(int), y.astype(int), bids))
    yield row(f"{rows:,} rows", "CPU seconds")
    yield "|---|---|"
    yield row("`psd.build` of the file, quadtree", f"{built:.2f}")
    yield row(
        f"{SIDE} x {SIDE} cells, {PRICES:,} prices, 1 to {ZONES} zones: scores and draw",
        f"{drawn:.2f}",
    )
    yield row("ratio", f"{drawn / built:.1f}")


def draw_map(columns, rows, bids):
    """The scores of all cells and prices, and of one map."""
    counts = np.zeros((SIDE * SIDE, PRICES + 1), np.int64)
    np.add.at(counts, (leaf_numbers(columns, rows, SIDE.bit_length() - 1), bids), 1)
    above = counts[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    maps = PriceMaps(
        scores=above * np.arange(1, PRICES + 1),
        zones=tuple(range(1, ZONES + 1)),
        layout="halving-tree",
        epsilon=NANO,
        sensitivity=PRICES,
        is_monotone=True,
    )
    maps.sample()


PAGE = """\
# Prices and price maps

Made by `{command}`. Revenue is in units
of the highest price. P is the highest price, m the number of prices, E epsilon, and OPT the best
revenue.

## One price

Expected revenue, exactly, from the laws of the mechanisms. Noise on the best price has the scale
m / E that its sensitivity needs, and the result is cut to the list of prices. Random sampling is
the truthful auction that the theory compares with: each half of the bidders pays the best price of
the other half ({splits:,} splits, the same at each epsilon).

{prices}

Noise on the best price loses most of the revenue of the first two markets: the best price may move
over the whole list with one bid, while no revenue moves by more than one price. In the last market
one bidder is most of the revenue, so nothing private can follow it.

## Price maps

600 bids and 100 prices, for epsilon 1 and 0.1; ln Z is the log of the sum of all weights, and the
bound is OPT minus what `psd.apps.choosing.choice.map_shortfall` says. Zones are runs of 12 regions
in a public order:

{line}

Zones are the leaves of a pruned halving tree over 8 x 8 cells:

{area}

More zones are not better at a small epsilon. With 1 to K zones each number has the same base
measure, and the bound holds for the best of them at a price of (P/E) ln K.

## Random markets

5 to 2,000 bidders, 10 to 1,000 prices, epsilon 0.05 to 2. The bound of the source is
OPT - 3 ln(e + E^2 OPT n) / E for n bidders; it says something where it is above 0.

{random}

## Loss and lies, by enumeration

Bids 0 to 6, prices 1 to 6, epsilon 0.7. A bidder buys at a price up to the true value.

{losses}

## Time

{times}
"""


def main() -> None:
    parser = study(__doc__)
    parser.add_argument("--rows", type=int, default=10**6, help="of the timed file")
    parser.add_argument("--markets", type=int, default=1_000, help="random ones")
    parser.add_argument("--splits", type=int, default=2_000, help="of the random sampling auction")
    options = parser.parse_args()
    text = PAGE.format(
        command=command(),
        splits=options.splits,
        prices="\n".join(price_rows(options.splits)),
        line="\n".join(map_rows(line_market(), Runs(12), (1, 2, 3, 4, 6))),
        area="\n".join(map_rows(area_market(), HalvingTree(64), (1, 2, 3, 4, 6, 8))),
        random="\n".join(random_rows(options.markets)),
        losses="\n".join(loss_rows()),
        times="\n".join(time_rows(options.rows)),
    )
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
