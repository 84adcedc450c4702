"""Random bytes of a slice, on the disk before anything is drawn with them. Private side.

P1. A slice is drawn once. Proof. All draws of a slice take their bytes from one tape, in order. A
byte enters the tape from the operating system, and the tape is on the disk before a draw reads the
byte. The questions of a slice are a function of its records, of public parameters and of answers.
So a process that is killed at any step and runs again on the same records draws the same answers.
The tape is erased in the transaction that stores these, and from then on the slice is refused.
Nothing is published before that transaction, so no two draws of a slice are ever seen.
"""

from __future__ import annotations

from psd.apps.streams.state import State
from psd.mechanisms.random_words import system_bytes

__all__ = ["RandomTape"]

# Bytes that are stored at once; a fixed grid of 4,096 cells takes about half of them.
_BLOCK = 2**17


class RandomTape:
    """Gives the random bytes of a slice in order, those of an earlier run first."""

    def __init__(self, state: State, number: int) -> None:
        self._state, self._number = state, number
        self._bytes, self._used = state.random_words(number), 0

    def __call__(self, size: int) -> bytes:
        """Give the next bytes; store more of them first if the tape is too short."""
        stop = self._used + size
        if stop > len(self._bytes):
            # At least as many as there are, so that a long tape takes few writes.
            more = system_bytes(max(stop - len(self._bytes), len(self._bytes), _BLOCK))
            self._state.append_random_words(self._number, more)
            self._bytes += more
        start, self._used = self._used, stop
        return self._bytes[start:stop]
