"""Running totals: what is summed, what noise is drawn, and what the totals state of it."""

from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import psd
from psd.apps.streams import drawing
from psd.apps.streams import plan as counters
from psd.apps.streams.creation import totals_path
from psd.apps.streams.drawing import bounded_period
from psd.apps.streams.plan import blocks_of, next_total, variance_factors
from psd.apps.streams.state import empty_tally
from psd.decompositions import Grid, Quadtree
from psd.errors import ParameterError
from psd.ledger.ledger import Ledger
from psd.privacy.unit import PrivacyUnit
from support.streams import DAYS, create, day_of, totals
from support.tables import refuses

TOTALS = "city.totals.psd.parquet"


def grow(folder, days=DAYS, **arguments):
    """Series of the slices and of the totals, of 1, 2, 3, ... rows in the first days."""
    stream = create(folder, totals=True, **arguments)
    for day in days:
        skip = day != stream.status().next
        stream.add(day_of(folder, day, 1 + DAYS.index(day)), day, skip=skip)
    return psd.load(folder / "city.psd.parquet"), psd.load(folder / TOTALS)


def test_periods_files_and_parts_of_a_stream():
    day = PrivacyUnit(kind="user-day", time_zone="UTC")
    assert bounded_period(PrivacyUnit(kind="user"), "day", "2026-01-05") == "all"
    assert bounded_period(day, "hour", "2026-01-05T17") == "2026-01-05"
    assert bounded_period(day, "day", "2026-01-05") is None
    assert totals_path("/data/city.psd.parquet").name == TOTALS
    assert [drawing.slices_part(1_000, "slices"), drawing.slices_part(1_001, "tree")] == [1000, 500]


@pytest.mark.deep
@pytest.mark.parametrize("counter", ["slices", "tree", "toeplitz"])
@pytest.mark.parametrize("method", [Grid(size=2), Quadtree(height=2, budget="leaf")])
def test_totals_are_sums_of_all_slices_so_far(tmp_path, counter, method):
    """Slices that are left out add nothing."""
    how = {"counter": counter, "delta": "1e-6" if counter == "toeplitz" else None}
    series, summed = grow(tmp_path, method=method, **how)
    assert totals(series) == [1, 2, 3, 4, 5, 6, 7]
    assert totals(summed) == [1, 3, 6, 10, 15, 21, 28]
    assert (series.epsilon, summed.epsilon) == (1000, 1000)
    assert list(summed) == list(DAYS)
    (tmp_path / "some").mkdir()
    days = [DAYS[n] for n in (1, 2, 6)]
    assert totals(grow(tmp_path / "some", days, method=method, **how)[1]) == [2, 5, 12]


