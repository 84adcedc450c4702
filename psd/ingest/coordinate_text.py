"""The rules for coordinates in text, of all engines: numbers, and points in WKT and EWKT.

Private side. Quotes no text. An SRID in a text must be that of the CRS of the column, so that no
text moves a record: which SRIDs are read is a function of public parameters alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psd.ingest.columns import Columns

__all__ = [
    "DECIMAL",
    "MISSING",
    "SPACES",
    "empty_pattern",
    "number_rule",
    "point_pattern",
    "point_rule",
    "srid_of",
]

DECIMAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
"""Pattern of a plain decimal number."""

MISSING = {"", "na", "n/a", "nan", "-nan", "null", "none", "-", r"\n"}
"""What spreadsheets and databases write for a missing number or point, in lower case."""

SPACES = " \t\n\v\f\r"
"""What is removed around a number or a mark of a missing one: what DuckDB removes."""

_NUMBER = DECIMAL.replace("(", "(?:")

_KIND = r"[ \t]*POINT[ \t]*(?:ZM|Z|M)?"


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
        return point_rule(srid)
    sign = (
        'such as 127,01, with the decimal comma that is stated by decimal=",", without'
        if columns.decimal == ","
        else 'such as 127.01, without decimal comma (unless decimal="," states it),'
    )
    return (
        f"must hold plain decimal numbers {sign} degrees and minutes (convert them to decimal "
        "degrees), or thousands separator"
    )


def point_rule(srid: int | None) -> str:
    """Rule for points in text."""
    stated = "without an SRID" if srid is None else f"without an SRID or with SRID={srid}"
    return (
        f"must hold points in WKT such as POINT (127.01 37.5), EWKT or hexadecimal WKB, {stated}; "
        "other geometries have no one position"
    )
