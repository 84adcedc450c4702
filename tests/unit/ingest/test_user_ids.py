"""Ids of users: which spellings are one user, and which ids are missing."""

import pyarrow as pa
import pytest

from psd.ingest.user_ids import INVISIBLE, MISSING, normalise_ids


def normalised(*ids):
    return normalise_ids(pa.array(ids, pa.string())).to_pylist()


@pytest.mark.parametrize("mark", INVISIBLE, ids=ascii)
def test_invisible_characters_around_an_id_split_no_user(mark):
    assert normalised("ann", f"{mark}ann", f"ann{mark}{mark}") == ["ann"] * 3


def test_an_accent_is_one_whether_composed_or_not():
    assert normalised("Zoe\u0308", "Zo\u00eb") == ["Zo\u00eb"] * 2


def test_what_normalising_lays_bare_is_trimmed():
    """U+2000 is composed to U+2002, and both are white space."""
    assert normalised("ann\u2000", "\u2000\u200bann") == ["ann", "ann"]


@pytest.mark.parametrize("id_", ["007", "7", "7.0", "ANN", "ann", "a b", "a\u200bb", "nul", "서울"])
def test_nothing_else_is_merged(id_):
    assert normalised(id_, "other") == [id_, "other"]


@pytest.mark.parametrize("mark", [*MISSING, "NULL", "NaN", "None", "<NA>", r"\N", "  ", " null\t"])
def test_marks_of_missing_ids_are_null(mark):
    assert normalised("ann", mark, None) == ["ann", None, None]


@pytest.mark.parametrize("ids", [[], [None], [None, None]])
def test_arrays_without_an_id(ids):
    assert normalised(*ids) == ids


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.string()], ids=str)
def test_every_type_of_text_becomes_one_array(kind):
    chunks = pa.chunked_array([pa.array(["ann "], kind), pa.array(["bob", None], kind)])
    ids = normalise_ids(chunks)
    assert isinstance(ids, pa.StringArray)
    assert ids.to_pylist() == ["ann", "bob", None]


def test_a_part_of_an_array_is_normalised_alone():
    ids = pa.array(["é ", "ann", "null"], pa.string())
    assert normalise_ids(ids.slice(1)).to_pylist() == ["ann", None]
    assert normalise_ids(ids.slice(0, 1)).to_pylist() == ["é"]


@pytest.mark.parametrize("ids", [["0", "nul", "<NA>"], ["1", "2", ""], ["12", "NaN"], ["1", None]])
def test_a_mark_is_found_among_other_ids(ids):
    missing = {"<NA>", "", "NaN", None}
    assert normalised(*ids) == [None if id_ in missing else id_ for id_ in ids]
    assert normalised(*ids, "x" * 9) == [*normalised(*ids), "x" * 9]
