"""The release file: Parquet, one row per node, strict JSON under the footer key ``psd``.

It is data, never code. Every field is on an allow-list of public values, in writing and reading;
unknown formats are refused. The digest depends on content and not on compression or writer: SHA-256
(FIPS 180-4) over parts, each with its length before it: the kind of the file, its header as JSON
with sorted keys and only ASCII, and the arrays of its nodes as little-endian integers, boxes by
four. Digests of slices stand for the nodes of a series, so one that grows is not hashed again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from psd._util.arrays import to_arrow
from psd._util.atomic_write import write_file
from psd._util.json_toml import strict_json
from psd._util.parquet_bytes import (
    ARROW_KEY,
    MAX_ROWS,
    check_size,
    footer_keys,
    max_rows,
    open_parquet,
    read_bytes,
)
from psd.errors import DomainError, ParameterError, ReleaseFormatError
from psd.release.codecs import (
    COVARIATE_KEY,
    REGIONS_KEY,
    pack_covariate,
    pack_regions,
    regions_of,
    unpack_covariate,
    unpack_regions,
)
from psd.release.node_reader import (
    MAX_NODES,
    NODE_BYTES,
    OTHER_BYTES,
    SUMS,
    StoredNodes,
    check_node_count,
    read_trees,
)
from psd.release.record import ReleaseRecord
from psd.release.schema import check_release, record_fields, record_header
from psd.space.box_tree import Tree
from psd.space.region_tree import named_tree

if TYPE_CHECKING:
    from psd.regions.hierarchy import RegionHierarchy
    from psd.space.covariate import Covariate

__all__ = ["canonical_json", "decode_release", "encode_release", "slice_digest", "stated_digest"]

_DOMAIN = b"psd public content 1\n"


Nodes: TypeAlias = Tree | StoredNodes
"""Arrays of nodes, made or as a file has them."""


def canonical_json(header: Mapping[str, Any]) -> bytes:
    """Text of a header; equal headers have equal texts."""
    return json.dumps(header, allow_nan=False, sort_keys=True).encode()


def content_digest(kind: bytes, header: Mapping[str, Any], tree: Nodes) -> str:
    """Digest of a header and of the nodes of a tree.

    P1. Two contents of different kind, header or nodes have different digests, unless SHA-256 is
    broken: no part can be taken for another.
    P2. It is computed from public content only, not from the points or their files.
    """
    types = {"boxes": "<i4", "parent": "<i4", "level": "<i2", "count": "<i8", "loss": "<i8"}
    # A missing count is 0.
    nodes = (np.ascontiguousarray(getattr(tree, name), kept) for name, kept in types.items())
    spans = getattr(tree, "spans", None)  # of the axes of a cube
    others = [] if spans is None else [np.ascontiguousarray(spans, "<i4")]
    return _digest(kind, canonical_json(header), *nodes, *columns_of_sums(tree), *others)


def slice_digest(name: str, tree: Nodes) -> str:
    """Digest of what was drawn for a slice of a series: its name and its nodes."""
    return content_digest(b"psd-slice", {"slice": name}, tree)


def series_digest(kind: bytes, header: Mapping[str, Any], slices: Iterable[str]) -> str:
    """Digest of the header of a series and of its slices, by the digest of each in their order."""
    return _digest(kind, canonical_json(header), "".join(slices).encode())


def _digest(*parts: Any) -> str:
    """SHA-256 over parts, each with its length before it."""
    hasher = hashlib.sha256(_DOMAIN)
    for part in parts:
        content = memoryview(part)
        hasher.update(content.nbytes.to_bytes(8, "little"))
        hasher.update(content)
    return hasher.hexdigest()


PARQUET: dict[str, Any] = {
    "compression": "zstd",
    "write_page_checksum": True,
    "store_schema": False,
    "use_dictionary": ["level", "loss"],
    "column_encoding": dict.fromkeys(
        ("x0", "y0", "x1", "y1", "t0", "t1", "parent", "count"), "DELTA_BINARY_PACKED"
    ),
}
"""Layout of the columns; neighbouring nodes differ little, so differences are packed."""

PLAIN: dict[str, Any] = {
    "compression": "none",
    "write_page_checksum": True,
    "store_schema": False,
    "use_dictionary": False,
}
"""Layout without compression and encodings."""

KEY = b"psd"
SERIES_KEY = b"psd-series"
CUBE_KEY = b"psd-cube"
DIGEST_KEY = b"psd-digest"

_MAX_REGIONS = 2**25 - 2**22
"""Limit on the regions in the footer, which readers limit to 2^25 bytes."""

NODES = {"floor": 2**20, "each": 12}
"""Limits on the nodes of a file, see `psd._util.parquet_bytes.check_size`; where counts take a
bit or less, a byte holds ten nodes."""

SCHEMA = pa.schema(
    [
        pa.field("x0", pa.int32(), nullable=False),
        pa.field("y0", pa.int32(), nullable=False),
        pa.field("x1", pa.int32(), nullable=False),
        pa.field("y1", pa.int32(), nullable=False),
        pa.field("parent", pa.int32(), nullable=False),
        pa.field("level", pa.int16(), nullable=False),
        pa.field("count", pa.int64()),
        pa.field("loss", pa.int64(), nullable=False),
    ]
)
"""Names and types of the columns; a release with values has those of `schema_of`."""


def schema_of(values: int, first: Sequence[pa.Field] = ()) -> pa.Schema:
    """Names and types of the columns with a pair of sums for each value, after some others."""
    names = [f"{side}{number}" for number in range(values) for side in SUMS]
    return pa.schema([*first, *SCHEMA, *(pa.field(name, pa.int64()) for name in names)])


def write_release(
    record: ReleaseRecord, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a release; a failure leaves no partial file."""
    write_file(path, encode_release(record), overwrite=overwrite)


