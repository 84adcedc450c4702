"""Kept records of users against a twin in plain Python, and parts that are merged."""

from collections import defaultdict
from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa

from psd.ingest.row_hash import row_hashes, user_salts
from psd.ingest.user_partitions import UserPartition, keep_user_rows, merge_user_rows
from psd.privacy.unit import PrivacyUnit
from psd.space.time_slices import TimeSlices

KEY = b"sixteen bytes ok"
WIDTH = 4
DAY = 86_400_000_000


SLICES = TimeSlices.parse("day", "1970-01-01..1970-01-02")
UNITS = [
    (PrivacyUnit(kind="user-day", max_contributions=2, time_zone="UTC"), None),
    (PrivacyUnit(kind="user-slice", max_contributions=2), SLICES),
]


def user(k):
    return PrivacyUnit(kind="user", max_contributions=k)


def random_records(seed, size=60):
    """Records (user, column, row, time), several of them equal."""
    random = np.random.default_rng(seed)
    users = [f"user {n}" for n in random.integers(0, 5, size)]
    cells = random.integers(0, 3, (2, size)).tolist()
    times = (random.integers(0, 2, size) * DAY).tolist()
    return list(zip(users, *cells, times, strict=True))


def partition(records):
    users, columns, rows, times = zip(*records, strict=True) if records else [()] * 4
    names = list(dict.fromkeys(users))
    return UserPartition(
        users=np.array([names.index(user) for user in users], np.int64),
        names=pa.array(names, pa.string()),
        codes=np.array(rows, np.int64) * WIDTH + np.array(columns, np.int64),
        time=np.array(times, np.int64),
    )


def keep(records, unit, slices=None):
    return keep_user_rows([partition(records)], unit, slices, WIDTH, KEY)


def listed(rows):
    """Records (user, column, row, time) of arrays, in an order of their own."""
    columns = (rows.users, rows.columns, rows.rows, rows.time)
    names = rows.names.to_pylist()
    return sorted(
        (names[user], *rest)
        for user, *rest in zip(*(values.tolist() for values in columns), strict=True)
    )


def hash_of(record, occurrence):
    name, *values = record
    numbers = [np.array([value]) for value in (*values, occurrence)]
    return int(row_hashes(salts_of(name), *numbers)[0])


@cache
def salts_of(name):
    return user_salts(pa.array([name]), KEY)


def smallest(records, k, unit_of):
    """The k records of each unit with the smallest hashes, equal records numbered."""
    seen, units = defaultdict(int), defaultdict(list)
    for record in records:
        units[unit_of(record)].append((hash_of(record, seen[record]), record))
        seen[record] += 1
    return sorted(record for unit in units.values() for _, record in sorted(unit)[:k])


def test_the_smallest_hashes_of_each_unit_are_kept(subtests):
    for seed, k in product(range(5), [1, 3, 100]):
        with subtests.test(seed=seed, k=k):
            records = random_records(seed)
            assert listed(keep(records, user(k))) == smallest(records, k, lambda record: record[0])
    records = random_records(7)
    expected = smallest(records, 2, lambda record: (record[0], record[3]))
    for unit, slices in UNITS:
        assert listed(keep(records, unit, slices)) == expected


def test_equal_records_are_several_and_counted_by_cell():
    records = [("ann", 1, 1, 0)] * 5 + [("bob", 1, 1, 0)]
    assert listed(keep(records, user(3))) == [("ann", 1, 1, 0)] * 3 + [("bob", 1, 1, 0)]
    parts = [keep([(name, 0, 0, 0)], user(1)) for name in ("7", "007", "7")]
    assert listed(merge_user_rows(parts, user(1), None)) == [("007", 0, 0, 0), ("7", 0, 0, 0)]
    records = [("ann", 1, 2, 0), ("bob", 1, 2, 0), ("ann", 1, 2, DAY), ("ann", 3, 0, DAY)]
    kept = keep(records, user(9))
    tally = kept.tally(None)
    cells = zip(tally.columns, tally.rows, tally.counts, strict=True)
    assert sorted(cells) == [(1, 2, 3), (3, 0, 1)]
    tally = kept.tally(SLICES)
    cells = zip(tally.slice, tally.columns, tally.rows, tally.counts, strict=True)
    assert sorted(cells) == [(0, 1, 2, 2), (1, 1, 2, 1), (1, 3, 0, 1)]


def test_the_order_of_records_and_partitions_does_not_count():
    records = random_records(3)
    parts = [[r for r in records if (r[0] < "user 2") == side] for side in (True, False)]
    apart = keep_user_rows([partition(part[::-1]) for part in parts], user(2), None, WIDTH, KEY)
    assert listed(apart) == listed(keep(records, user(2)))
    assert apart.names.to_pylist() == sorted(apart.names.to_pylist())
    assert repr(apart) == "<UserRows: private>"
    for empty in ([], [[]], [[], []]):
        merged = merge_user_rows([keep(part, user(2)) for part in empty], user(2), None)
        assert (len(merged.users), merged.users.dtype) == (0, np.int64)
        assert len(merged.tally(None).counts) == 0


def test_parts_of_the_same_users_merge_to_the_smallest_of_all(subtests):
    for seed, k in product(range(5), [1, 2, 4]):
        parts = [keep(random_records(10 * seed + n), user(k)) for n in range(3)]
        merged = merge_user_rows(parts, user(k), None)
        hashes = defaultdict(list)
        for part in parts:
            names = part.names.to_pylist()
            for number, value in zip(part.users, part.hashes, strict=True):
                hashes[names[number]].append(int(value))
        names = np.array(merged.names.to_pylist())
        with subtests.test(seed=seed, k=k):
            for name, values in hashes.items():
                of_user = merged.hashes[names[merged.users] == name]
                assert sorted(of_user.tolist()) == sorted(values)[:k]
            assert listed(merge_user_rows(parts[::-1], user(k), None)) == listed(merged)
