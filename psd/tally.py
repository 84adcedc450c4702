"""The tally: exact counts per occupied lattice cell. Private; never written, never shown.

Batches of coordinates come in, each is laid on the public lattice, and under a user bound each
user keeps at most k rows. Which rows these are depends on the user's own rows and a key alone,
so that removing a user changes no other user's kept rows, and the order of the rows is nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd.domain import Domain
from psd.errors import DomainError, InputDataError

__all__ = ["Batch", "Tally", "tally"]

# White space of Unicode, and the marks of width zero that editors and exports leave behind.
_INVISIBLE = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u200b\u200c\u200d\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Batch:
    """Some rows of a source.

    Parameters
    ----------
    x, y : ndarray, shape (n,), float64
        Coordinates in the CRS of the domain; NaN where the row has none. Private.
    user : pyarrow.Array of string, length n, or None
        Opaque ids; null where the row has none. Private.
    time : ndarray, shape (n,), datetime64[us], or None
        Wall-clock time in the zone of the columns; NaT where the row has none. Private.
    """

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    user: Any = None
    time: NDArray[np.datetime64] | None = None

    def __repr__(self) -> str:
        return "<Batch: private>"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Tally:
    """Counts of kept rows per occupied lattice cell, in order of the cell's code. Private.

    Parameters
    ----------
    columns, rows : ndarray, shape (n,), int32
        Occupied cells.
    counts : ndarray, shape (n,), int64
        Rows in each, above 0.
    contributions : int
        Most rows of one user in the whole tally; 1 where a row is the unit.
    report : dict of str to int
        Rows read, without coordinates, outside, dropped by the bound. Private, for
        ``--report-private``.
    """

    columns: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.int64]
    contributions: int = 1
    report: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "<Tally: private>"


def tally(
    batches: Iterable[Batch],
    domain: Domain,
    *,
    max_contributions: int | None = None,
    key: bytes | None = None,
) -> Tally:
    """Count the rows of a source per lattice cell, at most k rows per user.

    Guarantees
    ----------
    - Unit record: one row more or less changes one count by 1.
    - Unit user: the rows kept of a user are a function of that user's rows inside the domain
      and the key; one user more or less changes the counts by at most k in sum.
    - The order and the partition of the rows change nothing.

    Parameters
    ----------
    batches : iterable of Batch
        Rows of one source; with ids if and only if there is a bound. Private.
    domain : Domain
        Public; rows outside are dropped before anything is counted or bounded.
    max_contributions : int, optional
        k, the most rows kept of one user; without it each row is its own unit. Public.
    key : bytes, optional
        Key of the hash that chooses the kept rows; random where not given. Tests give one.

    Returns
    -------
    Tally
        Private.

    Raises
    ------
    DomainError
        If a value is no coordinate of the CRS, or rows exist and none lies inside the bounds.
    InputDataError
        If a row has no user id.

    Notes
    -----
    Differential privacy holds for each fixed key, also a known one: the choice for user u reads
    rows of u alone. The key serves unbiasedness, so that no one can aim a place at being kept.
    """
    ledger = _Rows(domain, bounded=max_contributions is not None)
    for batch in batches:
        ledger.add(batch)
    if ledger.read > 0 and ledger.inside == 0 and ledger.read > ledger.missing:
        raise DomainError(
            f"no row lies inside the bounds {domain.bounds}; are x and y swapped, are the "
            "bounds in the order west south east north, or is the CRS another one?"
        )
    codes = np.concatenate([*ledger.codes, np.empty(0, np.int64)])
    report = ledger.report()
    if max_contributions is not None:
        users, names = ledger.users()
        codes = _bounded(codes, users, names, max_contributions, key or secrets.token_bytes(16))
        report["over the limit"] = ledger.inside - len(codes)
    cells, counts = np.unique(codes, return_counts=True)
    return Tally(
        columns=(cells % domain.lattice[0]).astype(np.int32),
        rows=(cells // domain.lattice[0]).astype(np.int32),
        counts=counts.astype(np.int64),
        contributions=max_contributions or 1,
        report={**report, "kept": int(counts.sum())},
    )


class _Rows:
    """Cell codes and user ids of the rows inside the domain, batch by batch."""

    def __init__(self, domain: Domain, *, bounded: bool) -> None:
        self.domain, self.bounded = domain, bounded
        self.codes: list[NDArray[np.int64]] = []
        self.ids: list[Any] = []
        self.read = self.missing = self.inside = 0

    def add(self, batch: Batch) -> None:
        """Lay one batch on the lattice and keep what lies inside."""
        self._check_coordinates(batch)
        columns, rows, inside = self.domain.quantise(batch.x, batch.y)
        self.codes.append(rows.astype(np.int64) * self.domain.lattice[0] + columns)
        if self.bounded:
            self._add_ids(batch.user, inside)
        self.read += len(inside)
        self.missing += int(np.count_nonzero(np.isnan(batch.x) | np.isnan(batch.y)))
        self.inside += len(columns)

    def _check_coordinates(self, batch: Batch) -> None:
        """Degrees have limits; a value beyond them says that the columns are not what was said."""
        if not self.domain.geographic:
            return
        for name, values, limit in (("x", batch.x, 180), ("y", batch.y, 90)):
            if (np.abs(values) > limit).any():
                raise DomainError(
                    f"column for {name} holds values beyond {limit} degrees, which no coordinate "
                    "of the CRS has; are x and y swapped, are these metres of a projected CRS "
                    "(give it with --crs), or longitudes counted from 0 to 360?"
                )

    def _add_ids(self, user: Any, inside: NDArray[np.bool_]) -> None:
        """Keep the ids of the rows inside as a dictionary-encoded array."""
        import pyarrow as pa

        ids = _normalised(user.filter(pa.array(inside)))
        if ids.null_count:
            raise InputDataError(
                "rows without a user id; a bound per user cannot hold for them: remove these rows "
                "or build without --user"
            )
        self.ids.append(ids.dictionary_encode())

    def users(self) -> tuple[NDArray[np.int64], list[str]]:
        """Number of each row's user, and the ids by number."""
        import pyarrow as pa

        if not self.ids:
            return np.empty(0, np.int64), []
        whole = pa.chunked_array(self.ids).unify_dictionaries().combine_chunks()
        return whole.indices.to_numpy().astype(np.int64), whole.dictionary.to_pylist()

    def report(self) -> dict[str, int]:
        """Private counts for the one who holds the file."""
        outside = self.read - self.missing - self.inside
        return {"read": self.read, "without coordinates": self.missing, "outside": outside}


