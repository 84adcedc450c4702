"""Load a file that holds a release or a series."""

from __future__ import annotations

import os

from psd._util.untrusted_parquet import footer_keys
from psd.api.region_release import RegionRelease
from psd.api.release import Release
from psd.api.series import SeriesRelease
from psd.release.node_limit import MAX_NODES
from psd.release.region_codec import REGIONS_KEY
from psd.release.series_file import is_series

__all__ = ["load"]


def load(path: str | os.PathLike[str], *, max_nodes: int = MAX_NODES) -> Release | SeriesRelease:
    """Read a release file, of one release or of a series of time slices.

    Parameters
    ----------
    path : path-like
        File to read.
    max_nodes : int
        Largest number of nodes in the file, in all slices together; 2^22 by default. Memory and
        time of queries grow with it, so raise it only for files from trusted senders.

    Raises
    ------
    ReleaseFormatError
        If the file is missing, malformed, damaged or of an unknown version, or states more nodes.
    ParameterError
        If `max_nodes` is not a positive integer.

    Examples
    --------
    >>> import tempfile, psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> release = psd.Release.from_counts(psd.grid_tree(domain, 1), [5], 1, domain=domain)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     release.save(folder + "/r.psd.parquet")
    ...     len(psd.load(folder + "/r.psd.parquet").tree)
    2
    """
    if is_series(path):
        return SeriesRelease.load(path, max_nodes=max_nodes)
    kind = RegionRelease if REGIONS_KEY in footer_keys(path) else Release
    return kind.load(path, max_nodes=max_nodes)
