"""Regions from public files, or by sizes, zooms or resolutions; boxes of queries from a CSV."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from psd._util.column_kinds import (
    AUTOMATIC,
    DELIMITERS,
    is_separator_line,
    lossless_type,
    match_name,
    split_names,
)
from psd._util.file_endings import file_of, split_layer
from psd._util.plugins import load_member
from psd.errors import DomainError, InputDataError, ParameterError
from psd.regions.hierarchy import KINDS, RegionHierarchy
from psd.regions.polygon_hierarchy import MAX_POLYGONS, hierarchy_from_polygons
from psd.space.regions import repair_polygons

if TYPE_CHECKING:
    import geopandas
    import pandas

    from psd.space.boundary import Boundary
    from psd.space.domain import Domain

__all__ = [
    "CellRegions",
    "RegionFiles",
    "read_boxes",
    "read_polygons",
    "read_table",
    "refuse_record_files",
]


# Formats of text, whose rows are not counted before they are read.
_TEXTS = (".csv", ".wkt")


def read_boxes(path: Path) -> pandas.DataFrame:
    """Table with west, south, east, north and maybe id, in the order of the file."""
    import pandas as pd

    from psd.space.box_tree import SIDES

    path, layer = _check_name(path, "boxes")
    if path.suffix.lower() == ".xlsx":
        table, delimiter = _file_table(path, "boxes", layer), ","
    elif path.suffix.lower() == ".parquet":
        table, delimiter = read_table(path, "boxes"), ","
    else:
        table, delimiter = _csv(path, "boxes", SIDES)
    names = list(table.columns)
    # Names match without case.
    found = {name: match_name(name, names) for name in (*SIDES, "id")}
    for side in SIDES:
        if found[side] is None:
            raise InputDataError(f"boxes {path} has no column {side}; needed: {', '.join(SIDES)}")
    table = table.rename(columns={spelled: name for name, spelled in found.items() if spelled})
    texts = table[list(SIDES)].apply(lambda column: column.astype(str).str.strip())
    # Where fields are separated by another character than a comma, and no number has a point, a
    # comma is the decimal sign.
    has_comma = delimiter != "," and not texts.apply(lambda column: column.str.contains(r"\.")).any(
        axis=None
    )
    for side in SIDES:
        column = texts[side].str.replace(",", ".") if has_comma else texts[side]
        numbers = pd.to_numeric(column, errors="coerce")
        is_wrong = ~np.isfinite(numbers.to_numpy(float))
        if is_wrong.any():
            line = int(is_wrong.argmax()) + 2
            raise InputDataError(f"boxes {path} line {line}: {side} is not a finite number")
        table[side] = numbers.astype(float)
    return pd.DataFrame(table.drop(columns="geometry")) if hasattr(table, "geometry") else table


def read_polygons(
    path: Path, name: str = "polygons", *, crs: str | None = None
) -> geopandas.GeoDataFrame:
    """Polygons of a file, with its attributes and CRS; messages call it by the name.

    A file ending in .wkt has one WKT or EWKT a line, one ending in .csv has them in a column
    wkt. These files, and others without a CRS, get the CRS of the argument. A file with several
    layers is named ``FILE:layer=NAME``.
    """
    import geopandas as gpd

    from psd.space.regions import regions_table

    path, layer = _check_name(path, name)
    if path.suffix.lower() == ".wkt":
        lines = [line for line in _text(path, name).splitlines() if line.strip()]
        return regions_table(lines, crs).to_frame("geometry")
    if path.suffix.lower() == ".csv":
        table, _ = _csv(path, name, ("wkt",))
        column = match_name("wkt", list(table.columns))
        if column is None:
            raise InputDataError(f"{name} {path} has no column wkt")
        return gpd.GeoDataFrame(table, geometry=regions_table(list(table.pop(column)), crs))
    table = _file_table(path, name, layer)
    if not isinstance(table, gpd.GeoDataFrame):
        raise InputDataError(f"{name} {path} holds a table without geometries")
    return table if crs is None else table.set_geometry(regions_table(table, crs))


def read_table(path: Path, name: str = "table") -> pandas.DataFrame:
    """Table of a file, of texts if it is CSV; files of a GIS format may have geometries."""
    path, layer = _check_name(path, name)
    return _csv(path, name)[0] if path.suffix.lower() == ".csv" else _file_table(path, name, layer)


def count_features(path: Path, name: str) -> int:
    """Number of features that a file states; 0 where it states none, or is text or missing."""
    import pyarrow.parquet as pq
    import pyogrio

    path, layer = split_layer(path)
    if path.suffix.lower() in _TEXTS or not os.path.isfile(path):
        return 0
    if path.suffix.lower() == ".parquet":
        with _explained(path, name):
            return int(pq.read_metadata(path).num_rows)
    chosen = _layer(path, name, layer)
    with _explained(path, name):
        return max(0, int(pyogrio.read_info(path, layer=chosen)["features"]))


def _text(path: Path, name: str) -> str:
    """Text of a file in UTF-8, or in UTF-16 where it begins with its mark, as those of records."""
    try:
        content = path.read_bytes()
        is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        return content.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        fault = (
            "is not in UTF-8; save it as text in UTF-8, such as with `iconv -f windows-1252 -t "
            "utf-8` if it is in windows-1252 or latin-1"
        )
    except OSError:
        fault = "cannot be read"
    raise InputDataError(f"{name} {path} {fault}")


def _file_table(path: Path, name: str, layer: str | None) -> pandas.DataFrame:
    """Table of a file that GDAL or Arrow reads; what GDAL warns of is refused by the query."""
    import geopandas as gpd

    if path.suffix.lower() == ".parquet":
        with _explained(path, name):
            # An index is a column, and GeoParquet has geometries.
            import pyarrow as pa
            import pyarrow.parquet as pq

            arrow = pq.read_table(path, partitioning=None)
            geo = (arrow.schema.metadata or {}).get(b"geo")
            table = arrow.to_pandas(ignore_metadata=True, types_mapper=lossless_type)
            if geo is not None:
                stated = json.loads(geo)
                layers = stated.get("columns") if isinstance(stated, dict) else None
                names = [each for each in table if isinstance(layers, dict) and each in layers]
                # Without what pandas states: it has names of types that pandas cannot read.
                content = pa.BufferOutputStream()
                alone = arrow.select(names).replace_schema_metadata({b"geo": geo})
                pq.write_table(alone, content, compression="none")
                shapes = gpd.read_parquet(pa.BufferReader(content.getvalue()))
                for each in names:
                    table[each] = shapes[each].array
                table = gpd.GeoDataFrame(table, geometry=shapes.geometry.name)
            return _usual_types(table)
    how = {"layer": _layer(path, name, layer), **_FORCED.get(path.suffix.lower(), {})}
    with _explained(path, name):
        table = gpd.read_file(path, engine="pyogrio", mixed_offsets_as_utc=False, **how)
        return _usual_types(_with_exact_columns(table, path, how))


_FORCED = {
    **{ending: {"HEADERS": "FORCE"} for ending in (".xlsx", ".ods")},
    **{ending: {"DATE_AS_STRING": "YES"} for ending in (".geojson", ".json")},
}
"""Options of GDAL by the ending of a file.

