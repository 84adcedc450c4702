"""Load a file that holds a release or a series."""

from __future__ import annotations

import os

from psd.api.release import Release
from psd.api.series import SeriesRelease
from psd.release.series_file import is_series

__all__ = ["load"]


def load(path: str | os.PathLike[str]) -> Release | SeriesRelease:
    """Read a release file, of one release or of a series of time slices.

    Raises
    ------
    ReleaseFormatError
        If the file is missing, malformed, damaged or of an unknown version.

    Examples
    --------
    >>> import tempfile, psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> release = psd.Release.from_counts(psd.grid_tree(domain, 1), [5], 1, domain=domain)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(folder + "/r.psd.parquet")
    ...     psd.load(folder + "/r.psd.parquet")
    <Release: given, 2 cells, epsilon 1 per record>
    """
    return SeriesRelease.load(path) if is_series(path) else Release.load(path)
