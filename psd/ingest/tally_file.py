"""The file of a tally, readable by its owner only, and its header. Private side."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from psd._util.atomic_write import write_file
from psd._util.declared_parameters import integer_between
from psd._util.json_toml import strict_json
from psd._util.parquet_bytes import check_size, footer_keys, open_parquet
from psd.errors import (
    DomainError,
    InputDataError,
    ParameterError,
    ReleaseFormatError,
    ResourceError,
)
from psd.ingest.columns import Columns, is_reading, reading_of
from psd.ingest.contribution_bounding import number_slices, number_units, rows_per_unit
from psd.ingest.partial_tally import (
    MOST_WEIGHT,
    CountedRegions,
    CountingRules,
    PartialTally,
    PartOrigin,
    merge,
)
from psd.ingest.row_hash import PRIME
from psd.ingest.sources import OnCopy, refuse_copy
from psd.ingest.tally import Tally, split_columns, widen_columns
from psd.ingest.user_partitions import UserRows
from psd.privacy.loss import MAX_EPSILON, NANO
from psd.privacy.unit import MAX_CONTRIBUTIONS, ContributionScope, PrivacyUnit
from psd.privacy.values import WEIGHT
from psd.regions.hierarchy import MAX_NODES
from psd.release.codecs import is_values, parse_values
from psd.space.domain import Domain
from psd.space.time_slices import TimeSlices
from psd.version import old_format

FORMAT = 1
"""The format that is written, and the only one that is read."""

_HEADER_MARK = "psd_tally"
"""Key of the format. It tells a tally of this format from the older ones, which had their numbers,
1 to 8, under ``format``."""

_OLD = range(1, 9)

_MAX_HEADER = 2**24

_NOTICE = "PRIVATE: exact counts and ids; never publish this file"

_FIELDS = {
    _HEADER_MARK, "notice", "bounds", "crs", "lattice", "coordinate_resolution", "min_cell", "step",
    "regions", "unit", "weight", "by", "slices", "contribution_scope", "time_zone", "boundary",
    "has_user_rows", "origins", "release",
}  # fmt: skip

_VALUES = "values"
"""Field of tallies with values alone: their names and bounds, as in a release."""

_ORIGIN_FIELDS = {
    "run", "names", "contributions", "key", "paid", "reading", "max_per_slice", "clock",
}  # fmt: skip


def header_of(tally: PartialTally) -> dict[str, Any]:
    """Return the fields of the header of a tally."""
    rules, slices = tally.rules, tally.rules.slices
    values = {_VALUES: list(map(asdict, rules.values))} if rules.values else {}
    return {
        _HEADER_MARK: FORMAT,
        "notice": _NOTICE,
        "bounds": rules.domain.bounds,
        "crs": rules.domain.crs,
        "lattice": rules.domain.lattice,
        "coordinate_resolution": rules.domain.coordinate_resolution,
        "min_cell": rules.domain.min_cell,
        "step": rules.step,
        "regions": None if rules.regions is None else asdict(rules.regions),
        "unit": rules.unit.kind,
        "weight": rules.unit.weight,
        "by": None if slices is None else slices.by,
        "slices": None if slices is None else slices.names,
        "contribution_scope": rules.contribution_scope,
        "time_zone": rules.time_zone,
        "boundary": rules.boundary,
        "has_user_rows": isinstance(tally.counts, UserRows),
        "origins": [
            {name: getattr(origin, name) for name in _ORIGIN_FIELDS} for origin in tally.origins
        ],
        "release": tally.release,
        **values,
    }


def expect(holds: bool) -> None:
    """Refuse a file unless a condition holds, by a `ValueError` that the reader replaces."""
    if not holds:
        raise ValueError


def parse_header(text: bytes, path: Path) -> dict[str, Any]:
    """Parse a header and check that it has exactly the fields of the format."""
    header = strict_json(text, _MAX_HEADER)
    expect(isinstance(header, dict))
    older = header.get("format")
    if _HEADER_MARK not in header and type(older) is int and older in _OLD:
        raise InputDataError(f"tally {path} {old_format('tally', older)}")
    expect(
        header.keys() - {_VALUES} == _FIELDS
        and type(header[_HEADER_MARK]) is int
        and header[_HEADER_MARK] == FORMAT
    )
    texts = (header["coordinate_resolution"], header["min_cell"])
    expect(all(text is None or isinstance(text, str) for text in texts))
    expect(isinstance(header["has_user_rows"], bool))
    expect(header["contribution_scope"] in get_args(ContributionScope))
    expect(header["release"] is None or isinstance(header["release"], str))
    if _VALUES in header:
        expect(is_values(header[_VALUES]) and not header["has_user_rows"])
    return dict(header)


def rules_of(header: dict[str, Any]) -> CountingRules:
    """Parse the counting rules of a header."""
    bounds, lattice, step = (tuple(header[name]) for name in ("bounds", "lattice", "step"))
    expect(all(type(number) is int for number in (*lattice, *step, header["weight"])))
    expect(len(step) == 2 and all(1 <= a <= b for a, b in zip(step, lattice, strict=True)))
    expect(header["weight"] in (0, WEIGHT))
    zone, names = header["time_zone"], header["slices"]
    expect(all(text is None or isinstance(text, str) for text in (zone, header["boundary"])))
    has_days = header["unit"] == "user-day"
    slices = None
    if names is not None:
        slices = TimeSlices(by=header["by"], names=tuple(names), time_zone=zone)
    stated = {name: header[name] for name in ("coordinate_resolution", "min_cell")}
    domain = Domain(bounds=bounds, crs=header["crs"], lattice=lattice, **stated)
    expect(domain.lattice == lattice)
    expect(all(getattr(domain, name) == text for name, text in stated.items()))
    return CountingRules(
        domain=domain,
        step=step,
        unit=PrivacyUnit(
            kind=header["unit"], weight=header["weight"], time_zone=zone if has_days else None
        ),
        slices=slices,
        contribution_scope=header["contribution_scope"],
        time_zone=zone,
        boundary=header["boundary"],
        regions=None if header["regions"] is None else _header_regions(header["regions"]),
        values=parse_values(header.get(_VALUES)),
    )


def _header_regions(fields: Any) -> CountedRegions:
    """Regions of a header."""
    expect(isinstance(fields, dict) and fields.keys() == {"digest", "size"})
    digest, size = fields["digest"], fields["size"]
    expect(isinstance(digest, str) and re.fullmatch("[0-9a-f]{64}", digest) is not None)
    expect(type(size) is int and 1 <= size <= MAX_NODES)
    return CountedRegions(digest=digest, size=size)


def origins_of(header: dict[str, Any]) -> tuple[PartOrigin, ...]:
    """Parse the origins of a header, at least one."""
    origins = tuple(map(_origin_of, header["origins"]))
    has_slices = any(
        origin.max_per_slice is not None or origin.clock is not None for origin in origins
    )
    expect(len(origins) > 0 and (header["slices"] is not None or not has_slices))
    # A ledger compares what was read with what it registers.
    names = tuple(value["name"] for value in header.get(_VALUES, ()))
    read = reading_of(Columns(values=names)).get("values")
    expect(read is None or all(origin.reading.get("values") == read for origin in origins))
    return origins


def _origin_of(fields: Any) -> PartOrigin:
    """Origin of one part."""
    expect(isinstance(fields, dict) and fields.keys() == _ORIGIN_FIELDS)
    expect(is_reading(fields["reading"]))
    names = tuple(fields["names"])
    texts = (fields["run"], *names, *([] if fields["key"] is None else [fields["key"]]))
    expect(isinstance(fields["names"], list) and all(isinstance(text, str) for text in texts))
    expect(re.fullmatch("[0-9a-f]{32}", fields["run"]) is not None)
    contributions, limit = integer_between(1, MAX_CONTRIBUTIONS), fields["max_per_slice"]
    clock = fields["clock"]
    expect(clock is None or re.fullmatch("[0-9a-f]{16}", clock) is not None)
    return PartOrigin(
        run=fields["run"],
        names=names,
        contributions=contributions("contributions", fields["contributions"]),
        key=fields["key"],
        paid=integer_between(0, MAX_EPSILON * NANO)("paid", fields["paid"]),
        reading=fields["reading"],
        max_per_slice=None if limit is None else contributions("max_per_slice", limit),
        clock=clock,
    )


KEY = b"PRIVATE psd tally"
"""Key of the header in the footer."""

_MAX_CELLS = {"floor": 2**24, "each": 8}
"""Limit of the records of a file, for `psd._util.parquet_bytes.check_size`: equal counts are
stored in few bytes."""

_COUNTS = pa.schema([(n, pa.int64()) for n in ("slice", "column", "row", "count")])
_REGION = pa.field("region", pa.int64())
_NUMBERS = ("row_hash", "column", "row", "time")
_USER_ROWS = pa.schema([("user", pa.string()), *((name, pa.int64()) for name in _NUMBERS)])

# Errors of reading a damaged file.
_DAMAGED = (
    pa.ArrowException, OSError, KeyError, ValueError, TypeError, OverflowError, MemoryError,
    ReleaseFormatError, DomainError, ParameterError,
)  # fmt: skip


def write_tally(
    tally: PartialTally, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a tally atomically, marked PRIVATE, with permissions 0600."""
    header = json.dumps(header_of(tally), allow_nan=False).encode()
    schema = _USER_ROWS if isinstance(tally.counts, UserRows) else _COUNTS
    if tally.rules.regions is not None:
        schema = schema.append(_REGION)
    for field in _weight_fields(len(tally.rules.values)):
        schema = schema.append(field)
    table = pa.Table.from_arrays(_columns(tally), schema=schema.with_metadata({KEY: header}))
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd", write_page_checksum=True)
    write_file(path, sink.getvalue(), overwrite=overwrite, mode=0o600)


