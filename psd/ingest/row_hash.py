"""Keyed hash of a record; each user keeps the k smallest. Private side.

The hash reads the user, cell, time, occurrence number among equal records of the user, and the key,
by products and remainders below 2^62: every engine with 64-bit integers computes the same value.
Privacy holds for every fixed key, even a published one, as long as it does not depend on the data.
A key is generated once from random bytes, and used for all parts of a data set.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import stat
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.atomic_write import write_file
from psd.errors import InputDataError, WriteError
from psd.ingest.memory_limit import open_session

__all__ = ["PRIME", "SALTS", "TIME_OFFSET"]


# The Mersenne prime 2^31 - 1: products of two remainders stay below 2^62.
PRIME = 2**31 - 1

# Salts of a user, 28 bits each.
SALTS = 3

# A batch of this many records stays in the cache of a processor.
_ROWS_PER_BATCH = 2**14

# Makes the microseconds of any year positive.
TIME_OFFSET = 2**61


@cache
def _session() -> Any:
    """Session of the database that computes digests, in memory and by the thread that asks."""
    return open_session("SET threads = 1")


def user_salts(names: Any, key: bytes) -> NDArray[np.int64]:
    """Compute three numbers below 2^28 of n ids, Arrow texts without nulls: (3, n), private."""
    import pyarrow as pa

    # MD5, since every engine has it; privacy does not depend on it.
    ids = _session().cursor().from_arrow(pa.table({"id": names}))
    digests = ids.project(f"md5_number('{key.hex()}|' || id) AS digest").to_arrow_table()
    # The 16 bytes of each digest in their order; seven of the eight digits of each word.
    data = digests["digest"].combine_chunks().buffers()[1]
    words = np.frombuffer(data, ">u4", count=4 * len(names)).reshape(-1, 4)[:, :SALTS] >> 4
    return words.T.astype(np.int64)


def row_hashes(
    salt: NDArray[np.integer],
    columns: NDArray[np.int64],
    rows: NDArray[np.int64],
    time: NDArray[np.int64],
    occurrence: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Hash records to 0 to 2^31 - 2: a polynomial with salts of the user, to the fifth power.

    salt: (3, n) int, of the user of each record; columns, rows: (n,) int64, cells of the full
    lattice; time: (n,) int64, microseconds of local time since 1970, 0 without times; occurrence:
    (n,) int64, 0, 1, ... among equal records of one user. All private; returns (n,) int64.
    x = salt0; x = (x salt1 + v) mod p for v = column, row, t div 2^31, t mod 2^31, occurrence with
    t = time + 2^61; the hash is (x^5 + salt2) mod p. 5 does not divide p - 1, so x^5 is one to one.
    """
    hashes = np.empty(len(columns), np.int64)
    for start in range(0, len(hashes), _ROWS_PER_BATCH):
        batch = slice(start, start + _ROWS_PER_BATCH)
        some = salt[:, batch].astype(np.int64)
        values = (columns[batch], rows[batch], time[batch], occurrence[batch])
        column, row, moment, repeat = map(_short, values)
        moment = moment + TIME_OFFSET
        x: NDArray[np.int64] = some[0].copy()
        for value in (column, row, moment >> 31, moment & PRIME, repeat):
            # After one fold x is below 2^32, and its product with a salt below 2^60.
            x *= some[1]
            x += value
            _fold(x)
        _fold(x)
        # After two folds numbers are at most the prime, which stands for 0: products are below
        # 2^62.
        power: NDArray[np.int64] = x * x
        _fold_twice(power)
        power *= power
        _fold_twice(power)
        power *= x
        power += some[2]
        _fold_twice(power)
        power[power == PRIME] = 0
        hashes[batch] = power
    return hashes


def _short(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers that are all alike as one number, which is broadcast."""
    return values[:1] if values.strides == (0,) else values


def _fold_twice(values: NDArray[np.int64]) -> None:
    """Reduce values below 2^62 to at most the prime."""
    _fold(values)
    _fold(values)


def _fold(values: NDArray[np.int64]) -> None:
    """Reduce values to fewer bits with the same remainders, since 2^31 is 1 modulo the prime."""
    high = values >> 31
    values &= PRIME
    values += high


_BYTES = 32


def load_key(path: str | os.PathLike[str]) -> bytes:
    """Read a key file, which only its owner may read; without one, create it with random bytes."""
    path = Path(path)
    if not path.exists():
        try:
            write_file(path, f"{secrets.token_hex(_BYTES)}\n".encode(), mode=0o600)
        except WriteError:
            if not path.exists():  # otherwise another process created it meanwhile
                raise
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise InputDataError(
                f"key {path} must be readable by its owner only; make it private: chmod 600"
            )
        text = path.read_bytes()
    except OSError as error:
        raise InputDataError(f"key {path} cannot be read: {error.strerror}") from None
    if not re.fullmatch(rb"[0-9a-f]{64}\n?", text):
        raise InputDataError(
            f"key {path} must hold 64 hexadecimal digits; a file that does not exist is created"
        )
    return bytes.fromhex(text.decode())


def key_fingerprint(key: bytes) -> str:
    """Compute a fingerprint of a key, which does not reveal the key."""
    return hmac.new(key, b"psd: which key", hashlib.sha256).hexdigest()[:32]
