"""Values of a release file that take more than a number: noise, covariate and regions.

Noise stands in the header, the others in the footer: base64 of zlib of their bytes, whose size and
SHA-256 are in the header, so that a stranger's value unpacks to no more. A covariate is 16-bit
numbers, little-endian, by rows from the south. Regions are names and types of columns as JSON, then
each column: integers little-endian, or lengths, then texts and bytes.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from psd._util import plugins
from psd._util.arrays import from_arrow
from psd._util.json_toml import strict_json
from psd.errors import ParameterError, ReleaseFormatError
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import RHO, delta_text, is_delta, parse_delta
from psd.privacy.noise_laws import noise_law
from psd.privacy.values import MAX_VALUES, Value, check_values
from psd.regions.hierarchy import RegionHierarchy
from psd.release.record import ReleaseRecord
from psd.space.covariate import MAX_SIDE, Covariate
from psd.space.domain import Domain
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    import pyarrow as pa


_HEX = set("0123456789abcdef")


@dataclass(frozen=True, kw_only=True)
class FooterValue:
    """Reader of the value of one footer key, with the words of its messages."""

    exists: str  # such as ``there are regions``
    subject: str  # such as ``its regions``
    plural: bool  # whether the subject is plural

    @property
    def damaged(self) -> str:
        """Message of a value that cannot be read."""
        return f"{self.subject} {'are' if self.plural else 'is'} damaged"

    def pair(
        self, described: dict[str, Any] | None, value: bytes | None
    ) -> tuple[dict[str, Any], bytes] | None:
        """Entry of the header and value of the footer, or None for both; one alone is refused."""
        if described is not None and value is not None:
            return described, value
        if described is not None or value is not None:
            raise ReleaseFormatError(f"header and footer disagree on whether {self.exists}")
        return None

    def unpack(self, value: bytes, size: int, digest: str) -> bytes:
        """Bytes of a value of the stated size and digest; at most one byte more is unpacked."""
        do = "do" if self.plural else "does"
        inflate = zlib.decompressobj()
        try:
            content = inflate.decompress(base64.b64decode(value, validate=True), size + 1)
        except (binascii.Error, zlib.error):
            raise ReleaseFormatError(self.damaged) from None
        if len(content) != size or not inflate.eof or inflate.unused_data:
            raise ReleaseFormatError(
                f"{self.subject} {do} not have the size that the header states"
            )
        if digest_of(content) != digest:
            raise ReleaseFormatError(f"{self.subject} {do} not match the digest in the header")
        return content


def pack(content: bytes, level: int = 9) -> bytes:
    """Value of bytes; the same bytes, and level of zlib, give the same value."""
    return base64.b64encode(zlib.compress(content, level))


def digest_of(content: bytes) -> str:
    """SHA-256 of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def is_digest(value: object) -> bool:
    """Whether a JSON value has the form of a digest."""
    return isinstance(value, str) and len(value) == 64 and set(value) <= _HEX


_NAMES: Final = {"law", "squared_sensitivity", "factor", "rho", "delta"}
_LAWS: Final = "psd.privacy.noise_laws"
_LARGEST: Final = 2**62

# Neither has an exponent: a few characters would state a number that takes minutes to compute.
_FRACTION: Final = re.compile(r"[0-9]+(/[0-9]+)?")
_DECIMAL: Final = re.compile(r"[0-9]+(\.[0-9]+)?")


def is_values(value: object) -> bool:
    """Whether a JSON value is a list of values with their bounds."""
    try:
        return len(parse_values(value)) > 0
    except (ParameterError, KeyError, TypeError):
        return False


def parse_values(value: Any) -> tuple[Value, ...]:
    """Values of a JSON value; none of None."""
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_VALUES:
        raise ParameterError("values must be a short list")
    for each in value:
        is_object = isinstance(each, dict) and each.keys() == {"name", "lower", "upper"}
        if not is_object or type(each["name"]) is not str:
            raise ParameterError("a value must have a name and two bounds")
        if not all(type(each[side]) is float for side in ("lower", "upper")):
            raise ParameterError("bounds of a value must be numbers")
    return check_values([Value(**each) for each in value])


