"""The file of a series: the release file with a column ``slice``, and a header of its own.

The footer key ``psd-series`` holds strict JSON: the slices, what a release file says of a
release, once for all slices, and the parameters of each. Reading is as strict as for a release.
"""

from __future__ import annotations

import io
import json
import os
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from psd.covariate_file import COVARIATE_KEY, pack, unpack
from psd.errors import ReleaseFormatError
from psd.files import write_whole
from psd.release import Release
from psd.release_file import (
    KEY,
    MAX_NODES,
    PARQUET,
    SCHEMA,
    SERIES_KEY,
    arguments,
    columns_of,
    guarded,
    header_of,
    is_parameters,
    read_bytes,
    strict_json,
    tree_of,
)
from psd.series import Bound, Series
from psd.slices import Slices

__all__ = ["decode", "encode", "is_series", "read", "write"]

FORMAT = 1
MAX_HEADER = 2**24

_SLICE = pa.field("slice", pa.int32(), nullable=False)
_SCHEMA = pa.schema([_SLICE, *SCHEMA])


def write(series: Series, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a series; the file appears whole or not at all."""
    write_whole(path, encode(series), overwrite=overwrite)


def read(path: str | os.PathLike[str]) -> Series:
    """Read a series.

    Raises
    ------
    ReleaseFormatError
        If the file is missing, malformed, damaged, of an unknown version or a single release.
    """
    return decode(read_bytes(path), str(path))


def is_series(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is a series; False where it says nothing that can be read."""
    try:
        metadata = pq.read_metadata(path).metadata or {}
    except (pa.ArrowException, OSError):
        return False
    return SERIES_KEY in metadata


def encode(series: Series) -> bytes:
    """Bytes of the file; the same series gives the same bytes."""
    header = json.dumps(_header(series), allow_nan=False, sort_keys=True).encode()
    _fields(header)  # what a reader would refuse is not written
    schema = _SCHEMA.with_metadata({SERIES_KEY: header})
    sink, covariate = io.BytesIO(), series.releases[0].covariate
    with pq.ParquetWriter(sink, schema, **PARQUET) as writer:
        for number, release in enumerate(series.releases):
            slices = pa.array(np.full(len(release.tree), number, np.int32))
            columns = [slices, *columns_of(release.tree)]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema))
        if covariate is not None:
            writer.add_key_value_metadata({COVARIATE_KEY: pack(covariate)})
    return sink.getvalue()


def _header(series: Series) -> dict[str, Any]:
    """Everything about a series but its nodes: an allow-list of public values."""
    slices = series.slices
    return {
        "series": FORMAT,
        "by": slices.by,
        "time_zone": slices.time_zone,
        "slices": list(slices.names),
        "bound": series.bound,
        "parameters": [dict(release.parameters) for release in series.releases],
        "release": {**header_of(series.releases[0]), "parameters": {}},
    }


def decode(content: bytes, name: str = "series") -> Series:
    """Series from the bytes of a file.

    Raises
    ------
    ReleaseFormatError
        With the first thing that is wrong.
    """
    with guarded(name):
        return _decoded(pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True))


def _decoded(file: pq.ParquetFile) -> Series:
    """Check what the footer says before anything large is read."""
    metadata = file.schema_arrow.metadata or {}
    if KEY in metadata and SERIES_KEY not in metadata:
        raise ReleaseFormatError("it is a single release and no series of time slices")
    slices, bound, each = _fields(metadata.get(SERIES_KEY))
    if not file.schema_arrow.remove_metadata().equals(_SCHEMA):
        raise ReleaseFormatError("the columns are not those of a series")
    if not len(slices) <= file.metadata.num_rows <= MAX_NODES:
        raise ReleaseFormatError(f"a series has a node in each slice, and at most {MAX_NODES:,}")
    packed = (file.metadata.metadata or {}).get(COVARIATE_KEY)
    covariate = unpack(each[0]["covariate"], packed, each[0]["domain"])
    trees = _split(file.read(), len(slices))
    releases = [
        Release(tree=tree_of(table), **{**header, "covariate": covariate}, source="curator")
        for table, header in zip(trees, each, strict=True)
    ]
    return Series(slices=slices, releases=tuple(releases), bound=bound)


def _split(table: pa.Table, number: int) -> list[pa.Table]:
    """Nodes of each slice; they stand together and in order."""
    slices = table["slice"].to_numpy()
    if (np.diff(slices) < 0).any() or not np.array_equal(np.unique(slices), np.arange(number)):
        raise ReleaseFormatError("its nodes are not sorted by slice, or a slice has none")
    edges = np.searchsorted(slices, np.arange(number + 1)).tolist()
    plain = table.drop_columns("slice")
    return [plain.slice(edges[i], edges[i + 1] - edges[i]) for i in range(number)]


def _fields(raw: bytes | None) -> tuple[Slices, Bound, list[dict[str, Any]]]:
    """Slices, bound, and the arguments of each release."""
    if raw is None:
        raise ReleaseFormatError("it carries no psd header; it was not written by this library")
    if len(raw) > MAX_HEADER:
        raise ReleaseFormatError("its header is too long")
    header = strict_json(raw)
    if not isinstance(header, dict) or header.keys() != _NAMES:
        raise ReleaseFormatError("its header has other fields than that of a series")
    if type(header["series"]) is not int or header["series"] != FORMAT:
        raise ReleaseFormatError(f"its series version is not known; this library reads {FORMAT}")
    names, parameters, release = (header[n] for n in ("slices", "parameters", "release"))
    if header["bound"] not in get_args(Bound) or not isinstance(names, list):
        raise ReleaseFormatError("header field bound or slices is not valid")
    slices = Slices(by=header["by"], names=tuple(names), time_zone=header["time_zone"])
    if not (isinstance(parameters, list) and len(parameters) == len(slices)):
        raise ReleaseFormatError("header field parameters does not fit the slices")
    if not all(map(is_parameters, parameters)):
        raise ReleaseFormatError("header field parameters is not valid")
    common = arguments(release)
    return slices, header["bound"], [{**common, "parameters": own} for own in parameters]


_NAMES = {"series", "by", "time_zone", "slices", "bound", "parameters", "release"}
