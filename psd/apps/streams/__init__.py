"""Streams: series that grow by one time slice at a time, paid for once. Private side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from psd.apps.streams.stream import Stream

__all__ = ["Stream"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
