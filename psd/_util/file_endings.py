"""Endings of file names that say which format a file has."""

from __future__ import annotations

import os
from pathlib import Path

from psd.errors import ParameterError

__all__ = ["check_release_name", "contradicts"]

# Each ending of a format that this library or a program beside it writes.
_FORMATS = frozenset({
    "csv", "fgb", "geojson", "gml", "gpkg", "html", "json", "kml", "kmz", "npy", "parquet",
    "pmtiles", "shp", "tif", "tiff", "tsv", "txt", "xls", "xlsx", "zip",
})  # fmt: skip

# Text may be in any format of text.
_ALSO = {"csv": {"txt"}, "geojson": {"json", "txt"}, "json": {"txt"}, "html": {"txt"}}


def contradicts(path: str | os.PathLike[str], form: str) -> bool:
    """Whether the ending of a name is that of another format.

    Examples
    --------
    >>> contradicts("cells.gpkg", "csv"), contradicts("cells.txt", "csv"), contradicts("a.b", "csv")
    (True, False, False)
    """
    ending = Path(path).suffix[1:].lower()
    return ending in _FORMATS and ending not in {form, *_ALSO.get(form, ())}


def check_release_name(path: str | os.PathLike[str], argument: str = "output") -> None:
    """Refuse the name of a release file that says that it is in another format.

    Raises
    ------
    ParameterError
        Naming the argument.

    Examples
    --------
    >>> check_release_name("seoul.psd.parquet")
    """
    if contradicts(path, "parquet"):
        raise ParameterError(
            f"{argument} must end in .parquet, or in no ending of another format, got {path}; a "
            "release file is Parquet, and `psd export` writes other formats"
        )
