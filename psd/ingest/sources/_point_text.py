"""Points in WKT, EWKT and hexadecimal WKB, by `psd.ingest.points`. Private side, quotes no text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psd.errors import InputDataError
from psd.ingest.points import (
    MISSING,
    SPACES,
    empty_pattern,
    point_coordinates,
    point_pattern,
    point_rule,
)

if TYPE_CHECKING:
    from psd.ingest.points import Coordinates


# PostGIS writes WKB as digits, and other databases after the mark of a text of bytes.
_HEX = r"(?i)\A[ \t]*(?:\\x)?(?P<wkb>[0-9a-f]{42,})[ \t]*\z"


def decode_point_text(array: Any, name: str, srid: int | None, *, where: str = "") -> Coordinates:
    """Decode Arrow texts of points, private; NaN if missing or empty. Messages say name, where."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (is_text or kind == pa.string_view() or pa.types.is_null(kind)):
        raise InputDataError(
            f"column {name!r}{where} must hold points in WKT as text, got type {kind}; name "
            "geometries by geometry=NAME"
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
        marks = {text.strip(SPACES).lower() for text in others.unique().to_pylist()}
    except (pa.ArrowException, _OtherGeometryError):
        marks = {"?"}  # the message may quote a value
    if marks <= MISSING and not (np.isinf(x).any() or np.isinf(y).any()):
        return x, y
    raise InputDataError(f"column {name!r}{where} {point_rule(srid)}")


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
