"""Time slices by record and replay: a whole user leaves, with rows in many slices.

The answers of a series are recorded with the user and replayed without. The loss over all slices
together may not pass the epsilon of the series.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import psd
from psd.curator.curator import Curator
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit, counted_unit
from psd.publish.drawing import slice_budgets, squared_of
from psd.publish.drawing import slice_tally as part_of
from psd.space.time_slices import TimeSlices
from psd.testing import (
    SCRIPTS,
    LeakError,
    RecordingSampler,
    ReplayingSampler,
    compare_runs,
    small_domain,
    transcript_loss,
)

DAYS = TimeSlices.parse("day", "2024-01-01..2024-01-03")
QUADTREE = psd.decompositions.Quadtree(height=1)
OTHERS = [("v", 0, 0), ("v", 1, 1), ("w", 2, 1)]
EVERYWHERE = [("u", day, column) for day in range(4) for column in range(2)]
LOSING_MOST = (EVERYWHERE, EVERYWHERE[:1] * 2, EVERYWHERE[::2])


def user(k, most=None):
    """Unit with k rows in all slices, at most a number of them in each."""
    return PrivacyUnit(kind="user", max_contributions=k, max_per_slice=most)


UNITS_OF_SLICES = pytest.mark.parametrize(
    ("unit", "bound"),
    [
        pytest.param(user(1), "series", id="one row"),
        pytest.param(user(2), "series", id="two rows anywhere"),
        pytest.param(user(2, 1), "series", id="two rows in two slices"),
        pytest.param(user(3, 1), "series", id="three rows in three slices"),
        pytest.param(user(1), "slice", id="one row in each slice"),
    ],
)


def batch(rows):
    """Rows (user, day, column); day 3 is in no slice."""
    day = np.array([f"2024-01-0{1 + day}T11" for _, day, _ in rows], "datetime64[us]")
    x = np.array([column for _, _, column in rows]) + 0.5
    users = pa.array([user for user, _, _ in rows], pa.string())
    return Batch(x=x, y=np.full(len(rows), 0.5), user=users, time=day)


def tallies_at_once(rows, unit, slices):
    """Tallies of the slices of records that are read together."""
    counts = tally_batches([batch(rows)], small_domain(2), unit=unit, key=b"fixed", slices=slices)
    return [part_of(counts, number) for number in range(len(slices))]


def run(
    rows, unit, bound, noises, slices=DAYS, tallies=tallies_at_once, loss=NANO, method=QUADTREE
):
    """One curator per slice, as `draw_series` has them, with a notebook each."""
    parts = tallies(rows, counted_unit(unit, bound), slices)
    budget, trees = Budget(loss), []
    squared = squared_of(budget, unit, bound, slices)
    budgets = slice_budgets(budget, len(slices), unit, bound)
    for noise, tally, part in zip(noises(len(slices)), parts, budgets, strict=True):
        noise.curator = curator = Curator(
            tally, small_domain(2), budget=part, sampler=noise, squared_sensitivity=squared
        )
        trees.append((curator, method.build(curator)))
    return trees


def loss_of(added, unit, bound, measure=transcript_loss, claim=1, runs=None, **options):
    """Worst loss over all slices and scripts when these rows are added to the others.

    ``runs`` draws the slices; by default `run`, which is looked up now: a planted bug replaces it.
    """
    worst, runs = Fraction(0), runs or run
    for script in SCRIPTS:
        recorders, replayers = [], []

        def record(number, script=script, kept=recorders):
            kept += [RecordingSampler(script) for _ in range(number)]
            return kept

        def replay(number, kept=replayers, recorders=recorders):
            if number != len(recorders):
                raise LeakError("other slices than on the other data set")
            kept += [ReplayingSampler(recorder.draws) for recorder in recorders]
            return kept

        first = runs(OTHERS, unit, bound, record, **options)
        second = runs(OTHERS + added, unit, bound, replay, **options)
        for a, b in zip(first, second, strict=True):
            compare_runs(a, b)
        losses = [measure(a.draws, b.draws) for a, b in zip(recorders, replayers, strict=True)]
        worst = max(worst, sum(losses))
    if worst > claim:
        raise LeakError(f"loss {worst} above the promised {claim}")
    return worst


def placed(k, columns=2):
    """Ways in which one more user can have up to k rows on four days, in one of two places each."""
    for size in range(1, k + 1):
        places = product(range(4), range(columns))
        yield from ([("u", *place) for place in rows] for rows in product(places, repeat=size))


def users(most):
    """Ways in which one more user can be there on four days, in one of two places each time."""
    for size in range(1, most + 1):
        for days in product(range(4), repeat=size):
            yield [("u", day, number % 2) for number, day in enumerate(days)]
