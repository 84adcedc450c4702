"""Names of layers in names of files: ``wards.gpkg:layer=wards``."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["file_of", "split_layer"]

_MARK = ":layer="


def split_layer(name: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """File and layer of a name; None for a name without a layer, such as that of a file.

    Examples
    --------
    >>> split_layer("maps/city.gpkg:layer=wards")[1], split_layer("maps/city.gpkg")[1]
    ('wards', None)
    """
    text = os.fspath(name)
    file, mark, layer = text.partition(_MARK)
    return (Path(text), None) if not mark or os.path.lexists(text) else (Path(file), layer)


def file_of(name: str | os.PathLike[str]) -> Path:
    """File of a name; whatever asks which files are read asks for it.

    Examples
    --------
    >>> file_of("maps/city.gpkg:layer=wards").name
    'city.gpkg'
    """
    return split_layer(name)[0]