def _columns(tally: PartialTally) -> list[pa.Array]:
    """Columns of the table; then the region, if there are regions, and the weights of values."""
    counts, has_regions = tally.counts, tally.rules.regions is not None
    if isinstance(counts, UserRows):
        user, columns, more = counts.names.take(pa.array(counts.users)), counts.columns, []
        if has_regions:
            columns, region = split_columns(columns, tally.rules.domain.lattice[0])
            more = [region]
        numbers = (counts.hashes, columns, counts.rows, counts.time, *more)
        return [user, *map(pa.array, numbers)]
    values = [_slices_of(counts), counts.columns, counts.rows, counts.counts]
    values += [_regions_of(counts)] if has_regions else []
    if tally.rules.values and counts.values is not None:
        values += list(counts.values.T)
    return [pa.array(column, pa.int64()) for column in values]


def _weight_fields(number: int) -> list[pa.Field]:
    """Columns of the sums of the weights of values."""
    return [pa.field(f"weight{each}", pa.int64()) for each in range(number)]


def _regions_of(counts: Tally) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Region of each count, 0 without regions."""
    region = counts.region
    return np.zeros(len(counts.counts), np.int64) if region is None else region.astype(np.int64)


def _slices_of(counts: Tally) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Slice of each count, 0 without slices."""
    return np.zeros(len(counts.counts), np.int64) if counts.slice is None else counts.slice


