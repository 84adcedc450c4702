"""The header line of CSV: names, and lines that name the separator."""

import pytest

from psd._util.column_kinds import OpenQuoteError, is_separator_line, match_name, split_names


def test_names_are_split_at_the_separator():
    assert split_names('"west"; SOUTH', ";") == ["west", "SOUTH"]
    with pytest.raises(OpenQuoteError):
        split_names('"west; SOUTH', ";")


def test_a_name_is_found_in_another_case_if_it_is_the_only_one():
    assert match_name("lon", ["LON", "lat"]) == "LON"
    assert match_name("lon", ["Lon", "LON"]) is None


def test_a_line_that_names_the_separator_is_not_a_header():
    assert is_separator_line("sep=;")
    assert not is_separator_line("west;south")
