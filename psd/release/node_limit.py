"""Limit on the nodes of a release file; memory and time of queries grow with their number."""

from __future__ import annotations

from typing import Any, Final

from psd.errors import ParameterError, ReleaseFormatError

__all__ = ["MAX_NODES", "NODE_BYTES", "check_max_nodes", "check_node_count", "max_file_bytes"]

MAX_NODES: Final = 2**22
"""Default limit on the nodes of a file, of all slices together."""

NODE_BYTES: Final = 64
"""Limit on the bytes of a node without compression: 42 of its columns, and some of the pages."""

_OTHER_BYTES = 2**26


def max_file_bytes(max_nodes: int) -> int:
    """Limit on the bytes of a file with so many nodes, its header and its covariate included.

    >>> max_file_bytes(MAX_NODES) / 2**20
    320.0
    """
    return _OTHER_BYTES + NODE_BYTES * max_nodes


def check_max_nodes(max_nodes: object) -> None:
    """Refuse a limit that is not a positive integer."""
    value: Any = max_nodes
    if type(value) is not int or value < 1:
        raise ParameterError(f"max_nodes must be an integer of at least 1, got {str(value)[:100]}")


def check_node_count(nodes: int, max_nodes: int) -> None:
    """Refuse a file that states more nodes than the limit, before anything is decoded."""
    if nodes > max_nodes:
        raise ReleaseFormatError(
            f"a release must have at most {max_nodes:,} nodes in all slices together, got "
            f"{nodes:,}; allow more with max_nodes= if its sender is trusted, since "
            "memory and time grow with them"
        )
