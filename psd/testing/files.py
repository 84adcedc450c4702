"""Contracts of a source, which reads the same records as a DataFrame, and of an export format.

The file of a format has the cells of a release and nothing else.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from psd.errors import InputDataError, WriteError
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Batch
from psd.space.domain import Domain
from psd.statistics.raster import density_raster
from psd.testing.data import release_from_counts

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

_DOMAIN = Domain(bounds=(126, 37, 128, 38))
_ELSEWHERE = Domain(bounds=(0, 0, 1, 1))
"""Without a record; what a source reads must not depend on where records lie."""

_COLUMNS = Columns(x="lon", y="lat", user="id", time="seen", time_zone="Asia/Seoul")
_VALUES = ("fare",)
_ID = "visitor"
"""Part of every id, which no message may contain."""


def check_source(
    make: Callable[[pd.DataFrame, Path], Any],
    *,
    has_times: bool = True,
    has_values: bool = True,
    has_crs: bool = True,
) -> None:
    """Check that a source reads positions, ids, times and values, and refuses a missing column.

    All records are read whatever the bounds are, since a source that drops or refuses records by
    where they lie would reveal that at no cost.

    Parameters
    ----------
    make : callable
        Takes a DataFrame with the columns lon, lat, id, seen and fare, with some coordinates, ids
        and fares missing, and an empty folder; returns an input of the source with these records,
        which is read several times. The source must be registered, so that `psd.build` can select
        it.
    has_times, has_values, has_crs : bool
        Whether the source can have a column of times, columns of values, and coordinates in another
        CRS than that of the domain, which `input_crs` names.

    Raises
    ------
    AssertionError
        With the first fault.

    Examples
    --------
    >>> check_source(lambda table, folder: table)
    """
    columns = _COLUMNS if has_times else replace(_COLUMNS, time=None)
    ways = [columns, replace(columns, user=None)]
    ways += [replace(columns, values=_VALUES)] if has_values else []
    ways += [replace(columns, input_crs="EPSG:4258")] if has_crs else []
    ways += [replace(columns, input_crs="EPSG:3857")] if has_crs else []
    for size in (2_000, 1):
        table = _table(size)
        with tempfile.TemporaryDirectory() as folder:
            item = make(table.copy(), Path(folder))
            for each in ways:
                for domain in (_DOMAIN, _ELSEWHERE):
                    _check_same_rows(item, table, each, domain)
            _check_missing_column(item, columns)


def _table(size: int) -> pd.DataFrame:
    """Records with ids and times; some values are missing, but none in the first record."""
    rng = np.random.default_rng(7)
    table = pd.DataFrame(
        {
            "lon": rng.uniform(125.9, 128.1, size).round(6),
            "lat": rng.uniform(36.9, 38.1, size).round(6),
            "id": [f"{_ID} {number}" for number in rng.integers(0, 40, size)],
            "seen": pd.date_range("2023-12-31 20:30", periods=size, freq="17min", tz="UTC"),
            "fare": rng.uniform(-5, 70, size).round(2),
        }
    )
    table["seen"] = table["seen"].astype("datetime64[us, UTC]")
    # Missing positions, ids and values are of different rows, none of the first.
    gaps = np.arange(1, size, 31)
    table.loc[gaps, ["lon", "lat"]] = np.nan
    table.loc[gaps + 1 if size > 1 else gaps, "id"] = None
    table.loc[gaps + 2 if size > 1 else gaps, "fare"] = np.nan
    return table.iloc[:size]


def _check_same_rows(item: Any, table: pd.DataFrame, columns: Columns, domain: Domain) -> None:
    """Compare the records of an input with those of the DataFrame, in any order."""
    batches, expected = (list(read(data, columns, domain)) for data in (item, table))
    for batch in batches:
        _check_batch(batch, columns)
    read_rows, rows = _rows(batches), _rows(expected)
    count = f"{len(read_rows)} of {len(rows)}"
    _expect(len(read_rows) == len(rows), f"must read every row once, got {count}")
    _expect(read_rows.equals(rows), "must read coordinates, ids, times and values as they are")


def _check_batch(batch: Batch, columns: Columns) -> None:
    """Check the types and lengths of the arrays of a batch."""
    _expect(type(batch) is Batch, "must yield psd.ingest.tally.Batch")
    _expect(batch.x.dtype == batch.y.dtype == np.float64, "must yield coordinates as float64")
    _expect(batch.x.shape == batch.y.shape and batch.x.ndim == 1, "must yield as many x as y")
    _expect((batch.user is None) == (columns.user is None), "must yield ids if they are named")
    _expect((batch.time is None) == (columns.time is None), "must yield times if they are named")
    if batch.user is not None:
        _expect(len(batch.user) == len(batch.x), "must yield one id for each row")
    if batch.values is not None:
        shape = len(batch.x), len(columns.values)
        _expect(batch.values.shape == shape, "must yield the values of each row")
    if batch.time is not None:
        _expect(batch.time.dtype == np.dtype("datetime64[us]"), "must yield times in microseconds")
        _expect(len(batch.time) == len(batch.x), "must yield one time for each row")


def _rows(batches: list[Batch]) -> pd.DataFrame:
    """Rows of all batches, sorted."""
    tables = [
        pd.DataFrame(
            {
                "x": batch.x,
                "y": batch.y,
                "user": ""
                if batch.user is None
                else [str(i or "") for i in batch.user.to_pylist()],
                "time": np.int64(0) if batch.time is None else batch.time.astype(np.int64),
                "value": 0.0 if batch.values is None else batch.values[:, 0],
            }
        )
        for batch in batches
    ]
    rows = pd.concat(tables, ignore_index=True)
    return rows.sort_values(["time", "x", "y", "user", "value"]).reset_index(drop=True)


def _check_missing_column(item: Any, columns: Columns) -> None:
    """Check that a missing column is refused in a message without values of records."""
    try:
        list(read(item, replace(columns, user="no such column"), _DOMAIN))
    except InputDataError as error:
        _expect(_ID not in str(error), "must quote no value of a row in a message")
        return
    raise AssertionError("the source must raise InputDataError for a column that is not there")


def _expect(holds: bool, sentence: str) -> None:
    """Raise an error that says what a source must do."""
    if not holds:
        raise AssertionError(f"the source {sentence}")


_COUNTS = ((3, 0, 7), (-2, 5, 40))
_CELL_COLUMNS = ("cell", "level", "estimate", "perturbation_error", "density")


def check_export(suffix: str, read: Callable[[Path], pd.DataFrame | NDArray[np.float64]]) -> None:
    """Check that a format writes all cells of a release and no path of this machine.

    Parameters
    ----------
    suffix : str
        Ending of its files, such as ``".csv"``. The format must be registered, so that `psd export`
        can select it.
    read : callable
        Takes the path of a file. For a table it returns a DataFrame with the columns cell, level,
        estimate, perturbation_error and density; for a raster an array of shape
        (3, rows, columns) of count, density and error, its first row in the north.

    Raises
    ------
    AssertionError
        With the first fault.

    Examples
    --------
    >>> import pandas as pd
    >>> check_export(".csv", pd.read_csv)
    """
    from psd.export import find_format, is_raster

    release = release_from_counts(_COUNTS, epsilon="0.5")
    raster = is_raster(find_format(f"file{suffix}"))
    for cells in ("leaves",) if raster else ("leaves", "all"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"cells{suffix}"
            _check_written(release, path, read, cells, is_array=raster)


def _check_written(
    release: Any, path: Path, read: Callable[[Path], Any], cells: str, *, is_array: bool
) -> None:
    """Write one file and check it."""
    release.export(path, cells=cells)
    _expect_of_format(
        [each.name for each in path.parent.iterdir()] == [path.name], "must write one file"
    )
    content = path.read_bytes()
    _expect_of_format(
        str(path.parent).encode() not in content, "must not write paths of this machine"
    )
    try:
        release.export(path, cells=cells)
    except WriteError:
        _expect_of_format(path.read_bytes() == content, "must leave a file that is there as it is")
    else:
        raise AssertionError("the format must not replace a file")
    if is_array:
        raster = density_raster(release.index.fit, 256, 256)
        expected = np.stack([raster.count, raster.density, raster.error])
        _expect_of_format(
            np.allclose(read(path), expected, equal_nan=True), "must write the raster"
        )
        return
    table, expected_table = read(path), release.to_geopandas(cells)
    for name in _CELL_COLUMNS:
        same = len(table) == len(expected_table) and np.allclose(
            table[name].to_numpy(float), expected_table[name].to_numpy(float), rtol=1e-9
        )
        _expect_of_format(same, f"must write {name} of every cell")


def _expect_of_format(holds: bool, sentence: str) -> None:
    """Raise an error that says what a format must do."""
    if not holds:
        raise AssertionError(f"the format {sentence}")
