"""True errors, for the holder of the data. Private."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd import _apps

if TYPE_CHECKING:
    from psd.apps.evaluation.comparison import compare
    from psd.apps.evaluation.true_errors import evaluate

__all__ = ["compare", "evaluate"]


def __getattr__(name: str) -> Any:
    return _apps.member_of(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
