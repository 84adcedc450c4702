"""Levels of regions that are numbers: resolutions of H3, zooms of map tiles."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from psd.errors import ParameterError

__all__ = ["NumberedLevels"]

_RANGE = re.compile(r"\s*(\d{1,2})\s*\.\.\s*(\d{1,2})\s*", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class NumberedLevels:
    """Rule for the numbers of the levels of one kind of regions."""

    argument: str  # name of the argument that messages start with
    noun: str  # plural noun of the numbers
    example: str  # texts that messages show
    largest: int  # number of the finest level

    def parse(self, text: str) -> tuple[int, ...]:
        """Numbers of a text: a range such as ``5..9``, or numbers with commas."""
        pair = _RANGE.fullmatch(text)
        if pair is not None:
            return tuple(range(int(pair[1]), int(pair[2]) + 1))
        parts = [part.strip() for part in text.split(",")]
        if not all(part.isdecimal() and part.isascii() and len(part) <= 2 for part in parts):
            raise ParameterError(
                f"{self.argument} must be {self.noun} such as {self.example}, got {text[:80]!r}"
            )
        return tuple(int(part) for part in parts)

    def check(self, numbers: Sequence[int]) -> None:
        """Refuse numbers that are not ascending, or out of range."""
        ascends = all(a < b for a, b in itertools.pairwise(numbers))
        if not numbers or not ascends or numbers[0] < 0 or numbers[-1] > self.largest:
            raise ParameterError(
                f"{self.argument} must be ascending {self.noun} from 0 to {self.largest}, got "
                f"{str(list(numbers))[:80]}"
            )
