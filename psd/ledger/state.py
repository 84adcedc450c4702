"""What a ledger allows: datasets with their budgets, what was charged, and what is left. Private.

Everything here is public in itself: names, epsilons, units and regions, and nothing of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from psd.errors import BudgetError, LedgerError, ParameterError
from psd.ledger.regions import Region, spent_within
from psd.privacy.epsilon import epsilon_text
from psd.privacy.unit import PrivacyUnit

__all__ = ["Book", "Charge", "Claim", "Dataset", "check_name", "is_name"]

_LONGEST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a release or an answer is to cost, before it is made. Public.

    Parameters
    ----------
    epsilon : int
        Nano-epsilon.
    unit : PrivacyUnit
        Of privacy.
    what : str
        What is made, in a word or two.
    region : Region, optional
        Where its rows lie; everywhere where that is not known beforehand.
    chosen : bool
        Whether the bound in the unit is a stand-in for one that is chosen.
    files : tuple of (int, int)
        Device and number under which the file system keeps each input file; none of a row.
    """

    epsilon: int
    unit: PrivacyUnit
    what: str
    region: Region | None = None
    chosen: bool = False
    files: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset and its budget. Public.

    Parameters
    ----------
    name : str
        As it was registered.
    budget : int
        Nano-epsilon of all releases together.
    unit : str
        Kind of the unit, the same for all releases: epsilons of different ones do not add up.
    time_zone : str, optional
        Where the unit has days, of which clock.
    bound : int, optional
        Contributions of one unit, where all releases must have the same.
    caps : mapping
        Nano-epsilon of each analyst; where there are any, nobody else spends.
    raised : tuple of str
        When the budget was raised, and from what.
    """

    name: str
    budget: int
    unit: str
    time_zone: str | None = None
    bound: int | None = None
    caps: Mapping[str, int] = field(default_factory=dict)
    raised: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """A release or an answer that was paid. Public.

    Parameters
    ----------
    id : str
        Random.
    time : str
        By the clock of the machine; order is that of the entries.
    dataset, analyst, what : str
        Whose, by whom, and what.
    epsilon : int
        Nano-epsilon.
    bound : int, optional
        Contributions of one unit; none where it was chosen later.
    region : Region, optional
        Where; everywhere where there is none.
    done : bool
        Whether it was given out, as far as the ledger knows.
    digest : str, optional
        Of the content of the release file, as it states it itself.
    files : tuple of str
        Marks of the input files, see `Book.marks`.
    """

    id: str
    time: str
    dataset: str
    analyst: str | None
    what: str
    epsilon: int
    bound: int | None
    region: Region | None
    done: bool = False
    digest: str | None = None
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """Datasets and charges of a ledger at one moment.

    Parameters
    ----------
    id : str
        Of the ledger, random.
    hashes : tuple of str
        Of all entries.
    datasets : mapping
        By name.
    charges : mapping
        By id, in their order.
    """

    id: str
    hashes: tuple[str, ...]
    datasets: Mapping[str, Dataset]
    charges: Mapping[str, Charge]

    @property
    def head(self) -> str:
        """Hash of the last entry, which stands for all of them."""
        return self.hashes[-1]

    def dataset(self, name: str) -> Dataset:
        """Dataset of a name.

        Raises
        ------
        LedgerError
            If none was registered.
        """
        if name not in self.datasets:
            raise LedgerError(
                f"dataset {name!r} is not registered in the ledger; see `psd ledger status`"
            )
        return self.datasets[name]

    def charges_of(self, name: str, analyst: str | None = None) -> list[Charge]:
        """Charges to a dataset, or those of one analyst, in their order."""
        found = [charge for charge in self.charges.values() if charge.dataset == name]
        return [charge for charge in found if analyst is None or charge.analyst == analyst]

    def marks(self, claim: Claim) -> list[str]:
        """Marks of the input files of a claim, by which this ledger knows them again.

        They stand for places in a file system: a file that is renamed or linked keeps its mark,
        a copy has another one.
        """
        named = (f"{self.id} {device} {number}" for device, number in claim.files)
        return [blake2b(text.encode(), digest_size=8).hexdigest() for text in named]

    def elsewhere(self, name: str, claim: Claim) -> list[str]:
        """Other datasets that were charged for a file of this claim."""
        marks = set(self.marks(claim))
        found = {c.dataset for c in self.charges.values() if marks.intersection(c.files)}
        return sorted(found - {name})

    def spent(self, name: str, region: Region | None = None, analyst: str | None = None) -> int:
        """Nano-epsilon spent on a dataset, at the dearest point of a region."""
        charges = self.charges_of(name, analyst)
        if self.dataset(name).unit != "record":  # a user has rows in many places
            return sum(charge.epsilon for charge in charges)
        return spent_within([(charge.region, charge.epsilon) for charge in charges], region)

    def check(self, name: str, claim: Claim, analyst: str | None) -> None:
        """Refuse what a dataset does not allow, or cannot pay.

        Raises
        ------
        LedgerError
            If the dataset is not registered, or for another unit or other analysts.
        BudgetError
            If the claim is above what is left.
        """
        dataset = self.dataset(name)
        if analyst is not None:
            check_name("analyst", analyst)
        _check_unit(dataset, claim)
        if dataset.caps:
            if analyst is None or analyst not in dataset.caps:
                who = "nobody" if analyst is None else f"{analyst!r}"
                raise LedgerError(
                    f"dataset {name!r} is for the analysts {', '.join(dataset.caps)}, not {who}; "
                    "say who it is (--analyst)"
                )
            own = self.spent(name, claim.region, analyst)
            self._check_left(f"analyst {analyst!r}", dataset.caps[analyst], own, claim)
        spent = self.spent(name, claim.region)
        self._check_left(f"dataset {name!r}", dataset.budget, spent, claim)

    @staticmethod
    def _check_left(whose: str, budget: int, spent: int, claim: Claim) -> None:
        """Refuse a claim above what is left."""
        if spent + claim.epsilon > budget:
            left = epsilon_text(max(budget - spent, 0))
            raise BudgetError(
                f"{whose} has epsilon {left} left, and this costs {epsilon_text(claim.epsilon)}; "
                "nothing was drawn or charged"
            )


def is_name(name: str) -> bool:
    """Whether a name can be told apart in a list."""
    return 0 < len(name) <= _LONGEST and name.isprintable() and name == name.strip()


def check_name(kind: str, name: str) -> None:
    """Refuse names that cannot be told apart in a list.

    Raises
    ------
    ParameterError
        If the name is empty, long, or holds what cannot be seen.
    """
    if not is_name(name):
        raise ParameterError(
            f"{kind} {name[:_LONGEST]!r} is no name of 1 to {_LONGEST} printable characters"
        )


def _check_unit(dataset: Dataset, claim: Claim) -> None:
    """Refuse another unit than that of the dataset."""
    unit = claim.unit
    if (unit.kind, unit.time_zone) != (dataset.unit, dataset.time_zone):
        raise LedgerError(
            f"dataset {dataset.name!r} counts epsilon per {_unit_text(dataset)}, and this is per "
            f"{unit.guarantee_text.removeprefix('per ').split(',')[0]}; the two do not add up"
        )
    bound = None if claim.chosen else unit.contributions
    if dataset.bound is not None and bound != dataset.bound:
        raise LedgerError(
            f"dataset {dataset.name!r} was registered for max_contributions {dataset.bound}, and "
            "this has another bound"
        )


def _unit_text(dataset: Dataset) -> str:
    """Unit of a dataset in words."""
    zone = "" if dataset.time_zone is None else f" and day in {dataset.time_zone}"
    return {"record": "row", "user": "user", "user-day": "user"}[dataset.unit] + zone
