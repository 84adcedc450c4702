"""Numbers of short ids, against the bytes of the ids."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from psd._util.arrays import to_arrow
from psd.ingest.user_partitions import (
    PARTITIONS,
    UserPartitions,
    number_partitions,
    short_names,
    short_numbers,
)

ODD = ["", "a", "\0", "a\0", "\0a", "a\0b", "12345678", "123456789", "é", "서울", "서울시"]
ODD += ["\x7f" * 8, "0", "00", "7", "007", " 7", "1234567\0", "x" * 300]
ODD += ["\U0010ffff" * 2, "\U0010ffff" * 3]


def expected(name):
    data = name.encode()
    is_short = len(data) <= 8 and not data.endswith(b"\0")
    return int.from_bytes(data, "little") if is_short else None


def numbers(ids):
    values, is_short = short_numbers(ids)
    return [int(value) if short else None for value, short in zip(values, is_short, strict=True)]


def test_numbers_of_odd_ids(subtests):
    random = np.random.default_rng(0)
    drawn = [random.choice(np.array(ODD, object), size).tolist() for size in (40_000, *[50] * 4)]
    all_or_none = [["12345678", "1"], ["123456789", "x" * 20], ["a\0", "b"]]
    for number, names in enumerate([*drawn, *all_or_none]):
        with subtests.test(number=number):
            ids = pa.array(names, pa.string())
            assert numbers(ids) == [expected(name) for name in names]
            assert numbers(ids[7:]) == [expected(name) for name in names[7:]]
            assert numbers(ids[1:2]) == [expected(names[1])]
            assert numbers(ids[:0]) == []
    short = {name: expected(name) for name in ODD if expected(name) is not None}
    assert len(set(short.values())) == len(short)
    assert short_names(pa.array(list(short.values()), pa.uint64())).to_pylist() == list(short)
    texts = pa.array([str(number) for number in range(100_000)])
    sizes = np.bincount(number_partitions(short_numbers(texts)[0]), minlength=PARTITIONS)
    assert len(sizes) == PARTITIONS
    assert 700 < sizes.min() < sizes.max() < 2_500


def test_names_are_converted_without_pandas(monkeypatch):
    monkeypatch.setattr(pa, "array", lambda *_: pytest.fail("pyarrow.array imports pandas"))
    numbers = to_arrow(np.array([97, 0, 25185, 0x6867666564636261], np.uint64))
    names = short_names(numbers)
    names.validate(full=True)
    assert names.to_pylist() == ["a", "", "ab", "abcdefgh"]


def test_each_user_is_in_one_partition_with_all_records(subtests, monkeypatch):
    for memory, timed, block in product([None, 20_000], [False, True], [2**21, 50]):
        monkeypatch.setattr("psd.ingest.user_partitions._ROWS_PER_BLOCK", block)
        with subtests.test(memory=memory, timed=timed, block=block):
            check_partitions(UserPartitions(memory), timed)


def check_partitions(partitions, timed):
    random, rows = np.random.default_rng(3), []
    for _ in range(20):
        names = random.choice(np.array(ODD, object), 90)
        inside = random.random(90) < 0.7
        codes = random.integers(0, 10**9, int(inside.sum()))
        time = random.integers(0, 9, len(codes)) if timed else None
        partitions.add_rows(pa.array(names.tolist(), pa.string()), codes, time, inside)
        moments = [0] * len(codes) if time is None else time.tolist()
        rows += zip(names[inside].tolist(), codes.tolist(), moments, strict=True)
    found, seen = [], set()
    for part in partitions.partitions():
        names = part.names.to_pylist()
        assert len(set(names)) == len(names)
        assert seen.isdisjoint(names)
        seen.update(names)
        columns = (part.users.tolist(), part.codes.tolist(), part.time.tolist())
        found += [(names[user], *rest) for user, *rest in zip(*columns, strict=True)]
    assert sorted(found) == sorted(rows)
