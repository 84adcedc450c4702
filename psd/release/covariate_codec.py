"""Write a covariate to the footer of a release file, and read it back strictly.

The value is text, as Parquet requires: base64 of zlib of the raster's 16-bit numbers,
little-endian, row by row from the south. The header states the size of the raster and its SHA-256.
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
    """Entry of a covariate in the header: its size and digest, not the name of its file."""
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
    """Whether a JSON value is the entry of a covariate, or null."""
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
        Entry that `is_covariate` accepted.
    value : bytes or None
        Value of the footer key.
    domain : Domain
        Of the release.

    Raises
    ------
    ReleaseFormatError
        If only one of the two exists, or they do not match. At most the stated size is unpacked.
    """
    if (described is None) != (value is None):
        raise ReleaseFormatError("header and footer disagree on whether there is a covariate")
    if described is None or value is None:
        return None
    columns, rows = described["columns"], described["rows"]
    content = _inflate(value, 2 * columns * rows)
    if hashlib.sha256(content).hexdigest() != described["sha256"]:
        raise ReleaseFormatError("its covariate does not match the digest in the header")
    raster = np.frombuffer(content, "<u2").reshape(rows, columns).astype(np.uint16)
    return Covariate(domain=domain, raster=raster)


def _inflate(value: bytes, size: int) -> bytes:
    """Decompress to exactly this number of bytes, or refuse."""
    inflate = zlib.decompressobj()
    try:
        content = inflate.decompress(base64.b64decode(value, validate=True), size + 1)
    except (binascii.Error, zlib.error):
        raise ReleaseFormatError("its covariate is damaged") from None
    if len(content) != size or not inflate.eof or inflate.unused_data:
        raise ReleaseFormatError("its covariate does not have the size that the header states")
    return content