def file_digest(path: str | os.PathLike[str]) -> str:
    """Compute the digest of the content of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def is_tally(path: str | os.PathLike[str]) -> bool:
    """Whether the footer of a file marks it as a tally; False if it cannot be read."""
    return os.path.isfile(path) and KEY in footer_keys(path)


def read_tally(path: str | os.PathLike[str]) -> PartialTally:
    """Read a tally."""
    with _explain_damage(Path(path)) as file:
        content = file.read_bytes()
        # Refuse a file that would fill memory.
        try:
            check_size(open_parquet(content), content, **_MAX_CELLS)
        except ReleaseFormatError as error:
            raise InputDataError(f"tally {file}: {error}") from None
        # All errors are among `_DAMAGED`, but for an older format.
        opened = open_parquet(content)
        header = parse_header(opened.metadata.metadata[KEY], file)
        schema = _schema(header)
        expect(opened.schema_arrow.remove_metadata().equals(schema))
        # Ids are read as a dictionary: a long id may be repeated in any number of records.
        if header["has_user_rows"]:
            opened = open_parquet(content, read_dictionary=["user"])
        table = opened.read()
        expect(not any(table[name].null_count for name in schema.names))
        tally = _tally_of(header, table)
        _check(tally)
        return tally


def read_origins(
    paths: Sequence[str | os.PathLike[str]],
) -> tuple[PrivacyUnit, tuple[PartOrigin, ...], TimeSlices | None]:
    """Read unit, parts and time slices of tallies, without counts."""
    merged = read_headers(paths)
    return merged.unit, merged.origins, merged.rules.slices


def read_headers(
    paths: Sequence[str | os.PathLike[str]],
    *,
    on_copy: OnCopy = refuse_copy,
) -> PartialTally:
    """Read what several tallies state, as one without counts; ``on_copy``: as in `merge`."""
    return merge([_read_header(path) for path in paths], on_copy=on_copy)


def _read_header(path: str | os.PathLike[str]) -> PartialTally:
    """Read the header of a tally; the result has no counts."""
    with _explain_damage(Path(path)) as file:
        header = parse_header(footer_keys(file)[KEY], file)
        return _tally_of(header, _schema(header).empty_table())


@contextmanager
def _explain_damage(path: Path) -> Iterator[Path]:
    """Refuse a file that is not a tally; replace the errors of a damaged file by a message."""
    if not os.path.isfile(path):
        raise InputDataError(f"tally {path} does not exist or is not a file")
    if not is_tally(path):
        raise InputDataError(f"tally {path} is not a tally of psd, or is damaged")
    try:
        yield path
        return
    except InputDataError:
        raise
    except _DAMAGED as error:
        kind = ResourceError if isinstance(error, MemoryError) else InputDataError
    raise kind(f"tally {path} is damaged, or of another version; count it again")


def read_tally_of_release(
    path: str | os.PathLike[str], domain: Domain, release: str | os.PathLike[str]
) -> PartialTally:
    """Read the tally that was kept when a release was built; it must be fine enough for queries."""
    tally = read_tally(path)
    if tally.rules.domain != domain or tally.release != file_digest(release):
        raise InputDataError(f"tally {path} is of another release; each build keeps its own tally")
    if tally.rules.step != (1, 1):
        raise InputDataError(
            f"tally {path} counted several lattice cells together, so queries would split them"
        )
    return tally


def _schema(header: dict[str, Any]) -> pa.Schema:
    """Columns of the table."""
    schema = _USER_ROWS if header["has_user_rows"] else _COUNTS
    schema = schema.append(_REGION) if header["regions"] is not None else schema
    for field in _weight_fields(len(header.get(_VALUES, ()))):
        schema = schema.append(field)
    return schema


def _tally_of(header: dict[str, Any], table: pa.Table) -> PartialTally:
    """Make a tally of a header and a table."""
    rules = rules_of(header)
    parse = _user_rows_of if header["has_user_rows"] else _counts_of
    counts: Tally | UserRows = parse(table, rules)
    return PartialTally(
        rules=rules, origins=origins_of(header), counts=counts, release=header["release"]
    )


def _counts_of(table: pa.Table, rules: CountingRules) -> Tally:
    """Counts per cell."""
    slices, columns, rows, counts = (table[name].to_numpy() for name in _COUNTS.names)
    has_slices, region = rules.slices is not None, None
    if rules.regions is not None:
        region = _read_regions(table, rules.regions).astype(np.int32)
    expect(has_slices or not slices.any())
    expect(int(max(columns.max(initial=0), rows.max(initial=0))) < 2**31)
    values, weight = None, 1
    if rules.values:
        sums = [table[field.name].to_numpy() for field in _weight_fields(len(rules.values))]
        values, weight = np.stack(sums, axis=1), 1 if rules.unit.weight else WEIGHT
        expect(float(counts.max(initial=0)) * weight < MOST_WEIGHT)  # before the product
        expect(bool(((values >= 0) & (values <= counts[:, None] * weight)).all()))
    return Tally(
        columns=columns.astype(np.int32),
        rows=rows.astype(np.int32),
        counts=counts,
        slice=slices if has_slices else None,
        region=region,
        values=values,
        record_weight=weight,
    )


def _read_regions(table: pa.Table, regions: CountedRegions) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Region of each row, one of those that the header states."""
    region = table[_REGION.name].to_numpy()
    expect(bool(((region >= 0) & (region < regions.size)).all()))
    return np.asarray(region)


