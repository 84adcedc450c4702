"""The file of a series: the release file with a column ``slice``, and a header of its own.

Footer key ``psd-series``: strict JSON of the slices, one header for all, and what differs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from psd._util.atomic_write import write_file
from psd._util.declared_parameters import DeclaredParameters, parameters_from_file
from psd._util.json_toml import strict_json
from psd._util.parquet_bytes import (
    MAX_ROWS,
    append_table,
    check_size,
    footer_keys,
    max_rows,
    open_parquet,
)
from psd.errors import ReleaseFormatError
from psd.privacy.budget import TOTALS_FACTOR
from psd.privacy.unit import ContributionScope
from psd.release.codecs import (
    COVARIATE_KEY,
    REGIONS_KEY,
    is_factor,
)
from psd.release.file import (
    DIGEST_KEY,
    KEY,
    NODES,
    PARQUET,
    SCHEMA,
    SERIES_KEY,
    canonical_json,
    check_digest,
    columns_of,
    encode_tables,
    explain_read_errors,
    file_footer,
    limited_content,
    read_footer,
    regions_footer,
    schema_of,
    series_digest,
    slice_digest,
    unpack_fields,
)
from psd.release.node_reader import (
    MAX_NODES,
    NODE_BYTES,
    check_node_count,
    nodes_of,
    read_trees,
)
from psd.release.record import ReleaseRecord
from psd.release.schema import (
    FORMAT,
    check_format,
    check_series,
    is_parameters,
    record_fields,
    record_header,
)
from psd.release.series import SeriesRecord
from psd.space.region_tree import named_tree
from psd.space.time_slices import TimeSlices

__all__ = ["append_slice", "decode_series", "digest_of", "encode_series", "join_releases"]


MARK = "psd_series"
"""Key of the format in the header, where older formats had ``series``, 1 or 2."""
_OLD = ("series", 2)
MAX_HEADER = 2**24

SERIES_SCHEMA = pa.schema([pa.field("slice", pa.int32(), nullable=False), *SCHEMA])
"""Names and types of the columns; a series with values has those of `_schema_of`."""


def _schema_of(values: int) -> pa.Schema:
    """Columns of a series with values."""
    return schema_of(values, [SERIES_SCHEMA.field("slice")])


def write_series(
    series: SeriesRecord, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a series; a failure leaves no partial file."""
    write_file(path, encode_series(series), overwrite=overwrite)


def read_series(
    path: str | os.PathLike[str], *, max_nodes: int = MAX_NODES
) -> tuple[SeriesRecord, str]:
    """Read a series, and the digest of its content; refuse more than `max_nodes` nodes in all."""
    with limited_content(path, max_nodes) as content:
        return decode_series(content, str(path), max_nodes=max_nodes)


def is_series(path: str | os.PathLike[str]) -> bool:
    """Whether a file states that it is a series; False if it cannot be read."""
    return SERIES_KEY in footer_keys(path)


def encode_series(series: SeriesRecord) -> bytes:
    """Bytes, the same for the same series. P1. A value that is not public is refused."""
    check_series(series)
    header = series_header(series)
    check_header(header)
    tables = [slice_table(number, record) for number, record in enumerate(series.releases)]
    covariate, schema = series.releases[0].covariate, _schema_of(len(series.releases[0].values))
    footer = {SERIES_KEY: canonical_json(header), **regions_footer(series.releases[0])}
    return encode_tables(tables, schema, file_footer(footer, digest_of(series), covariate))


def digest_of(series: SeriesRecord) -> str:
    """Digest of a series, as its file states it."""
    check_series(series)
    return _digest(series_header(series), series)


def _digest(header: Mapping[str, Any], series: SeriesRecord) -> str:
    """Digest of a header and of the slices."""
    trees = [record.tree for record in series.releases]
    return series_digest(SERIES_KEY, header, map(slice_digest, series.slices, trees))


def check_header(header: Mapping[str, Any]) -> None:
    """Refuse a header that a reader would refuse."""
    _series_fields(strict_json(canonical_json(header), MAX_HEADER))


def slice_table(number: int, release: ReleaseRecord) -> pa.Table:
    """Nodes of a slice."""
    slices = pa.array(np.full(len(release.tree), number, np.int32))
    schema = _schema_of(len(release.values))
    return pa.Table.from_arrays([slices, *columns_of(release.tree)], schema=schema)


