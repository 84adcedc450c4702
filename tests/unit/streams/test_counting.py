"""Records of one slice: which are kept of a user, whatever others do."""

import pytest

from psd.privacy.unit import PrivacyUnit
from support.privacy.stream_replay import counted_slices

ANN = [("ann", day, column) for day in range(3) for column in (0, 1)]
BOB = [("bob", 0, 1), ("bob", 2, 0)]


@pytest.mark.parametrize("k", range(8))
def test_the_first_records_of_a_user_are_kept(k):
    unit = PrivacyUnit(kind="user", max_contributions=k + 1)
    slices = counted_slices(ANN, unit)
    kept = [sum(counted.contributions.values()) for counted in slices]
    assert kept == [min(2, max(k + 1 - 2 * day, 0)) for day in range(3)]
    assert [int(counted.tally.counts.sum()) for counted in slices] == kept
    assert {counted.tally.contributions for counted in slices} == {k + 1}


def test_another_user_changes_no_kept_record():
    unit = PrivacyUnit(kind="user", max_contributions=3)
    alone, both, bob = (counted_slices(rows, unit) for rows in (ANN, ANN + BOB, BOB))
    for one, two, other in zip(alone, both, bob, strict=True):
        assert counts_of(two) == add(counts_of(one), counts_of(other))
        assert two.contributions == {**one.contributions, **other.contributions}


def counts_of(counted):
    tally = counted.tally
    cells = zip(tally.columns.tolist(), tally.rows.tolist(), strict=True)
    return dict(zip(cells, tally.counts.tolist(), strict=True))


def add(one, other):
    return {cell: one.get(cell, 0) + other.get(cell, 0) for cell in one.keys() | other.keys()}
