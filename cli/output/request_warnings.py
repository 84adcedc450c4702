"""Warnings about public parameters, before a record is read."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from ..output.terminal import print_warning

__all__ = ["warn_of_large_epsilon", "warn_of_other_ending"]

# Above it, a belief of 1 % may become one of more than 99.5 % (docs/privacy/epsilon.md).
_LARGE_EPSILON = 10

_OTHER_ENDINGS = (
    ".csv", ".fgb", ".geojson", ".gpkg", ".json", ".npy", ".shp", ".tif", ".tiff", ".tsv", ".txt",
    ".xlsx",
)  # fmt: skip


def warn_of_large_epsilon(epsilon: Decimal) -> None:
    """Warn that a large epsilon promises little."""
    if epsilon > _LARGE_EPSILON:
        print_warning(
            f"epsilon {epsilon:f} is a weak promise: a release may change the odds of a guess "
            f"about a person by a factor of e^{epsilon:f}; usual values are at most 2"
        )


def warn_of_other_ending(output: str | Path) -> None:
    """Warn that a release file has the name of a file of another format."""
    if Path(output).suffix.lower() in _OTHER_ENDINGS:
        print_warning(
            f"{output} will be a release file, which is Parquet whatever its name; `psd export` "
            "writes tables and rasters of a release"
        )
