"""Regions of a build as a table of texts, ``[release.regions]`` of a recipe, and back.

The keys are those of ``--regions KEY=VALUE``: ``file`` with ``id``, ``parent``, ``tolerance``,
``gaps`` and ``repair``; or the kind of cells, such as ``grid-cells``, ``h3`` or ``tiles``.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from psd._util.instances import type_text
from psd._util.plugins import names
from psd._util.suggestions import check_names
from psd._util.toml_values import texts_of
from psd.errors import ParameterError
from psd.publish.option_text import flag_from_text, path_beside, path_within
from psd.regions.hierarchy import KINDS
from psd.regions.inputs import CellRegions, RegionFiles

__all__ = ["FILE_KEYS", "region_files", "region_keys", "regions_from_table", "table_from_regions"]

FILE_KEYS = ("file", "id", "parent", "tolerance", "gaps", "repair")
"""Keys of regions in files."""

_POLYGONS, _GAPS = "polygons", "refuse"


def region_keys() -> tuple[str, ...]:
    """Keys of regions: those of files, then the kinds of cells.

    Examples
    --------
    >>> region_keys()[6:9]
    ('grid-cells', 'h3', 'tiles')
    """
    return (*FILE_KEYS, *(kind for kind in names(KINDS) if kind != _POLYGONS))


def regions_from_table(table: object, folder: Path | None = None) -> RegionFiles | CellRegions:
    """Regions of a table with the keys of `region_keys`.

    Parameters
    ----------
    table : mapping
        Texts; ``file``, ``id`` and ``parent`` may be lists. Public.
    folder : Path, optional
        Where relative paths begin.

    Raises
    ------
    ParameterError
        If a key does not exist, keys contradict each other, or a value is wrong.

    Examples
    --------
    >>> regions_from_table({"h3": "5..9"})
    CellRegions(kind='h3', cells='5..9')
    >>> regions_from_table({"file": "wards.gpkg", "id": "ward", "parent": "district"}).parents
    ('district',)
    """
    if not isinstance(table, Mapping):
        raise ParameterError(
            f"regions must be a table of KEY = VALUE, got {type_text(table)}", name="regions"
        )
    table = {key: value for key, value in table.items() if value is not None}
    check_names("key of regions", table, region_keys())
    kinds = [key for key in table if key not in FILE_KEYS]
    if len(kinds) + ("file" in table) != 1:
        stated = " and ".join([*(["a file"] * ("file" in table)), *kinds]) or "none of them"
        raise ParameterError(
            f"regions must be files, or one kind of cells ({', '.join(_cell_kinds())}), got "
            f"{stated}",
            name="regions",
        )
    return _cells(kinds[0], table) if kinds else _files(table, folder)


def table_from_regions(
    regions: RegionFiles | CellRegions, folder: Path | None = None
) -> dict[str, Any]:
    """Table from which `regions_from_table` makes the regions."""
    if isinstance(regions, CellRegions):
        return {regions.kind: regions.cells}
    return {
        "file": _shortened([path_beside(folder, path) for path in regions.paths]),
        "id": _shortened(regions.ids),
        "parent": _shortened(regions.parents) if regions.parents else None,
        "tolerance": None if regions.tolerance is None else Decimal(repr(regions.tolerance)),
        "gaps": None if regions.gaps == _GAPS else regions.gaps,
        "repair": True if regions.repair else None,
    }


def region_files(table: object, folder: Path | None = None) -> list[str]:
    """Files that a table of regions names."""
    files = table.get("file", ()) if isinstance(table, Mapping) else ()
    return [path_within(folder, path) for path in texts_of("file", files)]


def _cell_kinds() -> tuple[str, ...]:
    """Kinds that are not files."""
    return tuple(key for key in region_keys() if key not in FILE_KEYS)


def _cells(kind: str, table: Mapping[str, Any]) -> CellRegions:
    """Regions that are cells of a public system."""
    others = [key for key in table if key != kind]
    if others:
        raise ParameterError(
            f"regions {others[0]} must be left out with {kind}; it is a key of files of polygons",
            name="regions",
        )
    value = table[kind]
    texts = (str(value),) if isinstance(value, int) else texts_of(kind, value)
    return CellRegions(kind=kind, cells=",".join(texts))


def _files(table: Mapping[str, Any], folder: Path | None) -> RegionFiles:
    """Regions in files."""
    lists = {key: texts_of(key, table.get(key, ())) for key in ("file", "id", "parent")}
    if not lists["id"]:
        raise ParameterError(
            "ids must be the column that names the regions of the file, got none", name="ids"
        )
    if lists["parent"] and len(lists["file"]) > 1:
        raise ParameterError(
            f"parents must be left out with a file of each level, got {len(lists['file'])} files"
        )
    return RegionFiles(
        paths=tuple(path_within(folder, path) for path in lists["file"]),
        ids=lists["id"],
        parents=lists["parent"],
        tolerance=_tolerance(table.get("tolerance")),
        gaps=str(table.get("gaps", _GAPS)),
        repair=flag_from_text("regions repair", table.get("repair", False)),
    )


def _tolerance(value: object) -> float | None:
    """Length of a text or a number; its range is checked when the regions are read."""
    if value is None:
        return None
    try:
        return float(str(value))
    except ValueError:
        raise ParameterError(
            f"tolerance must be a length, 0 or above, got {str(value)[:80]!r}"
        ) from None


def _shortened(texts: tuple[str, ...] | list[str]) -> str | list[str]:
    """The text of a list of one, else the list."""
    return texts[0] if len(texts) == 1 else list(texts)
