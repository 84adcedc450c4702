"""Exports of a release for other programs, one file per format.

A file ``psd/export/<name>.py`` offers ``SUFFIX`` and either ``write(table, path)`` or, for a
raster, ``write_raster(raster, path, tags)``; the format follows from the ending of the target's
name. A format that cannot hold another CRS than its own, or than that of the release, says so in
``FIXED_CRS``; one that needs a package of an extra of psd has ``NEEDS``: extra, package and
what to write without it. One that writes to a database offers ``accepts(target)`` and
``write_database(...)``. One that holds synthetic points offers ``write_points(tables, path)``,
which writes tables one after the other. A module of another package is a format too, by an entry
point of the group ``psd.exports``; it is imported only for an ending that no format of this package
has. Public side: a release is all that is read.

The metadata of a table are its ``attrs``, texts by name; formats write them as far as they can.
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
