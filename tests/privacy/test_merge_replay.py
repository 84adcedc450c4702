"""Merged tallies by record and replay: a whole user leaves all parts.

A build of merged tallies is recorded with a user and replayed without. The loss may not pass
epsilon, and has to reach it. Planted: a part merged twice, bounds that are not added, and
users told apart by a digest.
"""

import pytest

from psd.privacy.unit import PrivacyUnit
from support.privacy.merge_replay import OTHERS, counted, worst_loss


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("way", ["add", "carry"])
@pytest.mark.parametrize("every", [8, pytest.param(1, marks=pytest.mark.deep)])
def test_a_user_of_several_parts_costs_epsilon(every, way, k):
    """Over all that the user can have, or an eighth of it."""
    assert worst_loss(k, way, every=every) == 1


@pytest.mark.deep
def test_a_row_of_one_part_costs_epsilon():
    def parts(rows, k, way):
        return [counted(part, 1, unit=PrivacyUnit()) for part in rows]

    def one_row(rows, k, way):
        return parts([rows[0][:3], OTHERS[1]], k, way)

    assert worst_loss(1, "add", parts=one_row) == 1
