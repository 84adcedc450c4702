"""Ids of users: which spellings are one user, and which ids are missing."""

import pyarrow as pa

from psd.ingest.user_ids import INVISIBLE, MISSING, normalise_ids


def normalised(*ids):
    return normalise_ids(pa.array(ids, pa.string())).to_pylist()


def test_spellings_that_split_no_user():
    for mark in INVISIBLE:
        assert normalised("ann", f"{mark}ann", f"ann{mark}{mark}") == ["ann"] * 3, ascii(mark)
    assert normalised("Zoe\u0308", "Zo\u00eb") == ["Zo\u00eb"] * 2
    # U+2000 is composed to U+2002, and both are white space.
    assert normalised("ann\u2000", "\u2000\u200bann") == ["ann", "ann"]
    for id_ in ("007", "7", "7.0", "ANN", "ann", "a b", "a\u200bb", "nul", "서울"):
        assert normalised(id_, "other") == [id_, "other"]


def test_marks_of_missing_ids_are_null_in_every_type_of_text():
    for mark in (*MISSING, "NULL", "NaN", "None", "<NA>", r"\N", "  ", " null\t"):
        assert normalised("ann", mark, None) == ["ann", None, None]
    for ids in ([], [None], [None, None]):
        assert normalised(*ids) == ids
    missing = {"<NA>", "", "NaN", None}
    for ids in (["0", "nul", "<NA>"], ["1", "2", ""], ["12", "NaN"], ["1", None]):
        assert normalised(*ids) == [None if id_ in missing else id_ for id_ in ids]
        assert normalised(*ids, "x" * 9) == [*normalised(*ids), "x" * 9]
    for kind in (pa.large_string(), pa.string_view(), pa.string()):
        chunks = pa.chunked_array([pa.array(["ann "], kind), pa.array(["bob", None], kind)])
        ids = normalise_ids(chunks)
        assert isinstance(ids, pa.StringArray)
        assert ids.to_pylist() == ["ann", "bob", None]
    ids = pa.array(["é ", "ann", "null"], pa.string())
    assert normalise_ids(ids.slice(1)).to_pylist() == ["ann", None]
    assert normalise_ids(ids.slice(0, 1)).to_pylist() == ["é"]
    # In a part of a column without a missing id, PyArrow 23 changes the last letters.
    ids = pa.array(["x", "visitor-1", "n", "visitor-2024-03-01"], pa.string())
    assert normalise_ids(ids.slice(1)).to_pylist() == ids.to_pylist()[1:]
