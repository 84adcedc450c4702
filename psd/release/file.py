"""The release file: Parquet, one row per node, strict JSON under the footer key ``psd``.

The file is data, never code: no pickle, no objects. Every field is on an allow-list of public
values, on the way out and on the way in. Fields are never removed and never change their
meaning; a reader refuses a format version that it does not know.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from psd._util.arrays import to_arrow
from psd._util.atomic_write import write_file
from psd._util.strict_json import strict_json
from psd._util.untrusted_parquet import (
    ARROW_KEY,
    MAX_ROWS,
    check_order,
    check_size,
    footer_keys,
    max_rows,
    open_parquet,
    read_bytes,
)
from psd.errors import DomainError, ParameterError, ReleaseFormatError
from psd.privacy.epsilon import epsilon_text, parse_epsilon
from psd.privacy.unit import MAX_CONTRIBUTIONS, Kind
from psd.release.covariate_codec import COVARIATE_KEY, covariate_header, is_covariate, pack, unpack
from psd.release.digest import canonical, digest
from psd.release.post_processing import DENSITIES, ESTIMATES, View
from psd.release.public import Public, check_public
from psd.release.record import Release
from psd.space.box_tree import Tree
from psd.space.domain import Domain

if TYPE_CHECKING:
    from psd.space.covariate import Covariate

__all__ = [
    "FORMAT",
    "KEY",
    "NODES",
    "SCHEMA",
    "SERIES_KEY",
    "arguments",
    "check_digest",
    "checked_footer",
    "columns_of",
    "decode",
    "digest_of",
    "encode",
    "encoded",
    "guarded",
    "header_of",
    "is_parameters",
    "read",
    "stated_digest",
    "tree_of",
    "write",
]

FORMAT = 4
"""What is written."""

OLDEST = 2
"""What is still read."""

PARQUET: dict[str, Any] = {
    "compression": "zstd",
    "write_page_checksum": True,
    "store_schema": False,
    "use_dictionary": ["level", "nano_epsilon"],
    "column_encoding": dict.fromkeys(
        ("x0", "y0", "x1", "y1", "parent", "count"), "DELTA_BINARY_PACKED"
    ),
}
"""How columns are laid down: neighbours in a tree differ by little."""

PLAIN: dict[str, Any] = {
    "compression": "none",
    "write_page_checksum": True,
    "store_schema": False,
    "use_dictionary": False,
}
"""The same without any of it."""

DIGESTED = 4
"""From which format on a file has a digest."""

KEY = b"psd"
SERIES_KEY = b"psd-series"
DIGEST_KEY = b"psd-digest"
MAX_CRS = 2**15

NODES = {"floor": 2**20, "each": 12}
"""Most nodes of a file, see `psd._util.untrusted_parquet.check_size`; at a bit or less for a
count, ten a byte."""

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


def write(public: Public, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
    """Write a release; the file appears whole or not at all."""
    write_file(path, encode(public), overwrite=overwrite)


def read(path: str | os.PathLike[str]) -> Release:
    """Read a release.

    Raises
    ------
    ReleaseFormatError
        If the file is missing, malformed, damaged or of an unknown version.
    """
    return decode(read_bytes(path), str(path))


def encode(public: Public) -> bytes:
    """Bytes of a release file; the same release gives the same bytes.

    Raises
    ------
    ParameterError
        If it is given anything but a `Public`.
    """
    check_public(public, Public)
    header = header_of(public)
    arguments(strict_json(canonical(header)))  # what a reader would refuse is not written
    table = pa.Table.from_arrays(columns_of(public.tree), schema=SCHEMA)
    return encoded([table], {KEY: canonical(header)}, digest_of(public), public.covariate)


def stated_digest(path: str | os.PathLike[str]) -> str | None:
    """What a file says its digest is; none where it says nothing. Not checked here."""
    stated = footer_keys(path).get(DIGEST_KEY)
    return None if stated is None else stated.decode("ascii", "replace")


def digest_of(public: Public) -> str:
    """Digest of a release, as its file will state it."""
    return digest(KEY, header_of(public), [public.tree])


def encoded(
    tables: list[pa.Table], header: dict[bytes, bytes], found: str, covariate: Covariate | None
) -> bytes:
    """Bytes of tables with a footer; Arrow leaves no copy of its own there."""
    footer = {**header, DIGEST_KEY: found.encode()}
    if covariate is not None:
        footer[COVARIATE_KEY] = pack(covariate)
    content = _laid_down(tables, footer, PARQUET)
    if sum(map(len, tables)) > max_rows(len(content), **NODES):
        return _laid_down(tables, footer, PLAIN)  # so regular that a reader would not trust it
    return content


def _laid_down(tables: list[pa.Table], footer: dict[bytes, bytes], how: dict[str, Any]) -> bytes:
    """Bytes of a file."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, tables[0].schema, **how) as writer:
        for table in tables:
            writer.write_table(table)
        writer.add_key_value_metadata(footer)
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


