"""Receipts of charges in a release, and the seal of a ledger by a key of its owner. Private side.

An older copy of a ledger is valid by itself, but lacks charges that releases still state; and its
chain, which has no key, can be recomputed. A seal in a file beside it is an HMAC (RFC 2104) of the
number of entries and the hash of the last one. It detects a change of a sealed entry as long as it
exists and its key is secret; later entries are not covered.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psd._util.atomic_write import write_file
from psd._util.json_toml import strict_json
from psd._util.parquet_bytes import MAX_ROWS, footer_keys
from psd.errors import LedgerError, ParameterError, ReleaseFormatError
from psd.ingest.row_hash import load_key
from psd.ledger.charges import Charge, Dataset
from psd.ledger.state import LedgerState
from psd.privacy.loss import delta_text, parse_epsilon, rho_text
from psd.release.cube_file import read_published
from psd.release.file import CUBE_KEY, KEY, SERIES_KEY, read_release, slice_digest
from psd.release.series_file import MAX_HEADER, is_series, parameters_of, read_series
from psd.space.time_slices import TimeSlices


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeReceipt:
    """Charge that paid for a release. Public."""

    ledger: str  # random id
    charge: str  # random id

    def parameters(self) -> dict[str, int | str]:
        """Return the parameters under which the release states it."""
        return {"ledger": self.ledger, "charge": self.charge}


def receipts(folder: str | os.PathLike[str]) -> Iterator[tuple[Path, ChargeReceipt]]:
    """Yield the receipts of releases in a folder by name, of footers alone; see `is_sound`."""
    for path in sorted(Path(folder).glob("*.parquet")):
        receipt = read_receipt(path)
        if receipt is not None:
            yield path, receipt


def read_receipt(path: str | os.PathLike[str]) -> ChargeReceipt | None:
    """Read the receipt of a release or a series; None for a file without one."""
    footer = footer_keys(path)
    try:
        header = _header_of(footer)
        # A series has parameters of each slice. A reader refuses it if their receipts differ.
        if SERIES_KEY in footer:
            slices = parameters_of(header)
        else:
            slices = [(header["release"] if CUBE_KEY in footer else header)["parameters"]]
        [receipt] = {(str(each["ledger"]), str(each["charge"])) for each in slices}
    except (ReleaseFormatError, KeyError, TypeError, ValueError):
        return None
    return ChargeReceipt(ledger=receipt[0], charge=receipt[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class _StatedGuarantee:
    """What a release or a series states of its guarantee."""

    epsilon: int
    unit: str
    time_zone: str | None
    contributions: int
    area: tuple[object, ...]
    rho: str | None = None
    delta: str | None = None
    slices: TimeSlices | None = None
    epsilons: int = 1
    """Number of equal parts of the epsilon of the charge, of which the series states one."""
    per_slice: int | None = None
    """Of a cube, the largest number of records of a user in each slice."""

    def has_bound(self, bound: int) -> bool:
        """Whether a bound is the stated one: of a cube, m in each of T slices, and T m in all."""
        in_all = None if self.slices is None else bound * len(self.slices)
        return self.contributions == bound or (
            self.per_slice == bound and self.contributions == in_all
        )


def _header_of(footer: Mapping[bytes, bytes]) -> Any:
    """Header of a release, a series or a cube."""
    keys = (SERIES_KEY, CUBE_KEY, KEY)
    return strict_json(next((footer[key] for key in keys if key in footer), b""), MAX_HEADER)


def _read_guarantee(path: str | os.PathLike[str]) -> _StatedGuarantee | None:
    """Guarantee in the footer of a release or a series; None if it states none."""
    footer = footer_keys(path)
    try:
        header, is_cube = _header_of(footer), CUBE_KEY in footer
        has_slices = is_cube or SERIES_KEY in footer
        release = header["release"] if has_slices else header
        noise, slices = release.get("noise") or {}, None
        if has_slices and (not is_cube or "slices" in header):
            names, zone = tuple(header["slices"]), header["time_zone"]
            slices = TimeSlices(by=header["by"], names=names, time_zone=zone)
        return _StatedGuarantee(
            rho=noise.get("rho"),
            delta=noise.get("delta"),
            epsilon=parse_epsilon(release["epsilon"]),
            unit=str(release["unit"]),
            time_zone=release.get("time_zone"),
            contributions=int(release.get("weight") or release["max_contributions"]),
            area=_area(**release["domain"]),
            slices=slices,
            epsilons=1 if slices is None or is_cube else _epsilons(header),
            per_slice=release.get("max_per_slice") if is_cube else None,
        )
    except (ReleaseFormatError, ParameterError, KeyError, AttributeError, TypeError, ValueError):
        return None


def _epsilons(header: dict[str, Any]) -> int:
    """Number of slices that share epsilon, those that a stream will add included; 1 if none do."""
    # Slices with Gaussian noise share a rho, and state epsilon and rho of the whole series.
    is_gaussian = (header["release"].get("noise") or {}).get("delta") is not None
    if header["bound"] != "slice" or is_gaussian:
        return 1
    number = int(parameters_of(header)[0].get("stream_slices", len(header["slices"])))
    if number < 1:
        raise ValueError("a series of no slices")
    return number


def _area(bounds: Sequence[float], crs: str, lattice: Sequence[int]) -> tuple[object, ...]:
    """Bounds, CRS and lattice as a value that can be compared."""
    return tuple(map(float, bounds)), crs, tuple(lattice)


def check_releases(
    state: LedgerState,
    folder: str | os.PathLike[str],
    ledger: str | os.PathLike[str],
    *,
    reads_slices: bool = False,
) -> list[tuple[Path, Charge]]:
    """Compare the releases in a folder with the charges that they state; refuse a difference."""
    paid = []
    for path, receipt in receipts(folder):
        if receipt.ledger != state.id:
            continue
        charge = state.charges.get(receipt.charge)
        if charge is None:
            if is_sound(path):
                raise LedgerError(
                    f"release {path} states a charge that ledger {ledger} does not have; an older "
                    "copy of the ledger was restored, or the release is forged: restore the "
                    "latest ledger, or remove the release"
                )
            continue
        # Not compared: a bound chosen after the charge, the area of a charge everywhere, and the
        # slices of one always. A series may have fewer slices.
        field = _differing_field(_read_guarantee(path), charge, state.dataset(charge.dataset))
        if field is not None and is_sound(path):
            raise LedgerError(
                f"release {path} states another {field} than charge {charge.id}, by which ledger "
                f"{ledger} paid for it; the ledger was edited, or the release is forged: restore "
                "the ledger, or remove the release"
            )
        # What was recorded when a slice was drawn finds two contents of one slice.
        if reads_slices and charge.terms and (other := _other_slice(path, charge)) is not None:
            raise LedgerError(
                f"release {path} has another {other} than ledger {ledger} recorded for charge "
                f"{charge.id}; an older copy of the stream drew it again, or of the ledger was "
                "restored, or the release is forged"
            )
        paid.append((path, charge))
    return paid


def _other_slice(path: Path, charge: Charge) -> str | None:
    """What in a file is not as it was recorded for a stream; None if all is."""
    try:
        if not is_series(path):  # a slice alone, which does not say its name
            tree, recorded = read_release(path, max_nodes=MAX_ROWS)[0].tree, charge.drawn.items()
            is_drawn = any(slice_digest(name, tree) in each.digests for name, each in recorded)
            return None if is_drawn else "content"
        series, _ = read_series(path, max_nodes=MAX_ROWS)
    except ReleaseFormatError:
        return None  # damaged: it states nothing
    for name, release in zip(series.slices.names, series.releases, strict=True):
        drawn = charge.drawn.get(name)
        if drawn is None or slice_digest(name, release.tree) not in drawn.digests:
            return f"slice {name}"
    return None


def _differing_field(
    stated: _StatedGuarantee | None, charge: Charge, dataset: Dataset
) -> str | None:
    """Name of a field of the guarantee in which a release and its charge differ."""
    if stated is None:
        return "guarantee"
    # Slices that share epsilon state equal integer parts of it, without the remainder.
    if stated.epsilon != charge.loss.epsilon // stated.epsilons:
        return "epsilon"
    loss = charge.loss
    if stated.delta != (None if loss.delta is None else delta_text(loss.delta)):
        return "delta"
    if loss.delta is not None and stated.rho != rho_text(loss.rho):
        return "rho"
    if (stated.unit, stated.time_zone) != (dataset.unit, dataset.time_zone):
        return "unit of privacy"
    if charge.bound is not None and not stated.has_bound(charge.bound):
        return "contribution bound"
    region = charge.region
    if region is not None and stated.area != _area(region.bounds, region.crs, region.lattice):
        return "area"
    if charge.slices is not None and not charge.slices.contain(stated.slices):
        return "list of time slices"
    return None


def is_sound(path: str | os.PathLike[str]) -> bool:
    """Whether a file loads; a footer alone is easily forged. A sound file can state any charge."""
    try:
        # The files belong to the owner of the ledger, so the limit for untrusted files does not
        # apply.
        read_published(path, max_nodes=MAX_ROWS)
    except ReleaseFormatError:
        return False
    return True


_DOMAIN = b"psd seal of a ledger 1\n"
_FIELDS = {"version": int, "ledger": str, "entries": int, "head": str, "mac": str}
_VERSION = 1
_LARGEST = 2**12
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)

PathLike = str | os.PathLike[str]


def seal_path(ledger: PathLike) -> Path:
    """Return the file of the seal of a ledger: its name with ``.seal`` after it."""
    return Path(f"{os.fspath(ledger)}.seal")


def write_seal(ledger: PathLike, state: LedgerState, key: PathLike) -> Path:
    """Seal the head of a ledger; an earlier seal must agree with the chain and is replaced."""
    target = seal_path(ledger)
    if os.path.lexists(target):
        check_seal(ledger, state, key)
    # The key, 64 hexadecimal digits for its owner only, is made if neither it nor a seal exists.
    body = {"ledger": state.id, "entries": len(state.hashes), "head": state.head}
    sealed = {"version": _VERSION, **body, "mac": _mac(load_key(key), body)}
    write_file(target, f"{json.dumps(sealed, indent=1)}\n".encode(), overwrite=True, mode=0o600)
    return target


def check_seal(ledger: PathLike, state: LedgerState, key: PathLike) -> int:
    """Check key and seal against the chain; return how many entries, from the first, are sealed."""
    if not os.path.isfile(key):
        raise ParameterError(f"key must be a file that exists, got {key}")
    path = seal_path(ledger)
    if not os.path.lexists(path):
        raise LedgerError(
            f"seal {path} does not exist; restore it, or seal the ledger with `psd ledger seal`"
        )
    seal: Any = None
    with (
        suppress(OSError, ReleaseFormatError),
        # At once: opening a pipe would wait for its writer.
        open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAIT)) as file,
    ):
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            seal = strict_json(file.read(_LARGEST + 1), _LARGEST)
    is_seal = isinstance(seal, dict) and {name: type(v) for name, v in seal.items()} == _FIELDS
    if not (
        is_seal
        and seal["version"] == _VERSION
        and seal["entries"] >= 1
        and re.fullmatch("[0-9a-f]{64}", seal["mac"])
    ):
        raise LedgerError(f"seal {path} is damaged, or of another version")
    body = {name: seal[name] for name in ("ledger", "entries", "head")}
    if not hmac.compare_digest(seal["mac"], _mac(load_key(key), body)):
        raise LedgerError(f"seal {path} was changed, or was made with another key than {key}")
    number: int = seal["entries"]
    if seal["ledger"] != state.id or list(state.hashes[number - 1 : number]) != [seal["head"]]:
        raise LedgerError(
            f"ledger {ledger} does not have the sealed entry {number}: an entry up to it was "
            "changed and the chain recomputed, or this is an older copy or another ledger"
        )
    return number


def _mac(key: bytes, body: dict[str, Any]) -> str:
    """Authentication code of ledger, number of entries and head."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hmac.new(key, _DOMAIN + text.encode(), hashlib.sha256).hexdigest()
