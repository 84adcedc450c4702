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

from typing import TYPE_CHECKING

from psd._util.lazy_names import lazy_names

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

# Imported when first used: tables need GeoPandas, and facts of formats do not.
__getattr__, __dir__ = lazy_names(
    __name__,
    __all__,
    {
        "_catalogue": "Described stac_collection",
        "_cells": "treat_unreliable",
        "_formats": "density_unit find_format finite_errors is_database is_raster raster_suffixes "
        "suffixes write_answers",
        "_maps": "classes_of",
        "_release": "export_release",
    },
)
