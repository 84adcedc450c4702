"""What was fixed when a stream was created: request, output, charge. Private side."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from psd._util.toml_values import read_toml
from psd.errors import InputDataError, ParameterError
from psd.privacy.delta import failure_text, parse_delta
from psd.privacy.loss import Loss
from psd.publish.charging import charge_request
from psd.publish.public_inputs import resolve_public_inputs
from psd.publish.request_toml import from_toml, public_files, to_toml

if TYPE_CHECKING:
    from psd.ledger.charges import ChargeRequest
    from psd.publish.public_inputs import PublicInputs
    from psd.publish.request import BuildRequest
    from psd.space.time_slices import TimeSlices
    from psd.streams.counters import Counter

__all__ = [
    "StreamPlan",
    "check_offered",
    "fault_charge",
    "file_digests",
    "guarantee_of",
    "read_public_inputs",
    "stream_charge",
]

_NOT_OFFERED = {
    "count": "count must be records in a stream; the weight of a user's records depends on all "
    "of them, and later ones are not there yet",
    "choice": "max_contributions must be a number in a stream, got auto; the bound is needed "
    "before the first record is read",
    "slices": "slices must be given for a stream; each of them is added once",
}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StreamPlan:
    """Facts of a stream that never change. Private: it names files, and has the key.

    Parameters
    ----------
    request : str
        The `BuildRequest` as TOML. Public.
    folder : str
        Where the relative paths in it begin.
    output : str
        File of the public series.
    key : str
        Key of the hash that chooses the kept records, in hexadecimal digits.
    files : mapping
        SHA-256 of each public file of the request.
    statement : mapping
        What each slice states: the charge, and the number of slices. Public.
    clock : str
        Digest of the clock changes of the time zone, see `psd._util.wall_clock.zone_rules`. Public.
    ledger, dataset, analyst : str, optional
        Budget that paid for the stream.
    totals : str, optional
        File of the public series of running totals.
    counter : {"slices", "tree", "toeplitz"}, optional
        How these are computed.
    delta : str, optional
        What the Gaussian noise of ``toeplitz`` spends; that of Gaussian slices is in the request.
    """

    request: str
    folder: str
    output: str
    key: str
    files: Mapping[str, str]
    statement: Mapping[str, int | str]
    clock: str
    ledger: str | None = None
    dataset: str | None = None
    analyst: str | None = None
    totals: str | None = None
    counter: Counter | None = None
    delta: str | None = None

    def __repr__(self) -> str:
        return "<StreamPlan: private>"

    def to_rows(self) -> dict[str, str]:
        """Return the rows of the state."""
        return {name: json.dumps(getattr(self, name)) for name in self.__slots__}

    @classmethod
    def from_rows(cls, rows: Mapping[str, str]) -> StreamPlan:
        """Make the plan of the rows of a state.

        Raises
        ------
        InputDataError
            If they are not those of a plan.
        """
        if rows.keys() != set(cls.__slots__):
            raise InputDataError("state has other facts than that of a stream; restore a copy")
        return cls(**{name: json.loads(text) for name, text in rows.items()})

    def build_request(self) -> BuildRequest:
        """Return the request, after a check that its public files have not changed.

        Raises
        ------
        InputDataError
            If a file is missing or has changed, since the slices of a series share them.
        """
        for path, digest in self.files.items():
            if _file_digest(path) != digest:
                raise InputDataError(
                    f"public file {path} must not change while a stream grows, and it has; "
                    "restore it as it was when the stream was created"
                )
        return from_toml(self.request, folder=Path(self.folder))


def check_offered(request: BuildRequest) -> TimeSlices:
    """Refuse requests that no stream can have; return the slices of the others.

    Raises
    ------
    ParameterError
        If there are no slices, users are counted, or the bound is chosen privately.
    """
    faults = {
        "slices": request.slices is None,
        "count": bool(request.unit.weight),
        "choice": request.contribution_choice is not None,
    }
    for name, applies in faults.items():
        if applies:
            raise ParameterError(_NOT_OFFERED[name])
    assert request.slices is not None
    return request.slices


def file_digests(request: BuildRequest, folder: Path) -> dict[str, str]:
    """SHA-256 of each public file of a request, by its path.

    Raises
    ------
    ParameterError
        If the covariate, the boundary or the regions are an object in memory and not a file.
    """
    paths = public_files(read_toml("request", to_toml(request)), folder)
    return {path: _file_digest(path) or "" for path in paths}


def _file_digest(path: str) -> str | None:
    """SHA-256 of a file; None if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def stream_charge(request: BuildRequest) -> ChargeRequest:
    """Return the charge of a stream, which counts everywhere: its inputs are not there yet."""
    return replace(charge_request(request), what=f"stream {request.method.name}")


def fault_charge(request: BuildRequest) -> ChargeRequest:
    """Return the charge of an addition that a fault ends, which the stream did not pay for.

    The stream is charged once, and each of its additions may end by a fault, so the price of a
    fault is not lowered by the epsilon of the stream; see `psd.ledger.state.LedgerState`.
    """
    return replace(stream_charge(request), loss=Loss.pure(0))


def guarantee_of(request: BuildRequest, delta: str | None) -> str:
    """Return the guarantee of a whole stream, in a few words.

    Parameters
    ----------
    request : BuildRequest
        Of the stream. Public.
    delta : str, optional
        What Gaussian noise of the totals spends; that of slices is in the request. Public.

    Examples
    --------
    >>> from psd.publish.request_arguments import request_from_arguments
    >>> request = request_from_arguments(domain=(0, 0, 8, 8), epsilon=1, method="grid")
    >>> guarantee_of(request, None)
    'epsilon 1 per record'
    """
    if delta is None:
        return request.guarantee_text
    words, note = request.unit.summed_text, failure_text(parse_delta(delta))
    return f"{request.loss.text} and delta {delta} {words}; {note}"


def read_public_inputs(request: BuildRequest) -> PublicInputs:
    """Read the public files of a request."""
    assert request.post_processing is not None
    return resolve_public_inputs(
        request.domain,  # type: ignore[arg-type] # public: private bounds have no slices
        request.post_processing,
        covariate=request.covariate,
        boundary=request.boundary,
    )
