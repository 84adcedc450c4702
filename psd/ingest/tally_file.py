"""The file of a tally. Private: exact counts, or rows of users, that its owner alone reads."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from psd._util.atomic_write import write_file
from psd._util.fields import integer_between
from psd._util.strict_json import strict_json
from psd._util.untrusted_parquet import check_size, footer_keys, open_parquet
from psd.errors import DomainError, InputDataError, ParameterError, ReleaseFormatError
from psd.ingest.partial_tally import CountingRules, PartialTally, PartOrigin, merge
from psd.ingest.row_hash import PRIME
from psd.ingest.tally import Tally
from psd.ingest.user_rows import UserRows, number_units
from psd.privacy.epsilon import MAX_EPSILON, NANO
from psd.privacy.unit import MAX_CONTRIBUTIONS, ContributionScope, PrivacyUnit
from psd.space.domain import Domain
from psd.space.time_slices import TimeSlices

__all__ = [
    "file_digest",
    "is_tally",
    "read_tally",
    "read_tally_of_release",
    "read_unit",
    "write_tally",
]

FORMAT = 2
MAX_HEADER = 2**24
KEY = b"PRIVATE psd tally"

CELLS = {"floor": 2**24, "each": 8}
"""Most rows of a file, for `psd._util.untrusted_parquet.check_size`: cells that all have one count
are short."""

NOTICE = "PRIVATE: exact counts and ids; never publish this file"

_COUNTS = pa.schema([(n, pa.int64()) for n in ("slice", "column", "row", "count")])
_NUMBERS = ("row_hash", "column", "row", "time", "count")
_CARRIED = pa.schema([("user", pa.string()), *((name, pa.int64()) for name in _NUMBERS)])

_FIELDS = {
    "format", "notice", "bounds", "crs", "lattice", "step", "unit", "weight", "by", "slices",
    "bound", "time_zone", "area", "carried", "origins", "release",
}  # fmt: skip
_ORIGIN = {"run", "names", "contributions", "key", "paid"}


def write_tally(
    kept: PartialTally, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a tally, marked PRIVATE, with permissions 0600; it appears whole or not at all.

    Raises
    ------
    WriteError
        If the file exists or cannot be written.
    """
    carried = isinstance(kept.counts, UserRows)
    schema = (_CARRIED if carried else _COUNTS).with_metadata(
        {KEY: json.dumps(_header(kept), allow_nan=False).encode()}
    )
    table = pa.Table.from_arrays(_columns(kept.counts), schema=schema)
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    write_file(path, sink.getvalue(), overwrite=overwrite, mode=0o600)


def _columns(counts: Tally | UserRows) -> list[pa.Array]:
    """Columns of the table."""
    if isinstance(counts, UserRows):
        user = counts.names.take(pa.array(counts.users))
        numbers = (counts.hashes, counts.columns, counts.rows, counts.time, counts.counts)
        return [user, *map(pa.array, numbers)]
    slices = np.zeros(len(counts.counts), np.int64) if counts.slice is None else counts.slice
    return [pa.array(v, pa.int64()) for v in (slices, counts.columns, counts.rows, counts.counts)]


def _header(kept: PartialTally) -> dict[str, Any]:
    """Everything about a tally but its counts."""
    terms, slices = kept.terms, kept.terms.slices
    return {
        "format": FORMAT,
        "notice": NOTICE,
        "bounds": terms.domain.bounds,
        "crs": terms.domain.crs,
        "lattice": terms.domain.lattice,
        "step": terms.step,
        "unit": terms.unit.kind,
        "weight": terms.unit.weight,
        "by": None if slices is None else slices.by,
        "slices": None if slices is None else slices.names,
        "bound": terms.bound,
        "time_zone": terms.time_zone,
        "area": terms.area,
        "carried": isinstance(kept.counts, UserRows),
        "origins": [{name: getattr(origin, name) for name in _ORIGIN} for origin in kept.origins],
        "release": kept.release,
    }


def file_digest(path: str | os.PathLike[str]) -> str:
    """Digest of a file's content, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def is_tally(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is a tally; False where it says nothing that can be read."""
    return Path(path).is_file() and KEY in footer_keys(path)


def read_tally(path: str | os.PathLike[str]) -> PartialTally:
    """Read a tally.

    Raises
    ------
    InputDataError
        If the file is missing, malformed or damaged, or of an unknown version.
    """
    with _guarded(Path(path)) as place:
        content = place.read_bytes()
        _check_size(content, place)
        kept = _kept(content)
        _check(kept)
        return kept


