"""Answers of queries in the formats of exports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from psd._util.atomic_write import temporary_target
from psd.errors import PsdError, WriteError
from psd.export._formats import find_format

if TYPE_CHECKING:
    import geopandas

__all__ = ["write_answers"]


def write_answers(
    answers: geopandas.GeoDataFrame,
    path: str | os.PathLike[str],
    *,
    suffix: str,
    metadata: Mapping[str, str],
    content: str = "answers",
    overwrite: bool = False,
) -> None:
    """Write answers, from `Release.query`, with the caller's columns, order and CRS.

    The suffix is that of a format that holds a table, such as ``".gpkg"``; `content` is the name of
    the layer or sheet. The file states the metadata as far as its format has room.
    """
    writer, table = find_format(f"answers{suffix}"), answers.copy(deep=False)
    table.attrs = {"content": content, **metadata}
    with temporary_target(path, overwrite=overwrite) as target:
        try:
            writer.write(table, target)
        except PsdError:  # a refusal, most of which are ValueErrors too
            raise
        except (RuntimeError, ValueError, TypeError) as error:  # what GDAL's and Arrow's raise
            raise WriteError(f"cannot write {path}: {_reason(error)}") from None


def _reason(error: Exception) -> Any:
    """First line of an error of a writer."""
    return str(error).partition("\n")[0][:200]
