"""Time slices by record and replay: a whole user leaves, with rows in many slices.

The answers of a series are recorded with the user and replayed without. The loss over all slices
together may not pass the epsilon of the series, and has to reach it, so that the check sees
what it claims to see.
"""

from fractions import Fraction

import pytest

from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit, counted_unit
from psd.publish.drawing import draw_series
from psd.testing import RecordingSampler, small_domain
from support.privacy.slices_replay import (
    DAYS,
    EVERYWHERE,
    OTHERS,
    QUADTREE,
    batch,
    loss_of,
    run,
    user,
    users,
)

MANY = pytest.param([EVERYWHERE, *users(3)], marks=pytest.mark.deep)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("bound", ["series", "slice"])
@pytest.mark.parametrize("added", [[EVERYWHERE], MANY], ids=["everywhere", "many"])
def test_a_user_of_many_slices_costs_no_more_than_epsilon(added, bound, k):
    # A third of the epsilon is rounded down to whole nano-units.
    wanted = Fraction(NANO // 3, NANO) * 3 if bound == "slice" else 1
    assert max(loss_of(rows, user(k), bound) for rows in added) == wanted


@pytest.mark.deep
def test_a_limit_in_each_slice_leaves_the_loss_at_epsilon():
    """The noise is made for k in all slices: M in each changes the rows, not what k of them cost.

    A user with k rows in k slices reaches epsilon, and one with all rows in one slice stays below.
    """
    unit = user(2, 1)
    spread = [("u", day, 0) for day in range(4)]
    heaped = [("u", 0, column) for column in (0, 0, 1)]
    assert loss_of(spread, unit, "series") == 1
    assert loss_of(heaped, unit, "series") == Fraction(1, 2)
    assert max(loss_of(rows, unit, "series") for rows in users(2)) == 1


def test_one_row_lies_in_one_slice():
    for day in (0, 3):  # of which the second is in no slice
        assert loss_of([("u", day, 0)], PrivacyUnit(), "series") == (day == 0)


@pytest.mark.deep
def test_one_row_and_the_days_of_a_user_lie_in_one_slice():
    rows = [[("u", day, column)] for day in range(4) for column in range(2)]
    assert max(loss_of(row, PrivacyUnit(), "series") for row in rows) == 1
    unit = PrivacyUnit(kind="user-day", max_contributions=2, time_zone="UTC")
    days = [[("u", day, 0)] * number for day in range(4) for number in range(1, 4)]
    assert max(loss_of(day, unit, "series") for day in days) == 1


def test_the_series_asks_what_was_checked():
    """`draw_series` gives each slice the epsilon and the rows that the checks above give it."""
    for bound in ("series", "slice"):
        unit, whole, recorders = user(1), RecordingSampler(), [RecordingSampler() for _ in DAYS]
        run(OTHERS, unit, bound, lambda _, kept=recorders: kept)
        rules = {"unit": counted_unit(unit, bound), "key": b"fixed", "slices": DAYS}
        series = draw_series(
            tally_batches([batch(OTHERS)], small_domain(2), **rules), small_domain(2), DAYS,
            scope=bound, budget=Budget(NANO), method=QUADTREE, unit=unit, sampler=whole,
        )  # fmt: skip
        assert series.slices is not None
        asked = [call for recorder in recorders for call in recorder.draws]
        for a, b in zip(asked, whole.draws, strict=True):
            for name in ("true", "loss", "sensitivity"):
                assert getattr(a, name).tolist() == getattr(b, name).tolist()
