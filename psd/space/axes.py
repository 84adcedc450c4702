"""Axes beside the plane, public lists of cells of the caller: time slices and categories."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd.errors import ParameterError
from psd.space.time_slices import TimeSlices

REGION = "region"
"""Name of the axis of regions, which are places: windows are of the other axes."""


class Axis(Protocol):
    """A public list of cells in an order, beside the two axes of the plane.

    P1. A record has one cell of the axis, by a public function of it alone, or is dropped.
    """

    @property
    def name(self) -> str:
        """Name of the axis, such as ``time``."""

    @property
    def size(self) -> int:
        """Number of its cells."""

    def cells_of(self, values: NDArray[Any]) -> Integers:
        """Cell of each value, (n,) int64, -1 for values outside; values and cells are private."""

    def lines(self, first: Integers, stop: Integers) -> Integers:
        """Public line that divides each span, (n,) int64; the first cell of a span of one."""

    def label(self, first: int, stop: int) -> str:
        """Name of the cells `first` to `stop` - 1."""

    def span_of(self, text: str) -> tuple[int, int]:
        """First cell of a text, and the one after its last."""


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The public time slices of a release as an axis."""

    slices: TimeSlices

    @property
    def name(self) -> str:
        """The word for this axis in texts and files."""
        return "time"

    @property
    def size(self) -> int:
        """Number of slices."""
        return len(self.slices)

    def cells_of(self, values: NDArray[np.datetime64]) -> Integers:
        """Slice of each local time, -1 outside of all slices."""
        return self.slices.index(values)

    def lines(self, first: Integers, stop: Integers) -> Integers:
        """The middle of each span."""
        return (first + stop) // 2

    def label(self, first: int, stop: int) -> str:
        """Name of a slice, or ``FIRST..LAST`` of several; a last hour is the time of its end."""
        names = self.slices.names
        if stop - first == 1:
            return names[first]
        is_hours = self.slices.by == "hour"
        last = str(self.slices.ends[stop - 1]) if is_hours else names[stop - 1]
        return f"{names[first]}..{last}"

    def span_of(self, text: str) -> tuple[int, int]:
        """Slices of a window without a gap."""
        numbers = self.slices.window(text).numbers
        first, stop = int(numbers[0]), int(numbers[-1]) + 1
        if stop - first != len(numbers):
            raise ParameterError(f"when must have no gap, got {text[:80]!r}", name="when")
        return first, stop
