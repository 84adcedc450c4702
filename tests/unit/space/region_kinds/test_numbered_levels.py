"""Numbers of levels: texts of them, their order and their range."""

import pytest

from psd.errors import ParameterError
from psd.space.region_kinds._numbered_levels import NumberedLevels

ZOOMS = NumberedLevels(argument="tiles", noun="zooms", example="8..14 or 8,11,14", largest=24)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("8..10", (8, 9, 10)), (" 8, 12", (8, 12)), ("7", (7,)), (" 8 .. 9 ", (8, 9)), ("9..8", ())],
)
def test_numbers_of_a_text(text, numbers):
    assert ZOOMS.parse(text) == numbers


@pytest.mark.parametrize("text", ["", "a", "8..", "-1", "1.5", "8,", "100", "8..100", "²"])
def test_other_texts_are_refused(text):
    with pytest.raises(ParameterError, match=r"tiles must be zooms such as 8\.\.14 or 8,11,14"):
        ZOOMS.parse(text)


@pytest.mark.parametrize("numbers", [(), (9, 8), (8, 8), (-1, 3), (3, 25)])
def test_numbers_must_ascend_in_range(numbers):
    with pytest.raises(ParameterError, match="tiles must be ascending zooms from 0 to 24, got"):
        ZOOMS.check(numbers)


def test_ends_of_the_range_are_taken():
    ZOOMS.check((0, 24))
