"""Datasets, charges to them, and budgets in epsilon, or in rho too with a delta: what is left.

Private side, reads no points. Every field is public and depends on no record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from psd.errors import LedgerError, ParameterError
from psd.ingest.columns import Reading
from psd.ledger.extents import ChargedSlices, Extent, Region
from psd.privacy.loss import Loss, epsilon_text, largest_pure_epsilon, rho_text, rho_within
from psd.privacy.unit import PrivacyUnit

__all__ = ["Charge", "ChargeRequest", "Dataset", "DrawnSlice", "check_drawn"]


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
    budget: int  # nano-epsilon of all releases together; with a delta, see `psd.ledger.charges`
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Budget of a dataset, or cap of an analyst. Public."""

    epsilon: int  # nano-epsilon
    delta: Fraction | None = None  # delta of the dataset; without one, only pure charges fit

    @property
    def rho(self) -> int:
        """Largest rho, in 1e-12, that epsilon and delta allow; 0 without a delta."""
        return 0 if self.delta is None else rho_within(self.epsilon, self.delta)

    @staticmethod
    def of_dataset(dataset: Dataset, analyst: str | None = None) -> Allowance:
        """Budget of a dataset, or the cap of one of its analysts."""
        epsilon = dataset.budget if analyst is None else dataset.caps[analyst]
        return Allowance(epsilon=epsilon, delta=dataset.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Largest sums over the points and times of an extent, each on its own. Public."""

    epsilon: int  # nano-epsilon of the pure charges
    rho: int = 0  # of all charges, in 1e-12; 0 if the dataset has no delta
    gaussian: int = 0  # rho of the Gaussian charges, in 1e-12; 0 if all are pure


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What is left of an allowance.

    P1. Without a delta, all charges that were granted are epsilon-differentially private together
    for one unit of privacy; with a delta, they are (epsilon, delta)-differentially private.

    A charge is granted if one of two sums stays within the allowance (B, delta), where R is the
    largest rho that is (B, delta)-private, `psd.accounting.rho_of`:
    1. all charges are pure, and their epsilons add up to at most B;
    2. the rhos add up to at most R: e tanh(e / 2) of a pure charge of epsilon e, else its own.

    Proof. Let D and D' differ in one unit z. Only charges that hold records of z count, see
    `psd.ledger.extents.largest_sum`; the sums here are at least those of z. Whether a charge is
    granted is a function of the charges before it, so of the transcript t. Let T1 be the
    transcripts at whose end all charges of z are pure and their epsilons are at most B, and T2 all
    others. Every charge of z was granted by a sum over all charges of z up to it. So in a
    transcript of T2 the rhos of z are at most R, at the end and at all times before.

    On T1, P(t | D) <= e^B P(t | D') by basic composition: a filter of pure epsilons [1]_. For T2,
    let A be the same interaction which ends before a charge that would take the rhos of z above R.
    A is R-zCDP, since a fixed sum of rhos is a filter too [2]_, and so (B, delta)-private [3]_. A
    gives the transcripts of T2 with the same probabilities. So for any set E of transcripts,

        P(E | D) = P(E and T1 | D) + P(E and T2 | D)
                <= e^B P(E and T1 | D') + e^B P(E and T2 | D') + delta = e^B P(E | D') + delta.

    The delta is spent once, in T2. A third sum, of some charges in epsilon and the others in rho,
    would need parts of B and delta that are fixed before the first charge, so it is not offered. If
    a budget is raised, the proof holds with the new B and R; it holds for the cap of an analyst,
    over the charges of the analyst.

    .. [1] Rogers, Roth, Ullman, Vadhan. "Privacy Odometers and Filters: Pay-as-you-Go Composition."
       NeurIPS 2016.
    .. [2] Feldman, Zrnic. "Individual Privacy Accounting via a Rényi Filter." NeurIPS 2021.
    .. [3] Canonne, Kamath, Steinke. "The Discrete Gaussian for Differential Privacy." NeurIPS 2020,
       corollary 13.
    """

    allowance: Allowance
    spent: Spent

    def grants(self, loss: Loss) -> bool:
        """Whether a charge fits by one of the two sums."""
        is_all_pure = loss.is_pure and self.spent.gaussian == 0
        if is_all_pure and self.spent.epsilon + loss.epsilon <= self.allowance.epsilon:
            return True
        return self.allowance.delta is not None and loss.rho <= self.rho_left

    @property
    def epsilon_left(self) -> int:
        """Nano-epsilon that is left if only pure charges are made; 0 after a Gaussian charge."""
        if self.spent.gaussian:
            return 0
        return max(self.allowance.epsilon - self.spent.epsilon, 0)

    @property
    def rho_left(self) -> int:
        """Rho in 1e-12 that is left; 0 without a delta."""
        return max(self.allowance.rho - self.spent.rho, 0)

    @property
    def largest_pure(self) -> int:
        """Nano-epsilon of the largest pure charge that fits, by either sum."""
        if self.allowance.delta is None:
            return self.epsilon_left
        return max(self.epsilon_left, largest_pure_epsilon(self.rho_left))

    @property
    def text(self) -> str:
        """What is left, in words."""
        if self.allowance.delta is None:
            return f"epsilon {epsilon_text(self.epsilon_left)} left"
        return (
            f"epsilon {epsilon_text(self.largest_pure)} left for a pure charge, rho "
            f"{rho_text(self.rho_left)} for Gaussian noise"
        )
