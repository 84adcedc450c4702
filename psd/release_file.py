"""The release file: Parquet, one row per node, strict JSON under the footer key ``psd``.

The file is data, never code: no pickle, no objects. Every field is on an allow-list of public
values, on the way out and on the way in. Fields are never removed and never change their
meaning; a reader refuses a format version that it does not know.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from psd.arrays import to_arrow
from psd.covariate_file import COVARIATE_KEY, covariate_header, is_covariate, pack, unpack
from psd.domain import Domain
from psd.epsilon import epsilon_text, parse_epsilon
from psd.errors import DomainError, ParameterError, ReleaseFormatError
from psd.files import write_whole
from psd.release import Release
from psd.tree import Tree
from psd.unit import MAX_CONTRIBUTIONS, Kind
from psd.view import DENSITIES, ESTIMATES, View

__all__ = [
    "FORMAT",
    "SCHEMA",
    "arguments",
    "columns_of",
    "decode",
    "encode",
    "guarded",
    "header_of",
    "is_parameters",
    "read",
    "read_bytes",
    "strict_json",
    "tree_of",
    "write",
]

FORMAT = 3
"""What is written."""

OLDEST = 2
"""What is still read."""

PARQUET: dict[str, Any] = {
    "compression": "zstd",
    "write_page_checksum": True,
    "use_dictionary": ["level", "nano_epsilon"],
    "column_encoding": dict.fromkeys(
        ("x0", "y0", "x1", "y1", "parent", "count"), "DELTA_BINARY_PACKED"
    ),
}
"""How columns are laid down: neighbours in a tree differ by little."""

KEY = b"psd"
SERIES_KEY = b"psd-series"
MAX_NODES = 2**27
MAX_HEADER = 2**20

SCHEMA = pa.schema(
    [
        pa.field("x0", pa.int32(), nullable=False),
        pa.field("y0", pa.int32(), nullable=False),
        pa.field("x1", pa.int32(), nullable=False),
        pa.field("y1", pa.int32(), nullable=False),
        pa.field("parent", pa.int32(), nullable=False),
        pa.field("level", pa.int16(), nullable=False),
        pa.field("count", pa.int64()),
        pa.field("nano_epsilon", pa.int64(), nullable=False),
    ]
)


def write(release: Release, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a release; the file appears whole or not at all."""
    write_whole(path, encode(release), overwrite=overwrite)


