"""Marks and bounds against a twin in plain Python integers."""

import hashlib
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest

from psd.ingest.contribution_bounding import keep_in_slices, keep_smallest
from psd.ingest.row_hash import PRIME, row_hashes, user_salts

KEY = b"sixteen bytes ok"


def naive_salts(name):
    digits = hashlib.md5(f"{KEY.hex()}|{name}".encode()).hexdigest()
    return [int(digits[start : start + 7], 16) for start in (0, 8, 16)]


def naive_mark(name, column, row, time, occurrence):
    first, factor, last = naive_salts(name)
    moment = time + 2**61
    x = first
    for value in (column, row, moment // 2**31, moment % 2**31, occurrence):
        x = (x * factor + value) % PRIME
    return (pow(x, 5, PRIME) + last) % PRIME


def rows(seed, size=400):
    random = np.random.default_rng(seed)
    users = random.integers(0, 6, size)
    cells = random.integers(0, 4, (2, size)) * random.choice([1, 2**29 // 4], (2, size))
    time = random.choice([-(2**55), -1, 0, 1, 2**40, 2**58], size)
    return users, cells, time


NAMES = ["7", "007", "Ann", "é", "서울", ""]


@pytest.mark.parametrize("together", [2**14, 3])
@pytest.mark.parametrize("seed", range(5))
def test_marks(seed, together, monkeypatch):
    monkeypatch.setattr("psd.ingest.row_hash._ROWS_PER_BATCH", together)
    users, (columns, row), time = rows(seed)
    occurrence = np.random.default_rng(seed).integers(0, 2**30, len(users))
    salts = user_salts(pa.array(NAMES), KEY)
    assert salts.dtype == np.int64
    found = row_hashes(salts[:, users], columns, row, time, occurrence)
    numbers = (values.tolist() for values in (users, columns, row, time, occurrence))
    expected = [naive_mark(NAMES[u], *rest) for u, *rest in zip(*numbers, strict=True)]
    assert found.tolist() == expected
    assert min(expected) >= 0


def test_no_product_overflows():
    salt = np.full((3, 1), 2**28 - 1)
    largest = np.array([2**30 - 1]), np.array([2**30 - 1]), np.array([2**60]), np.array([2**31 - 1])
    x = int(salt[0, 0])
    for value in (2**30 - 1, 2**30 - 1, (2**60 + 2**61) >> 31, (2**60 + 2**61) & PRIME, 2**31 - 1):
        x = (x * (2**28 - 1) + value) % PRIME
    assert row_hashes(salt, *largest).tolist() == [(pow(x, 5, PRIME) + 2**28 - 1) % PRIME]


def test_a_multiple_of_the_prime_leaves_nothing():
    zero, multiple = np.zeros(1, np.int64), np.array([PRIME])
    salt = np.array([[0], [0], [5]])
    assert row_hashes(salt, zero, zero, zero - 2**61, multiple).tolist() == [5]
    assert row_hashes(salt * 0, zero, zero, zero - 2**61, multiple).tolist() == [0]


@pytest.mark.parametrize("together", [2**14, 3])
def test_numbers_that_are_all_alike_are_hashed_like_others(together, monkeypatch):
    monkeypatch.setattr("psd.ingest.row_hash._ROWS_PER_BATCH", together)
    users, (columns, row), _ = rows(7)
    salt = user_salts(pa.array(NAMES), KEY)[:, users]
    alike = [np.broadcast_to(np.int64(value), len(users)) for value in (2**40, 3)]
    written = [values.copy() for values in alike]
    found, expected = (row_hashes(salt, columns, row, *v) for v in (alike, written))
    assert found.tolist() == expected.tolist()


def naive_kept(users, cells, time, k, different=PRIME):
    """Multiset of kept rows: all rows with occurrence numbers, sorted whole."""
    groups = defaultdict(list)
    seen = Counter()
    for user, column, row, moment in zip(users, *cells, time, strict=True):
        occurrence = seen[user, column, row, moment]
        seen[user, column, row, moment] += 1
        mark = naive_mark(NAMES[user], column, row, moment, occurrence) % different
        groups[user].append((mark, column, row, moment, occurrence))
    return Counter(
        (user, column, row, moment)
        for user, own in groups.items()
        for _, column, row, moment, _ in sorted(own)[:k]
    )


@pytest.mark.parametrize("k", [1, 3, 20, 60, 1000])
@pytest.mark.parametrize("different", [PRIME, 1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_kept_rows_and_those_with_the_same_mark(seed, different, k, monkeypatch):
    monkeypatch.setattr(
        "psd.ingest.contribution_bounding.row_hashes", lambda *row: row_hashes(*row) % different
    )
    users, cells, time = rows(seed)
    salt = user_salts(pa.array(NAMES), KEY)[:, users]
    places = keep_smallest(users, salt, (cells[0], cells[1]), time, k)
    found = Counter(zip(*(v[places].tolist() for v in (users, *cells, time)), strict=True))
    assert found == naive_kept(users.tolist(), cells.tolist(), time.tolist(), k, different)


def naive_kept_in_slices(users, cells, time, limits, different=PRIME):
    """Multiset of kept rows: the first M of each user and slice, then the first k of these."""
    k, most = limits
    seen, kept, every = Counter(), Counter(), []
    for user, column, row, moment in zip(users, *cells, time, strict=True):
        occurrence = seen[user, column, row, moment]
        seen[user, column, row, moment] += 1
        mark = naive_mark(NAMES[user], column, row, moment, occurrence) % different
        every.append((user, mark, column, row, moment, occurrence))
    in_slice, in_all = Counter(), Counter()
    for user, _, column, row, moment, _ in sorted(every):
        in_slice[user, moment > 0] += 1
        if in_slice[user, moment > 0] <= most and in_all[user] < k:
            in_all[user] += 1
            kept[user, column, row, moment] += 1
    return kept


@pytest.mark.parametrize(
    "limits", [(1, 1), (3, 2), (40, 7), (60, 60), (1000, 25), (1000, 1000), (40, 1000)]
)
@pytest.mark.parametrize("different", [PRIME, 3])
@pytest.mark.parametrize("seed", range(3))
def test_kept_rows_with_a_limit_in_each_slice(seed, different, limits, monkeypatch):
    monkeypatch.setattr(
        "psd.ingest.contribution_bounding.row_hashes", lambda *row: row_hashes(*row) % different
    )
    users, cells, time = rows(seed)
    salt, of_slices = user_salts(pa.array(NAMES), KEY)[:, users], 2 * users + (time > 0)
    places = keep_in_slices(users, of_slices, salt, (cells[0], cells[1]), time, limits)
    found = Counter(zip(*(v[places].tolist() for v in (users, *cells, time)), strict=True))
    data = users.tolist(), cells.tolist(), time.tolist()
    assert found == naive_kept_in_slices(*data, limits, different)


def test_without_records_none_are_kept_in_slices():
    none = np.empty(0, np.int64)
    places = keep_in_slices(none, none, np.empty((3, 0), np.int64), (none, none), none, (2, 1))
    assert len(places) == 0
