"""Running totals: what is summed, what noise is drawn, and what the totals state of it."""

from fractions import Fraction

import numpy as np
import pytest

import psd
from psd.errors import ParameterError
from psd.ledger.ledger import Ledger
from psd.streams import drawing
from psd.streams.counters import blocks_of, variance_factors
from support.streams import DAYS, create, day_of, totals

TOTALS = "city.totals.psd.parquet"


def grow(folder, days=DAYS, **arguments):
    """Series of the slices and of the totals, of 1, 2, 3, ... rows in the first days."""
    stream = create(folder, totals=True, **arguments)
    for day in days:
        skip = day != stream.status().next
        stream.add(day_of(folder, day, 1 + DAYS.index(day)), day, skip=skip)
    return psd.load(folder / "city.psd.parquet"), psd.load(folder / TOTALS)


@pytest.mark.parametrize("counter", ["slices", "tree", "toeplitz"])
@pytest.mark.parametrize("method", [psd.decompositions.Grid(size=2), "quadtree"])
def test_totals_are_sums_of_all_slices_so_far(tmp_path, counter, method):
    if method == "quadtree":
        method = psd.decompositions.Quadtree(height=2, budget="leaf")
    delta = "1e-6" if counter == "toeplitz" else None
    series, summed = grow(tmp_path, counter=counter, method=method, delta=delta)
    assert totals(series) == [1, 2, 3, 4, 5, 6, 7]
    assert totals(summed) == [1, 3, 6, 10, 15, 21, 28]
    assert (series.epsilon, summed.epsilon) == (1000, 1000)
    assert list(summed) == list(DAYS)


@pytest.mark.parametrize("counter", ["slices", "tree", "toeplitz"])
def test_slices_that_are_left_out_add_nothing(tmp_path, counter):
    days = [DAYS[n] for n in (1, 2, 6)]
    delta = "1e-6" if counter == "toeplitz" else None
    _, summed = grow(tmp_path, days, counter=counter, delta=delta)
    assert totals(summed) == [2, 5, 12]


