"""Exports of a release for other programs, one file per format.

A file ``psd/export/<name>.py`` offers ``SUFFIX`` and ``write(table, path)``; the format follows
from the ending of the target's name. Public side: a release is all that is read.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from psd import registry
from psd.errors import ParameterError, WriteError
from psd.files import written

if TYPE_CHECKING:
    from psd.release import Release

__all__ = ["export", "format_of", "suffixes"]


def suffixes() -> tuple[str, ...]:
    """Endings of all formats.

    Examples
    --------
    >>> suffixes()
    ('.csv', '.geojson', '.gpkg', '.parquet')
    """
    return tuple(_module(name).SUFFIX for name in registry.names(__name__))


def _module(name: str) -> ModuleType:
    """Writer of a format."""
    return registry.load(__name__, "format", name)


def format_of(path: Path) -> ModuleType:
    """Writer for the ending of a name.

    Raises
    ------
    ParameterError
        If the ending is of no known format.
    """
    for name in registry.names(__name__):
        if path.suffix.lower() == _module(name).SUFFIX:
            return _module(name)
    raise ParameterError(
        f"output {path} ends in none of {', '.join(suffixes())}, which name the format"
    )


def export(
    release: Release,
    path: str | os.PathLike[str],
    *,
    cells: Literal["leaves", "all"] = "leaves",
    overwrite: bool = False,
) -> None:
    """Write the cells of a release; see `Release.export`."""
    writer = format_of(Path(path))
    with written(path, overwrite=overwrite) as target:
        try:
            writer.write(release.to_geopandas(cells), target)
        except RuntimeError as error:  # what GDAL's writers raise
            raise WriteError(f"cannot write {path}: {error}") from None