@pytest.mark.deep
def test_totals_state_the_variance_of_their_noise(tmp_path):
    for counter in ("slices", "tree"):
        folder = tmp_path / counter
        folder.mkdir()
        series, summed = grow(folder, counter=counter, epsilon=1)
        factors = [release.record.tree.noise.factor for release in summed._releases]
        assert factors == variance_factors(counter, len(DAYS))
        assert summed.record.releases[0].parameters["counter"] == counter
        summed[DAYS[4]].save(folder / "five.psd.parquet")  # as a release of its own
        assert psd.load(folder / "five.psd.parquet").record.tree.noise.factor == factors[4]
        own = {"totals_epsilon": "0.5"} if counter == "tree" else {}
        assert own.items() <= dict(series.record.releases[0].parameters).items()
        # A block has a third of half of epsilon: 7 slices are in blocks of 1, 2 and 4.
        nano = {int(e) for r in summed._releases for e in r.record.tree.loss if e}
        assert nano == ({10**9} if counter == "slices" else {10**9 // 2 // 3})


@pytest.mark.deep
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
    generator, cells, steps = np.random.default_rng(7), 20_000, 13
    blocks, variances = {}, []

    def draw(tally):  # a tree of which the counts alone are read
        return SimpleNamespace(count=generator.normal(0, 1000, cells).round().astype(np.int64))

    for step in range(steps):
        span, nothing = range(step, step + 1), empty_tally(1)
        total = next_total("tree", span, nothing, blocks, draw, number=steps)
        blocks = total.blocks
        variances.append(total.numbers.var() / 1000**2)
        assert set(blocks) == set(blocks_of(step + 1))
    factors = [float(factor) for factor in variance_factors("tree", steps)]
    assert variances == pytest.approx(factors, rel=0.05)


def test_what_is_refused(tmp_path, subtests):
    rows = [
        ({"method": "auto"}, "totals must be of a grid with size or of a quadtree, got auto"),
        ({"method": "grid"}, "totals must be of a grid with size"),
        ({"counter": "toeplitz"}, "counter must be slices or tree without delta="),
        ({"counter": "toeplitz", "delta": "1e-6", "method": "auto"}, "totals must be of a grid"),
        ({"counter": "sums"}, "counter must be one of auto, slices, tree, toeplitz"),
        ({"delta": "1e-2"}, "delta must be above 0 and below 0.001"),
        (
            {"counter": "tree", "delta": "1e-6", "noise": "gaussian"},
            'counter must be slices with noise="gaussian", got tree',
        ),
        ({"noise": "gaussian"}, 'delta must be given with noise="gaussian"'),
        ({"counter": "tree", "user": "user", "max_contributions": 2}, "must be slices where"),
        ({"counter": "tree", "epsilon": "5e-9"}, r'at least 0\.000000006 with counter="tree"'),
    ]
    refuses(subtests, partial(create, tmp_path, totals=True), rows, ParameterError)
    with pytest.raises(ParameterError, match="counter must be given with totals=True"):
        create(tmp_path, counter="tree", totals=False)
    assert list(tmp_path.iterdir()) == []
    assert create(tmp_path, totals=True, counter="tree", epsilon="0.000000006")


YEAR = psd.TimeSlices.parse("hour", "2026-01-01T00..2026-12-31T23")


@pytest.mark.deep
def test_a_ledger_has_no_charge_for_toeplitz(tmp_path):
    ledger = Ledger.create(tmp_path / "city.ledger")
    ledger.register("hours", 1, columns=psd.Columns(time="time"), delta="1e-6")
    paid = {
        "account": psd.ledger.Account(ledger, "hours"),
        "delta": "1e-6",
        "slices": YEAR,
        "epsilon": 1,
    }
    with pytest.raises(ParameterError, match="counter must be slices or tree with a ledger"):
        create(tmp_path, totals=True, counter="toeplitz", **paid)
    assert ledger.state().charges == {}
    assert create(tmp_path, totals=True, **paid).status().counter == "tree"


@pytest.mark.deep
def test_auto_takes_the_smaller_error_of_the_last_total(tmp_path):
    for counter, more in (
        ("slices", {}),
        ("tree", {"slices": YEAR}),
        ("toeplitz", {"slices": YEAR, "delta": "1e-6"}),
    ):
        (tmp_path / counter).mkdir()
        made = create(tmp_path / counter, totals=True, epsilon=1, **more)
        assert made.status().counter == counter


# Counters: goldens of the matrices, and the variance of totals


# Squared sensitivity, last weight, and largest and mean variance of a total with unit noise.
GOLDEN = {
    52: (2553581050078, 82637, 5.394, 4.684),
    365: (3237021191281, 30997, 8.667, 7.737),
    8760: (4349523354709, 6321, 15.649, 14.390),
}
TREE = {52: (19.73, 10.61), 365: (43.21, 21.99), 8760: (102.25, 50.64)}


def test_goldens_of_the_square_root_and_of_the_tree():
    for steps, (squared, last, largest, mean) in GOLDEN.items():
        weights = counters.toeplitz_weights(steps)
        assert weights[:3] == (2**20, 524288, 393216)
        assert weights[-1] == last
        assert counters.toeplitz_squared_sensitivity(steps) == squared
        variances = np.array(counters.variance_factors("toeplitz", steps), float) * squared
        assert variances.max() == pytest.approx(largest, rel=1e-3)
        assert variances.mean() == pytest.approx(mean, rel=1e-3)
    for steps, goldens in TREE.items():
        levels = counters.tree_levels(steps)
        variances = np.array(counters.variance_factors("tree", steps), float) * levels
        assert (variances.max(), variances.mean()) == pytest.approx(goldens, rel=1e-3)


@pytest.mark.parametrize("steps", [1, 2, 7, 40])
def test_the_square_root_has_the_sensitivity_of_all_columns_and_gives_running_totals(steps):
    """No column of C has a larger norm, and the norm is that of a change of one step."""
    weights, row = np.array(counters.toeplitz_weights(steps), object), counters.toeplitz_row(steps)
    matrix = [[weights[t - s] if t >= s else 0 for s in range(steps)] for t in range(steps)]
    norms = [sum(row[s] ** 2 for row in matrix) for s in range(steps)]
    assert max(norms) == norms[0] == counters.toeplitz_squared_sensitivity(steps)
    x = np.arange(steps) % 5 + 1.0
    published = [sum(weights[t - s] * x[s] for s in range(t + 1)) for t in range(steps)]
    totals = [row[: t + 1][::-1] @ published[: t + 1] for t in range(steps)]
    assert totals == pytest.approx(np.cumsum(x), abs=1e-6)


def test_blocks_fill_the_steps_and_end_where_they_are_closed():
    for steps in (1, 5, 8, 37):
        covered = []
        for level, last in counters.blocks_of(steps):
            assert level in counters.blocks_closed(last)
            covered += range(last - 2**level + 1, last + 1)
        assert covered == list(range(steps))
        closed = [level for step in range(steps) for level in counters.blocks_closed(step)]
        assert max(closed) + 1 == counters.tree_levels(steps)
        assert closed.count(0) == steps
    # Variances of blocks follow from those of their halves.
    for level in range(1, 12):
        half = counters.block_variance(level - 1)
        assert counters.block_variance(level) == 1 / (1 + 1 / (2 * half))
    assert counters.variance_factors("slices", 2) == [Fraction(1), Fraction(2)]


def test_points_are_drawn_of_one_total(tmp_path):
    series, sums = grow(tmp_path)
    assert set(series.to_points()["slice"]) <= set(series)
    with pytest.raises(ParameterError, match="release must be one slice to draw points of running"):
        sums.to_points()
    last = sums[DAYS[-1]]
    assert abs(len(last.to_points()) - last.total) < 1