def _user_rows_of(table: pa.Table, rules: CountingRules) -> UserRows:
    """Kept records of users."""
    coded = table["user"].dictionary_encode().unify_dictionaries().combine_chunks()
    ids = coded.dictionary.dictionary_encode()  # a file may list an id twice
    expect(ids.null_count == 0)
    hashes, columns, rows, time = (table[name].to_numpy() for name in _NUMBERS)
    if rules.regions is not None:
        width = rules.domain.lattice[0]
        expect(bool(((columns >= 0) & (columns < width)).all()))
        columns = widen_columns(columns, _read_regions(table, rules.regions), width)
    return UserRows(
        names=ids.dictionary,
        users=ids.indices.to_numpy().astype(np.int64)[coded.indices.to_numpy()],
        hashes=hashes,
        columns=columns,
        rows=rows,
        time=time,
    )


def _check(tally: PartialTally) -> None:
    """Refuse counts that cannot come from records, so that the contribution limit holds."""
    counts, rules = tally.counts, tally.rules
    columns, rows = rules.domain.lattice
    if isinstance(counts, UserRows) and rules.regions is not None:
        columns *= rules.regions.size
    # Cells of the lattice, at the lower lines of steps.
    for cells, size, width in zip(
        (counts.columns, counts.rows), (columns, rows), rules.step, strict=True
    ):
        expect(bool(((cells >= 0) & (cells < size) & (cells % width == 0)).all()))
    runs = [origin.run for origin in tally.origins]
    expect(sorted(set(runs)) == runs)
    if isinstance(counts, UserRows):
        _check_user_rows(counts, tally)
        return
    total = counts.counts.sum(dtype=float) * counts.record_weight
    expect(bool((counts.counts > 0).all()) and total < MOST_WEIGHT)
    slices = _slices_of(counts)
    number = 1 if rules.slices is None else len(rules.slices)
    expect(bool(((slices >= 0) & (slices < number)).all()))
    # In the order of a tally, and no cell twice.
    region = _regions_of(counts)
    order = np.lexsort((counts.columns, counts.rows, region, slices))
    expect(bool((order == np.arange(len(order))).all()))
    cells = np.stack([slices, region, counts.rows, counts.columns])
    expect(bool((np.diff(cells, axis=1) != 0).any(axis=0).all()))


def _check_user_rows(rows: UserRows, tally: PartialTally) -> None:
    """Refuse more than k records of a unit, and records outside all slices."""
    rules = tally.rules
    expect(rules.unit.has_user and not rules.unit.weight and rules.step == (1, 1))
    expect(bool(((rows.hashes >= 0) & (rows.hashes < PRIME)).all()))
    keys = {(o.key, o.contributions, o.max_per_slice) for o in tally.origins}
    expect(len(keys) == 1 and None not in next(iter(keys))[:2])
    if rules.slices is not None:
        times = rows.time.astype("datetime64[us]")
        expect(bool((rules.slices.index(times) >= 0).all()))
    units = number_units(tally.counted_unit, rows.users, rows.time, rules.slices)
    expect(int(rows_per_unit(units).max(initial=0)) <= tally.unit.max_contributions)
    if tally.unit.max_per_slice is not None and rules.slices is not None:
        of_slices = number_slices(rows.users, rows.time, rules.slices)
        expect(int(rows_per_unit(of_slices).max(initial=0)) <= tally.unit.max_per_slice)