def test_totals_state_the_variance_of_their_noise(tmp_path):
    for counter in ("slices", "tree"):
        folder = tmp_path / counter
        folder.mkdir()
        series, summed = grow(folder, counter=counter, epsilon=1)
        factors = [release.record.tree.noise.factor for release in summed.releases]
        assert factors == variance_factors(counter, len(DAYS))
        assert summed.releases[0].parameters["counter"] == counter
        own = {"totals_epsilon": "0.5"} if counter == "tree" else {}
        assert own.items() <= dict(series.releases[0].parameters).items()
        # A block has a third of half of epsilon: 7 slices are in blocks of 1, 2 and 4.
        nano = {int(e) for r in summed.releases for e in r.record.tree.epsilon if e}
        assert nano == ({10**9} if counter == "slices" else {10**9 // 2 // 3})


def test_a_total_is_saved_as_a_release_of_its_own(tmp_path):
    _, summed = grow(tmp_path, counter="tree", epsilon=1)
    release = summed[DAYS[4]]
    release.save(tmp_path / "five.psd.parquet")
    loaded = psd.load(tmp_path / "five.psd.parquet")
    assert loaded.record.tree.noise == release.record.tree.noise
    assert loaded.record.tree.noise.factor == Fraction(4, 7) + 1


def test_noise_is_drawn_on_blocks_of_steps_and_never_on_totals(tmp_path, monkeypatch):
    """True counts that meet noise: each slice, and each block of 2^l slices that ends with it."""
    sums, curator = [], drawing.Curator

    def noted(tally, *arguments, **options):
        sums.append(int(tally.counts.sum()))
        return curator(tally, *arguments, **options)

    monkeypatch.setattr(drawing, "Curator", noted)
    grow(tmp_path, counter="tree")
    blocks = [[1], [2, 3], [3], [4, 7, 10], [5], [6, 11], [7]]
    assert sums == [number for each in blocks for number in each]


def test_the_variance_of_totals_is_what_they_state():
    """Totals of blocks with noise of variance 1, over 20,000 cells: within 5 % of the factor."""
    from psd.streams import totals as module

    generator, cells, steps = np.random.default_rng(7), 20_000, 13
    blocks, variances = {}, []

    def draw(tally):
        return _Drawn(generator.normal(0, 1000, cells).round().astype(np.int64))

    for step in range(steps):
        total = module.next_total(
            "tree", range(step, step + 1), _no_records(), blocks, draw, number=steps
        )
        blocks = total.blocks
        variances.append(total.numbers.var() / 1000**2)
        assert set(blocks) == set(blocks_of(step + 1))
    factors = [float(factor) for factor in variance_factors("tree", steps)]
    assert variances == pytest.approx(factors, rel=0.05)


class _Drawn:
    """A tree of which the counts alone are read."""

    def __init__(self, count):
        self.count = count


def _no_records():
    from psd.streams.blocks import empty_tally

    return empty_tally(1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "auto"}, "totals must be of a grid with size or of a quadtree, got auto"),
        ({"method": "grid"}, "totals must be of a grid with size"),
        ({"counter": "toeplitz"}, "counter must be slices or tree without delta="),
        ({"counter": "toeplitz", "delta": "1e-6", "method": "auto"}, "totals must be of a grid"),
        ({"counter": "sums"}, "counter must be one of auto, slices, tree, toeplitz"),
        ({"delta": "1e-2"}, "delta must be above 0 and below 0.001"),
        (
            {"counter": "tree", "delta": "1e-6", "noise_law": "gaussian"},
            'counter must be slices with noise_law="gaussian", got tree',
        ),
        ({"noise_law": "gaussian"}, 'delta must be given with noise_law="gaussian"'),
        (
            {"counter": "tree", "user": "user", "max_contributions": 2},
            "counter must be slices where",
        ),
        ({"counter": "tree", "totals": False}, "counter must be given with totals=True"),
    ],
)
def test_what_is_refused(tmp_path, arguments, message):
    with pytest.raises(ParameterError, match=message):
        create(tmp_path, **{"totals": True, **arguments})
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_has_no_charge_for_toeplitz(tmp_path):
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("hours", 1, columns=psd.Columns(time="time"), delta="1e-6")
    year = psd.TimeSlices.parse("hour", "2026-01-01T00..2026-12-31T23")
    paid = {"account": psd.Account(ledger, "hours"), "delta": "1e-6", "slices": year, "epsilon": 1}
    with pytest.raises(ParameterError, match="counter must be slices or tree with a ledger"):
        create(tmp_path, totals=True, counter="toeplitz", **paid)
    assert ledger.state().charges == {}
    assert create(tmp_path, totals=True, **paid).status().counter == "tree"


def test_an_epsilon_of_which_a_block_gets_nothing_is_refused_at_the_creation(tmp_path):
    with pytest.raises(ParameterError, match=r'at least 0\.000000006 with counter="tree"'):
        create(tmp_path, totals=True, counter="tree", epsilon="0.000000005")
    assert create(tmp_path, totals=True, counter="tree", epsilon="0.000000006")


def test_auto_takes_the_smaller_error_of_the_last_total(tmp_path):
    week = create(tmp_path, totals=True, epsilon=1)
    assert week.status().counter == "slices"
    year = psd.TimeSlices.parse("hour", "2026-01-01T00..2026-12-31T23")
    (tmp_path / "year").mkdir()
    assert create(tmp_path / "year", totals=True, slices=year, epsilon=1).status().counter == "tree"
    (tmp_path / "delta").mkdir()
    gaussian = create(tmp_path / "delta", totals=True, slices=year, epsilon=1, delta="1e-6")
    assert gaussian.status().counter == "toeplitz"