def series_header(series: SeriesRecord) -> dict[str, Any]:
    """Everything about a series but its nodes: an allow-list of public values."""
    parameters = [dict(release.parameters) for release in series.releases]
    # Of running totals, the first may have the noise of a count, and all others have not.
    last = record_header(series.releases[-1])
    return join_headers(series.slices, series.scope, parameters, last)


def join_headers(
    slices: TimeSlices, scope: ContributionScope, parameters: list[Any], last: dict[str, Any]
) -> dict[str, Any]:
    """Header of a series, from the parameters of each release and the header of the last."""
    header = {
        MARK: FORMAT,
        "by": slices.by,
        "time_zone": slices.time_zone,
        "slices": list(slices.names),
        "bound": scope,
        "release": last,
    }
    return with_parameters(header, parameters)


def with_parameters(header: Mapping[str, Any], parameters: list[Any]) -> dict[str, Any]:
    """Header with other parameters of the slices; those that all share are in it once."""
    shared = set(parameters[0].items()).intersection(*(each.items() for each in parameters))
    return {
        **header,
        "parameters": [dict(each.items() - shared) for each in parameters],
        "release": {**header["release"], "parameters": dict(shared)},
    }


def parameters_of(header: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Parameters of each slice, from the header of a series."""
    shared = header["release"]["parameters"]
    return [{**shared, **own} if own else shared for own in header["parameters"]]


def decode_series(
    content: bytes, name: str = "series", *, max_nodes: int = MAX_NODES
) -> tuple[SeriesRecord, str]:
    """Decode bytes to a series and its digest; a message names the first fault, and the file."""
    with explain_read_errors(name):
        file = open_parquet(content)
        footer = read_footer(file, SERIES_KEY)
        check_node_count(file.metadata.num_rows, max_nodes)
        # All that the footer states is checked before anything large is read.
        header = strict_json(footer[SERIES_KEY], MAX_HEADER)
        slices, scope, fields, parameters = _series_fields(header)
        values = len(fields["values"])
        if not file.schema_arrow.remove_metadata().equals(_schema_of(values)):
            raise ReleaseFormatError("the columns are not those of a series")
        if file.metadata.num_rows < len(slices):
            raise ReleaseFormatError(f"a series has a node in each slice, and at most {MAX_ROWS:,}")
        check_size(file, content, **NODES, row=NODE_BYTES)
        regions = unpack_fields(fields, footer)
        trees = read_trees(file, fields.pop("noise"), len(slices), values=values)
        # The noise of a slice that is a running total has a factor of its own.
        for number, text in enumerate(stated.get(TOTALS_FACTOR) for stated in parameters):
            if text is not None and not is_factor(text):
                raise ReleaseFormatError("the factor of a running total is not valid")
            if text is not None:
                noise = replace(trees[number].noise, factor=Fraction(text))
                trees[number] = replace(trees[number], noise=noise)
        if regions is not None:
            trees = [named_tree(tree, regions) for tree in trees]
        records = [
            ReleaseRecord(tree=tree, parameters=stated, **fields)
            for tree, stated in zip(trees, parameters, strict=True)
        ]
        series = SeriesRecord(slices=slices, releases=tuple(records), scope=scope)
        return series, check_digest(footer, _digest(header, series))


def _series_fields(
    header: Any,
) -> tuple[TimeSlices, ContributionScope, dict[str, Any], list[DeclaredParameters]]:
    """Slices, scope, the fields that all records share, and the parameters of each."""
    check_format(header, MARK, _OLD, "series")
    if header.keys() != _NAMES:
        raise ReleaseFormatError("its header has other fields than that of a series")
    names, parameters, release = (header[n] for n in ("slices", "parameters", "release"))
    if header["bound"] not in get_args(ContributionScope) or not isinstance(names, list):
        raise ReleaseFormatError("header field bound or slices is not valid")
    slices = TimeSlices(by=header["by"], names=tuple(names), time_zone=header["time_zone"])
    if not (isinstance(parameters, list) and len(parameters) == len(slices)):
        raise ReleaseFormatError("header field parameters does not fit the slices")
    if not all(map(is_parameters, parameters)):
        raise ReleaseFormatError("header field parameters is not valid")
    fields = record_fields(release)
    shared = fields.pop("parameters")
    if any(own.keys() & shared.keys() for own in parameters):
        raise ReleaseFormatError("header field parameters states one that all slices share")
    each = [parameters_from_file({**shared, **own}) if own else shared for own in parameters]
    return slices, header["bound"], fields, each


_NAMES = {MARK, "by", "time_zone", "slices", "bound", "parameters", "release"}


_ORDER = (SERIES_KEY, REGIONS_KEY, DIGEST_KEY, COVARIATE_KEY)


def append_slice(content: bytes, series: SeriesRecord, digests: Sequence[str]) -> tuple[bytes, str]:
    """Return the file of a series with one slice more, and its digest.

    `content` is as this library wrote it; `series` has its last slice and the new one. `digests`
    are of its slices, `psd.release.file.slice_digest`; if not, as the file's digest shows, they are
    read.

    P1. The slice agrees with those before it in all that the slices of a series share: the one
    before it does, and it agrees with that.

    P2. Every value of the slice is public, see `psd.release.schema`.
    """
    check_series(series)
    file = _opened(content)
    footer = file.metadata.metadata
    earlier = strict_json(footer[SERIES_KEY], MAX_HEADER)
    last = series_header(series)
    names = [*earlier["slices"], last["slices"][-1]]
    header = with_parameters(
        {**last, "slices": names}, [*parameters_of(earlier), parameters_of(last)[-1]]
    )
    check_header(header)
    stated = footer[DIGEST_KEY].decode()
    is_whole = series_digest(SERIES_KEY, earlier, digests) == stated
    # Whether the columns have the usual layout, and not the one without compression.
    compression = file.metadata.row_group(0).column(0).compression.lower()
    if not (is_whole and compression == PARQUET["compression"]):
        return _written_anew(content, series)
    record, number = series.releases[-1], len(earlier["slices"])
    added = slice_digest(series.slices.names[-1], record.tree)
    digest = series_digest(SERIES_KEY, header, [*digests, added])
    keys = _footer_of(file, header, digest)
    table = slice_table(number, record)
    grown = append_table(content, file.metadata, table, keys, PARQUET)
    if file.metadata.num_rows + len(table) > max_rows(len(grown), **NODES):
        return _written_anew(content, series)
    return grown, digest


def join_releases(
    contents: Callable[[], Iterable[bytes]], slices: TimeSlices, scope: ContributionScope
) -> tuple[bytes, str]:
    """Return the file of a series and its digest, from its slices' files, as written, in order."""
    parameters = []
    for content in contents():
        last = _opened(content)
        release = strict_json(last.metadata.metadata[KEY])
        parameters.append(release["parameters"])
    header = join_headers(slices, scope, parameters, release)
    tables = _Tables(contents)
    digest = series_digest(SERIES_KEY, header, map(slice_digest, slices, map(nodes_of, tables)))
    return encode_tables(tables, SERIES_SCHEMA, _footer_of(last, header, digest)), digest


@dataclass(frozen=True, slots=True)
class _Tables:
    """Nodes of the slices, read from the file of each release."""

    contents: Callable[[], Iterable[bytes]]

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield the table of each slice."""
        for number, content in enumerate(self.contents()):
            nodes = _opened(content).read(use_threads=False).combine_chunks()
            numbers = pa.repeat(pa.scalar(number, pa.int32()), len(nodes))
            yield pa.Table.from_arrays([numbers, *nodes.columns], schema=SERIES_SCHEMA)


def _opened(content: bytes) -> pq.ParquetFile:
    """Open a file that this library has written."""
    return pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)


def _footer_of(file: pq.ParquetFile, header: Mapping[str, Any], digest: str) -> dict[bytes, bytes]:
    """Keys of the footer of a series, in the order of a writer, with regions and covariate."""
    keys: dict[bytes, bytes] = {
        **file.metadata.metadata,
        SERIES_KEY: canonical_json(header),
        DIGEST_KEY: digest.encode(),
    }
    return {name: keys[name] for name in _ORDER if name in keys}


def _written_anew(content: bytes, series: SeriesRecord) -> tuple[bytes, str]:
    """File of all slices; for other layouts, and where a digest has to be found."""
    earlier = decode_series(content, max_nodes=MAX_ROWS)[0]
    names = (*earlier.slices.names, series.slices.names[-1])
    joined = replace(
        series,
        slices=replace(series.slices, names=names),
        releases=(*earlier.releases, series.releases[-1]),
    )
    return encode_series(joined), digest_of(joined)
