"""GeoPackage, Shapefile, FlatGeobuf and GeoJSON, streamed by GDAL. Private side."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.errors import InputDataError
from psd.ingest.sources._arrow import check_names, layout
from psd.ingest.sources._paths import kind, unchanged

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain

__all__ = ["accepts", "batches"]

_ROWS = 100_000

_PLAIN_STREAM = "OGR_FLATGEOBUF_STREAM_BASE_IMPL"
"""Option of GDAL, whose own stream of FlatGeobuf overwrites points after a missing geometry."""

_POINTS = ("Point", "2.5D Point", "Unknown")
"""How types of layers that may hold points begin."""


USES: tuple[str, ...] = ("geometry", "layer")
"""Fields of `psd.ingest.sources.Columns` that a file or table of this kind has a use for."""


def accepts(item: Any) -> bool:
    """Whether the item is the path of a vector file."""
    return kind(item) == "vector"


def batches(items: list[Path], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Rows of one layer of each file.

    Raises
    ------
    InputDataError
        If a file is damaged, has several layers and none is named, holds other geometries than
        points, or changes while it is read.
    DomainError
        If a file has no CRS.
    """
    layers = [_layer(path, columns.layer) for path in items]  # all before a row is read
    for path in items:
        _check_length(path)
    for path, layer in zip(items, layers, strict=True):
        with unchanged([path]):
            yield from _rows(path, layer, columns, domain)


def _layer(path: Path, asked: str | None) -> str:
    """Name of the layer to read: the one that is asked for, or else the only one with geometries.

    Names of layers are structure, and the message is for the holder of the file alone.
    """
    import pyogrio

    try:
        with _quiet():
            found = {str(name): kind for name, kind in pyogrio.list_layers(path)}
    except (RuntimeError, OSError):
        raise InputDataError(_unsound(path)) from None
    names = ", ".join(found) or "none"
    if asked is not None and asked not in found:
        raise InputDataError(f"{path} has no layer {asked!r}; its layers are {names}")
    likely = [asked] if asked else [name for name, kind in found.items() if kind] or list(found)
    if len(likely) != 1:
        raise InputDataError(f"{path} has several layers: {names}; say which one (--layer)")
    if found[likely[0]] and not found[likely[0]].startswith(_POINTS):
        raise InputDataError(
            f"layer {likely[0]!r} of {path} holds geometries that are no points; a release counts "
            "points, so take for instance their centroids"
        )
    return likely[0]


def _check_length(path: Path) -> None:
    """Refuse a shapefile that is shorter than it says; GDAL would read missing points from it."""
    if path.suffix.lower() != ".shp":
        return
    with path.open("rb") as file:
        start = file.read(28)
    complete = len(start) == 28 and path.stat().st_size >= 2 * int.from_bytes(start[24:28], "big")
    for table in (path.with_suffix(end) for end in (".dbf", ".DBF")):
        if table.exists():
            complete &= _is_whole_table(table)
    if not complete:
        raise InputDataError(_unsound(path))


def _is_whole_table(path: Path) -> bool:
    """Whether the table of a shapefile has all the records that it says."""
    with path.open("rb") as file:
        start = file.read(12)
    rows, head, width = (
        int.from_bytes(start[a:b], "little") for a, b in ((4, 8), (8, 10), (10, 12))
    )
    return len(start) == 12 and path.stat().st_size >= head + rows * width


def _unsound(path: Path) -> str:
    """Message about a file that GDAL cannot read; its own words may quote the content."""
    return (
        f"{path} is no sound GeoPackage, Shapefile, FlatGeobuf or GeoJSON; is it truncated, or "
        "does a part of it lie elsewhere?"
    )


def _rows(path: Path, layer: str, columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Rows of one layer."""
    import pyarrow as pa
    import pyogrio

    try:
        with _quiet():
            info = pyogrio.read_info(path, layer=layer, force_feature_count=True)
        named = _named(str(path), info, columns)
        opened = pyogrio.open_arrow(
            path,
            layer=layer,
            columns=named,
            batch_size=_ROWS,
            use_pyarrow=True,
            datetime_as_string=True,  # GDAL's own times lose their offset in some formats
        )
        with _plain_stream(), opened as (meta, reader):
            place = (meta["geometry_name"] or "wkb_geometry") if meta["geometry_type"] else None
            found = {} if place is None else {place: meta["crs"]}
            chosen = layout(str(path), reader.schema, columns, domain, found)
            left = info["features"]
            for batch in chosen.batches(_records(reader)):
                left -= len(batch.x)
                yield batch
    except (RuntimeError, OSError, pa.ArrowException):
        fault = True  # raised outside, where no context carries a message that quotes
    else:
        fault = left != 0  # GDAL ends at some damages as if it were the end of the file
    if fault:
        raise InputDataError(_unsound(path))


def _named(what: str, info: dict[str, Any], columns: Columns) -> list[str]:
    """Columns beside the geometry that are read, each once in the layer."""
    fields = [str(name) for name in info["fields"]]
    places = [] if info["geometry_type"] else [columns.x, columns.y]
    wanted = [*places, *(name for name in (columns.user, columns.time) if name is not None)]
    check_names(what, fields, wanted)
    return wanted


def _records(reader: Any) -> Iterator[Any]:
    """Record batches, without the warnings of GDAL, which quote values."""
    while True:
        with _quiet():
            record = next(reader, None)
        if record is None:
            return
        yield record


@contextmanager
def _plain_stream() -> Iterator[None]:
    """Let GDAL read every format feature by feature."""
    import pyogrio

    before = pyogrio.get_gdal_config_option(_PLAIN_STREAM)
    pyogrio.set_gdal_config_options({_PLAIN_STREAM: "YES"})
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options({_PLAIN_STREAM: before})


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the warnings of GDAL from the screen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