It may take the names of a workbook for a row, and texts of GeoJSON for dates that it then changes.
"""


def _with_exact_columns(table: Any, path: Path, how: dict[str, Any]) -> Any:
    """Table with the columns that only Arrow reads as they are; texts stay, for their encoding."""
    import pyogrio

    usual = ("OFTString", "OFTReal", "OFTDateTime")
    fields = pyogrio.read_info(path, **how)
    kinds = dict(zip(fields["fields"].tolist(), fields["ogr_types"], strict=True))
    names = [name for name, kind in kinds.items() if kind not in usual or name == "geometry"]
    if not names:
        return table
    mapped = {"types_mapper": lossless_type}
    exact = pyogrio.read_dataframe(
        path,
        columns=names,
        read_geometry=False,
        use_arrow=True,
        arrow_to_pandas_kwargs=mapped,
        **how,
    )
    # A column that is called geometry was replaced by the geometries.
    if "geometry" in names and hasattr(table, "rename_geometry"):
        free = next(name for name in map("geometry_{}".format, range(2, 999)) if name not in kinds)
        table = table.rename_geometry(free)
    return table.assign(**{name: exact[name].array for name in names})


def _usual_types(table: pandas.DataFrame) -> pandas.DataFrame:
    """Table whose whole numbers and truth values are of numpy where none is missing."""
    import pandas as pd

    for name in table.columns:
        kind: Any = table[name].dtype
        is_nullable = isinstance(kind, pd.BooleanDtype) or str(kind).startswith(("Int", "UInt"))
        if is_nullable and not table[name].hasnans:
            table[name] = table[name].astype(kind.numpy_dtype)
    return table


def _layer(path: Path, name: str, requested: str | None) -> str | None:
    """Layer to read: the requested one, or the only one with geometries; None without any."""
    import pyogrio

    refuse_pointers(path, name)
    with _explained(path, name):
        kinds = {str(layer): kind for layer, kind in pyogrio.list_layers(path)}
    # Tables without geometries, such as the styles of QGIS, are left alone where others have them.
    layers = [layer for layer, kind in kinds.items() if kind is not None] or list(kinds)
    listed = ", ".join(layers) or "none"
    if requested is not None and requested not in kinds:
        raise InputDataError(f"{name} {path} has no layer {requested!r}; its layers are {listed}")
    if requested is None and len(layers) > 1:
        raise InputDataError(
            f"{name} {path} has several layers ({listed}); name one of them after the file, such "
            f"as {path.name}:layer={layers[0]}"
        )
    return requested or (layers[0] if layers else None)


@contextmanager
def _explained(path: Path, name: str) -> Iterator[None]:
    """Replace errors of the libraries that read vector files; the block calls nothing else."""
    import warnings

    import pyarrow as pa
    from pyogrio.errors import DataLayerError, DataSourceError
    from pyproj.exceptions import CRSError
    from shapely.errors import ShapelyError

    try:
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            yield
    except CRSError:
        raise DomainError(
            f"{name} {path} has a CRS that PROJ does not know; save it in another one"
        ) from None
    except ShapelyError as error:
        reason = str(error).partition(": ")[2]
        raise InputDataError(
            f"{name} {path} holds a geometry that cannot be read ({reason})"
        ) from None
    # A refusal of our own is a ValueError as well, so none is raised within a block.
    except (DataLayerError, DataSourceError, pa.ArrowException, ValueError, OSError) as error:
        is_date = "out of range" in str(error)
        reason = "; it has a date outside the years 1 to 9999, which must be text" * is_date
        raise InputDataError(f"{name} {path} cannot be read as a vector file{reason}") from None


def _csv(path: Path, name: str, needed: tuple[str, ...] = ()) -> tuple[pandas.DataFrame, str]:
    """Table of texts, and what separates its fields, as `psd.ingest.sources` finds it."""
    import pandas as pd

    no_table = f"{name} {path} is not a UTF-8 CSV file with a first line of names"
    text = _text(path, name)
    try:
        header = re.split(r"[\r\n]", text, maxsplit=1)[0]
        found = [(DELIMITERS[word], split_names(header, word)) for word in AUTOMATIC]
    except (ValueError, csv.Error):  # the block calls no function with refusals
        raise InputDataError(no_table) from None
    if is_separator_line(header):
        raise InputDataError(
            f"{name} {path} names the separator for a spreadsheet program in its first line; "
            "remove that line"
        )
    # The first of comma, semicolon and tab with which the first line has the needed names; if none
    # has them, that with the most names.
    fitting = [each for each in found if needed and all(match_name(n, each[1]) for n in needed)]
    delimiter = (fitting or [max(found, key=lambda each: len(each[1]))])[0][0]
    try:
        table = pd.read_csv(io.StringIO(text), sep=delimiter, dtype=str, keep_default_na=False)
    except ValueError:
        raise InputDataError(no_table) from None
    if not isinstance(table.index, pd.RangeIndex):  # pandas took the surplus fields as an index
        raise InputDataError(f"{name} {path} has rows with more fields than its first line")
    table.columns = table.columns.str.strip()
    if not table.columns.is_unique:
        raise InputDataError(
            f"{name} {path} has columns whose names differ in spaces alone; remove one of them"
        )
    return table, delimiter


def _check_name(path: Path, name: str) -> tuple[Path, str | None]:
    """File and layer of a name; a path that is not a file is refused."""
    path, layer = split_layer(path)
    if not os.path.isfile(path):
        raise InputDataError(f"{path} does not exist or is not a file")
    if layer is not None and path.suffix.lower() in (*_TEXTS, ".parquet"):
        raise InputDataError(f"{name} {path} has no layers; leave out :layer={layer}")
    return path, layer


def refuse_pointers(path: Path, name: str) -> None:
    """Refuse a file that makes GDAL read other files, which may be private."""
    try:
        with path.open("rb") as file:
            start = file.read(2**16)
    except OSError:
        return  # the reader explains it
    if any(mark in start for mark in (b"OGRVRTDataSource", b"VRTDataset")):
        raise InputDataError(
            f"{name} {path} must hold its own data, got a virtual data set (VRT) that names "
            "other files; save it as GeoPackage or GeoTIFF"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionFiles:
    """Regions in files of polygons; their names are public, and so is their content.

    Parameters
    ----------
    paths : tuple of str
        The lowest regions; or a file of each level, top first. Any vector format;
        ``FILE:layer=NAME`` names a layer. Public.
    ids : tuple of str
        Column of the ids, one for all files or one for each. Public.
    parents : tuple of str
        Columns of the ids of levels above, the nearest first; only with one file. Public.
    tolerance, gaps
        As in `psd.regions.polygon_hierarchy.hierarchy_from_polygons`. Public.
    repair : bool
        Whether invalid polygons are repaired, see `psd.space.regions`; else they are refused.
        Public.

    Raises
    ------
    ParameterError
        If there is no path, or not one id column for all or for each.

    Examples
    --------
    >>> files = RegionFiles(paths=("wards.gpkg",), ids=("ward",), parents=("district",))
    >>> files.gaps
    'refuse'
    """

    paths: tuple[str, ...]
    ids: tuple[str, ...]
    parents: tuple[str, ...] = ()
    tolerance: float | None = None
    gaps: str = "refuse"
    repair: bool = False
    # Tables that were read for the bounds, until the regions are made of them.
    _tables: list[geopandas.GeoDataFrame] = field(
        init=False, repr=False, compare=False, default_factory=list
    )

    def __post_init__(self) -> None:
        """Check the number of columns."""
        if not self.paths or len(self.ids) not in (1, len(self.paths)):
            raise ParameterError(
                f"region_id must be one column, or one for each of {len(self.paths)} files, got "
                f"{len(self.ids)}",
                name="region_id",
            )

    def read(self, domain: Domain, boundary: Boundary | None = None) -> RegionHierarchy:
        """Read the files.

        Parameters
        ----------
        domain : Domain
            Of the release.
        boundary : Boundary, optional
            Of the release, which regions must cover in place of the bounds.

        Raises
        ------
        InputDataError
            If a file is missing or cannot be read.
        ParameterError, DomainError
            As `psd.regions.polygon_hierarchy.hierarchy_from_polygons`.
        """
        tables = self.tables()
        self._tables.clear()
        return hierarchy_from_polygons(
            tables[0] if len(tables) == 1 else tables,
            domain,
            ids=self.ids[0] if len(self.ids) == 1 else self.ids,
            parents=self.parents,
            boundary=boundary,
            tolerance=self.tolerance,
            gaps=self.gaps,
        )

    def tables(self) -> list[geopandas.GeoDataFrame]:
        """Tables of the files, which are read once for their bounds and the regions.

        Raises
        ------
        ParameterError, InputDataError
            As `read`.
        """
        for path in map(Path, self.paths[len(self._tables) :]):
            number = count_features(path, "regions")  # before they are read
            if number > MAX_POLYGONS:
                raise ParameterError(
                    f"regions {path} must be at most {MAX_POLYGONS:,} polygons, got {number:,}"
                )
            table = read_polygons(path, "regions")
            self._tables.append(repair_polygons(table, "regions") if self.repair else table)
        return list(self._tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRegions:
    """Regions that are cells of a public system: a grid, map tiles, H3, or that of a package.

    Parameters
    ----------
    kind : str
        Such as ``"grid-cells"``, ``"tiles"`` or ``"h3"``; a kind of `psd.regions.kinds` that
        has a member ``hierarchy``. Public.
    cells : str
        Levels: sizes such as ``"1km,10km"``, zooms or resolutions such as ``"8..14"``. Public.

    Examples
    --------
    >>> CellRegions(kind="grid-cells", cells="1km,10km")
    CellRegions(kind='grid-cells', cells='1km,10km')
    """

    kind: str
    cells: str

    def read(self, domain: Domain, boundary: Boundary | None = None) -> RegionHierarchy:
        """Make the hierarchy of a domain.

        Raises
        ------
        ParameterError
            If there is no such kind, or it refuses the levels.
        DomainError
            If the kind needs another CRS.
        """
        make = load_member(KINDS, "kind of regions", self.kind, "hierarchy")
        hierarchy: RegionHierarchy = make(self.cells, domain, boundary=boundary)
        return hierarchy


RegionSource: TypeAlias = "RegionHierarchy | RegionFiles | CellRegions"
"""What regions are made of."""


def refuse_record_files(paths: Iterable[str], inputs: Iterable[object]) -> None:
    """Refuse public files that are inputs of records: what is in public files is published."""
    records = [Path(item) for item in inputs if isinstance(item, str | os.PathLike)]
    # os.path.exists, since Path.exists raises where a name is too long.
    records = [path for path in records if os.path.exists(path)]
    for path in map(file_of, paths):
        if os.path.exists(path) and any(path.samefile(record) for record in records):
            raise ParameterError(
                f"public file {path} must not be an input of records, since bounds, boundaries and "
                "regions are published; take a file that has nothing else"
            )
