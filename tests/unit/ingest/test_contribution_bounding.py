"""Units of records, their sizes and weights; `tests/oracle/test_marks_naive.py` has the bounds."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from psd.ingest import contribution_bounding as bounding
from psd.ingest.contribution_bounding import keep_in_slices, keep_smallest, round_weights
from psd.ingest.row_hash import PRIME, row_hashes, user_salts
from psd.privacy.unit import PrivacyUnit
from psd.privacy.values import WEIGHT
from psd.space.time_slices import TimeSlices

MODULE = "psd.ingest.contribution_bounding"
DAY = 86_400_000_000
SLICES = TimeSlices.parse("day", "1970-01-01,1970-01-03")
USERS = np.array([0, 0, 1, 1, 0, 1])
TIME = np.array([0, DAY - 1, 0, DAY, 2 * DAY, -1])


def partition_of(numbers):
    return [np.flatnonzero(numbers == number).tolist() for number in dict.fromkeys(numbers)]


def test_units_are_users_or_their_days_or_slices():
    user, day, part = (
        PrivacyUnit(kind=kind, max_contributions=2, time_zone=zone)
        for kind, zone in (("user", None), ("user-day", "UTC"), ("user-slice", None))
    )
    for unit, slices, units in [
        (user, None, [[0, 1, 4], [2, 3, 5]]),
        (user, SLICES, [[0, 1, 4], [2, 3, 5]]),
        (day, SLICES, [[0, 1], [2], [3], [4], [5]]),
        (part, SLICES, [[0, 1], [2], [3, 5], [4]]),
    ]:
        assert partition_of(bounding.number_units(unit, USERS, TIME, slices)) == units
    numbers = bounding.number_units(
        day, np.array([5, 0, 5]), np.array([-(10**17), 10**17, 0]), None
    )
    assert sorted(numbers.tolist()) == [0, 1, 2]
    assert bounding.rows_per_unit(numbers).tolist() == [1, 1, 1]
    empty = np.empty(0, np.int64)
    assert bounding.number_units(day, empty, empty, None).tolist() == []
    for keys, numbers in [
        ([[3, 3, 3]], [0, 1, 2]),
        ([[1, 1, 2, 1]], [0, 1, 0, 0]),
        ([[1, 1, 1, 1], [5, 5, 6, 6]], [0, 1, 0, 1]),
        ([[]], []),
    ]:
        arrays = [np.array(key, np.int64) for key in keys]
        assert bounding.running_number(arrays).tolist() == numbers


@pytest.mark.parametrize("weight", [1, 6, 720_720])
def test_weights_of_a_unit_sum_to_at_most_the_weight_of_a_user(weight):
    units = np.repeat(np.arange(17), np.arange(1, 18))
    weights = bounding.user_weights(units, weight)
    sizes = np.arange(1, 18)
    assert weights[np.cumsum(sizes) - 1].tolist() == (weight // sizes).tolist()
    totals = np.bincount(units, weights)
    assert (totals <= weight).all()
    assert (totals == weight)[weight % sizes == 0].all()


def test_short_keys_change_nothing(subtests, monkeypatch):
    """Units may have equal first bits of hashes, equal hashes, or equal records.

    With no bit of a hash in short keys, the whole hashes decide.
    """
    none = np.zeros(2_000, np.int64)
    for bits, distinct in product([6, 8, 12, 20, 32], [3, 400, 10**9]):
        random = np.random.default_rng(bits)
        units = random.integers(0, 30, 2_000)
        cells = random.integers(0, distinct, (2, 2_000))
        salt = user_salts(pa.array(map(str, range(30))), b"key")[:, units]
        with subtests.test(bits=bits, distinct=distinct):
            records = []
            for width in (5, bits):
                monkeypatch.setattr(f"{MODULE}._SHORT_KEY_BITS", width)
                kept = keep_smallest(units, salt, tuple(cells), none, 7)
                records.append(sorted(zip(units[kept], *cells[:, kept], strict=True)))
            assert records[0] == records[1]
            assert np.bincount(units[kept]).tolist() == [7] * 30


def test_whole_records_are_compared_where_hashes_are_equal_alone(monkeypatch):
    units, none = np.repeat(np.arange(40), 50), np.zeros(2_000, np.int64)
    salt, cells = (
        user_salts(pa.array(map(str, range(40))), b"key")[:, units],
        (np.arange(2_000), none),
    )
    asked = []

    def note(units, *others, k):
        asked.append(len(units))
        return np.arange(len(units))

    monkeypatch.setattr(f"{MODULE}._smallest_of_ties", note)
    keep_smallest(units, salt, cells, none, 10)
    assert asked == []
    cells[0][:2] = 7
    keep_smallest(units, salt, cells, none, 10)
    assert asked == [50]


@pytest.mark.parametrize("seed", range(4))
def test_records_that_differ_in_values_alone_are_numbered_in_the_order_of_these(seed):
    """Five records of each user in one cell; a sixth, elsewhere, is in another slice."""
    random, k = np.random.default_rng(seed), 3
    users, slices = np.repeat(np.arange(4), 6), np.tile([0] * 5 + [1], 4)
    columns, rows, time = 7 * slices, 5 + slices, DAY * slices
    values = random.permutation(48).reshape(24, 2) // 2 % [3, 24]
    salt = user_salts(pa.array(list("abcd")), b"key")[:, users]
    kept, first_of_slices = set(), set()
    for user in range(4):
        of_user = np.flatnonzero(users == user)
        equal = sorted(of_user[:5].tolist(), key=lambda place: values[place].tolist())
        hashes = {}
        for occurrence, place in [*enumerate(equal), (0, of_user[5])]:
            at = (each[[place]] for each in (columns, rows, time))
            hashes[int(place)] = int(row_hashes(salt[:, [place]], *at, np.array([occurrence]))[0])
        order = sorted(hashes, key=hashes.__getitem__)
        kept |= set(order[:k])
        first_of_slices |= {next(place for place in order if place in equal), int(of_user[5])}
    mixed = random.permutation(24)
    columns, rows, time, values, salt = (
        columns[mixed], rows[mixed], time[mixed], values[mixed], salt[:, mixed]
    )  # fmt: skip
    of_records = users[mixed], salt, (columns, rows), time
    assert set(mixed[keep_smallest(*of_records, k, values)].tolist()) == kept
    pairs = 2 * users[mixed] + slices[mixed]
    found = keep_in_slices(users[mixed], pairs, *of_records[1:], (k, 1), values)
    assert set(mixed[found].tolist()) == first_of_slices


def test_weights_of_values_are_rounded_by_the_hash_of_their_record():
    random, size = np.random.default_rng(1), 300
    cells, time = random.integers(0, 2**30, (2, size)), random.integers(0, 10**15, size)
    salt = user_salts(pa.array(map(str, range(size))), b"key")
    values = random.integers(0, WEIGHT + 1, (size, 3))
    values[:, 2] = np.where(np.arange(size) % 2, WEIGHT, 0)
    hashes = row_hashes(salt, *cells, time, np.zeros(size, np.int64)).tolist()
    for weights in (random.integers(0, 5, size), random.integers(2**29, 2**30, size)):
        found = round_weights(weights, values, salt, tuple(cells), time)
        assert found.dtype == np.int64
        for place, (weight, hash_) in enumerate(zip(weights.tolist(), hashes, strict=True)):
            part = hash_ * WEIGHT // PRIME
            expected = [(weight * m + part) // WEIGHT for m in values[place].tolist()]
            assert found[place].tolist() == expected
            assert found[place, 2] == (weight if place % 2 else 0)
