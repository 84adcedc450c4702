"""Write a covariate to the footer of a release file, and read it back strictly.

The value is text, as Parquet requires: base64 of zlib of the raster's 16-bit numbers,
little-endian, row by row from the south. The header states the size of the raster and its SHA-256.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from psd.release.footer_value import FooterValue, digest_of, is_digest, pack
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

_VALUE = FooterValue(exists="there is a covariate", subject="its covariate", plural=False)


def covariate_header(covariate: Covariate | None) -> dict[str, Any] | None:
    """Entry of a covariate in the header: its size and digest, not the name of its file."""
    if covariate is None:
        return None
    digest = digest_of(_content(covariate))
    return {"columns": covariate.columns, "rows": covariate.rows, "sha256": digest}


def pack_covariate(covariate: Covariate) -> bytes:
    """Value of the footer key; the same covariate gives the same bytes."""
    return pack(_content(covariate))


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
    return all(type(side) is int and 1 <= side <= MAX_SIDE for side in sides) and is_digest(digest)


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
    pair = _VALUE.pair(described, value)
    if pair is None:
        return None
    described, value = pair
    columns, rows = described["columns"], described["rows"]
    content = _VALUE.unpack(value, 2 * columns * rows, described["sha256"])
    raster = np.frombuffer(content, "<u2").reshape(rows, columns).astype(np.uint16)
    return Covariate(domain=domain, raster=raster)
