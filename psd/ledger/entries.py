"""Entries of a ledger, public values only, and the hash chain between them. Private side."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from psd.errors import LedgerError
from psd.ledger.charges import Charge, Dataset, DrawnSlice
from psd.ledger.extents import parse_region, parse_slices
from psd.ledger.file import Row, validate_entry
from psd.ledger.state import LedgerState, fits_unit
from psd.privacy.loss import Loss, epsilon_text, parse_delta


def entry(hashes: tuple[str, ...], kind: str, body: Mapping[str, Any]) -> Row:
    """Make the next entry of a chain, with its hash."""
    number, time = len(hashes) + 1, _now()
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return number, time, kind, text, _hash(hashes[-1] if hashes else "", number, time, kind, text)


def _now() -> str:
    """Time by the clock of the machine; no decision depends on it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _hash(before: str, *fields: int | str) -> str:
    """Hash of an entry; it covers the previous hash, and so all earlier entries."""
    text = json.dumps([before, *fields], ensure_ascii=True)
    return blake2b(text.encode(), digest_size=32).hexdigest()


def replay_entries(rows: Iterable[Row]) -> LedgerState:
    """Check the chain and compute the state; an error names the first entry that is wrong."""
    hashes: list[str] = []
    name = ""
    datasets: dict[str, Dataset] = {}
    charges: dict[str, Charge] = {}
    drawn: dict[str, dict[str, DrawnSlice]] = {}
    faults: Counter[str] = Counter()
    for number, time, kind, text, stored in rows:
        try:
            if number != len(hashes) + 1 or (number == 1) != (kind == "create"):
                raise ValueError("an entry is missing")
            if stored != _hash(hashes[-1] if hashes else "", number, time, kind, text):
                raise ValueError("an entry was changed")
            body = json.loads(text)
            validate_entry(kind, body)
            if kind == "create":
                name = body["id"]
            elif kind == "charge":
                _charge(charges, datasets, time, body)
            elif kind == "slice":
                slices = drawn.setdefault(charges[body["id"]].id, {})
                if body["slice"] in slices:
                    raise ValueError("a slice that is drawn twice")
                found = DrawnSlice(draw=body["draw"], digests=tuple(body["digests"]))
                slices[body["slice"]] = found
            elif kind == "fault":
                faults[datasets[body["name"]].name] += 1
            elif kind == "done":
                charge = charges[body["id"]]
                if charge.done:
                    raise ValueError("a charge that is finished twice")
                charges[charge.id] = replace(charge, done=True, digest=body["digest"])
            else:
                _dataset(datasets, kind, time, body)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise LedgerError(
                f"entry {len(hashes) + 1} of the ledger was changed, removed or inserted; the "
                "ledger allows no charges"
            ) from None
        hashes.append(stored)
    if not hashes:
        raise LedgerError("entry 1 of the ledger is missing; the ledger allows no charges")
    charges |= {each: replace(charges[each], drawn=slices) for each, slices in drawn.items()}
    return LedgerState(
        id=name, hashes=tuple(hashes), datasets=datasets, charges=charges, faults=faults
    )


def _charge(
    charges: dict[str, Charge], datasets: Mapping[str, Dataset], time: str, body: dict[str, Any]
) -> None:
    """Add the charge of an entry."""
    region, slices = parse_region(body.pop("region")), parse_slices(body.pop("slices"))
    files = tuple(body.pop("files"))
    if body["id"] in charges or body["dataset"] not in datasets:
        raise ValueError("a charge that exists already, or that has no dataset")
    epsilon, rho, delta = body.pop("epsilon"), body.pop("rho"), body.pop("delta")
    if (rho is None) != (delta is None):
        raise ValueError("rho without delta, or delta without rho")
    loss = Loss.pure(epsilon)
    if delta is not None:
        loss = Loss.gaussian(epsilon, parse_delta(delta), rho)
    if not loss.is_pure and loss.delta != datasets[body["dataset"]].delta:
        raise ValueError("a delta that is not that of the dataset")
    charges[body["id"]] = Charge(
        time=time, loss=loss, region=region, slices=slices, files=files, **body
    )


def _dataset(datasets: dict[str, Dataset], kind: str, time: str, body: dict[str, Any]) -> None:
    """Add a dataset, or change its budget or inputs."""
    name = body["name"]
    if kind == "raise":
        before = datasets[name]
        if body["budget"] <= before.budget:
            raise ValueError("a budget that does not grow")
        note = f"{time} from {epsilon_text(before.budget)}"
        raised = (*before.raised, note)
        datasets[name] = replace(before, budget=body["budget"], raised=raised)
    elif kind == "inputs":
        before = datasets[name]
        datasets[name] = replace(before, inputs=(*before.inputs, *body["inputs"]))
    elif name in datasets:
        raise ValueError("a dataset that exists already")
    elif not fits_unit(body["reading"], body["unit"]):
        raise ValueError("columns that do not fit the unit")
    else:
        delta = body.pop("delta")
        datasets[name] = Dataset(
            **{**body, "inputs": tuple(body["inputs"])},
            delta=None if delta is None else parse_delta(delta),
        )