def _normalised(ids: Any) -> Any:
    """Ids without the spellings that nobody sees, so that a user is not several; null if none.

    White space and byte-order marks around an id go, letters and their accents are composed
    (NFC), and what databases write for a missing value is missing. Nothing else is merged:
    007 is not 7, and ANN is not ann.
    """
    import pyarrow.compute as pc

    ids = pc.utf8_normalize(pc.utf8_trim(ids, characters=_INVISIBLE), form="NFC")
    ids = pc.utf8_trim(ids, characters=_INVISIBLE)
    return pc.if_else(pc.is_in(pc.utf8_lower(ids), value_set=_missing_ids()), None, ids)


def _missing_ids() -> Any:
    """What stands where there is no id."""
    import pyarrow as pa

    return pa.array(["", "null", "nan", "none", "<na>", r"\n"])


def _bounded(
    codes: NDArray[np.int64], users: NDArray[np.int64], names: list[str], k: int, key: bytes
) -> NDArray[np.int64]:
    """Cell codes of the k rows of each user with the smallest hashes.

    Equal rows of a user are told apart by their occurrence number, so nothing depends on where
    a row stood. Two rows of a user with the same hash are ordered by cell, then occurrence.
    """
    order = np.lexsort((codes, users))
    codes, users = codes[order], users[order]
    occurrence = _running_number((users, codes))
    salt = np.array([_user_hash(key, name) for name in names], np.uint64)
    marks = _mix(_mix(salt[users] ^ codes.astype(np.uint64)) + occurrence.astype(np.uint64))
    order = np.lexsort((occurrence, codes, marks, users))
    kept = _running_number((users[order],)) < k
    return codes[order][kept]


def _running_number(keys: tuple[NDArray[np.int64], ...]) -> NDArray[np.int64]:
    """0, 1, 2, ... within each run of equal keys."""
    size = len(keys[0])
    starts = np.ones(size, bool)
    starts[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    first = np.flatnonzero(starts)
    return np.arange(size) - np.repeat(first, np.diff(np.append(first, size)))


def _user_hash(key: bytes, name: str) -> int:
    """64 bits of a keyed hash of the id's own text; ids are opaque, 007 is not 7."""
    return int.from_bytes(hashlib.blake2b(name.encode(), key=key, digest_size=8).digest(), "big")


def _mix(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit words one to one (the finaliser of SplitMix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
