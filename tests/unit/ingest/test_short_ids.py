"""Numbers of short ids, against the bytes of the ids."""

import numpy as np
import pyarrow as pa
import pytest

from psd._util.arrays import to_arrow
from psd.ingest.short_ids import PARTITIONS, number_partitions, short_names, short_numbers
from psd.ingest.user_partitions import UserPartitions

ODD = [
    "",
    "a",
    "\0",
    "a\0",
    "\0a",
    "a\0b",
    "12345678",
    "123456789",
    "é",
    "서울",
    "서울시",
    "\x7f" * 8,
]
ODD += ["0", "00", "7", "007", " 7", "\U0010ffff" * 2, "\U0010ffff" * 3, "x" * 300, "1234567\0"]


def expected(name):
    """Number of an id, or None."""
    data = name.encode()
    is_short = len(data) <= 8 and not data.endswith(b"\0")
    return int.from_bytes(data, "little") if is_short else None


def numbers(ids):
    """Numbers of ids, None for those that have none."""
    values, is_short = short_numbers(ids)
    return [int(value) if short else None for value, short in zip(values, is_short, strict=True)]


@pytest.mark.parametrize("seed", range(5))
def test_numbers_of_odd_ids(seed):
    random = np.random.default_rng(seed)
    names = random.choice(np.array(ODD, object), 40_000 if seed == 0 else 50).tolist()
    ids = pa.array(names, pa.string())
    assert numbers(ids) == [expected(name) for name in names]
    assert numbers(ids[7:]) == [expected(name) for name in names[7:]]
    assert numbers(ids[3:4]) == [expected(names[3])]
    assert numbers(ids[:0]) == []


def test_different_ids_have_different_numbers():
    short = {name: expected(name) for name in ODD if expected(name) is not None}
    assert len(set(short.values())) == len(short)
    assert short_names(pa.array(list(short.values()), pa.uint64())).to_pylist() == list(short)


def test_ids_of_which_all_or_none_are_short():
    for names in (["12345678", "1"], ["123456789", "x" * 20], ["a\0", "b"]):
        assert numbers(pa.array(names, pa.string())) == [expected(name) for name in names]


def test_names_are_converted_without_pandas(monkeypatch):
    monkeypatch.setattr(pa, "array", lambda *_: pytest.fail("pyarrow.array imports pandas"))
    numbers = to_arrow(np.array([97, 0, 25185, 0x6867666564636261], np.uint64))
    names = short_names(numbers)
    names.validate(full=True)
    assert names.to_pylist() == ["a", "", "ab", "abcdefgh"]


def test_consecutive_numbers_are_spread():
    texts = pa.array([str(number) for number in range(100_000)])
    sizes = np.bincount(number_partitions(short_numbers(texts)[0]), minlength=PARTITIONS)
    assert len(sizes) == PARTITIONS
    assert 700 < sizes.min() < sizes.max() < 2_500


@pytest.mark.parametrize("memory", [None, 20_000])
@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("block", [2**21, 50])
def test_each_user_is_in_one_partition_with_all_records(memory, timed, block, monkeypatch):
    monkeypatch.setattr("psd.ingest.user_partitions._ROWS_PER_BLOCK", block)
    random = np.random.default_rng(3)
    partitions, rows = UserPartitions(memory), []
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
