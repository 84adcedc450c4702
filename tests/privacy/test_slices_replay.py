"""Time slices by record and replay: a whole user leaves, with rows in many slices.

The answers of a series are recorded with the user and replayed without. The loss over all slices
together may not pass the epsilon of the series, and has to reach it, so that the check sees
what it claims to see.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from replay import SCRIPTS, Recorder, Replayer, Violation, compare, loss, small_domain

import psd
from psd.curator import Curator
from psd.epsilon import NANO
from psd.intake import tally
from psd.series import Series
from psd.slices import Slices
from psd.slicing import counted_unit, series_of, share_of
from psd.slicing import of_slice as part_of
from psd.tally import Batch
from psd.unit import Unit

DAYS = Slices.parse("day", "2024-01-01..2024-01-03")
OTHERS = [("v", 0, 0), ("v", 1, 1), ("w", 2, 1)]


def batch(rows):
    """Rows (user, day, column); day 3 is in no slice."""
    day = np.array([f"2024-01-0{1 + day}T11" for _, day, _ in rows], "datetime64[us]")
    x = np.array([column for _, _, column in rows]) + 0.5
    users = pa.array([user for user, _, _ in rows], pa.string())
    return Batch(x=x, y=np.full(len(rows), 0.5), user=users, time=day)


def run(rows, unit, bound, noises, slices=DAYS, counted=None, share=None):
    """One curator per slice, as `series_of` has them, with a notebook each."""
    domain = small_domain(2)
    counted = counted or counted_unit(unit, bound)
    counts = tally([batch(rows)], domain, unit=counted, key=b"fixed", slices=slices)
    each, trees = share or share_of(NANO, len(slices), unit, bound), []
    for number, noise in enumerate(noises(len(slices))):
        noise.curator = curator = Curator(
            part_of(counts, number), domain, epsilon=each, noise=noise
        )
        trees.append((curator, psd.Quadtree(height=1).build(curator)))
    return trees


def loss_of(added, unit, bound, **planted):
    """Worst loss over all slices and scripts when these rows are added to the others."""
    worst = Fraction(0)
    for script in SCRIPTS:
        recorders, replayers = [], []

        def record(number, script=script, kept=recorders):
            kept += [Recorder(script) for _ in range(number)]
            return kept

        def replay(number, kept=replayers, recorders=recorders):
            if number != len(recorders):
                raise Violation("other slices than on the other data set")
            kept += [Replayer(recorder.calls) for recorder in recorders]
            return kept

        first = run(OTHERS, unit, bound, record, **planted)
        second = run(OTHERS + added, unit, bound, replay, **planted)
        for a, b in zip(first, second, strict=True):
            compare(a, b)
        losses = [loss(a.calls, b.calls) for a, b in zip(recorders, replayers, strict=True)]
        worst = max(worst, sum(losses))
    if worst > 1:
        raise Violation(f"loss {worst} above the promised 1")
    return worst


def users(most):
    """Ways in which one more user can be there on four days, in one of two places each time."""
    for size in range(1, most + 1):
        for days in product(range(4), repeat=size):
            yield [("u", day, number % 2) for number, day in enumerate(days)]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("bound", ["series", "slice"])
def test_a_user_of_many_slices_costs_no_more_than_epsilon(k, bound):
    unit = Unit(kind="user", max_contributions=k)
    everywhere = [("u", day, column) for day in range(4) for column in range(2)]
    worst = max(loss_of(rows, unit, bound) for rows in [everywhere, *users(3)])
    # A third of the epsilon is rounded down to whole nano-units.
    assert worst == (Fraction(NANO // 3, NANO) * 3 if bound == "slice" else 1)


def test_one_row_and_the_days_of_a_user_lie_in_one_slice():
    rows = [[("u", day, column)] for day in range(4) for column in range(2)]
    assert max(loss_of(row, Unit(), "series") for row in rows) == 1
    unit = Unit(kind="user-day", max_contributions=2, time_zone="UTC")
    days = [[("u", day, 0)] * number for day in range(4) for number in range(1, 4)]
    assert max(loss_of(day, unit, "series") for day in days) == 1


def test_planted_bound_per_slice_called_parallel():
    unit = Unit(kind="user", max_contributions=1)
    counted = counted_unit(unit, "slice")
    assert loss_of([("u", 0, 0)], unit, "series", counted=counted) == 1
    with pytest.raises(Violation, match="loss 3 above"):
        loss_of([("u", day, 0) for day in range(3)], unit, "series", counted=counted)


def test_planted_epsilon_for_each_slice_in_sequence():
    unit = Unit(kind="user", max_contributions=1)
    with pytest.raises(Violation, match="loss 3 above"):
        loss_of([("u", day, 0) for day in range(3)], unit, "slice", share=NANO)


class SlicesOfTheData(Slices):
    """Planted: the months that occur."""

    def __init__(self, rows):
        names = tuple(sorted({f"2024-01-0{1 + day}" for _, day, _ in rows}))
        super().__init__(by="day", names=names)


def test_planted_slices_of_the_data(monkeypatch):
    original = run

    def peeking(rows, unit, bound, noises, **options):
        return original(rows, unit, bound, noises, slices=SlicesOfTheData(rows))

    monkeypatch.setitem(globals(), "run", peeking)
    with pytest.raises(Violation, match="other slices"):
        loss_of([("u", 3, 0)], Unit(), "series")


def test_the_series_asks_what_was_checked():
    """`series_of` gives each slice the epsilon and the rows that the checks above give it."""
    for bound in ("series", "slice"):
        unit = Unit(kind="user", max_contributions=1)
        recorders = []
        run(OTHERS, unit, bound, lambda n, kept=recorders: kept.extend(
            Recorder(SCRIPTS[0]) for _ in range(n)) or kept)  # fmt: skip
        whole = Recorder(SCRIPTS[0])
        counts = tally([batch(OTHERS)], small_domain(2), unit=counted_unit(unit, bound),
                       key=b"fixed", slices=DAYS)  # fmt: skip
        series = series_of(counts, small_domain(2), DAYS, bound=bound, epsilon=NANO,
                           method=psd.Quadtree(height=1), unit=unit, noise=whole)  # fmt: skip
        assert isinstance(series, Series)
        asked = [call for recorder in recorders for call in recorder.calls]
        for a, b in zip(asked, whole.calls, strict=True):
            assert a.true.tolist() == b.true.tolist()
            assert a.epsilon.tolist() == b.epsilon.tolist()
            assert a.sensitivity.tolist() == b.sensitivity.tolist()
