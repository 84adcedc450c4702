"""Formats of exports, selected by the ending of a name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from psd._util import plugins
from psd.errors import ParameterError

__all__ = [
    "find_format",
    "is_database",
    "is_raster",
    "raster_suffixes",
    "suffixes",
]

_PACKAGE = "psd.export"


def suffixes() -> tuple[str, ...]:
    """Endings of the formats that hold a table of cells."""
    return tuple(m.SUFFIX for m in _modules() if not is_raster(m) and not is_database(m))


def raster_suffixes() -> tuple[str, ...]:
    """Endings of the formats that hold a raster."""
    return tuple(module.SUFFIX for module in _modules() if is_raster(module))


def is_raster(module: ModuleType) -> bool:
    """Whether a format holds a raster instead of a table of cells."""
    return hasattr(module, "write_raster")


def is_database(module: ModuleType) -> bool:
    """Whether a format is a table in a database instead of a file."""
    return hasattr(module, "write_database")


def find_format(target: str | os.PathLike[str]) -> ModuleType:
    """Module of the format of an output: the address of a database, or the ending of a name."""
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
    for name in plugins.names(_PACKAGE):
        try:
            yield plugins.load(_PACKAGE, "format", name)
        except ParameterError as error:
            if faults is not None:
                faults.append(str(error))