def read_release(
    path: str | os.PathLike[str], *, max_nodes: int = MAX_NODES
) -> tuple[ReleaseRecord, str]:
    """Read a release, and the digest of its content; refuse more than `max_nodes` nodes."""
    with limited_content(path, max_nodes) as content:
        return decode_release(content, str(path), max_nodes=max_nodes)


def encode_release(record: ReleaseRecord) -> bytes:
    """Bytes, the same for the same record. P3. A value that is not public is refused."""
    check_release(record)
    header = record_header(record)
    record_fields(strict_json(canonical_json(header)))  # a reader accepts what is written
    schema = schema_of(len(record.values))
    table = pa.Table.from_arrays(columns_of(record.tree), schema=schema)
    footer = {KEY: canonical_json(header), **regions_footer(record)}
    digest = content_digest(KEY, header, record.tree)
    return encode_tables([table], schema, file_footer(footer, digest, record.covariate))


def regions_footer(record: ReleaseRecord) -> dict[bytes, bytes]:
    """Entry of the footer for the regions of a record; empty without regions."""
    regions = regions_of(record)
    if regions is None:
        return {}
    packed = pack_regions(regions)
    if len(packed) > _MAX_REGIONS:
        raise ParameterError(
            f"regions must take at most {_MAX_REGIONS:,} bytes in a file, got {len(packed):,}; "
            "simplify their outlines"
        )
    return {REGIONS_KEY: packed}


def stated_digest(path: str | os.PathLike[str]) -> str | None:
    """Digest that a file states, unchecked; None if it states no digest."""
    stated = footer_keys(path).get(DIGEST_KEY)
    return None if stated is None else stated.decode("ascii", "replace")


def digest_of(record: ReleaseRecord) -> str:
    """Digest of a record, as its file states it."""
    check_release(record)
    return content_digest(KEY, record_header(record), record.tree)


def file_footer(
    header: dict[bytes, bytes], digest_text: str, covariate: Covariate | None
) -> dict[bytes, bytes]:
    """Keys of the footer of a file."""
    footer = {**header, DIGEST_KEY: digest_text.encode()}
    if covariate is not None:
        footer[COVARIATE_KEY] = pack_covariate(covariate)
    return footer


def encode_tables(
    tables: Iterable[pa.Table], schema: pa.Schema, footer: dict[bytes, bytes]
) -> bytes:
    """Bytes of tables, read once or twice, with a footer, without Arrow's copy of the schema."""
    rows, content = _write_tables(tables, schema, footer, PARQUET)
    if rows > max_rows(len(content), **NODES):  # so compressible that a reader would refuse it
        return _write_tables(tables, schema, footer, PLAIN)[1]
    return content


def _write_tables(
    tables: Iterable[pa.Table],
    schema: pa.Schema,
    footer: dict[bytes, bytes],
    layout: dict[str, Any],
) -> tuple[int, bytes]:
    """Rows and bytes of a file."""
    sink, rows = io.BytesIO(), 0
    with pq.ParquetWriter(sink, schema, **layout) as writer:
        for table in tables:
            writer.write_table(table)
            rows += len(table)
        writer.add_key_value_metadata(footer)
    return rows, sink.getvalue()


def columns_of(tree: Tree) -> list[pa.Array]:
    """Columns of the nodes, in the order of `SCHEMA`."""
    return [
        *(to_arrow(side) for side in tree.boxes.T),
        to_arrow(tree.parent),
        to_arrow(tree.level),
        to_arrow(tree.count, tree.loss != 0),
        to_arrow(tree.loss),
        *(to_arrow(column, tree.loss != 0) for column in columns_of_sums(tree)),
    ]


