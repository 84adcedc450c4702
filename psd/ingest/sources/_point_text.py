"""Coordinates in text: the rule for numbers, and points in WKT, EWKT and hexadecimal WKB.

Private side. Quotes no text. An SRID in a text must be that of the CRS of the column, so that no
text moves a record: which SRIDs are read is a function of public parameters alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psd.errors import InputDataError
from psd.ingest.sources._csv_file import DECIMAL
from psd.ingest.sources._points import point_coordinates

if TYPE_CHECKING:
    from psd.ingest.sources._columns import Columns
    from psd.ingest.sources._points import Coordinates

__all__ = [
    "MISSING",
    "decode_point_text",
    "empty_pattern",
    "number_rule",
    "point_pattern",
    "srid_of",
]

MISSING = {"", "na", "n/a", "nan", "-nan", "null", "none", "-", r"\n"}
"""What spreadsheets and databases write for a missing number or point, in lower case."""

_NUMBER = DECIMAL.replace("(", "(?:")

_KIND = r"[ \t]*POINT[ \t]*(?:ZM|Z|M)?"

# PostGIS writes WKB as digits, and other databases after the mark of a text of bytes.
_HEX = r"(?i)\A[ \t]*(?:\\x)?(?P<wkb>[0-9a-f]{42,})[ \t]*\z"


def srid_of(crs: str, input_crs: str | None) -> int | None:
    """SRID that points in text may state: the EPSG code of their CRS; None if it has none.

    Parameters
    ----------
    crs : str
        CRS of the domain, in its canonical text. Public.
    input_crs : str, optional
        CRS of the points, if it is another one. Public.

    Examples
    --------
    >>> srid_of("EPSG:5179", None), srid_of("EPSG:5179", "OGC:CRS84"), srid_of("LOCAL_CS[]", None)
    (5179, 4326, None)
    """
    authority, _, code = (input_crs or crs).partition(":")
    if (authority, code) == ("OGC", "CRS84"):  # the same points, longitude first, as all here
        return 4326
    return int(code) if authority == "EPSG" and code.isdecimal() else None


def _srid_pattern(srid: int | None) -> str:
    """Pattern of an SRID that may stand before a text; 0 states that there is none."""
    return rf"(?i)[ \t]*(?:SRID[ \t]*=[ \t]*{'0' if srid is None else f'(?:0|{srid})'}[ \t]*;)?"


def point_pattern(srid: int | None, x: str = "", y: str = "") -> str:
    """Pattern of a point with its x and y, in the syntax that RE2, Java and Rust share.

    Parameters
    ----------
    srid : int, optional
        From `srid_of`.
    x, y : str
        What the groups of the numbers begin with, such as ``"?P<x>"``.
    """
    return (
        rf"{_srid_pattern(srid)}{_KIND}[ \t]*\([ \t]*({x}{_NUMBER})[ \t]+({y}{_NUMBER})"
        rf"(?:[ \t]+{_NUMBER}){{0,2}}[ \t]*\)[ \t]*"
    )


def empty_pattern(srid: int | None) -> str:
    """Pattern of a missing point."""
    return rf"{_srid_pattern(srid)}{_KIND}[ \t]+EMPTY[ \t]*"


def number_rule(columns: Columns, srid: int | None = None) -> str:
    """Rule for the text of coordinates, for messages.

    Examples
    --------
    >>> from psd.ingest.sources import Columns
    >>> number_rule(Columns(wkt="geom"), 4326)[:79]
    'must hold points in WKT such as POINT (127.01 37.5), EWKT or hexadecimal WKB, w'
    """
    if columns.wkt is not None:
        return _point_rule(srid)
    sign = (
        'such as 127,01, with the decimal comma that is stated by decimal=",", without'
        if columns.decimal == ","
        else 'such as 127.01, without decimal comma (unless decimal="," states it),'
    )
    return (
        f"must hold plain decimal numbers {sign} degrees and minutes (convert them to decimal "
        "degrees), or thousands separator"
    )


def _point_rule(srid: int | None) -> str:
    """Rule for points in text."""
    stated = "without an SRID" if srid is None else f"without an SRID or with SRID={srid}"
    return (
        f"must hold points in WKT such as POINT (127.01 37.5), EWKT or hexadecimal WKB, {stated}; "
        "other geometries have no one position"
    )


def decode_point_text(array: Any, name: str, srid: int | None, *, where: str = "") -> Coordinates:
    """Decode an Arrow array of points in text; NaN for missing and empty points.

    Parameters
    ----------
    array : pyarrow.Array
        Text. Private.
    name : str
        Column, for messages.
    srid : int, optional
        From `srid_of`.
    where : str
        What messages say after the name, such as `` of points.csv``.

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
            f"column {name!r}{where} must hold points in WKT as text, got type {kind}; name "
            "geometries by geometry="
        )
    try:
        texts = array.cast(pa.large_string())
        parts = pc.extract_regex(texts, rf"\A{point_pattern(srid, '?P<x>', '?P<y>')}\z")
        x, y = (
            pc.struct_field(parts, axis).cast(pa.float64()).to_numpy(zero_copy_only=False)
            for axis in ("x", "y")
        )
        x, y = x.astype(np.float64), y.astype(np.float64)
        is_other = pc.and_(parts.is_null(), texts.is_valid()).to_numpy(zero_copy_only=False)
        others = texts.filter(pa.array(is_other))
        wkb = pc.struct_field(pc.extract_regex(others, _HEX), "wkb")
        if wkb.null_count < len(wkb):
            is_wkb = np.flatnonzero(is_other)[wkb.is_valid().to_numpy(zero_copy_only=False)]
            x[is_wkb], y[is_wkb] = _decode_hex(wkb.drop_null().to_pylist(), srid)
        others = others.filter(wkb.is_null())
        others = others.filter(
            pc.invert(pc.match_substring_regex(others, rf"\A{empty_pattern(srid)}\z"))
        )
        marks = {text.strip(" \t").lower() for text in others.unique().to_pylist()}
    except (pa.ArrowException, _OtherGeometryError):
        marks = {"?"}  # the message may quote a value
    if marks <= MISSING and not (np.isinf(x).any() or np.isinf(y).any()):
        return x, y
    raise InputDataError(f"column {name!r}{where} {_point_rule(srid)}")


class _OtherGeometryError(Exception):
    """Hexadecimal WKB of something else than points with the SRID."""


def _decode_hex(texts: list[str], srid: int | None) -> Coordinates:
    """Decode points in hexadecimal WKB."""
    import shapely

    try:
        shapes = np.asarray(shapely.from_wkb(texts))
        if np.isin(shapely.get_srid(shapes), (0, srid or 0)).all():
            return point_coordinates(shapes, "")
    except (shapely.errors.ShapelyError, InputDataError):
        pass
    raise _OtherGeometryError