def read_unit(paths: Sequence[str | os.PathLike[str]]) -> PrivacyUnit:
    """Unit of the tally of several files together; no count is read.

    Raises
    ------
    InputDataError
        If what they say of themselves cannot be read, or not be merged.
    """
    return merge([_without_counts(path) for path in paths]).unit


def _without_counts(path: str | os.PathLike[str]) -> PartialTally:
    """What the footer of a tally says, of no rows."""
    with _guarded(Path(path)) as place:
        header = _header_of(footer_keys(place)[KEY])
        return _tally_of(header, _schema(header).empty_table())


@contextmanager
def _guarded(path: Path) -> Iterator[Path]:
    """Refuse what is no tally, and say in a sentence that one is damaged."""
    if not path.is_file():
        raise InputDataError(f"tally {path} does not exist or is no file")
    if not is_tally(path):
        raise InputDataError(f"tally {path} is no tally of psd tally or --keep-tally, or damaged")
    try:
        yield path
        return
    except InputDataError:
        raise
    except _DAMAGED:
        pass
    raise InputDataError(f"tally {path} is damaged, or of another version; count it anew")


def _check_size(content: bytes, path: Path) -> None:
    """Refuse a file that would fill memory."""
    try:
        check_size(open_parquet(content), content, **CELLS)
    except ReleaseFormatError as error:
        raise InputDataError(f"tally {path}: {error}") from None


_DAMAGED = (
    pa.ArrowException, OSError, KeyError, ValueError, TypeError, OverflowError, MemoryError,
    ReleaseFormatError, DomainError, ParameterError,
)  # fmt: skip


def read_tally_of_release(
    path: str | os.PathLike[str], domain: Domain, release: str | os.PathLike[str]
) -> PartialTally:
    """Read the tally that was kept when a release was built.

    Raises
    ------
    InputDataError
        If the file is missing, no sound tally, of another release, or too coarse for queries.
    """
    kept = read_tally(path)
    if kept.terms.domain != domain or kept.release != file_digest(release):
        raise InputDataError(f"tally {path} is not of this release; each build keeps its own")
    if kept.terms.step != (1, 1):
        raise InputDataError(f"tally {path} counted lattice cells together, so queries cut them")
    return kept


def _kept(content: bytes) -> PartialTally:
    """Tally of a header and a table; whatever is wrong is one of `_DAMAGED`."""
    file = open_parquet(content)
    header = _header_of(file.metadata.metadata[KEY])
    schema = _schema(header)
    _expect(file.schema_arrow.remove_metadata().equals(schema))
    # Ids stay numbers: a long one that is said once may stand in any number of rows.
    table = (
        open_parquet(content, read_dictionary=["user"]).read() if header["carried"] else file.read()
    )
    _expect(not any(table[name].null_count for name in schema.names))
    return _tally_of(header, table)


def _header_of(text: bytes) -> dict[str, Any]:
    """Fields of a header, none of them missing."""
    header = strict_json(text, MAX_HEADER)
    _expect(isinstance(header, dict) and header.keys() == _FIELDS)
    _expect(type(header["format"]) is int and header["format"] == FORMAT)
    _expect(isinstance(header["carried"], bool) and header["bound"] in get_args(ContributionScope))
    _expect(header["release"] is None or isinstance(header["release"], str))
    return dict(header)


def _schema(header: dict[str, Any]) -> pa.Schema:
    """Columns of a tally."""
    return _CARRIED if header["carried"] else _COUNTS


def _tally_of(header: dict[str, Any], table: pa.Table) -> PartialTally:
    """Tally of what a header says and of the rows of a table."""
    terms = _terms(header)
    counts = _carried(table) if header["carried"] else _counts(table, terms.slices is not None)
    origins = tuple(map(_origin, header["origins"]))
    _expect(len(origins) > 0)
    return PartialTally(terms=terms, origins=origins, counts=counts, release=header["release"])


def _expect(holds: bool) -> None:
    """Refuse the file unless something holds."""
    if not holds:
        raise ValueError


def _terms(header: dict[str, Any]) -> CountingRules:
    """Terms of a header."""
    bounds, lattice, step = (tuple(header[name]) for name in ("bounds", "lattice", "step"))
    _expect(all(type(number) is int for number in (*lattice, *step, header["weight"])))
    _expect(len(step) == 2 and all(1 <= a <= b for a, b in zip(step, lattice, strict=True)))
    _expect(0 <= header["weight"] < 2**31)
    zone, names = header["time_zone"], header["slices"]
    _expect(all(text is None or isinstance(text, str) for text in (zone, header["area"])))
    days = header["unit"] == "user-day"
    slices = None
    if names is not None:
        slices = TimeSlices(by=header["by"], names=tuple(names), time_zone=zone)
    return CountingRules(
        domain=Domain(bounds=bounds, crs=header["crs"], lattice=lattice),
        step=step,
        unit=PrivacyUnit(
            kind=header["unit"], weight=header["weight"], time_zone=zone if days else None
        ),
        slices=slices,
        bound=header["bound"],
        time_zone=zone,
        area=header["area"],
    )


