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
    """Cost of a release or an answer before it is drawn. Public.

    Parameters
    ----------
    loss : Loss
        Pure epsilon, or rho of Gaussian noise.
    unit : PrivacyUnit
        Unit of privacy.
    what : str
        What is drawn, in one or two words.
    region : Region, optional
        Region of its records; without one, the charge is for all points.
    slices : ChargedSlices, optional
        Time slices of its records, those of the request; without them, the charge is for all times.
    chosen : bool
        Whether the bound of the unit is chosen privately later; the stated bound is not final then.
    files : tuple of (int, int)
        Device and inode of each input file.
    readings : tuple of mapping
        How the records are read, see `psd.ingest.columns`; tallies may have several readings.
    inputs : tuple of str
        Names of all inputs, see `psd.ingest.input_paths`.
    terms : mapping
        What a stream fixes beside these, by name: its number of slices, noise and counter.
    """

    loss: Loss
    unit: PrivacyUnit
    what: str
    region: Region | None = None
    slices: ChargedSlices | None = None
    chosen: bool = False
    files: tuple[tuple[int, int], ...] = ()
    readings: tuple[Reading, ...] = ()
    inputs: tuple[str, ...] = ()
    terms: Mapping[str, str] = field(default_factory=dict)

    @property
    def extent(self) -> Extent:
        """Region and slices."""
        return Extent(region=self.region, slices=self.slices)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnSlice:
    """A slice of a stream that was drawn. Public.

    Parameters
    ----------
    draw : str
        Random id of the draw, which does not depend on what was drawn.
    digests : tuple of str
        Digest of the slice in each public series, see `psd.release.file.slice_digest`.
    """

    draw: str
    digests: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset and its budget. Public.

    Parameters
    ----------
    name : str
        Name under which it was registered.
    budget : int
        Nano-epsilon of all releases together; with a delta, see `psd.ledger.balances`.
    unit : str
        Kind of the unit of all releases, since epsilons of different units do not add up.
    reading : mapping
        How all records are read, see `psd.ingest.columns`.
    time_zone : str, optional
        Time zone whose days are the unit.
    bound : int, optional
        Contribution bound of one unit, which all releases must have.
    delta : Fraction, optional
        Delta of all Gaussian charges together; without it, only pure charges are allowed.
    caps : mapping
        Nano-epsilon that each analyst may spend; if there are caps, other analysts cannot spend.
    raised : tuple of str
        Times at which the budget was raised, with the earlier budgets.
    inputs : tuple of str
        Marks of the inputs that may be read, see `LedgerState.mark`; without marks, any input.
    """

    name: str
    budget: int
    unit: str
    reading: Reading
    time_zone: str | None = None
    bound: int | None = None
    delta: Fraction | None = None
    caps: Mapping[str, int] = field(default_factory=dict)
    raised: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A charge for a release or an answer. Public.

    Parameters
    ----------
    id : str
        Random id.
    time : str
        Time by the clock of the machine; the order of charges is that of their entries.
    dataset, analyst, what : str
        Dataset that was charged, analyst who spent, and what was drawn.
    loss : Loss
        Pure epsilon, or rho of Gaussian noise.
    bound : int, optional
        Contributions of one unit; None if the bound was chosen after the charge.
    region : Region, optional
        Region that was charged; without one, all points were.
    slices : ChargedSlices, optional
        Time slices that were charged; without them, all times were.
    done : bool
        Whether the release is known to be saved, or the answer to be given.
    digest : str, optional
        Digest that the release file states of its content.
    files : tuple of str
        Marks of the input files, see `LedgerState.marks`.
    terms : mapping
        As in `ChargeRequest`.
    drawn : mapping
        Slices of a stream that were drawn, by name.
    """

    id: str
    time: str
    dataset: str
    analyst: str | None
    what: str
    loss: Loss
    bound: int | None
    region: Region | None
    slices: ChargedSlices | None = None
    done: bool = False
    digest: str | None = None
    files: tuple[str, ...] = ()
    terms: Mapping[str, str] = field(default_factory=dict)
    drawn: Mapping[str, DrawnSlice] = field(default_factory=dict)

    @property
    def extent(self) -> Extent:
        """Region and slices."""
        return Extent(region=self.region, slices=self.slices)


def is_name(name: str) -> bool:
    """Whether a name is short, printable and without spaces at its ends."""
    return 0 < len(name) <= _LONGEST and name.isprintable() and name == name.strip()


def check_name(kind: str, name: str) -> None:
    """Refuse names that are easily confused in a list.

    Raises
    ------
    ParameterError
        If the name is empty or too long, or has characters that are not printable.
    """
    if not is_name(name):
        raise ParameterError(
            f"{kind} must be a name of 1 to {_LONGEST} printable characters, got "
            f"{name[:_LONGEST]!r}"
        )


def check_drawn(recorded: Mapping[str, DrawnSlice], kept: Mapping[str, str]) -> None:
    """Refuse a state that has not all slices of its stream that a ledger has.

    Parameters
    ----------
    recorded : mapping
        Slices that the ledger has, by name.
    kept : mapping
        Ids of the draws that the state has, by name.

    Raises
    ------
    LedgerError
        If another state of the same stream drew one of them.
    """
    for name, drawn in recorded.items():
        if kept.get(name) != drawn.draw:
            raise LedgerError(
                f"slice {name} was drawn, as the ledger says, and this state of the stream has not "
                "drawn it; restore the newer state, since a slice is never drawn twice"
            )
