"""Coordinates in text: the rule for numbers, and points in WKT. Private side. Quotes no text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psd.errors import InputDataError
from psd.ingest.sources._csv_file import DECIMAL

if TYPE_CHECKING:
    from psd.ingest.sources._columns import Columns
    from psd.ingest.sources._points import Coordinates

__all__ = ["EMPTY_POINT", "MISSING", "POINT", "decode_wkt", "number_rule"]

MISSING = {"", "na", "n/a", "nan", "-nan", "null", "none", "-", r"\n"}
"""What spreadsheets and databases write for a missing number or point, in lower case."""

_NUMBER = DECIMAL.replace("(", "(?:")

_POINT = (
    rf"(?i)[ \t]*POINT[ \t]*Z?[ \t]*\([ \t]*(%s{_NUMBER})[ \t]+(%s{_NUMBER})"
    rf"(?:[ \t]+{_NUMBER})?[ \t]*\)[ \t]*"
)
POINT = _POINT % ("", "")
"""Pattern of a point in WKT with its x and y, in the syntax that RE2, Java and Rust share."""

EMPTY_POINT = r"(?i)[ \t]*POINT[ \t]*Z?[ \t]+EMPTY[ \t]*"
"""Pattern of a missing point in WKT."""


def number_rule(columns: Columns) -> str:
    """Rule for the text of coordinates, for messages.

    Examples
    --------
    >>> from psd.ingest.sources import Columns
    >>> number_rule(Columns(wkt="geom"))
    'must hold points in WKT such as POINT (127.01 37.5); other geometries have no one position'
    """
    if columns.wkt is not None:
        return (
            "must hold points in WKT such as POINT (127.01 37.5); other geometries have no one "
            "position"
        )
    sign = (
        'such as 127,01, with the decimal comma that is stated by decimal=",", without'
        if columns.decimal == ","
        else 'such as 127.01, without decimal comma (unless decimal="," states it),'
    )
    return (
        f"must hold plain decimal numbers {sign} degrees and minutes (convert them to decimal "
        "degrees), or thousands separator"
    )


def decode_wkt(array: Any, name: str) -> Coordinates:
    """Decode an Arrow array of points in WKT; NaN for missing and empty points.

    Raises
    ------
    InputDataError
        If it holds anything but text, or other text.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or kind == pa.string_view() or pa.types.is_null(kind)):
        raise InputDataError(
            f"column {name!r} must hold points in WKT as text, got type {kind}; name geometries by "
            "geometry="
        )
    try:
        texts = array.cast(pa.large_string())
        parts = pc.extract_regex(texts, rf"\A{_POINT % ('?P<x>', '?P<y>')}\z")
        x, y = (
            pc.struct_field(parts, axis).cast(pa.float64()).to_numpy(zero_copy_only=False)
            for axis in ("x", "y")
        )
        others = texts.filter(pc.and_(parts.is_null(), texts.is_valid()))
        others = others.filter(pc.invert(pc.match_substring_regex(others, rf"\A{EMPTY_POINT}\z")))
        marks = {text.strip(" \t").lower() for text in others.unique().to_pylist()}
    except pa.ArrowException:
        marks = {"?"}  # the message may quote a value
    if (
        marks <= MISSING
        and np.isfinite(x[~np.isnan(x)]).all()
        and np.isfinite(y[~np.isnan(y)]).all()
    ):
        return x.astype(np.float64), y.astype(np.float64)
    raise InputDataError(
        f"column {name!r} must hold points in WKT such as POINT (127.01 37.5); other geometries "
        "have no one position"
    )
