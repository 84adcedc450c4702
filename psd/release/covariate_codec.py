"""The covariate in a release file: a footer key of its own, and a strict way back.

The value is text, as Parquet wants it: base64 of zlib of the raster's 16-bit numbers, little
end first, row by row from the south. The header says how many there are and their SHA-256.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from typing import Any

import numpy as np

from psd.errors import ReleaseFormatError
from psd.space.covariate import MAX_SIDE, Covariate
from psd.space.domain import Domain

__all__ = [
    "COVARIATE_KEY",
    "covariate_header",
    "is_covariate",
    "pack_covariate",
    "unpack_covariate",
]

COVARIATE_KEY = b"psd-covariate"

_FIELDS = {"columns", "rows", "sha256"}
_HEX = set("0123456789abcdef")


def covariate_header(covariate: Covariate | None) -> dict[str, Any] | None:
    """What the header of a release says of its covariate; it names no file."""
    if covariate is None:
        return None
    digest = hashlib.sha256(_content(covariate)).hexdigest()
    return {"columns": covariate.columns, "rows": covariate.rows, "sha256": digest}


def pack_covariate(covariate: Covariate) -> bytes:
    """Value of the footer key; the same covariate gives the same bytes."""
    return base64.b64encode(zlib.compress(_content(covariate), 9))


def _content(covariate: Covariate) -> bytes:
    """Numbers of the raster."""
    return covariate.raster.astype("<u2").tobytes()


def is_covariate(value: object) -> bool:
    """Whether a JSON value describes a covariate, or none."""
    if value is None:
        return True
    if not isinstance(value, dict) or value.keys() != _FIELDS:
        return False
    sides, digest = (value["columns"], value["rows"]), value["sha256"]
    return (
        all(type(side) is int and 1 <= side <= MAX_SIDE for side in sides)
        and isinstance(digest, str)
        and len(digest) == 64
        and set(digest) <= _HEX
    )


def unpack_covariate(
    described: dict[str, Any] | None, value: bytes | None, domain: Domain
) -> Covariate | None:
    """Covariate of a release file.

    Parameters
    ----------
    described : dict or None
        What `is_covariate` accepted.
    value : bytes or None
        Value of the footer key.
    domain : Domain
        Of the release.

    Raises
    ------
    ReleaseFormatError
        If one is there without the other, or they do not fit. No more than the described
        size is ever unpacked.
    """
    if (described is None) != (value is None):
        raise ReleaseFormatError("header and footer do not agree whether there is a covariate")
    if described is None or value is None:
        return None
    columns, rows = described["columns"], described["rows"]
    content = _inflate(value, 2 * columns * rows)
    if hashlib.sha256(content).hexdigest() != described["sha256"]:
        raise ReleaseFormatError("its covariate does not have the digest of its header")
    raster = np.frombuffer(content, "<u2").reshape(rows, columns).astype(np.uint16)
    return Covariate(domain=domain, raster=raster)


def _inflate(value: bytes, size: int) -> bytes:
    """Exactly so many bytes, or a refusal."""
    inflate = zlib.decompressobj()
    try:
        content = inflate.decompress(base64.b64decode(value, validate=True), size + 1)
    except (binascii.Error, zlib.error):
        raise ReleaseFormatError("its covariate is damaged") from None
    if len(content) != size or not inflate.eof or inflate.unused_data:
        raise ReleaseFormatError("its covariate is not of the size that its header says")
    return content
