"""Keep k records of each unit, by its own records and a key alone, or weight them. Private side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd.ingest.row_hash import PRIME, row_hashes
from psd.privacy.values import WEIGHT

if TYPE_CHECKING:
    from psd.privacy.unit import PrivacyUnit
    from psd.space.time_slices import TimeSlices

__all__ = ["running_number"]

_HASH_BITS = PRIME.bit_length()

# Keys of so many bits are sorted first.
_SHORT_KEY_BITS = 32

_DAY = 86_400_000_000
"""Microseconds of a day."""


def number_units(
    unit: PrivacyUnit,
    users: NDArray[np.int64],
    time: NDArray[np.int64],
    slices: TimeSlices | None,
) -> NDArray[np.int64]:
    """Number the unit of each record: its user, or the day or slice of the user."""
    if unit.kind == "user-day":
        group = time // _DAY
    elif unit.kind == "user-slice" and slices is not None:
        return number_slices(users, time, slices)
    else:
        return users
    return _number_pairs(users, group)


def number_slices(
    users: NDArray[np.int64], time: NDArray[np.int64], slices: TimeSlices
) -> NDArray[np.int64]:
    """Number the pairs of a user and a time slice."""
    return _number_pairs(users, slices.index(time.astype("datetime64[us]")))


def _number_pairs(users: NDArray[np.int64], group: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the pairs of a user and a group."""
    group = group - group.min(initial=0)
    several = int(group.max(initial=0)) + 1
    numbers: NDArray[np.int64] = np.unique(users * several + group, return_inverse=True)[1]
    return numbers


