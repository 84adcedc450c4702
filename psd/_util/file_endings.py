"""Endings of file names that say the format, and layers after them: ``wards.gpkg:layer=wards``."""

from __future__ import annotations

import os
from pathlib import Path

from psd.errors import ParameterError

__all__ = ["check_release_name", "file_of"]

# Each ending of a format that this library or a program beside it writes.
_FORMATS = frozenset({
    "csv", "fgb", "geojson", "gml", "gpkg", "html", "json", "kml", "kmz", "npy", "parquet",
    "pmtiles", "shp", "tif", "tiff", "tsv", "txt", "xls", "xlsx", "zip",
})  # fmt: skip

# Text may be in any format of text.
_ALSO = {"csv": {"txt"}, "geojson": {"json", "txt"}, "json": {"txt"}, "html": {"txt"}}


def contradicts(path: str | os.PathLike[str], form: str) -> bool:
    """Whether the ending of a name is that of another format."""
    ending = Path(path).suffix[1:].lower()
    return ending in _FORMATS and ending not in {form, *_ALSO.get(form, ())}


def check_release_name(path: str | os.PathLike[str], argument: str = "output") -> None:
    """Refuse the name of a release file that says that it is in another format."""
    if contradicts(path, "parquet"):
        raise ParameterError(
            f"{argument} must end in .parquet, or in no ending of another format, got {path}; a "
            "release file is Parquet, and `psd export` writes other formats"
        )


_MARK = ":layer="


def split_layer(name: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """File and layer of a name, such as ``wards.gpkg:layer=wards``; None without a layer."""
    text = os.fspath(name)
    file, mark, layer = text.partition(_MARK)
    return (Path(text), None) if not mark or os.path.lexists(text) else (Path(file), layer)


def file_of(name: str | os.PathLike[str]) -> Path:
    """File of a name; whatever asks which files are read asks for it."""
    return split_layer(name)[0]