def header_of(release: Public) -> dict[str, Any]:
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
        return _decoded(open_parquet(content), content)


@contextmanager
def guarded(name: str) -> Iterator[None]:
    """Say of any fault of a file which file it is, and nothing that a library says of it."""
    try:
        yield
    except (pa.ArrowException, OSError, MemoryError, UnicodeError, RecursionError):
        raise ReleaseFormatError(
            f"{name} is no readable release file; it is damaged, cut short or something else"
        ) from None
    except (ReleaseFormatError, DomainError, ParameterError) as error:
        raise ReleaseFormatError(f"{name}: {error}") from None


def _decoded(file: pq.ParquetFile, content: bytes) -> Release:
    """Check what the footer says before anything large is read."""
    footer = checked_footer(file, KEY)
    header = strict_json(footer[KEY])
    known = arguments(header)
    if not file.schema_arrow.remove_metadata().equals(SCHEMA):
        raise ReleaseFormatError("the columns are not those of a release")
    if file.metadata.num_rows == 0:
        raise ReleaseFormatError(f"a release has 1 to {MAX_ROWS:,} nodes")
    check_size(file, content, **NODES)
    if file.metadata.num_rows > NODES["floor"]:
        check_order(file)
    known["covariate"] = unpack(known["covariate"], footer.get(COVARIATE_KEY), known["domain"])
    release = Release(tree=tree_of(file.read()), **known, source="curator")
    vars(release)["digest"] = check_digest(footer, KEY, header, header["format"], [release])
    return release


def checked_footer(file: pq.ParquetFile, key: bytes) -> dict[bytes, bytes]:
    """Footer of a release, or of a series; no other keys are in it than such a file has.

    Raises
    ------
    ReleaseFormatError
        If it is that of something else.
    """
    footer: dict[bytes, bytes] = file.metadata.metadata or {}
    other, found = _OTHERS[key]
    if key not in footer:
        if any(name.startswith(b"PRIVATE") for name in footer):
            raise ReleaseFormatError(
                "it is PRIVATE, a tally of exact counts and no release, and nobody else's to see; "
                "psd build makes a release of it"
            )
        raise ReleaseFormatError(
            found
            if other in footer
            else "it carries no psd header; it was not written by this library"
        )
    if not footer.keys() <= {key, DIGEST_KEY, COVARIATE_KEY, ARROW_KEY}:
        raise ReleaseFormatError("its footer has other keys than that of a release")
    return footer


_OTHERS = {
    KEY: (
        SERIES_KEY,
        "it is a series of time slices and no single release; name one of them (--slice), or load "
        "it by psd.Series.load",
    ),
    SERIES_KEY: (KEY, "it is a single release and no series of time slices"),
}


def check_digest(
    footer: Mapping[bytes, bytes], key: bytes, header: Any, version: int, releases: list[Release]
) -> str:
    """Digest of what was read, which is the one that the footer states.

    Raises
    ------
    ReleaseFormatError
        If it is another, or the file has none and ought to have one.
    """
    found, stated = digest(key, header, [one.tree for one in releases]), footer.get(DIGEST_KEY)
    if stated is None and version >= DIGESTED:
        raise ReleaseFormatError("it carries no digest, which a file of its format has")
    if stated is not None and stated != found.encode():
        raise ReleaseFormatError(
            "its content is not what its digest says; it was changed after it was written, or is "
            "damaged"
        )
    return found


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
    if header["format"] == OLDEST:
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
    """Header of format 2 with what has been added since, as it was then."""
    _expect(header.keys().isdisjoint(_SINCE_2), "its header has other fields")
    _expect(header.get("unit") in ("record", "user"), "header field unit is not valid")
    return {**header, **_SINCE_2}


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
    text = isinstance(crs, str) and len(crs) <= MAX_CRS and crs.isprintable()
    _expect(numbers and sizes and text, "header field domain is not valid")
    return Domain(bounds=tuple(bounds), crs=crs, lattice=tuple(lattice))
