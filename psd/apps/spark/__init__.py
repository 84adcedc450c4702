"""The engine spark: records are counted where they are, on a cluster. Private side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd import _apps

if TYPE_CHECKING:
    from psd.apps.spark.engine import Spark, SparkTable

__all__ = ["Spark", "SparkTable"]


def __getattr__(name: str) -> Any:
    return _apps.member_of(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
