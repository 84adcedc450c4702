"""Contribution bounding: what one user can change, and that order is nothing.

Each property is a check of a function that bounds rows. The checks pass for `psd.ingest.tally` and
must fail for bounding that is wrong in a known way.
"""

import hashlib
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from scipy import stats

import psd
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.privacy.unit import PrivacyUnit
from support.laws import for_examples

pytestmark = pytest.mark.deep

SIDE = 3
DOMAIN = psd.Domain(bounds=(0, 0, SIDE, SIDE), crs="EPSG:3857", lattice=(SIDE, SIDE))
KEY = b"sixteen bytes ok"
OUTSIDE = (9, 9)
ALPHA, KEYS = 1e-6, 3_000


def library(parts, k, key):
    """Counts per cell by `psd.ingest.tally`, from parts: lists of rows (user, (column, row))."""
    batches, unit = [], PrivacyUnit(kind="user", max_contributions=k)
    for part in parts:
        x, y = np.array([place for _, place in part], float).reshape(-1, 2).T + 0.5
        batches.append(Batch(x=x, y=y, user=pa.array([user for user, _ in part], pa.string())))
    counted = tally_batches(batches, DOMAIN, unit=unit, key=key)
    places = zip(counted.columns.tolist(), counted.rows.tolist(), strict=True)
    return Counter(dict(zip(places, counted.counts.tolist(), strict=True)))


def mark(*parts):
    """A hash that tells equal things apart from nothing."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()


def inside(parts):
    return [row for part in parts for row in part if row[1] != OUTSIDE]


def smallest(rows, k, order):
    """Counts of the k rows of each user that come first by an order of (number, row)."""
    kept = Counter()
    for user in {user for user, _ in rows}:
        own = [(number, row) for number, row in enumerate(rows) if row[0] == user]
        kept.update(place for _, (_, place) in sorted(own, key=order)[:k])
    return kept


# Wrong ways, each with the checks that have to notice it.


def ties_by_arrival(parts, k, key):
    """A coarse hash of user and cell; rows with the same hash stay in order of arrival."""
    return smallest(inside(parts), k, lambda item: mark(key, item[1])[0] % 2)


def without_occurrence(parts, k, key):
    """A hash of user and cell names rows, so equal rows of a user become one."""
    return smallest(sorted(set(inside(parts))), k, lambda item: mark(key, item[1]))


def key_of_the_data(parts, k, key):
    """The key is a hash of all rows."""
    rows = sorted(inside(parts))
    return smallest(rows, k, lambda item: mark(rows, item))


def bound_before_filter(parts, k, key):
    """Rows outside use up the bound."""
    everything = sorted(row for part in parts for row in part)
    kept = smallest(everything, k, lambda item: mark(key, item))
    del kept[OUTSIDE]
    return kept


PLACES = st.tuples(st.integers(0, SIDE - 1), st.integers(0, SIDE - 1))
ROWS = st.lists(st.tuples(st.sampled_from("abcd"), PLACES), min_size=1, max_size=25)
BOUNDS = st.integers(1, 4)
NINE = [(column, row) for column in range(SIDE) for row in range(SIDE)]


def examples(way):
    return settings(derandomize=True, database=None, deadline=None, max_examples=150)


@for_examples(examples, ROWS, BOUNDS, st.data())
def removal(bound, rows, k, data):
    """A user who leaves takes away own rows, at most k, and changes no other user's."""
    user = data.draw(st.sampled_from(sorted({user for user, _ in rows})))
    others = [row for row in rows if row[0] != user]
    own = [row for row in rows if row[0] == user]
    rest = bound([others], k, KEY) if others else Counter()
    whole, alone = bound([rows], k, KEY), bound([own], k, KEY)
    assert whole == rest + alone
    assert whole.total() - rest.total() <= k


@for_examples(examples, ROWS, BOUNDS, st.data())
def order(bound, rows, k, data):
    """Rows in another order, in other parts, give the same counts."""
    shuffled = data.draw(st.permutations(rows))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    parts = [shuffled[low:high] for low, high in pairwise([0, *cuts, len(rows)])]
    assert bound(parts, k, KEY) == bound([rows], k, KEY)


@for_examples(examples, st.lists(PLACES, min_size=1, max_size=12), BOUNDS)
def size(bound, places, k):
    """A user keeps the smaller of k and the number of own rows, equal rows counted each."""
    kept = bound([[("u", place) for place in places]], k, KEY)
    assert kept.total() == min(k, len(places))
    assert kept <= Counter(places)


@for_examples(examples, ROWS, BOUNDS, st.integers(1, 6))
def outside(bound, rows, k, number):
    """Rows outside the domain do not use up the bound."""
    strays = [(user, OUTSIDE) for user in "abcd"] * number
    assert bound([[*strays, *rows]], k, KEY) == bound([rows], k, KEY)


@pytest.mark.parametrize("check", [removal, order, size, outside])
def test_the_library(check):
    check(library)


@pytest.mark.parametrize(
    ("wrong", "check"),
    [
        (ties_by_arrival, order),
        (without_occurrence, size),
        (key_of_the_data, removal),
        (bound_before_filter, outside),
    ],
)
def test_a_wrong_way_is_noticed(wrong, check):
    with pytest.raises(AssertionError):
        check(wrong)


def test_another_key_and_another_user_keep_other_rows():
    def kept(user, key):
        return frozenset(library([[(user, place) for place in NINE]], 4, key))

    assert len({kept("u", bytes([n] * 16)) for n in range(20)}) > 10
    users = ("007", "7", " 7", "a", "b", "c", "d", "e", "f", "g")
    assert len({kept(user, KEY) for user in users}) > 5


def choices(bound, places, k):
    rows, total = [("u", place) for place in places], Counter()
    for number in range(KEYS):
        total += bound([rows], k, hashlib.blake2b(b"%d" % number, digest_size=16).digest())
    return total


def p_value(seen, places, k):
    """Chi-square for places that all stand once: k of n without replacement, equally likely."""
    n, share = len(places), k / len(places)
    observed = np.array([seen[place] for place in places])
    spread = KEYS * share * (1 - share) * n / (n - 1)
    return stats.chi2.sf(((observed - KEYS * share) ** 2).sum() / spread, n - 1)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_each_row_is_kept_equally_often(k):
    assert p_value(choices(library, NINE, k), NINE, k) > ALPHA


def test_rows_kept_a_little_more_often_are_noticed():
    def biased(parts, k, key):
        """One place goes first for some keys."""
        fair = smallest(inside(parts), k, lambda item: mark(key, item))
        if int.from_bytes(key[:4], "big") >= 0.07 * 2**32 or (0, 0) in fair:
            return fair
        return fair - Counter([min(fair)]) + Counter([(0, 0)])

    assert p_value(choices(biased, NINE, 3), NINE, 3) < ALPHA


def test_equal_rows_are_kept_as_often_as_different_ones():
    places, k = [(0, 0)] * 5 + [(1, 0), (2, 0), (0, 1)], 2
    # Hypergeometric: of 8 rows, 5 alike; 2 are kept.
    law = stats.hypergeom(8, 5, k)
    distance = abs(choices(library, places, k)[0, 0] - KEYS * law.mean())
    assert distance < stats.norm.isf(ALPHA / 2) * np.sqrt(KEYS * law.var())
