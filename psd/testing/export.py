"""Contract of an export format: its file has the cells of a release and nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.errors import WriteError
from psd.statistics.raster import density_raster
from psd.testing.data import release_from_counts

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray


_COUNTS = ((3, 0, 7), (-2, 5, 40))
_COLUMNS = ("cell", "level", "estimate", "perturbation_error", "density")


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
    _expect([each.name for each in path.parent.iterdir()] == [path.name], "must write one file")
    content = path.read_bytes()
    _expect(str(path.parent).encode() not in content, "must not write paths of this machine")
    try:
        release.export(path, cells=cells)
    except WriteError:
        _expect(path.read_bytes() == content, "must leave a file that is there as it is")
    else:
        raise AssertionError("the format must not replace a file")
    if is_array:
        raster = density_raster(release.index.fit, 256, 256)
        expected = np.stack([raster.count, raster.density, raster.error])
        _expect(np.allclose(read(path), expected, equal_nan=True), "must write the raster")
        return
    table, expected_table = read(path), release.to_geopandas(cells)
    for name in _COLUMNS:
        same = len(table) == len(expected_table) and np.allclose(
            table[name].to_numpy(float), expected_table[name].to_numpy(float), rtol=1e-9
        )
        _expect(same, f"must write {name} of every cell")


def _expect(holds: bool, sentence: str) -> None:
    """Raise an error that says what a format must do."""
    if not holds:
        raise AssertionError(f"the format {sentence}")
