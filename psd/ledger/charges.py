"""Datasets, charges to them, and requests for charges. Private side.

Every field is public: names, epsilons, units, regions and columns. No field depends on a record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from psd.errors import LedgerError, ParameterError
from psd.ingest.columns import Reading
from psd.ledger.charged_slices import ChargedSlices
from psd.ledger.extents import Extent
from psd.ledger.regions import Region
from psd.privacy.loss import Loss
from psd.privacy.unit import PrivacyUnit

__all__ = [
    "Charge",
    "ChargeRequest",
    "Dataset",
    "DrawnSlice",
    "check_drawn",
    "check_name",
    "is_name",
]

_LONGEST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeRequest:
    """Cost of a release or an answer before it is drawn. Public."""

    loss: Loss  # pure epsilon, or rho of Gaussian noise
    unit: PrivacyUnit
    what: str  # what is drawn, in one or two words
    region: Region | None = None  # none for a charge for all points
    # Those of the request, never of the data; none for all times.
    slices: ChargedSlices | None = None
    chosen: bool = False  # the bound is chosen privately later, so the stated one is not final
    files: tuple[tuple[int, int], ...] = ()  # device and inode of each input file
    # How the records are read, see `psd.ingest.columns`; tallies may have several.
    readings: tuple[Reading, ...] = ()
    inputs: tuple[str, ...] = ()  # names of all inputs, see `psd.ingest.input_names`
    terms: Mapping[str, str] = field(default_factory=dict)  # what a stream fixes beside

    @property
    def extent(self) -> Extent:
        """Region and slices."""
        return Extent(region=self.region, slices=self.slices)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSlice:
    """A slice of a stream that was drawn. Public."""

    draw: str  # random id, which does not depend on what was drawn
    digests: tuple[str, ...]  # in each public series, see `psd.release.file.slice_digest`


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset and its budget. Public."""

    name: str
    budget: int  # nano-epsilon of all releases together; with a delta, see `psd.ledger.balances`
    unit: str  # kind of unit; epsilons of different units do not add up
    reading: Reading  # how all records are read, see `psd.ingest.columns`
    time_zone: str | None = None  # time zone whose days are the unit
    bound: int | None = None  # contribution bound of one unit, which all releases must have
    # Delta of all Gaussian charges together; without it, only pure charges.
    delta: Fraction | None = None
    # Nano-epsilon of each analyst; then others cannot spend.
    caps: Mapping[str, int] = field(default_factory=dict)
    raised: tuple[str, ...] = ()  # times at which the budget was raised, with the earlier budgets
    # Marks of what may be read, see `LedgerState.mark`; empty for any input.
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A charge for a release or an answer. Public."""

    id: str  # random id
    time: str  # clock of the machine; the order of charges is that of their entries
    dataset: str
    analyst: str | None
    what: str
    loss: Loss  # pure epsilon, or rho of Gaussian noise
    bound: int | None  # contributions of one unit; None if the bound was chosen after the charge
    region: Region | None  # none if all points were charged
    slices: ChargedSlices | None = None  # none if all times were charged
    done: bool = False  # whether the release is known to be saved, or the answer to be given
    digest: str | None = None  # as the release file states it of its content
    files: tuple[str, ...] = ()  # marks of the input files, see `LedgerState.marks`
    terms: Mapping[str, str] = field(default_factory=dict)  # as in `ChargeRequest`
    drawn: Mapping[str, DrawnSlice] = field(default_factory=dict)  # slices of a stream, by name

    @property
    def extent(self) -> Extent:
        """Region and slices."""
        return Extent(region=self.region, slices=self.slices)


def is_name(name: str) -> bool:
    """Whether a name is short, printable and without spaces at its ends."""
    return 0 < len(name) <= _LONGEST and name.isprintable() and name == name.strip()


def check_name(kind: str, name: str) -> None:
    """Refuse names that are empty, long or not printable: they are easily confused in a list."""
    if not is_name(name):
        raise ParameterError(
            f"{kind} must be a name of 1 to {_LONGEST} printable characters, got "
            f"{name[:_LONGEST]!r}"
        )


def check_drawn(recorded: Mapping[str, DrawnSlice], kept: Mapping[str, str]) -> None:
    """Refuse a state of a stream that lacks a recorded slice: another state drew it."""
    for name, drawn in recorded.items():
        if kept.get(name) != drawn.draw:
            raise LedgerError(
                f"slice {name} was drawn, as the ledger says, and this state of the stream has not "
                "drawn it; restore the newer state, since a slice is never drawn twice"
            )