def read(path: str | os.PathLike[str]) -> Release:
    """Read a release.

    Raises
    ------
    ReleaseFormatError
        If the file is missing, malformed, damaged or of an unknown version.
    """
    return decode(read_bytes(path), str(path))


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Content of a file that is there.

    Raises
    ------
    ReleaseFormatError
        If it is missing or cannot be read.
    """
    path = Path(path)
    if not path.is_file():
        raise ReleaseFormatError(f"release {path} does not exist or is no file")
    try:
        return path.read_bytes()
    except OSError as error:
        raise ReleaseFormatError(f"release {path} cannot be read: {error.strerror}") from None


def encode(release: Release) -> bytes:
    """Bytes of a release file; the same release gives the same bytes."""
    sink = io.BytesIO()
    header = json.dumps(header_of(release), allow_nan=False, sort_keys=True).encode()
    _checked_header(header)  # what a reader would refuse is not written
    schema = SCHEMA.with_metadata({KEY: header})
    table = pa.Table.from_arrays(columns_of(release.tree), schema=schema)
    with pq.ParquetWriter(sink, schema, **PARQUET) as writer:
        writer.write_table(table)
        if release.covariate is not None:  # not in the schema, of which Arrow keeps a copy
            writer.add_key_value_metadata({COVARIATE_KEY: pack(release.covariate)})
    return sink.getvalue()


def columns_of(tree: Tree) -> list[pa.Array]:
    """Columns of the nodes, as `SCHEMA` has them."""
    return [
        *(to_arrow(side) for side in tree.boxes.T),
        to_arrow(tree.parent),
        to_arrow(tree.level),
        to_arrow(tree.count, tree.epsilon != 0),
        to_arrow(tree.epsilon),
    ]


def header_of(release: Release) -> dict[str, Any]:
    """Everything about a release but its nodes: an allow-list of public values."""
    return {
        "format": FORMAT,
        "library": release.library,
        "inference": release.inference,
        "method": release.method,
        "parameters": dict(release.parameters),
        "domain": {
            "bounds": list(release.domain.bounds),
            "crs": release.domain.crs,
            "lattice": list(release.domain.lattice),
        },
        "unit": release.unit,
        "max_contributions": release.max_contributions,
        "weight": release.weight,
        "time_zone": release.time_zone,
        "epsilon": epsilon_text(release.epsilon),
        "view": asdict(release.view),
        "covariate": covariate_header(release.covariate),
        "boundary": release.boundary,
    }


def decode(content: bytes, name: str = "release") -> Release:
    """Release from the bytes of a file.

    Parameters
    ----------
    content : bytes
        The whole file.
    name : str
        What to call it in messages.

    Raises
    ------
    ReleaseFormatError
        With the first thing that is wrong.
    """
    with guarded(name):
        return _decoded(pq.ParquetFile(io.BytesIO(content), page_checksum_verification=True))


@contextmanager
def guarded(name: str) -> Iterator[None]:
    """Say of any fault of a file which file it is, and nothing that a library says of it."""
    try:
        yield
    except (pa.ArrowException, OSError, MemoryError, UnicodeError):
        raise ReleaseFormatError(
            f"{name} is no readable release file; it is damaged, cut short or something else"
        ) from None
    except (ReleaseFormatError, DomainError, ParameterError) as error:
        raise ReleaseFormatError(f"{name}: {error}") from None


def _decoded(file: pq.ParquetFile) -> Release:
    """Check what the footer says before anything large is read."""
    metadata = file.schema_arrow.metadata or {}
    if KEY not in metadata and SERIES_KEY in metadata:
        raise ReleaseFormatError(
            "it is a series of time slices and no single release; name one of them (--slice), or "
            "load it by psd.Series.load"
        )
    header = _checked_header(metadata.get(KEY))
    if not file.schema_arrow.remove_metadata().equals(SCHEMA):
        raise ReleaseFormatError("the columns are not those of a release")
    if not 0 < file.metadata.num_rows <= MAX_NODES:
        raise ReleaseFormatError(f"a release has 1 to {MAX_NODES:,} nodes")
    packed = (file.metadata.metadata or {}).get(COVARIATE_KEY)
    header["covariate"] = unpack(header["covariate"], packed, header["domain"])
    table = file.read()
    return Release(tree=tree_of(table), **header, source="curator")


def tree_of(table: pa.Table) -> Tree:
    """Tree of the columns of `SCHEMA`."""
    count = table["count"].combine_chunks()
    nano = table["nano_epsilon"].to_numpy()
    if not np.array_equal(count.is_null().to_numpy(zero_copy_only=False), nano == 0):
        raise ReleaseFormatError("counts and epsilons do not stand on the same nodes")
    return Tree(
        boxes=np.stack([table[name].to_numpy() for name in ("x0", "y0", "x1", "y1")], axis=1),
        parent=table["parent"].to_numpy(),
        level=table["level"].to_numpy(),
        count=count.fill_null(0).to_numpy(),
        epsilon=nano,
    )


def _checked_header(raw: bytes | None) -> dict[str, Any]:
    """Fields of the footer as arguments of `Release`."""
    if raw is None:
        raise ReleaseFormatError(
            "it carries no psd header; it was not written by this library, or is a tally, of "
            "which psd build makes a release"
        )
    if len(raw) > MAX_HEADER:
        raise ReleaseFormatError("its header is too long")
    return arguments(strict_json(raw))


def arguments(header: Any) -> dict[str, Any]:
    """Arguments of `Release` of a header that has been read.

    Raises
    ------
    ReleaseFormatError
        If a field is missing, unknown or not valid.
    """
    _expect(isinstance(header, dict), "its header is no object")
    _expect(
        _is_whole(header.get("format"), OLDEST, FORMAT),
        f"its format version {header.get('format')!r} is not known; this library reads {OLDEST} "
        f"to {FORMAT}",
    )
    if header["format"] < FORMAT:
        header = _brought_up(header)
    _expect(header.keys() == _FIELDS.keys() | {"format", "domain"}, "its header has other fields")
    for name, valid in _FIELDS.items():
        _expect(valid(header[name]), f"header field {name} is not valid")
    fields = {name: header[name] for name in _FIELDS}
    return {
        **fields,
        "epsilon": parse_epsilon(header["epsilon"]),
        "domain": _domain(header["domain"]),
        "view": View(**header["view"]),
    }


def _brought_up(header: dict[str, Any]) -> dict[str, Any]:
    """Header of an older format with what has been added since, as it was then."""
    _expect(header.keys().isdisjoint(_SINCE_2), "its header has other fields")
    _expect(header.get("unit") in ("record", "user"), "header field unit is not valid")
    return {**header, **_SINCE_2}


def strict_json(raw: bytes) -> Any:
    """JSON without duplicate keys, NaN and infinity."""

    def refuse(text: str) -> None:
        raise ValueError(text)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({key for key, _ in pairs}) < len(pairs):
            raise ValueError("duplicate key")
        return dict(pairs)

    try:
        return json.loads(raw, parse_constant=refuse, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise ReleaseFormatError("its header is no strict JSON") from None


def _expect(holds: bool, message: str) -> None:
    """Refuse the file unless something holds."""
    if not holds:
        raise ReleaseFormatError(message)


def _is_whole(value: object, low: int, high: int) -> bool:
    """Whether a JSON value is an integer between two limits."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_flag(value: object) -> bool:
    """Whether a JSON value is true or false."""
    return isinstance(value, bool)