def rows_per_unit(units: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count the records of each unit."""
    return np.bincount(units)


def user_weights(units: NDArray[np.int64], weight: int) -> NDArray[np.int64]:
    """Weigh records by floor(M / k_u). P1. The k_u records of a unit weigh at most M together."""
    return (weight // rows_per_unit(units))[units]


def round_weights(
    weights: NDArray[np.int64],
    values: NDArray[np.int64],
    salt: NDArray[np.integer],
    cells: tuple[NDArray[np.int64], NDArray[np.int64]],
    time: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Weights of values of records that weigh w in place of M: floor(w m / M + u), 0 to w.

    weights: (n,) int64, w of each record, below 2^30; values: (n, V) int64, m of each value, 0 to
    M; the others as in `keep_smallest`. All private; returns (n, V) int64, private.
    P5. It is a function of the record, of the number of records of its unit and of the key, and at
    most w. So the weights of a value, and what is left of w, sum to at most the weight of the unit.
    """
    # u is a hash of the record in [0, 1), the same for all of its values: rounding down would make
    # every mean too small, by half over w.
    first = np.broadcast_to(np.int64(0), len(weights))
    # Products are below 2^31 2^20 and 2^30 2^20.
    part = row_hashes(salt, *cells, time, first) * WEIGHT // PRIME
    return (weights[:, None] * values + part[:, None]) // WEIGHT


def keep_smallest(
    units: NDArray[np.int64],
    salt: NDArray[np.integer],
    cells: tuple[NDArray[np.int64], NDArray[np.int64]],
    time: NDArray[np.int64],
    k: int,
    values: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return the indices of the k records of each unit with the smallest hashes.

    units: (n,) int64, below 2^32; salt: (3, n) int, of its user, see `psd.ingest.row_hash`; cells:
    columns and rows of the full lattice, (n,) int64 each; time: (n,) int64, microseconds of local
    time, 0 without times; values: (n, V) int64, or None. All private, k public.
    """
    # Equal records have occurrence numbers, those of other values in the order of these, and equal
    # hashes are ordered by cell, time and occurrence: so nothing depends on positions of records.
    places = (*cells, time, *_columns_of(values))
    exceeds = (rows_per_unit(units) > k)[units]
    if 2 * np.count_nonzero(exceeds) > len(exceeds):
        # Units with few records keep all of them; to leave these out would copy the others.
        return _smallest(units, salt, places, k=k)
    crowded = np.flatnonzero(exceeds)
    of_crowded = tuple(each[crowded] for each in places)
    smallest = _smallest(units[crowded], salt[:, crowded], of_crowded, k=k)
    return np.concatenate([np.flatnonzero(~exceeds), crowded[smallest]])


def keep_in_slices(
    users: NDArray[np.int64],
    of_slices: NDArray[np.int64],
    salt: NDArray[np.integer],
    cells: tuple[NDArray[np.int64], NDArray[np.int64]],
    time: NDArray[np.int64],
    limits: tuple[int, int],
    values: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return the indices of the k smallest records of each user, of the M smallest of each slice.

    users, of_slices: (n,) int64, user of each record, and number of its pair of user and slice,
    private; limits: k and M, public; the others, hashes and their order as in `keep_smallest`.
    P2. The kept records of a user are a function of the user's own records and the key.
    P3. At most k of a user are kept, and at most M of them are in one slice.
    """
    # Users within both limits keep all of their records; hashes decide for the others.
    exceeds = rows_per_unit(users)[users] > limits[0]
    exceeds |= rows_per_unit(of_slices)[of_slices] > limits[1]
    has_more = np.zeros(int(users.max(initial=-1)) + 1, bool)
    has_more[users[exceeds]] = True
    crowded = np.flatnonzero(has_more[users])
    places = tuple(each[crowded] for each in (*cells, time, *_columns_of(values)))
    salts, first = salt[:, crowded], np.broadcast_to(np.int64(0), len(crowded))
    columns, rows, moments = places[:3]
    hashes = row_hashes(salts, columns, rows, moments, first)
    order = _order_of_ties(users[crowded], hashes, salts, places)
    smallest = smallest_in_order(order, users[crowded], of_slices[crowded], limits)
    return np.concatenate([np.flatnonzero(~has_more[users]), crowded[smallest]])


def smallest_in_order(
    order: NDArray[np.int64],
    users: NDArray[np.int64],
    of_slices: NDArray[np.int64],
    limits: tuple[int, int],
) -> NDArray[np.int64]:
    """Return the first k of each user, of the first M of each slice, of records in an order.

    order: (n,) int64, the records by user, then by hash, private; others as in `keep_in_slices`.
    P4. A record of the result of all records is in that of any part that has it. For in each slice,
    a part has no more records with a smaller hash than all records have, so no more of the M
    smallest, and a record below which fewer than k of these lie in all slices has no more of them
    below it in the part. So parts of the records of a user can be bounded one by one and merged.
    """
    # The first M of each slice stay; the first k of these are kept.
    by_slice = order[np.argsort(of_slices[order], kind="stable")]
    is_first = np.zeros(len(order), bool)
    is_first[by_slice] = running_number([of_slices[by_slice]]) < limits[1]
    left = order[is_first[order]]
    return left[running_number([users[left]]) < limits[0]]


def _columns_of(values: NDArray[np.int64] | None) -> tuple[NDArray[np.int64], ...]:
    """Columns of the weights of values; none without values."""
    return () if values is None else tuple(values.T)


def _smallest(
    units: NDArray[np.int64],
    salt: NDArray[np.integer],
    places: tuple[NDArray[np.int64], ...],
    *,
    k: int,
) -> NDArray[np.int64]:
    """Indices of the k smallest hashes of each unit; places: columns, rows, times and values."""
    columns, rows, time = places[:3]
    hashes = row_hashes(salt, columns, rows, time, np.broadcast_to(np.int64(0), len(units)))
    # First by the bits that fit into one word beside the unit. Where these are equal, by the whole
    # hash, and at last by the places themselves: nearly all records are decided by the first.
    is_kept, has_ties = _kept_by_bits(units, hashes, _short_bits(units), k)
    parts, index = [np.flatnonzero(is_kept & ~has_ties)], np.flatnonzero(has_ties)
    if len(index):
        is_kept, has_ties = _kept_by_bits(units[index], hashes[index], _HASH_BITS, k)
        parts.append(index[is_kept & ~has_ties])
        index = index[has_ties]
    if len(index):
        of_ties = tuple(values[index] for values in places)
        smallest = _smallest_of_ties(units[index], hashes[index], salt[:, index], of_ties, k=k)
        parts.append(index[smallest])
    return np.concatenate(parts)


def _short_bits(units: NDArray[np.int64]) -> int:
    """First bits of a hash that fit into a short key beside the number of a unit."""
    return min(_SHORT_KEY_BITS - int(units.max(initial=0)).bit_length(), _HASH_BITS)


def _kept_by_bits(
    units: NDArray[np.int64], hashes: NDArray[np.int64], bits: int, k: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Records kept by the first bits of their hashes, and those of units with ties; (n,) bool."""
    # Keys ascend by unit, then by hash: the k-th key of a unit is the largest that it keeps.
    key = units << bits | hashes >> (_HASH_BITS - bits)
    ascending = np.sort(key.astype(np.uint32) if bits == _short_bits(units) else key)
    sizes = np.bincount(units)
    last = np.cumsum(sizes) - sizes + np.minimum(sizes, k) - 1
    is_kept = key <= ascending[np.maximum(last, 0)][units]
    # Equal keys are of one unit, whose number is above the bits of the hash.
    has_ties = np.zeros(len(sizes), bool)
    has_ties[ascending[1:][ascending[1:] == ascending[:-1]] >> bits] = True
    return is_kept, has_ties[units]


def _smallest_of_ties(
    units: NDArray[np.int64],
    hashes: NDArray[np.int64],
    salt: NDArray[np.integer],
    ties: tuple[NDArray[np.int64], ...],
    *,
    k: int,
) -> NDArray[np.int64]:
    """Indices of the k smallest hashes of each unit, where some are equal."""
    order = _order_of_ties(units, hashes, salt, ties)
    return order[running_number([units[order]]) < k]


def _order_of_ties(
    units: NDArray[np.int64],
    hashes: NDArray[np.int64],
    salt: NDArray[np.integer],
    ties: tuple[NDArray[np.int64], ...],
) -> NDArray[np.int64]:
    """Order by unit and hash, where equal records get hashes by their occurrence number."""
    columns, rows, time = ties[:3]
    order, tied = _sort(units, hashes, ties)
    # Records that are equal but for values have equal hashes, so they are among the ties.
    among = order[tied]
    occurrence = running_number([units[among], hashes[among], *(v[among] for v in ties[:3])])
    again = among[occurrence > 0]
    if len(again):
        more = occurrence[occurrence > 0]
        hashes[again] = row_hashes(salt[:, again], columns[again], rows[again], time[again], more)
        number = np.zeros(len(units), np.int64)
        number[among] = occurrence
        order, _ = _sort(units, hashes, (*ties, number))
    return order


def _sort(
    units: NDArray[np.int64], hashes: NDArray[np.int64], ties: tuple[NDArray[np.int64], ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order by unit, hash and tie breakers; also return the positions of ties."""
    key = units << _HASH_BITS | hashes
    # Unit and hash in one word: one sort of numbers in place of a sort by two keys.
    order = np.argsort(key)
    key = key[order]
    # Both of two neighbours that are equal are ties.
    same = np.zeros(len(key), bool)
    same[1:] = key[1:] == key[:-1]
    same[:-1] |= same[1:].copy()
    tied = np.flatnonzero(same)
    among = order[tied]
    # Only equal keys are sorted by the tie breakers, which are longer.
    resolved = np.lexsort((*(values[among] for values in reversed(ties)), key[tied]))
    order[tied] = among[resolved]
    return order, tied


def running_number(keys: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Number the elements of each run of equal keys: 0, 1, 2, ..."""
    size = len(keys[0])
    starts = np.ones(size, bool)
    # A run begins where any of the keys changes.
    starts[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    first = np.flatnonzero(starts)
    return np.arange(size) - np.repeat(first, np.diff(np.append(first, size)))
