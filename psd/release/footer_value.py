"""Bytes in the footer of a release file, as text: base64 of zlib; and their digest in the header.

The header states the size of the bytes and their SHA-256, so that a value from a stranger unpacks
to at most what is stated.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from dataclasses import dataclass
from typing import Any

from psd.errors import ReleaseFormatError

__all__ = ["FooterValue", "digest_of", "is_digest", "pack"]

_HEX = set("0123456789abcdef")


@dataclass(frozen=True, kw_only=True)
class FooterValue:
    """Reader of the value of one footer key, with the words of its messages."""

    exists: str  # such as ``there are regions``
    subject: str  # such as ``its regions``
    plural: bool  # whether the subject is plural

    @property
    def damaged(self) -> str:
        """Message of a value that cannot be read."""
        return f"{self.subject} {'are' if self.plural else 'is'} damaged"

    def pair(
        self, described: dict[str, Any] | None, value: bytes | None
    ) -> tuple[dict[str, Any], bytes] | None:
        """Entry of the header and value of the footer, or None for both; one alone is refused."""
        if described is not None and value is not None:
            return described, value
        if described is not None or value is not None:
            raise ReleaseFormatError(f"header and footer disagree on whether {self.exists}")
        return None

    def unpack(self, value: bytes, size: int, digest: str) -> bytes:
        """Bytes of a value: exactly as many as the header states, of the digest in it.

        At most one byte more than ``size`` is unpacked.
        """
        do = "do" if self.plural else "does"
        inflate = zlib.decompressobj()
        try:
            content = inflate.decompress(base64.b64decode(value, validate=True), size + 1)
        except (binascii.Error, zlib.error):
            raise ReleaseFormatError(self.damaged) from None
        if len(content) != size or not inflate.eof or inflate.unused_data:
            raise ReleaseFormatError(
                f"{self.subject} {do} not have the size that the header states"
            )
        if digest_of(content) != digest:
            raise ReleaseFormatError(f"{self.subject} {do} not match the digest in the header")
        return content


def pack(content: bytes) -> bytes:
    """Value of bytes; the same bytes give the same value."""
    return base64.b64encode(zlib.compress(content, 9))


def digest_of(content: bytes) -> str:
    """SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def is_digest(value: object) -> bool:
    """Whether a JSON value has the form of a digest."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= _HEX
