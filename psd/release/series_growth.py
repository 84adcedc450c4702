"""The file of a series that grows: made of what there is, with one slice in memory.

Bytes and digests are those of `psd.release.series_file.encode_series`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from psd._util.parquet_append import append_table
from psd._util.strict_json import strict_json
from psd._util.untrusted_parquet import MAX_ROWS, max_rows
from psd.privacy.unit import ContributionScope
from psd.release.allow_list import check_series
from psd.release.codecs import COVARIATE_KEY, REGIONS_KEY
from psd.release.file import (
    DIGEST_KEY,
    KEY,
    NODES,
    PARQUET,
    SERIES_KEY,
    canonical_json,
    encode_tables,
    series_digest,
    slice_digest,
)
from psd.release.node_reader import nodes_of
from psd.release.series import SeriesRecord
from psd.release.series_file import (
    MAX_HEADER,
    SERIES_SCHEMA,
    check_header,
    decode_series,
    digest_of,
    encode_series,
    join_headers,
    parameters_of,
    series_header,
    slice_table,
    with_parameters,
)
from psd.space.time_slices import TimeSlices

__all__ = ["append_slice", "join_releases"]

_ORDER = (SERIES_KEY, REGIONS_KEY, DIGEST_KEY, COVARIATE_KEY)


def append_slice(content: bytes, series: SeriesRecord, digests: Sequence[str]) -> tuple[bytes, str]:
    """Return the file of a series with one slice more, and its digest.

    `content` is a file that this library has written and nothing has changed since. `series` has
    its last slice and the one that is added. `digests` are those of its slices,
    `psd.release.file.slice_digest`; if they are not, which the digest of the file shows, its slices
    are read.

    P1. The slice agrees with those before it in all that the slices of a series share: the one
    before it does, and it agrees with that.

    P2. Every value of the slice is public, see `psd.release.allow_list`.
    """
    check_series(series)
    file = _opened(content)
    footer = file.metadata.metadata
    earlier = strict_json(footer[SERIES_KEY], MAX_HEADER)
    header = _with_last(earlier, series_header(series))
    check_header(header)
    stated = footer[DIGEST_KEY].decode()
    is_whole = series_digest(SERIES_KEY, earlier, digests) == stated
    if not (_is_packed(file) and is_whole):
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
    """Return the file of a series, from the files of the releases of its slices, and its digest.

    `contents` yields the bytes of each release, which this library has written, in the order of
    time.
    """
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


def _with_last(earlier: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    """Header of a file, with the slice that stands last in another header."""
    names = [*earlier["slices"], last["slices"][-1]]
    parameters = [*parameters_of(earlier), parameters_of(last)[-1]]
    return with_parameters({**last, "slices": names}, parameters)


def _is_packed(file: pq.ParquetFile) -> bool:
    """Whether the columns have the usual layout, and not the one without compression."""
    column = file.metadata.row_group(0).column(0)
    return bool(column.compression.lower() == PARQUET["compression"])


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
