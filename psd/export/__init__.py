"""Exports of a release for other programs, one file per format.

A file ``psd/export/<name>.py`` offers ``SUFFIX`` and either ``write(table, path)`` or, for a
raster, ``write_raster(raster, path, tags)``; the format follows from the ending of the target's
name. One that writes to a database offers ``accepts(target)`` and ``write_database(...)``. A module
of another package is a format too, by an entry point of the group ``psd.exports``; it is imported
only for an ending that no format of this package has. Public side: a release is all that is read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from psd._util import plugins
from psd._util.atomic_write import temporary_target
from psd.errors import ParameterError, WriteError
from psd.estimation.model import CountModel
from psd.export._cells import cells_table
from psd.privacy.epsilon import epsilon_text
from psd.release.allow_list import check_release
from psd.release.record import guarantee_note

if TYPE_CHECKING:
    from psd.release.record import ReleaseRecord

__all__ = [
    "export_release",
    "find_format",
    "is_database",
    "is_raster",
    "raster_suffixes",
    "suffixes",
]

_SIZE = (256, 256)


def suffixes() -> tuple[str, ...]:
    """Endings of the formats that hold a table of cells.

    Examples
    --------
    >>> suffixes()
    ('.csv', '.geojson', '.gpkg', '.parquet')
    """
    return tuple(m.SUFFIX for m in _modules() if not is_raster(m) and not is_database(m))


def raster_suffixes() -> tuple[str, ...]:
    """Endings of the formats that hold a raster.

    Examples
    --------
    >>> raster_suffixes()
    ('.tif', '.npy')
    """
    return tuple(module.SUFFIX for module in _modules() if is_raster(module))


def is_raster(module: ModuleType) -> bool:
    """Whether a format holds a raster instead of a table of cells."""
    return hasattr(module, "write_raster")


def is_database(module: ModuleType) -> bool:
    """Whether a format is a table in a database instead of a file."""
    return hasattr(module, "write_database")


def find_format(target: str | os.PathLike[str]) -> ModuleType:
    """Module of the format of an output: the address of a database, or the ending of a name.

    Raises
    ------
    ParameterError
        If no format has the ending.
    """
    faults: list[str] = []
    for module in _modules(faults):
        if module.accepts(target) if is_database(module) else _suffix(target) == module.SUFFIX:
            return module
    every = ", ".join((*suffixes(), *raster_suffixes()))
    raise ParameterError(
        f"output must end in one of {every}, got {target}" + "".join(f"; {each}" for each in faults)
    )


def _suffix(target: str | os.PathLike[str]) -> str:
    """Ending of a name."""
    return Path(target).suffix.lower()


def _modules(faults: list[str] | None = None) -> Iterator[ModuleType]:
    """Modules of all formats, those of this package first; what is wrong with others is noted."""
    for name in plugins.names(__name__):
        try:
            yield plugins.load(__name__, "format", name)
        except ParameterError as error:
            if faults is not None:
                faults.append(str(error))


def export_release(
    model: CountModel,
    path: str | os.PathLike[str],
    *,
    cells: Literal["leaves", "all"] = "leaves",
    size: tuple[int, int] | None = None,
    table: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write the cells of a release; see `Release.export`."""
    from psd.statistics.raster import density_raster

    if type(model) is not CountModel:
        raise ParameterError(f"model must be CountModel, got {type(model).__name__}")
    check_release(model.record)
    model = CountModel(record=model.record)  # computed anew: a cached array is not checked
    writer, tags = find_format(path), _tags(model.record)
    if size is not None and not is_raster(writer):
        raise ParameterError(
            f"size must be left out unless output is a raster, got {size}; the format is a table "
            "of cells"
        )
    if is_database(writer):
        rows = cells_table(model, cells)
        writer.write_database(rows, path, table=table, tags=tags, overwrite=overwrite)
        return
    if table is not None:
        raise ParameterError(
            f"table must be left out unless output is postgresql://..., got {table!r}; output is "
            "a file"
        )
    if cells != "leaves" and is_raster(writer):
        raise ParameterError(
            f"cells must be leaves if output is a raster, got {cells!r}; a raster has no levels"
        )
    with temporary_target(path, overwrite=overwrite) as target:
        try:
            if is_raster(writer):
                writer.write_raster(density_raster(model, *(size or _SIZE)), target, tags)
            else:
                writer.write(cells_table(model, cells), target)
        except RuntimeError as error:  # what GDAL's writers raise
            raise WriteError(f"cannot write {path}: {error}") from None


def _tags(record: ReleaseRecord) -> dict[str, str]:
    """Privacy guarantee of a release, for the header of a raster or the comment of a table."""
    return {
        "epsilon": epsilon_text(record.epsilon),
        "unit_of_privacy": record.unit.guarantee_text,
        "source": record.source + guarantee_note(record.source),
        "counts": record.unit.counted_text,
        "method": record.method,
        "library": f"psd {record.library}",
    }