def noise_header(record: ReleaseRecord) -> dict[str, Any] | None:
    """JSON value of the noise of a record; None for noise that unit and epsilon imply."""
    noise = record.tree.noise
    if noise == CountNoise.laplace(record.unit.contributions):
        return None
    return {
        "law": noise.law,
        "squared_sensitivity": noise.squared_sensitivity,
        "factor": str(noise.factor),
        "rho": None if record.rho is None else RHO.text(record.rho),
        "delta": None if record.delta is None else delta_text(record.delta),
    }


def is_noise(value: object) -> bool:
    """Whether a JSON value is noise of a law in canonical texts, rho and delta."""
    if not isinstance(value, dict) or value.keys() != _NAMES:
        return False
    if not isinstance(value["law"], str) or value["law"] not in plugins.own_names(_LAWS):
        return False
    squared, is_pure = value["squared_sensitivity"], noise_law(value["law"]).measure.is_pure
    return (
        type(squared) is int
        and 0 < squared <= _LARGEST
        and is_factor(value["factor"])
        and (value["rho"] is None if is_pure else _is_rho(value["rho"]))
        and (value["delta"] is None if is_pure else is_delta(value["delta"]))
    )


def noise_fields(value: dict[str, Any] | None) -> dict[str, Any]:
    """Noise (discrete Laplace by default), rho and delta that `is_noise` accepted."""
    if value is None:
        return {"noise": CountNoise(), "rho": None, "delta": None}
    noise = CountNoise(
        law=value["law"],
        squared_sensitivity=value["squared_sensitivity"],
        factor=Fraction(value["factor"]),
    )
    if noise.measure.is_pure:
        return {"noise": noise, "rho": None, "delta": None}
    return {"noise": noise, "rho": _rho_of(value["rho"]), "delta": parse_delta(value["delta"])}


def _rho_of(text: str) -> int:
    """Rho in units of 1e-12."""
    return int(Decimal(text) * RHO.parts)


def is_factor(value: Any) -> bool:
    """Whether a value is the text of a fraction in lowest terms, above 0."""
    if not (_is_short(value) and _FRACTION.fullmatch(value)):
        return False
    try:
        return str(Fraction(value)) == value and Fraction(value) > 0
    except ZeroDivisionError:
        return False


def _is_rho(value: Any) -> bool:
    """Whether a value is the text of a rho of whole parts, above 0."""
    if not (_is_short(value) and _DECIMAL.fullmatch(value)):
        return False
    return RHO.text(_rho_of(value)) == value and Decimal(value) > 0


def _is_short(value: Any) -> bool:
    """Whether a value is a text of at most 40 characters of a number."""
    return isinstance(value, str) and 0 < len(value) <= 40 and value.isascii()


COVARIATE_KEY = b"psd-covariate"

_FIELDS = {"columns", "rows", "sha256"}

_VALUE = FooterValue(exists="there is a covariate", subject="its covariate", plural=False)


def covariate_header(covariate: Covariate) -> dict[str, Any]:
    """Entry of a covariate in the header: its size and digest, not the name of its file."""
    digest = digest_of(_content(covariate))
    return {"columns": covariate.columns, "rows": covariate.rows, "sha256": digest}


def pack_covariate(covariate: Covariate) -> bytes:
    """Value of the footer key; the same covariate gives the same bytes."""
    return pack(_content(covariate))


def _content(covariate: Covariate) -> bytes:
    """Numbers of the raster."""
    return covariate.raster.astype("<u2").tobytes()


