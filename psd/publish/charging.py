"""Charge a build to a ledger: checked before the data are read, made before the first draw."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.errors import InputDataError, ParameterError
from psd.ingest.columns import Reading, reading_of
from psd.ingest.input_names import input_names, tally_names
from psd.ingest.input_paths import STDIN, expand_paths, is_csv, is_path
from psd.ledger.account import Account
from psd.ledger.charges import ChargeRequest
from psd.ledger.extents import BY_FIELDS, ChargedSlices, Region, slices_of
from psd.ledger.state import placing_options
from psd.privacy.loss import Loss, epsilon_text
from psd.publish.fields import public_files
from psd.space.domain import Domain

if TYPE_CHECKING:
    from psd.ingest.partial_tally import PartOrigin
    from psd.ingest.sources import Columns
    from psd.ledger.ledger import Ledger
    from psd.ledger.receipts import ChargeReceipt
    from psd.privacy.budget import Statement
    from psd.publish.request import BuildRequest
    from psd.publish.tally_parts import TallyRequest
    from psd.space.time_slices import TimeSlices

__all__ = ["PendingCharge", "charge_request"]


def own_account(
    ledger: Ledger | str | os.PathLike[str] | None,
    dataset: str | None,
    analyst: str | None,
    account: Account | None,
    values: Mapping[str, Any],
) -> Account | None:
    """Account of the ledger of a call, compared with the releases beside it; None without one."""
    if ledger is None and dataset is None and analyst is None:
        return None
    if account is not None:
        raise ParameterError("ledger and dataset must be left out with account, which has them")
    if ledger is None or dataset is None:
        raise ParameterError("ledger and dataset must be given together")
    own = Account(ledger, dataset, analyst=analyst)
    own.compare(Path(own.ledger.path).parent)
    # A public file, of regions or a boundary, must not be an input of a dataset.
    own.refuse_records(public_files(values))
    return own


class PendingCharge:
    """A charge of an account that is checked at once, and made once, before the first draw."""

    def __init__(self, account: Account, request: ChargeRequest) -> None:
        self._account, self._request = account, request
        self._receipt: ChargeReceipt | None = None
        registered = account.check(request)
        self.reads_as_registered = all(reading == registered for reading in request.readings)
        self._otherwise = sorted(
            {
                key
                for reading in request.readings
                for key in {**reading, **registered}
                if reading.get(key) != registered.get(key)
            }
        )

    def charge(self) -> Statement:
        """Charge once, before the first spend of a `Budget`, and return what the release states."""
        if self._receipt is None:
            self._receipt = self._account.charge(self._request)
        return self._receipt.parameters()

    def charge_reading(self) -> None:
        """Charge a build that reads otherwise than registered, and warn of what that costs."""
        self.charge()
        if price := self._account.fault_price(self._request):
            self._account.warn(
                f"the build reads {', '.join(self._otherwise)} otherwise than dataset "
                f"{self._account.dataset!r} registers, so a charge named fault takes epsilon "
                f"{epsilon_text(price)} more: such a build costs a twentieth of the budget or more"
            )
        self.charge_fault()

    def charge_fault(self) -> None:
        """Charge a build that a fault ended, at a price that its request cannot lower."""
        self.charge()
        self._account.charge_fault(self._request)


def charge_request(
    request: BuildRequest,
    data: Any = (),
    *,
    by_fields: bool = True,
    origins: Sequence[PartOrigin] = (),
) -> ChargeRequest:
    """Return the charge of a build.

    A record of a CSV file has one position, given by its fields. A geometry may have another
    position than the fields beside it, and a view, a query, a table in memory or a stream may have
    the same record at several positions, or at several times. So only CSV files are charged for a
    region, and for slices of the request, whatever times the records have. With a filter, or if
    records of other labels are dropped, the charge counts everywhere and always, whether the
    dataset registers this filter or not. Categories are never charged apart.
    `data` is empty for tallies, whose parts, `origins`, state how their records were read;
    `by_fields`: this process reads the data, not an engine with its own rules of what is CSV.
    """
    items = data if isinstance(data, list | tuple) else [data]
    files, in_csv = _file_states(items), by_fields and is_csv(items)
    region = slices = None
    columns = request.columns
    drops_labels = request.category is not None and not request.category.has_other
    if not request.is_tallied and (columns.where is not None or drops_labels):
        in_csv = False  # losses of builds with a filter add up, see `psd.ingest.selection`
    if request.is_tallied:
        slices = slices_of_tallies(request.slices, origins)
    elif in_csv and request.slices is not None and columns.time is not None:
        slices = slices_of(request.slices, columns.time)
    if in_csv and isinstance(request.domain, Domain) and not request.is_tallied:
        # Another PROJ, or other grids of it, may move a record from one box to the next.
        region = csv_region(request.domain, columns) if columns.input_crs is None else None
    return ChargeRequest(
        loss=request.loss,
        unit=request.unit,
        what=request.charge_text,
        region=region,
        slices=slices,
        chosen=request.contribution_choice is not None,
        files=tuple(files.values()),
        readings=tally_readings(origins)
        if request.is_tallied
        else (reading_of(columns, request.domain.coordinate_resolution),),
        inputs=tally_names(origins) if request.is_tallied else input_names(data),
    )


def tally_charge(request: TallyRequest, data: Sequence[Any]) -> ChargeRequest:
    """Least charge of a build of the tally of these inputs, which a dataset has to allow."""
    return ChargeRequest(
        loss=Loss.pure(1),
        unit=request.unit,
        what="build",
        readings=(reading_of(request.columns, request.domain.coordinate_resolution),),
        inputs=input_names(data),
    )


def slices_of_tallies(
    slices: TimeSlices | None, origins: Sequence[PartOrigin]
) -> ChargedSlices | None:
    """Slices to charge for tallies: None, all times, unless CSV rows had one column and clock."""
    clocks = {(origin.clock, origin.reading.get("time")) for origin in origins}
    if slices is None or len(clocks) != 1:
        return None
    ((clock, column),) = clocks
    if clock is None or column is None:
        return None
    return replace(slices_of(slices, column), rules=clock)


def tally_readings(origins: Iterable[PartOrigin]) -> tuple[Reading, ...]:
    """How the records of tallies were read, each way once."""
    readings: list[Reading] = []
    for origin in origins:
        if origin.reading not in readings:
            readings.append(origin.reading)
    return tuple(readings)


def _file_states(items: Iterable[Any]) -> dict[Path, tuple[int, int]]:
    """Device and inode of each file; empty if one is none. What cannot be read is refused later."""
    if not all(is_path(item) and str(item) != STDIN for item in items):
        return {}
    try:
        states = {path: path.stat() for path in expand_paths(items)}
    except (InputDataError, OSError):
        return {}
    return {path: (state.st_dev, state.st_ino) for path, state in states.items()}


def csv_region(domain: Domain, columns: Columns) -> Region:
    """Region of a domain for rows of CSV, with everything that gives their positions."""
    reading = reading_of(columns, domain.coordinate_resolution)
    placing = (f"{key}={value}" for key, value in placing_options(reading).items())
    return Region(
        bounds=domain.bounds,
        crs=domain.crs,
        columns=(BY_FIELDS, *placing),
        lattice=domain.lattice,
    )