def columns_of_sums(tree: Nodes) -> Iterator[NDArray[np.int64]]:
    """Sums of each value towards its upper and its lower bound; none without values."""
    sums = getattr(tree, "sums", None)
    if sums is not None:
        yield from np.ascontiguousarray(sums.reshape(len(sums), -1).T, "<i8")


def decode_release(
    content: bytes, name: str = "release", *, max_nodes: int = MAX_NODES
) -> tuple[ReleaseRecord, str]:
    """Decode bytes to a record and its digest; a message names the first fault, and the file."""
    with explain_read_errors(name):
        file = open_parquet(content)
        footer = read_footer(file, KEY)
        check_node_count(file.metadata.num_rows, max_nodes)
        # All that the footer states is checked before anything large is read.
        header = strict_json(footer[KEY])
        fields = record_fields(header)
        values = len(fields["values"])
        if not file.schema_arrow.remove_metadata().equals(schema_of(values)):
            raise ReleaseFormatError("the columns are not those of a release")
        if file.metadata.num_rows == 0:
            raise ReleaseFormatError(f"a release must have 1 to {MAX_ROWS:,} nodes, got 0")
        check_size(file, content, **NODES, row=NODE_BYTES)
        regions = unpack_fields(fields, footer)
        tree = read_trees(file, fields.pop("noise"), values=values)[0]
        tree = tree if regions is None else named_tree(tree, regions)
        record = ReleaseRecord(tree=tree, **fields)
        return record, check_digest(footer, content_digest(KEY, header, record.tree))


def unpack_fields(fields: dict[str, Any], footer: Mapping[bytes, bytes]) -> RegionHierarchy | None:
    """Unpack the covariate of the fields of a header, and take the regions out of them."""
    domain = fields["domain"]
    fields["covariate"] = unpack_covariate(fields["covariate"], footer.get(COVARIATE_KEY), domain)
    return unpack_regions(fields.pop("regions"), footer.get(REGIONS_KEY), domain)


@contextmanager
def limited_content(path: str | os.PathLike[str], max_nodes: int) -> Iterator[bytes]:
    """Bytes of a file of at most so many nodes; errors that are raised inside have its path."""
    if type(max_nodes) is not int or max_nodes < 1:
        raise ParameterError(
            f"max_nodes must be an integer of at least 1, got {str(max_nodes)[:100]}"
        )
    try:
        yield read_bytes(path, OTHER_BYTES + NODE_BYTES * max_nodes)
    except ReleaseFormatError as error:
        error.path = path
        raise


@contextmanager
def explain_read_errors(name: str) -> Iterator[None]:
    """Name the file in every error, and drop the texts of other libraries."""
    try:
        yield
    except (pa.ArrowException, OSError, MemoryError, UnicodeError, RecursionError):
        raise ReleaseFormatError(
            f"{name} cannot be read as a release file; it is damaged, truncated or of another kind"
        ) from None
    except (ReleaseFormatError, DomainError, ParameterError) as error:
        raise ReleaseFormatError(f"{name}: {error}") from None


def read_footer(file: pq.ParquetFile, key: bytes) -> dict[bytes, bytes]:
    """Footer of a release or of a series, after its keys were checked."""
    footer: dict[bytes, bytes] = file.metadata.metadata or {}
    if key not in footer:
        if any(name.startswith(b"PRIVATE") for name in footer):
            raise ReleaseFormatError(
                "it is a PRIVATE tally of exact counts and not a release; do not share it; psd "
                "build makes a release of it"
            )
        found = [message for other, message in _OTHERS.items() if other in footer]
        raise ReleaseFormatError(
            found[0] if found else "it has no psd header; it was not written by this library"
        )
    if not footer.keys() <= {key, DIGEST_KEY, COVARIATE_KEY, REGIONS_KEY, ARROW_KEY}:
        raise ReleaseFormatError("its footer has keys that a release does not have")
    return footer


_OTHERS = {
    SERIES_KEY: "it is a series of time slices and not a single release; load it with psd.load and "
    "take one slice",
    CUBE_KEY: "it is a cube over space and time and not a single release; load it with psd.load",
    KEY: "it is a single release and not a series of time slices",
}


def check_digest(footer: Mapping[bytes, bytes], computed: str) -> str:
    """Return the digest of the content; the footer must state the same one."""
    stated = footer.get(DIGEST_KEY)
    if stated is None:
        raise ReleaseFormatError("it has no digest, which its format requires")
    if stated != computed.encode():
        raise ReleaseFormatError(
            "its content does not match its digest; it was changed after it was written, or is "
            "damaged"
        )
    return computed
