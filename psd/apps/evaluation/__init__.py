"""True errors, for the holder of the data. Private."""

from __future__ import annotations

from typing import TYPE_CHECKING

from psd._util.lazy_names import lazy_names

if TYPE_CHECKING:
    from psd.apps.evaluation.comparison import compare
    from psd.apps.evaluation.true_errors import evaluate

__all__ = ["compare", "evaluate"]

__getattr__, __dir__ = lazy_names(__name__, __all__)