def is_covariate(value: object) -> bool:
    """Whether a JSON value is the entry of a covariate."""
    if not isinstance(value, dict) or value.keys() != _FIELDS:
        return False
    sides, digest = (value["columns"], value["rows"]), value["sha256"]
    return all(type(side) is int and 1 <= side <= MAX_SIDE for side in sides) and is_digest(digest)


def unpack_covariate(
    described: dict[str, Any] | None, value: bytes | None, domain: Domain
) -> Covariate | None:
    """Covariate of an entry that `is_covariate` accepted, and of the footer; both or neither."""
    pair = _VALUE.pair(described, value)
    if pair is None:
        return None
    described, value = pair
    columns, rows = described["columns"], described["rows"]
    content = _VALUE.unpack(value, 2 * columns * rows, described["sha256"])
    raster = np.frombuffer(content, "<u2").reshape(rows, columns).astype(np.uint16)
    return Covariate(domain=domain, raster=raster)


REGIONS_KEY = b"psd-regions"

_REGION_FIELDS = {"parameters", "bytes", "sha256"}
_LENGTH = 8

# Limit of a table, and of what a byte of the footer may unpack to.
_MAX_BYTES = 2**29
_BYTES_PER_BYTE, _ANY_BYTES = 256, 2**20

_INTEGERS = {"int16": "<i2", "int32": "<i4", "int64": "<i8"}
_TEXTS = ("string", "binary")

_REGION_VALUE = FooterValue(exists="there are regions", subject="its regions", plural=True)
_DAMAGED = _REGION_VALUE.damaged


def regions_of(record: ReleaseRecord) -> RegionHierarchy | None:
    """Hierarchy of a record; None without regions."""
    tree = record.tree
    regions = tree.regions if isinstance(tree, RegionTree) else None
    assert regions is None or isinstance(regions, RegionHierarchy)  # by psd.release.schema
    return regions


def regions_header(record: ReleaseRecord) -> dict[str, Any] | None:
    """Entry of the regions in the header: parameters, and size and digest of their table."""
    regions = regions_of(record)
    if regions is None:
        return None
    content = _region_content(regions)
    digest = digest_of(content)
    return {"parameters": regions.parameters(), "bytes": len(content), "sha256": digest}


def pack_regions(regions: RegionHierarchy) -> bytes:
    """Value of the footer key; the same hierarchy gives the same bytes."""
    # Most of it is coordinates: level 9 takes five times as long, for 3 % at most.
    return pack(_region_content(regions), level=4)


def is_regions(value: object) -> bool:
    """Whether a JSON value is the entry of regions."""
    if not isinstance(value, dict) or value.keys() != _REGION_FIELDS:
        return False
    size, digest = value["bytes"], value["sha256"]
    return (
        isinstance(value["parameters"], dict)
        and type(size) is int
        and 0 <= size <= _MAX_BYTES
        and is_digest(digest)
    )


def unpack_regions(
    described: dict[str, Any] | None, value: bytes | None, domain: Domain
) -> RegionHierarchy | None:
    """Hierarchy of an entry that `is_regions` accepted, and of the footer; both or neither."""
    pair = _REGION_VALUE.pair(described, value)
    if pair is None:
        return None
    described, value = pair
    size = described["bytes"]
    if size > _ANY_BYTES + _BYTES_PER_BYTE * len(value):
        raise ReleaseFormatError("its regions unpack to more than their bytes can hold")
    content = _REGION_VALUE.unpack(value, size, described["sha256"])
    table = _table(content) if content else None
    return RegionHierarchy.from_table(domain, described["parameters"], table)


