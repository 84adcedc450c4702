"""A tally kept for evaluations. Private: exact counts, in a file that its owner alone reads."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from psd.domain import Domain
from psd.errors import InputDataError
from psd.files import written
from psd.tally import Tally

__all__ = ["read_tally", "write_tally"]

KEY = b"PRIVATE psd tally"
SCHEMA = pa.schema([("column", pa.int32()), ("row", pa.int32()), ("count", pa.int64())])


def write_tally(
    tally: Tally,
    domain: Domain,
    path: str | os.PathLike[str],
    *,
    release: Path,
    overwrite: bool = False,
) -> None:
    """Write a tally, marked PRIVATE, with permissions 0600.

    It names its release by a digest of that public file; the release knows nothing of it.
    """
    header = {
        "notice": "PRIVATE: exact counts; never publish this file",
        "bounds": domain.bounds,
        "crs": domain.crs,
        "lattice": domain.lattice,
        "max_contributions": tally.contributions,
        "release": _digest(release),
    }
    arrays = [pa.array(values) for values in (tally.columns, tally.rows, tally.counts)]
    schema = SCHEMA.with_metadata({KEY: json.dumps(header).encode()})
    with written(path, overwrite=overwrite) as target:
        target.touch(mode=0o600)
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), target)
        target.chmod(0o600)


def _digest(release: Path) -> str:
    """Digest of a release file."""
    return hashlib.sha256(release.read_bytes()).hexdigest()


def read_tally(path: str | os.PathLike[str], domain: Domain, release: Path) -> Tally:
    """Read the tally of the build of a release.

    Raises
    ------
    InputDataError
        If the file is missing, no sound tally, or of another release.
    """
    path = Path(path)
    if not path.is_file():
        raise InputDataError(f"tally {path} does not exist or is no file")
    try:
        table = pq.read_table(path)
        header = json.loads((table.schema.metadata or {})[KEY])
        found = (tuple(header["bounds"]), header["crs"], tuple(header["lattice"]))
        contributions, made = int(header["max_contributions"]), header["release"]
        values = [table[name].to_numpy() for name in SCHEMA.names]
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError):
        raise InputDataError(f"tally {path} is no tally kept by psd build --keep-tally") from None
    if found != (domain.bounds, domain.crs, domain.lattice) or made != _digest(release):
        raise InputDataError(f"tally {path} is not of this release; each build keeps its own")
    columns, rows, counts = values
    sound = table.schema.remove_metadata().equals(SCHEMA) and not any(
        table[name].null_count for name in SCHEMA.names
    )
    inside = [
        len(cells) == 0 or 0 <= cells.min() <= cells.max() < size
        for cells, size in zip((columns, rows), domain.lattice, strict=True)
    ]
    if not (sound and all(inside) and (counts > 0).all()):
        raise InputDataError(f"tally {path} is damaged; keep it anew with the next build")
    return Tally(
        columns=columns,
        rows=rows,
        counts=counts.astype(np.int64),
        contributions=contributions,
    )
