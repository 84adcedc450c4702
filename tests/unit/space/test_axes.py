"""Axes beside the plane."""

import numpy as np
import pytest

from psd.errors import ParameterError
from psd.space.axes import TimeAxis
from psd.space.time_slices import TimeSlices


@pytest.mark.parametrize(
    ("by", "text"), [("hour", "2024-01-31T00..2024-02-01T23"), ("month", "2023-11..2024-03")]
)
def test_labels_are_read_back(by, text):
    axis = TimeAxis(TimeSlices.parse(by, text))
    for first in range(axis.size):
        for stop in range(first + 1, axis.size + 1):
            assert axis.span_of(axis.label(first, stop)) == (first, stop)


def test_times_have_one_cell_or_none():
    axis = TimeAxis(TimeSlices.parse("day", "2024-01-01..2024-01-03"))
    times = np.array(["2023-12-31T23", "2024-01-01T00", "2024-01-03T23", "2024-01-04"], "M8[us]")
    assert axis.cells_of(times).tolist() == [-1, 0, 2, -1]
    assert (axis.name, axis.size) == ("time", 3)


def test_a_span_has_no_gap():
    axis = TimeAxis(TimeSlices.parse("day", "2024-01-01..2024-01-14"))
    with pytest.raises(ParameterError, match="no gap"):
        axis.span_of("weekends")


def test_a_last_hour_is_the_time_at_which_the_window_ends():
    axis = TimeAxis(TimeSlices.parse("hour", "2024-01-31T00..2024-01-31T23"))
    assert (axis.size, axis.label(7, 9)) == (24, "2024-01-31T07..2024-01-31T09")
