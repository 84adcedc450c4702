"""State of a ledger: datasets with their budgets, charges, and what is left. Private side.

Every field is public and depends on no record. A dataset registers how its records are read: ids
and times decide to which unit of privacy a record belongs, so their columns must be the registered
ones; its position, by columns and a coordinate resolution, decides which releases depend on it, so
a charge with another rule counts everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from hashlib import blake2b

from psd.errors import BudgetError, LedgerError, ParameterError
from psd.ingest.columns import Reading, is_reading, reading_of
from psd.ingest.sources import Columns
from psd.ledger.charges import Allowance, Balance, Charge, ChargeRequest, Dataset, Spent, check_name
from psd.ledger.extents import ALWAYS_AND_EVERYWHERE, Extent, extent_for_unit, largest_sum
from psd.privacy.loss import Loss, delta_text, epsilon_decimal, epsilon_text, largest_pure_epsilon
from psd.space.lattice_axis import parse_resolution

__all__ = ["MAX_FAULTS"]


_WHOSE = ("user", "ids")
_WHEN = ("time", "time_zone")

# Options that decide what a record of a text file is, and which text its id has.
_WHAT = ("delimiter", "encoding", "skip_rows")
_DEFAULTS = {"delimiter": "auto", "encoding": "auto", "skip_rows": "0"}


def registered_reading(
    columns: Columns | None,
    unit: str,
    time_zone: str | None,
    coordinate_resolution: str | float | Decimal | None = None,
) -> dict[str, str]:
    """Describe the columns of a dataset that is registered, lon and lat by default."""
    columns = Columns() if columns is None else columns
    if (columns.user is None) != (unit == "record"):
        raise ParameterError(
            f"columns must name the column of user ids if and only if the unit has users, got "
            f"column {columns.user!r} with unit {unit!r}; write psd.Columns(user=...), or "
            "--user ..."
        )
    if unit == "user-day" and columns.time is None:
        raise ParameterError("columns must name the column of times with unit user-day, got none")
    zone = time_zone or "UTC"
    if unit == "user-day" and columns.time_zone not in ("UTC", zone):
        raise ParameterError(
            f"time_zone must be that of the days, {zone}, got {columns.time_zone} for the times"
        )
    if unit == "user-day":
        columns = replace(columns, time_zone=zone)
    step = coordinate_resolution
    reading = reading_of(columns, None if step is None else parse_resolution(step))
    if not is_reading(reading):
        raise ParameterError("columns must have names of 1 to 1,000 characters")
    return reading


def fits_unit(reading: Reading, unit: str) -> bool:
    """Whether a reading has ids exactly if the unit has users, and times if it has days."""
    has_ids = "user" in reading and "ids" in reading
    return has_ids == (unit != "record") and ("time" in reading or unit != "user-day")


def check_readings(name: str, registered: Reading, readings: Sequence[Reading]) -> None:
    """Refuse readings whose records, ids or times are not those that a dataset registers."""
    if not readings:
        raise LedgerError(
            f"a charge to dataset {name!r} must state how its records were read, got nothing"
        )
    for reading in readings:
        # With another delimiter, encoding or number of lines above the header, one file has other
        # records, and two ids may become one.
        for key in _WHAT:
            if registered.get(key) != reading.get(key):
                values = [repr(each.get(key, _DEFAULTS[key])) for each in (registered, reading)]
                raise LedgerError(
                    f"dataset {name!r} is registered with {key} {values[0]}, got {values[1]}; the "
                    "two read different records from one file, so their epsilons do not add up"
                )
        # Epsilons add up over the charges of one unit of privacy. If two builds take ids from two
        # columns, the records of one user of the first build are records of many users of the
        # second build, which protects each of these users separately. So all ids come from one
        # column and are normalised by one set of rules. The same holds for times if days are the
        # unit.
        for key, what in (("user", "column of user ids"), ("ids", "rules of user ids")):
            _check_same(name, what, registered.get(key), reading.get(key))
        if "time" in registered and "time" in reading:
            _check_same(name, "column of times", registered["time"], reading["time"])


def _check_same(name: str, what: str, registered: str | None, read: str | None) -> None:
    """Refuse another value than the registered one."""
    if registered != read:
        values = ["none" if value is None else repr(value) for value in (registered, read)]
        raise LedgerError(
            f"dataset {name!r} has the registered {what} {values[0]}, got {values[1]}; the two "
            "define different users or days, whose epsilons do not add up"
        )


def placing_options(reading: Reading) -> dict[str, str]:
    """Return the part of a reading that decides the position of a record."""
    return {key: value for key, value in reading.items() if key not in (*_WHOSE, *_WHEN)}


def is_placed_alike(registered: Reading, readings: Sequence[Reading]) -> bool:
    """Whether records get their positions and times as a dataset registers."""
    return all(
        placing_options(reading) == placing_options(registered)
        and ("time" not in reading or all(reading.get(k) == registered.get(k) for k in _WHEN))
        for reading in readings
    )


MAX_FAULTS = 20
"""Faults of builds, such as a lack of memory, that use up a whole budget. A convention: each fault
may show one bit that epsilon does not cover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerState:
    """Datasets and charges of a ledger at one moment."""

    id: str  # random id
    hashes: tuple[str, ...]  # of all entries
    datasets: Mapping[str, Dataset]  # by name
    charges: Mapping[str, Charge]  # by id, in their order
    # By dataset: additions to streams that ended by a fault with nothing left to charge.
    faults: Mapping[str, int] = field(default_factory=dict)

    @property
    def head(self) -> str:
        """Hash of the last entry, which depends on all entries."""
        return self.hashes[-1]

    @property
    def head_text(self) -> str:
        """Number and hash of the last entry, to be stored elsewhere."""
        return f"{len(self.hashes)} {self.head}"

    def has_head(self, text: str) -> bool:
        """Whether a head is in the chain, at its number if it has one."""
        number, _, head = text.rpartition(" ")
        if not number:
            return head in self.hashes
        at = int(number) if number.isascii() and number.isdigit() else 0
        return 0 < at <= len(self.hashes) and self.hashes[at - 1] == head

    def dataset(self, name: str) -> Dataset:
        """Return a registered dataset."""
        if name not in self.datasets:
            raise LedgerError(
                f"dataset {name!r} is not registered in the ledger; see `psd ledger status`, "
                "in Python ledger.state().datasets"
            )
        return self.datasets[name]

    def charges_of(self, name: str, analyst: str | None = None) -> list[Charge]:
        """List the charges to a dataset, or those of one analyst, in their order."""
        charges = [charge for charge in self.charges.values() if charge.dataset == name]
        return [charge for charge in charges if analyst is None or charge.analyst == analyst]

    def marks(self, request: ChargeRequest) -> list[str]:
        """Marks of the input files of a charge; a renamed or linked file keeps its mark."""
        return [self.mark(f"{device} {number}") for device, number in request.files]

    def mark(self, name: str) -> str:
        """Compute the mark of an input: a hash of its name, see `psd.ingest.input_paths`."""
        return blake2b(f"{self.id} {name}".encode(), digest_size=8).hexdigest()

    def refuse_records(self, names: Iterable[str]) -> None:
        """Refuse public files that hold records: inputs of a dataset, or of a charge."""
        records = {mark for dataset in self.datasets.values() for mark in dataset.inputs or ()}
        records |= {mark for charge in self.charges.values() for mark in charge.files}
        if any(name and self.mark(name) in records for name in names):
            raise LedgerError(
                "public files must not be inputs of a dataset of this ledger, since bounds, "
                "boundaries and regions are published; take a file that holds no records"
            )

    def elsewhere(self, name: str, request: ChargeRequest) -> list[str]:
        """List other datasets that were charged for one of the same files."""
        marks = set(self.marks(request))
        datasets = {c.dataset for c in self.charges.values() if marks.intersection(c.files)}
        return sorted(datasets - {name})

    def spent(
        self,
        name: str,
        within: Extent = ALWAYS_AND_EVERYWHERE,
        analyst: str | None = None,
    ) -> int:
        """Sum nano-epsilon of pure charges, at the point and time with the largest sum."""
        charges = [charge for charge in self.charges_of(name, analyst) if charge.loss.is_pure]
        return self._sum(name, within, [(each, each.loss.epsilon) for each in charges])

    def balance(
        self,
        name: str,
        within: Extent = ALWAYS_AND_EVERYWHERE,
        analyst: str | None = None,
    ) -> Balance:
        """What is left of the budget of a dataset, or of the cap of an analyst."""
        dataset = self.dataset(name)
        spent = Spent(epsilon=self.spent(name, within, analyst))
        if dataset.delta is not None:
            losses = [(each, each.loss.rho) for each in self.charges_of(name, analyst)]
            gaussian = [(each, rho) for each, rho in losses if not each.loss.is_pure]
            spent = replace(
                spent,
                rho=self._sum(name, within, losses),
                gaussian=self._sum(name, within, gaussian),
            )
        return Balance(allowance=Allowance.of_dataset(dataset, analyst), spent=spent)

    def _sum(self, name: str, within: Extent, charges: list[tuple[Charge, int]]) -> int:
        """Largest sum of amounts of charges over the points and times of an extent."""
        dataset = self.dataset(name)
        unit = dataset.unit, dataset.time_zone
        amounts = [(extent_for_unit(each.extent, *unit), amount) for each, amount in charges]
        return largest_sum(amounts, extent_for_unit(within, *unit))

    def check(self, name: str, request: ChargeRequest, analyst: str | None) -> ChargeRequest:
        """Refuse a charge that a dataset does not allow or cannot pay; return it as charged."""
        dataset = self.dataset(name)
        if analyst is not None:
            check_name("analyst", analyst)
        _check_unit(dataset, request)
        _check_delta(dataset, request.loss)
        check_readings(name, dataset.reading, request.readings)
        self._check_inputs(dataset, request)
        if not is_placed_alike(dataset.reading, request.readings):
            # Without region and slices it counts everywhere and always.
            request = replace(request, region=None, slices=None)
        if dataset.caps:
            if analyst is None or analyst not in dataset.caps:
                refused = "none was given" if analyst is None else f"not {analyst!r}"
                raise LedgerError(
                    f"dataset {name!r} is for the analysts {', '.join(dataset.caps)}; {refused}"
                )
            of_analyst = self.balance(name, request.extent, analyst)
            _check_left(f"analyst {analyst!r}", of_analyst, request.loss)
        _check_left(f"dataset {name!r}", self.balance(name, request.extent), request.loss)
        return request

    def fault_charge(self, name: str, request: ChargeRequest, analyst: str | None) -> ChargeRequest:
        """Pure charge of what a fault of a build costs beyond it; of 0 if nothing is left."""
        # Both together are 1 / `MAX_FAULTS` of the budget, or of the cap of the analyst, in epsilon
        # and in rho, unless the build costs more or less is left.
        dataset = self.dataset(name)
        payers = [None, analyst] if analyst in dataset.caps else [None]
        allowances = [Allowance.of_dataset(dataset, payer) for payer in payers]
        budget = min(allowances, key=lambda each: each.epsilon)
        price = -(-budget.epsilon // MAX_FAULTS) - request.loss.epsilon
        if budget.delta is not None:
            # One more than what costs too little; the rho of a Gaussian build counts in full.
            rho = -(-budget.rho // MAX_FAULTS) - request.loss.rho - 1
            price = max(price, largest_pure_epsilon(rho) + 1 if rho >= 0 else 0)

        def within(extent: Extent) -> ChargeRequest:
            left = min(self.balance(name, extent, payer).largest_pure for payer in payers)
            loss = Loss.pure(max(min(price, left), 0))
            region, slices = extent.region, extent.slices
            return replace(request, loss=loss, what="fault", region=region, slices=slices)

        # Everywhere, or where the build counts if more of the price is left there: else faults
        # would be free once the budget is used up anywhere.
        charge = within(ALWAYS_AND_EVERYWHERE)
        if is_placed_alike(dataset.reading, request.readings):
            here = within(request.extent)
            charge = max(charge, here, key=lambda each: each.loss.epsilon)
        return charge

    def _check_inputs(self, dataset: Dataset, request: ChargeRequest) -> None:
        """Refuse inputs that are not registered, if any are."""
        if not dataset.inputs:
            return
        registered = set(dataset.inputs)
        for number, name in enumerate(request.inputs or ("",), 1):
            if name == "" or self.mark(name) not in registered:
                raise LedgerError(
                    f"dataset {dataset.name!r} has registered inputs, and input {number} of "
                    f"{max(len(request.inputs), 1)} is not one of them, so nothing was read; "
                    f"add a file with `psd ledger inputs LEDGER {dataset.name} FILE`"
                )


def _check_left(whose: str, balance: Balance, loss: Loss) -> None:
    """Refuse a charge above what is left."""
    if not balance.grants(loss):
        price = epsilon_text(loss.epsilon) if balance.allowance.delta is None else loss.text
        raise BudgetError(
            f"{whose} has {balance.text}, and this costs {price}; nothing was drawn or charged",
            requested=epsilon_decimal(loss.epsilon),
            left=epsilon_decimal(balance.largest_pure),
        )


def _check_delta(dataset: Dataset, loss: Loss) -> None:
    """Refuse Gaussian noise of another delta than that of the dataset."""
    if loss.delta is None or loss.delta == dataset.delta:
        return
    spent = delta_text(loss.delta)
    if dataset.delta is None:
        raise LedgerError(
            f"dataset {dataset.name!r} has no delta, so it takes no Gaussian noise, which spends "
            f"delta {spent}; use a dataset that is registered with a delta, or noise without one"
        )
    raise LedgerError(
        f"dataset {dataset.name!r} is registered with delta {delta_text(dataset.delta)}, got "
        f"{spent}; a dataset has one delta for all its releases"
    )


def _check_unit(dataset: Dataset, request: ChargeRequest) -> None:
    """Refuse a unit that is not that of the dataset."""
    unit = request.unit
    if (unit.kind, unit.time_zone) != (dataset.unit, dataset.time_zone):
        zone = "" if dataset.time_zone is None else f" and day in {dataset.time_zone}"
        raise LedgerError(
            f"dataset {dataset.name!r} counts epsilon per {dataset.unit.removesuffix('-day')}"
            f"{zone}, and this is per "
            f"{unit.guarantee_text.removeprefix('per ').split(',')[0]}; the two do not add up"
        )
    bound = None if request.chosen else unit.contributions
    if dataset.bound is not None and bound != dataset.bound:
        raise LedgerError(
            f"dataset {dataset.name!r} was registered for max_contributions {dataset.bound}; this "
            "release has another bound"
        )
