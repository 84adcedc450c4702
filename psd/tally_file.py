"""A tally kept for evaluations. Private: exact counts, in a file that its owner alone reads."""

from __future__ import annotations

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
    tally: Tally, domain: Domain, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a tally, marked PRIVATE, with permissions 0600."""
    header = {
        "notice": "PRIVATE: exact counts; never publish this file",
        "bounds": domain.bounds,
        "crs": domain.crs,
        "lattice": domain.lattice,
        "max_contributions": tally.contributions,
    }
    arrays = [pa.array(values) for values in (tally.columns, tally.rows, tally.counts)]
    schema = SCHEMA.with_metadata({KEY: json.dumps(header).encode()})
    with written(path, overwrite=overwrite) as target:
        target.touch(mode=0o600)
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), target)
        target.chmod(0o600)


def read_tally(path: str | os.PathLike[str], domain: Domain) -> Tally:
    """Read a tally of a build on the same domain.

    Raises
    ------
    InputDataError
        If the file is missing, no tally, or of another domain.
    """
    path = Path(path)
    if not path.is_file():
        raise InputDataError(f"tally {path} does not exist or is no file")
    try:
        table = pq.read_table(path)
        header = json.loads((table.schema.metadata or {})[KEY])
        found = (tuple(header["bounds"]), header["crs"], tuple(header["lattice"]))
        contributions = int(header["max_contributions"])
        values = [table[name].to_numpy() for name in SCHEMA.names]
    except (pa.ArrowException, OSError, KeyError, ValueError, TypeError):
        raise InputDataError(f"tally {path} is no tally kept by psd build --keep-tally") from None
    if found != (domain.bounds, domain.crs, domain.lattice):
        raise InputDataError(f"tally {path} is of another domain than the release")
    columns, rows, counts = values
    return Tally(
        columns=columns,
        rows=rows,
        counts=counts.astype(np.int64),
        contributions=contributions,
    )
