"""The digest of what a release says, however its file is compressed and whoever wrote it.

SHA-256 [1]_ over parts, each with its length before it: the kind of the file, its header as JSON
with sorted keys and nothing but ASCII, and the columns of its nodes as little-endian integers.

References
----------
.. [1] National Institute of Standards and Technology. "Secure Hash Standard." FIPS 180-4, 2015.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from psd.tree import Tree

__all__ = ["canonical", "digest"]

_DOMAIN = b"psd public content 1\n"


def canonical(header: Mapping[str, Any]) -> bytes:
    """Text of a header, the same for the same fields.

    Examples
    --------
    >>> canonical({"unit": "record", "epsilon": "0.5"})
    b'{"epsilon": "0.5", "unit": "record"}'
    """
    return json.dumps(header, allow_nan=False, sort_keys=True).encode()


def digest(kind: bytes, header: Mapping[str, Any], trees: Iterable[Tree]) -> str:
    """Digest of a header and of the nodes of one tree, or of several.

    Guarantees
    ----------
    - Two contents of different kind, header or nodes have different digests, unless SHA-256
      was broken: no part can be taken for another.
    - A function of public content: no digest of the points, or of a file of them, is in it.

    Parameters
    ----------
    kind : bytes
        Footer key of the header.
    header : mapping
        Its fields, as the file has them.
    trees : iterable of Tree
        One of a release, or those of the slices of a series in order.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> digest(b"psd", {"format": 4}, [])[:16]
    'ff9ef8efbaefb1e2'
    """
    found = hashlib.sha256(_DOMAIN)
    for part in (kind, canonical(header), *_columns(trees)):
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.hexdigest()


def _columns(trees: Iterable[Tree]) -> Iterator[bytes]:
    """Columns of a release file, of one tree after another; 0 for a count that is not there."""
    for tree in trees:
        yield from (column.astype("<i4").tobytes() for column in tree.boxes.T)
        yield tree.parent.astype("<i4").tobytes()
        yield tree.level.astype("<i2").tobytes()
        yield tree.count.astype("<i8").tobytes()
        yield tree.epsilon.astype("<i8").tobytes()