def _is_text(value: object) -> bool:
    """Whether a JSON value is a short printable text."""
    return isinstance(value, str) and 0 < len(value) <= 100 and value.isprintable()


def is_parameters(value: object) -> bool:
    """Whether a JSON value is a flat object of short values."""
    return (
        isinstance(value, dict)
        and len(value) <= 100
        and all(_is_text(key) for key in value)
        and all(v is None or _is_text(v) or _is_whole(v, -(2**62), 2**62) for v in value.values())
    )


def _is_view(value: object) -> bool:
    """Whether a JSON value is a view, all of its choices made."""
    return (
        isinstance(value, dict)
        and value.keys() == {"estimate", "density", "prune"}
        and value["estimate"] in ESTIMATES
        and value["density"] in DENSITIES
        and _is_whole(value["prune"], 0, 2**53 - 1)
    )


_FIELDS = {
    "library": _is_text,
    "inference": lambda value: _is_whole(value, 1, 10**6),
    "method": _is_text,
    "parameters": is_parameters,
    "unit": lambda value: value in get_args(Kind),
    "max_contributions": lambda value: _is_whole(value, 1, MAX_CONTRIBUTIONS),
    "weight": lambda value: _is_whole(value, 0, MAX_CONTRIBUTIONS),
    "time_zone": lambda value: value is None or _is_text(value),
    "epsilon": _is_text,
    "view": _is_view,
    "covariate": is_covariate,
    "boundary": _is_flag,
}

_SINCE_2: dict[str, Any] = {"weight": 0, "time_zone": None, "boundary": False}


def _domain(value: Any) -> Domain:
    """Domain of a header."""
    _expect(
        isinstance(value, dict) and value.keys() == {"bounds", "crs", "lattice"},
        "header field domain is not valid",
    )
    bounds, crs, lattice = value["bounds"], value["crs"], value["lattice"]
    numbers = isinstance(bounds, list) and all(type(edge) in (int, float) for edge in bounds)
    sizes = isinstance(lattice, list) and all(_is_whole(size, 1, 2**30) for size in lattice)
    _expect(
        numbers and sizes and isinstance(crs, str) and len(crs) < MAX_HEADER,
        "header field domain is not valid",
    )
    return Domain(bounds=tuple(bounds), crs=crs, lattice=tuple(lattice))
