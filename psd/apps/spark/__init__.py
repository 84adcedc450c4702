"""The engine spark: records are counted where they are, on a cluster. Private side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from psd.apps.spark.engine import Spark, SparkTable

__all__ = ["Spark", "SparkTable"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
