"""What formats of exports share: endings of names, metadata, plain tables, files of GDAL."""

from __future__ import annotations

import ctypes
import io
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util import plugins
from psd._util.atomic_write import temporary_target
from psd._util.column_kinds import held_columns
from psd._util.extras import needs_extra
from psd.errors import ParameterError, PsdError, WriteError
from psd.privacy.loss import RHO, delta_text, epsilon_text
from psd.query.answer_table import COLUMNS
from psd.release.cube import WindowRecord
from psd.release.record import SOURCE_NOTES
from psd.space.ground_areas import area_unit

if TYPE_CHECKING:
    import geopandas
    import pandas
    import pyarrow as pa

    from psd.release.record import ReleaseRecord


_PACKAGE = "psd.export"


def suffixes() -> tuple[str, ...]:
    """Endings of the formats that hold a table of cells."""
    return tuple(m.SUFFIX for m in _modules() if not is_raster(m) and not is_database(m))


def point_suffixes() -> tuple[str, ...]:
    """Endings of the formats that hold synthetic points."""
    return tuple(module.SUFFIX for module in _modules() if hasattr(module, "write_points"))


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
    """Module of the format of an output: the address of a database, or the ending of a name.

    A format whose package is not installed is refused, so before anything is computed or charged.
    """
    faults: list[str] = []
    suffix = Path(target).suffix.lower()
    for module in _modules(faults):
        if module.accepts(target) if is_database(module) else suffix == module.SUFFIX:
            if hasattr(module, "NEEDS"):
                extra, package, otherwise = module.NEEDS
                what = f"output in {suffix} needs {package}"
                with needs_extra(extra, what, f", or write {otherwise}"):
                    import_module(package)
            return module
    every = ", ".join((*suffixes(), *raster_suffixes()))
    raise ParameterError(
        f"output must end in one of {every}, got {target}" + "".join(f"; {each}" for each in faults)
    )


def _modules(faults: list[str] | None = None) -> Iterator[ModuleType]:
    """Modules of all formats, those of this package first; what is wrong with others is noted."""
    for name in plugins.names(_PACKAGE):
        try:
            yield plugins.load(_PACKAGE, "format", name)
        except ParameterError as error:
            if faults is not None:
                faults.append(str(error))


def release_metadata(record: ReleaseRecord, digest: str = "") -> dict[str, str]:
    """Facts about a release for all exports, reports and `Release.metadata`, publisher's first."""
    concentrated = {}  # nothing of a release in epsilon alone
    if record.rho is not None and record.delta is not None:
        concentrated = {"delta": delta_text(record.delta), "rho": RHO.text(record.rho)}
    # A new public field of a release gets to all of them by an entry here.
    return {
        **({} if record.about is None else record.about.texts),
        "epsilon": epsilon_text(record.epsilon),
        **concentrated,
        "unit_of_privacy": record.unit_text,
        "source": record.source + SOURCE_NOTES[record.source],
        "counts": record.counted_text,
        **({"values": values_text(record)} if record.values else {}),
        "method": record.method,
        **(record.shown if isinstance(record, WindowRecord) else {}),
        "library": f"psd {record.library}",
        **({"digest": digest} if digest else {}),
    }


def values_text(record: ReleaseRecord) -> str:
    """Values of a release with their bounds, for people."""
    bounds = (f"{value.name} from {value.lower:g} to {value.upper:g}" for value in record.values)
    return f"{', '.join(bounds)}; a value beyond its bounds counts as the nearest bound"


def counted_unit(counts: str) -> str:
    """Unit of counts, by the text of what they count: ``users`` or ``records``."""
    return "users" if counts.startswith("users") else "records"


def density_unit(record: ReleaseRecord) -> str:
    """Unit of the densities of a release, such as ``records per km2``."""
    return f"{counted_unit(record.counted_text)} per {area_unit(record.domain)}"


def describe(metadata: dict[str, str]) -> str:
    """Metadata as a text of one line, for formats whose only room is a description."""
    return "; ".join(f"{key.replace('_', ' ')} {value}" for key, value in metadata.items())


def plain_columns(table: geopandas.GeoDataFrame) -> pandas.DataFrame:
    """Columns but the geometry; of cells their four sides after cell and level, of points x, y."""
    import pandas as pd

    plain = pd.DataFrame(table.drop(columns=table.geometry.name))
    if table.attrs.get("content") == "cells":
        sides = table.geometry.bounds.set_axis(["west", "south", "east", "north"], axis=1)
        plain = plain[["cell", "level"]].join(sides).join(plain.drop(columns=["cell", "level"]))
    if table.attrs.get("content") == "points":
        plain = plain.assign(x=table.geometry.x.to_numpy(), y=table.geometry.y.to_numpy())
    return pd.DataFrame(plain)


