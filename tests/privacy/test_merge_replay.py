"""Merged tallies by record and replay: a whole user leaves all parts.

A build of merged tallies is recorded with a user and replayed without. The loss may not pass
epsilon, and has to reach it. Planted: a part merged twice, bounds that are not added, and
users told apart by a digest.
"""

import pytest

from psd.ingest.partial_tally import merge
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit
from psd.privacy.values import Value
from psd.testing import run_method
from support.privacy.merge_replay import DOMAIN, GRID, OTHERS, counted, worst_loss
from support.privacy.replay import largest_loss


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("way", ["add", "carry"])
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.deep)])
def test_a_user_of_several_parts_costs_epsilon(every, way, k):
    """Over all that the user can have, or an eighth of it."""
    assert worst_loss(k, way, every=every) == 1


def test_a_record_of_a_part_costs_epsilon_whatever_its_value_is():
    """Sums of the weights of values are added like counts, and get the noise of a whole record."""
    fare, part = Value("fare", 0, 60), [("v", 1, 0.1)]

    def merged(*more):
        rows = ([("v", 0, 12.5), ("w", 3, 60.0)], [*part, *more])
        counts = [counted(each, 1, unit=PrivacyUnit(), values=(fare,)) for each in rows]
        return merge(counts).tally

    others = [merged(("u", cell, n)) for cell in (0, 2) for n in (-1e9, 0, 20, 60, 1e12)]
    loss = largest_loss(
        lambda tally, sampler: run_method(GRID, tally, DOMAIN, NANO, sampler), merged(), others
    )
    assert 0.85 < loss <= 1


@pytest.mark.deep
def test_a_row_of_one_part_costs_epsilon():
    def parts(rows, k, way):
        return [counted(part, 1, unit=PrivacyUnit()) for part in rows]

    def one_row(rows, k, way):
        return parts([rows[0][:3], OTHERS[1]], k, way)

    assert worst_loss(1, "add", parts=one_row) == 1