def _region_content(regions: RegionHierarchy) -> bytes:
    """Bytes of the table of a hierarchy; none if it has no table."""
    table = regions.to_table()
    if table is None:
        return b""
    columns = [[field.name, str(field.type)] for field in table.schema]
    head = json.dumps({"rows": table.num_rows, "columns": columns}, sort_keys=True).encode()
    parts = [head]
    for (_, kind), column in zip(columns, table.columns, strict=True):
        if kind in _INTEGERS:
            parts.append(from_arrow(column.combine_chunks()).astype(_INTEGERS[kind]).tobytes())
        else:
            # Lengths of texts or bytes, -1 for a missing one, and all of them.
            values: list[Any] = column.to_pylist()
            raw = [each.encode() if isinstance(each, str) else each for each in values]
            lengths = [-1 if each is None else len(each) for each in raw]
            parts.append(np.array(lengths, "<i4").tobytes())
            parts.append(b"".join(each for each in raw if each is not None))
    return b"".join(len(part).to_bytes(_LENGTH, "little") + part for part in parts)


def _table(content: bytes) -> pa.Table:
    """Table of the bytes that `_region_content` writes, which are untrusted."""
    import pyarrow as pa

    parts = _parts(content)
    head = strict_json(next(parts, b""))
    if not (isinstance(head, dict) and head.keys() == {"rows", "columns"}):
        raise ReleaseFormatError(_DAMAGED)
    rows, columns = head["rows"], head["columns"]
    if not (type(rows) is int and 0 <= rows <= _MAX_BYTES and _are_columns(columns)):
        raise ReleaseFormatError(_DAMAGED)
    arrays = [
        _integers(next(parts, b""), kind, rows)
        if kind in _INTEGERS
        else _texts(next(parts, b""), next(parts, b""), kind, rows)
        for _, kind in columns
    ]
    if next(parts, None) is not None:
        raise ReleaseFormatError(_DAMAGED)
    return pa.table(arrays, names=[name for name, _ in columns])


def _are_columns(value: object) -> bool:
    """Whether a JSON value is a list of different names with types of columns."""
    return (
        isinstance(value, list)
        and 0 < len(value) <= 100
        and all(isinstance(pair, list) and len(pair) == 2 for pair in value)
        and all(isinstance(name, str) for name, _ in value)
        and all(kind in (*_INTEGERS, *_TEXTS) for _, kind in value)
        and len({name for name, _ in value}) == len(value)
    )


def _parts(content: bytes) -> Iterator[bytes]:
    """Parts of the bytes, each after its length."""
    start = 0
    while start < len(content):
        first = start + _LENGTH
        start = first + int.from_bytes(content[start:first], "little")
        if start > len(content):
            raise ReleaseFormatError(_DAMAGED)
        yield content[first:start]


def _integers(part: bytes, kind: str, rows: int) -> pa.Array:
    """Column of integers."""
    import pyarrow as pa

    dtype = np.dtype(_INTEGERS[kind])
    if len(part) != rows * dtype.itemsize:
        raise ReleaseFormatError(_DAMAGED)
    return pa.array(np.frombuffer(part, dtype).astype(kind))


def _texts(lengths: bytes, part: bytes, kind: str, rows: int) -> pa.Array:
    """Column of texts or bytes."""
    import pyarrow as pa

    if len(lengths) != 4 * rows:
        raise ReleaseFormatError(_DAMAGED)
    # Lengths are of 32 bits, -1 for a missing value; in 64 bits their sum cannot wrap around.
    sizes = np.frombuffer(lengths, "<i4").astype(np.int64)
    if (sizes < -1).any() or np.maximum(sizes, 0).sum() != len(part):
        raise ReleaseFormatError(_DAMAGED)
    ends = np.cumsum(np.maximum(sizes, 0)).tolist()
    starts = [0, *ends][: len(ends)]
    values: list[Any] = [
        None if size < 0 else part[a:b]
        for a, b, size in zip(starts, ends, sizes.tolist(), strict=True)
    ]
    try:
        if kind == "string":
            values = [None if value is None else value.decode() for value in values]
    except UnicodeDecodeError:
        raise ReleaseFormatError(_DAMAGED) from None
    return pa.array(values, pa.string() if kind == "string" else pa.binary())