def _origin(fields: Any) -> PartOrigin:
    """Part of a header."""
    _expect(isinstance(fields, dict) and fields.keys() == _ORIGIN)
    names = tuple(fields["names"])
    texts = (fields["run"], *names, *([] if fields["key"] is None else [fields["key"]]))
    _expect(isinstance(fields["names"], list) and all(isinstance(text, str) for text in texts))
    _expect(re.fullmatch("[0-9a-f]{32}", fields["run"]) is not None)
    return PartOrigin(
        run=fields["run"],
        names=names,
        contributions=integer_between(1, MAX_CONTRIBUTIONS)(
            "contributions", fields["contributions"]
        ),
        key=fields["key"],
        paid=integer_between(0, MAX_EPSILON * NANO)("paid", fields["paid"]),
    )


def _counts(table: pa.Table, has_slices: bool) -> Tally:
    """Counts per cell."""
    slices, columns, rows, counts = (table[name].to_numpy() for name in _COUNTS.names)
    _expect(has_slices or not slices.any())
    _expect(int(max(columns.max(initial=0), rows.max(initial=0))) < 2**31)
    return Tally(
        columns=columns.astype(np.int32),
        rows=rows.astype(np.int32),
        counts=counts,
        slice=slices if has_slices else None,
    )


def _carried(table: pa.Table) -> UserRows:
    """Lines of users."""
    coded = table["user"].dictionary_encode().unify_dictionaries().combine_chunks()
    ids = coded.dictionary.dictionary_encode()  # a file may list an id twice
    _expect(ids.null_count == 0)
    hashes, columns, rows, time, counts = (table[name].to_numpy() for name in _NUMBERS)
    return UserRows(
        names=ids.dictionary,
        users=ids.indices.to_numpy().astype(np.int64)[coded.indices.to_numpy()],
        hashes=hashes,
        columns=columns,
        rows=rows,
        time=time,
        counts=counts,
    )


def _check(kept: PartialTally) -> None:
    """Refuse what no count of rows gives, so that the bound is what the header says."""
    counts, terms = kept.counts, kept.terms
    for cells, size, width in zip(
        (counts.columns, counts.rows), terms.domain.lattice, terms.step, strict=True
    ):
        _expect(bool(((cells >= 0) & (cells < size) & (cells % width == 0)).all()))
    _expect(bool((counts.counts > 0).all()) and counts.counts.sum(dtype=float) < 2**62)
    runs = [origin.run for origin in kept.origins]
    _expect(sorted(set(runs)) == runs)
    if isinstance(counts, UserRows):
        _check_lines(counts, kept)
        return
    slices = np.zeros(len(counts.counts), np.int64) if counts.slice is None else counts.slice
    number = 1 if terms.slices is None else len(terms.slices)
    _expect(bool(((slices >= 0) & (slices < number)).all()))
    order = np.lexsort((counts.columns, counts.rows, slices))
    _expect(bool((order == np.arange(len(order))).all()))
    places = np.stack([slices, counts.rows, counts.columns])
    _expect(bool((np.diff(places, axis=1) != 0).any(axis=0).all()))


def _check_lines(lines: UserRows, kept: PartialTally) -> None:
    """At most k rows of each unit, in slices that there are."""
    terms = kept.terms
    _expect(terms.unit.has_user and not terms.unit.weight and terms.step == (1, 1))
    _expect(bool(((lines.hashes >= 0) & (lines.hashes < PRIME)).all()))
    keys = {(origin.key, origin.contributions) for origin in kept.origins}
    _expect(len(keys) == 1 and None not in next(iter(keys)))
    if terms.slices is not None:
        moments = lines.time.astype("datetime64[us]")
        _expect(bool((terms.slices.index(moments) >= 0).all()))
    units = number_units(lines.users, lines.time, terms.slices, kept.unit, terms.bound)
    kept_of_unit = np.zeros(int(units.max(initial=-1)) + 1, np.int64)
    np.add.at(kept_of_unit, units, np.minimum(lines.counts, MAX_CONTRIBUTIONS + 1))
    _expect(int(kept_of_unit.max(initial=0)) <= kept.unit.max_contributions)
