"""Random words of the operating system, without seed, state or float, and uniform integers."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
from numpy.typing import NDArray

from psd.errors import RandomnessError

__all__ = ["bytes_from", "random_bits", "system_bytes"]

MAX_BOUND = 2**63
_MAX_WORD = np.uint64(2**64 - 1)
_UINT64_ONE = np.uint64(1)


def system_bytes(size: int) -> bytes:
    """Draw bytes from the operating system; no other source is used."""
    try:
        return os.urandom(size)
    except (OSError, NotImplementedError):
        raise RandomnessError(
            "the operating system gives no random numbers, so nothing is drawn; a charge to a "
            "ledger stays"
        ) from None


_SOURCE: ContextVar[Callable[[int], bytes]] = ContextVar("_SOURCE", default=system_bytes)


def random_words(size: int) -> NDArray[np.uint64]:
    """Draw uniform 64-bit words from the operating system alone, (size,) uint64, read-only."""
    return np.frombuffer(_SOURCE.get()(8 * size), dtype=np.uint64)


def random_bits(size: int) -> NDArray[np.bool_]:
    """Draw fair coins, shape (size,), one bit of the operating system each."""
    # Whole bytes are drawn, rounded up; bits that are left over are thrown away.
    packed = np.frombuffer(_SOURCE.get()(-(-size // 8)), dtype=np.uint8)
    return np.unpackbits(packed, count=size).view(np.bool_)


@contextmanager
def bytes_from(source: Callable[[int], bytes]) -> Iterator[None]:
    """Draw in this thread, until the block ends, with stored bytes that no other draw has used."""
    # A process that is killed after a draw can repeat it with the same bytes, of `system_bytes`.
    token = _SOURCE.set(source)
    try:
        yield
    finally:
        _SOURCE.reset(token)


def uniform_below(bounds: NDArray[np.uint64] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Draw one uniform integer, (n,) int64, below each bound, (n,), from 1 to 2**63.

    P1. The law is exact. A word w with remainder r lies in the block [w - r, w - r + b). Blocks
    have b words each, so the remainder is uniform given that w lies in a block that ends within the
    2**64 words. Words past the last such block, fewer than b, are drawn again.
    """
    limits = bounds.astype(np.uint64)  # a negative bound wraps above 2**63, and is refused
    if limits.size and not 1 <= int(limits.min()) <= int(limits.max()) <= MAX_BOUND:
        raise ValueError("every bound must be from 1 to 2**63")
    words = random_words(limits.size)
    # Rests of words in full blocks of the bound are uniform; words past the last block are refused.
    below = words % limits
    refused = words - below > _MAX_WORD - (limits - _UINT64_ONE)  # past the last full block
    pending = np.flatnonzero(refused)
    # Whether a word is drawn again depends on chance and the bound alone.
    while pending.size:
        limits = limits[refused]
        words = random_words(pending.size)
        again = words % limits
        below[pending] = again
        refused = words - again > _MAX_WORD - (limits - _UINT64_ONE)
        pending = pending[refused]
    return below.view(np.int64)
