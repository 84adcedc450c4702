"""The digest of a release, which depends on its content and not on its compression or writer.

SHA-256 [1]_ over parts, each with its length before it: the kind of the file, its header as JSON
with sorted keys and nothing but ASCII, and the arrays of its nodes as little-endian integers,
boxes by four. In a series, the digest of each slice takes the place of its nodes, so a series that
grows is hashed without its earlier nodes.

References
----------
.. [1] National Institute of Standards and Technology. "Secure Hash Standard." FIPS 180-4, 2015.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Nodes", "canonical_json", "content_digest", "series_digest", "slice_digest"]

_DOMAIN = b"psd public content 1\n"


class Nodes(Protocol):
    """Arrays of the nodes of a tree, such as a `psd.space.box_tree.Tree`."""

    @property
    def boxes(self) -> NDArray[Any]:
        """Cells, four numbers each."""

    @property
    def parent(self) -> NDArray[Any]:
        """Number of the node above each."""

    @property
    def level(self) -> NDArray[Any]:
        """Level of each."""

    @property
    def count(self) -> NDArray[Any]:
        """Noisy count of each, or 0."""

    @property
    def loss(self) -> NDArray[Any]:
        """Loss of each count."""


def canonical_json(header: Mapping[str, Any]) -> bytes:
    """Text of a header; equal headers have equal texts.

    Examples
    --------
    >>> canonical_json({"unit": "record", "loss": "0.5"})
    b'{"loss": "0.5", "unit": "record"}'
    """
    return json.dumps(header, allow_nan=False, sort_keys=True).encode()


def content_digest(kind: bytes, header: Mapping[str, Any], tree: Nodes) -> str:
    """Digest of a header and of the nodes of a tree.

    Guarantees
    ----------
    - Two contents of different kind, header or nodes have different digests, unless SHA-256 is
      broken: no part can be taken for another.
    - It is computed from public content only, not from the points or their files.

    Parameters
    ----------
    kind : bytes
        Footer key of the header.
    header : mapping
        Its fields, as the file has them.
    tree : Nodes
        The tree.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> content_digest(b"psd", {"psd_release": 1}, psd.decompositions.grid_tree(domain, 1))[:16]
    '3b4df141d6e7146d'
    """
    return _digest(kind, canonical_json(header), *_node_arrays(tree))


def slice_digest(name: str, tree: Nodes) -> str:
    """Digest of what was drawn for a slice of a series: its name and its nodes."""
    return content_digest(b"psd-slice", {"slice": name}, tree)


def series_digest(kind: bytes, header: Mapping[str, Any], slices: Iterable[str]) -> str:
    """Digest of the header of a series and of its slices, by the digest of each in their order."""
    return _digest(kind, canonical_json(header), "".join(slices).encode())


def _digest(*parts: Any) -> str:
    """SHA-256 over parts, each with its length before it."""
    hasher = hashlib.sha256(_DOMAIN)
    for part in parts:
        content = memoryview(part)
        hasher.update(content.nbytes.to_bytes(8, "little"))
        hasher.update(content)
    return hasher.hexdigest()


def _node_arrays(tree: Nodes) -> Iterator[NDArray[Any]]:
    """Nodes of a tree; 0 for a missing count."""
    yield np.ascontiguousarray(tree.boxes, "<i4")
    yield np.ascontiguousarray(tree.parent, "<i4")
    yield np.ascontiguousarray(tree.level, "<i2")
    yield np.ascontiguousarray(tree.count, "<i8")
    yield np.ascontiguousarray(tree.loss, "<i8")
