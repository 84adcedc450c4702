"""Exports of a release for other programs, one file per format.

A file ``psd/export/<name>.py`` offers ``SUFFIX`` and ``write(table, path)`` or, for a raster,
``write_raster(raster, path, tags)``; the ending of the target's name tells the format.
``FIXED_CRS``: it cannot hold another CRS than its own, or than that of the release. ``NEEDS``:
extra, package and what to write without it. A database has ``accepts(target)`` and
``write_database(...)``; ``write_points(tables, path)`` writes tables of synthetic points one after
the other. Another package registers a format by an entry point of the group ``psd.exports``,
imported only for an ending that this package has not. Public side: only a release is read; formats
write ``attrs``, the metadata of a table, as far as they can.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psd.export._catalogue import Described, stac_collection
    from psd.export._cells import treat_unreliable
    from psd.export._formats import (
        density_unit,
        find_format,
        finite_errors,
        is_database,
        is_raster,
        raster_suffixes,
        suffixes,
        write_answers,
    )
    from psd.export._maps import classes_of
    from psd.export._release import export_release

__all__ = [
    "Described",
    "classes_of",
    "density_unit",
    "export_release",
    "find_format",
    "finite_errors",
    "is_database",
    "is_raster",
    "raster_suffixes",
    "stac_collection",
    "suffixes",
    "treat_unreliable",
    "write_answers",
]

# The module of each name; imported when first used: tables need GeoPandas, and facts of formats do
# not.
_MODULES = {
    "Described": "psd.export._catalogue",
    "classes_of": "psd.export._maps",
    "density_unit": "psd.export._formats",
    "export_release": "psd.export._release",
    "find_format": "psd.export._formats",
    "finite_errors": "psd.export._formats",
    "is_database": "psd.export._formats",
    "is_raster": "psd.export._formats",
    "raster_suffixes": "psd.export._formats",
    "stac_collection": "psd.export._catalogue",
    "suffixes": "psd.export._formats",
    "treat_unreliable": "psd.export._cells",
    "write_answers": "psd.export._formats",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
