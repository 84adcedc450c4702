"""Ids of users: equivalent spellings, and marks of missing ids. Private side."""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np

from psd._util.wall_clock import WHITE_SPACE

__all__ = ["INVISIBLE", "MISSING"]

ID_RULES = "nfc-1"
"""Name of the rules of `normalise_ids`. Other rules define other users, so need another name."""

# White space, and zero-width characters that editors and exports insert.
INVISIBLE = WHITE_SPACE + "\u200b\u200c\u200d\u2060\ufeff"

# Marks of a missing id, in lower case.
MISSING = ("", "null", "nan", "none", "<na>", r"\n")

_LONGEST_MARK = max(map(len, MISSING))

# First letters of marks, small and large.
_STARTS = [ord(case) for mark in MISSING if mark for case in (mark[0], mark[0].upper())]


def normalise_ids(ids: Any) -> Any:
    """Normalise private ids, so that no invisible difference splits a user; null if missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ids = ids.cast(pa.string())
    ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
    # Nothing else is merged: 007 is not 7, ANN is not ann.
    if not _is_plain(ids):
        # Ids with letters and accents composed; `utf8_normalize` of PyArrow decomposes before 26.
        encoded = pc.utf8_trim(ids, characters=INVISIBLE).dictionary_encode()
        texts = [unicodedata.normalize("NFC", text) for text in encoded.dictionary.to_pylist()]
        ids = pc.utf8_trim(pa.array(texts, pa.string()).take(encoded.indices), characters=INVISIBLE)
    if not _may_be_missing(ids):
        return ids
    return pc.if_else(pc.is_in(pc.utf8_lower(ids), value_set=pa.array(MISSING)), None, ids)


def _may_be_missing(ids: Any) -> bool:
    """Whether an id has the length and the first letter of a mark of a missing id."""
    _, offsets, data = ids.buffers()
    if len(ids) == 0 or data is None or not len(data):
        return True
    # On the bytes of the array, since nearly no id is a mark and texts are slow.
    edges = np.frombuffer(offsets, np.int32)[ids.offset : ids.offset + len(ids) + 1]
    letters = np.frombuffer(data, np.uint8)
    length = np.diff(edges)
    if length.min() > _LONGEST_MARK or (length.min() > 0 and letters.max() < min(_STARTS)):
        return False
    # An empty id at the end has no letter: `clip` gives it any, since its length decides.
    first = letters.take(edges[:-1], mode="clip")
    is_start = np.zeros(256, bool)
    is_start[_STARTS] = True
    return bool(((length <= _LONGEST_MARK) & (is_start[first] | (length == 0))).any())


def _is_plain(ids: Any) -> bool:
    """Whether all ids are visible ASCII characters, which have one spelling."""
    data = ids.buffers()[-1]
    if data is None or not len(data):
        return False
    letters = np.frombuffer(data, np.uint8)
    return bool(letters.min() > 0x20 and letters.max() < 0x7F)