def write_answers(
    answers: geopandas.GeoDataFrame,
    path: str | os.PathLike[str],
    *,
    suffix: str,
    metadata: Mapping[str, str],
    content: str = "answers",
    overwrite: bool = False,
) -> None:
    """Write answers, from `Release.query`, with the caller's columns, order and CRS.

    The suffix is that of a format that holds a table, such as ``".gpkg"``; `content` is the name of
    the layer or sheet. The file states the metadata as far as its format has room.
    """
    writer, table = find_format(f"answers{suffix}"), answers.copy(deep=False)
    table.attrs = {"content": content, **metadata}
    with temporary_target(path, overwrite=overwrite) as target:
        try:
            writer.write(table, target)
        except PsdError:  # a refusal, most of which are ValueErrors too
            raise
        except (RuntimeError, ValueError, TypeError) as error:  # what GDAL's and Arrow's raise
            first_line = str(error).partition("\n")[0][:200]
            raise WriteError(f"cannot write {path}: {first_line}") from None


def finite_errors(table: geopandas.GeoDataFrame) -> geopandas.GeoDataFrame:
    """Table in which infinite errors of answers, such as those relative to 0, have no value."""
    names = [name for name in COLUMNS if name in table and table[name].dtype.kind == "f"]
    finite = {name: table[name].where(np.isfinite(table[name])) for name in names}
    errors = table.assign(**finite)
    errors.attrs = table.attrs
    return errors


def layer_bytes(table: geopandas.GeoDataFrame, driver: str, form: str, **options: Any) -> bytes:
    """Content of a file in a format of GDAL; GDAL itself does not always report a full disk."""
    content = io.BytesIO()
    # Infinite errors get no value: JSON has no infinity, and databases sort it variously.
    table = held_columns(finite_errors(table), form)
    # By Arrow, dates and bytes keep their type.
    table.to_file(content, driver=driver, engine="pyogrio", use_arrow=True, **options)
    return content.getvalue()


def write_cells(
    tables: Iterable[geopandas.GeoDataFrame], path: Path, driver: str, form: str, **options: Any
) -> None:
    """Write tables of cells or points, one in memory at a time, to a file in a format of GDAL."""
    import pyarrow as pa
    import pyogrio

    waiting = iter(tables)
    first = next(waiting)
    _return_freed_memory()  # of reading the release and of its fit
    schema, rows = _batch(first, form).schema, 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for table in chain([first], waiting):
            rows += len(table)
            yield _batch(table, form).cast(schema)
        _return_freed_memory()  # of the fit, before an index is made

    code = first.crs.to_epsg()
    pyogrio.write_arrow(
        pa.RecordBatchReader.from_batches(schema, batches()),
        path,
        driver=driver,
        geometry_name=_SHAPE,
        geometry_type="Point" if first.attrs.get("content") == "points" else "Polygon",
        crs=f"EPSG:{code}" if code else first.crs.to_wkt("WKT1_GDAL"),
        **options,
    )
    # GDAL itself does not always report a full disk, so the rows of the file are counted.
    try:
        with pyogrio.open_arrow(path, columns=[], use_pyarrow=True) as (_, reader):
            written = sum(len(batch) for batch in reader)
    except (RuntimeError, OSError, ValueError):  # of a file that ends too early
        written = -1
    if written != rows:
        raise WriteError(f"cannot write {path.name}: its disk may be full")


def _return_freed_memory() -> None:
    """Give freed memory that Arrow and glibc have kept back to the system."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is not None:
        trim(0)


_SHAPE = "geometry"


def _batch(table: geopandas.GeoDataFrame, form: str) -> pa.RecordBatch:
    """Rows of a table of cells or points, with their shapes as well-known binary."""
    import pandas as pd
    import pyarrow as pa

    held = held_columns(finite_errors(table), form)
    plain = pd.DataFrame(held.drop(columns=_SHAPE))
    batch = pa.RecordBatch.from_pandas(plain, preserve_index=False).replace_schema_metadata()
    texts = [field.with_type(pa.string()) for field in batch.schema if pa.types.is_null(field.type)]
    for field in texts:  # of no rows
        batch = batch.set_column(
            batch.schema.get_field_index(field.name), field, pa.array([], pa.string())
        )
    kind = pa.field(_SHAPE, pa.binary(), metadata={"ARROW:extension:name": "ogc.wkb"})
    shapes = pa.array(held.geometry.to_wkb(), pa.binary())
    if not len(plain.columns):  # of which Arrow does not know the number of rows
        return pa.RecordBatch.from_arrays([shapes], schema=pa.schema([kind]))
    return batch.append_column(kind, shapes)
