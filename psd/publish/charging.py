"""Payment of a build: checked before the data are read, charged before the first draw."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.errors import InputDataError
from psd.ingest.sources._paths import STDIN, expanded, is_path, kind
from psd.ledger.regions import BY_FIELDS, Region
from psd.ledger.state import ChargeRequest
from psd.space.domain import Domain

if TYPE_CHECKING:
    from psd.curator.private_bounds import PrivateBounds
    from psd.ingest.engines import Engine
    from psd.ingest.sources import Columns
    from psd.ledger.account import Account
    from psd.ledger.receipts import ChargeReceipt
    from psd.privacy.budget import Statement
    from psd.publish.count_rows import Wanted

__all__ = ["PendingCharge", "charge_request", "csv_region"]


class PendingCharge:
    """A charge that an account will pay: checked at once, made once, before the first draw.

    Parameters
    ----------
    account : Account or None
        Dataset of a ledger that pays; without one, nothing is charged.
    request : ChargeRequest
        What is charged. Public.

    Raises
    ------
    LedgerError, BudgetError
        As `psd.ledger.ledger.Ledger.check`.
    """

    def __init__(self, account: Account | None, request: ChargeRequest) -> None:
        self._account, self._request = account, request
        self._receipt: ChargeReceipt | None = None
        if account is not None:
            account.check(request)

    def charge(self) -> Statement:
        """Charge once, and return what the release states of it; empty without an account.

        A `psd.privacy.budget.Budget` calls it before its first spend.
        """
        if self._account is None:
            return {}
        if self._receipt is None:
            self._receipt = self._account.charge(self._request)
        return self._receipt.parameters()


def charge_request(
    what: str,
    epsilon: int,
    asked: Wanted,
    place: Domain | PrivateBounds,
    data: Any,
    *,
    engine: Engine | None = None,
) -> ChargeRequest:
    """Charge of a build of rows, from its public arguments.

    Parameters
    ----------
    what : str
        What is built, in a word or two.
    epsilon : int
        Nano-epsilon.
    asked : Wanted
        Columns and unit.
    place : Domain or PrivateBounds
        Area of the release; private bounds are charged everywhere.
    data : object or list of objects
        Input. Only rows of CSV files are charged to a region: the fields of such a row give it one
        position. A geometry may differ from the fields beside it, and a view, a query, a table in
        memory or a stream may show the same row at several positions.
    engine : Engine, optional
        Engine that reads by its own rules of what is CSV; then nothing is charged to a region.
    """
    files = _files(data if isinstance(data, list | tuple) else [data])
    by_fields = engine is None and {kind(path) for path in files} == {"csv"}
    region = None
    if by_fields and isinstance(place, Domain):
        region = csv_region(place, asked.columns)
    return ChargeRequest(
        epsilon=epsilon,
        unit=asked.unit,
        what=what,
        region=region,
        chosen=asked.choice is not None,
        files=tuple(files.values()),
    )


def _files(items: Iterable[Any]) -> dict[Path, tuple[int, int]]:
    """Device and inode of each input file; empty if an input is not a file.

    An input that cannot be read is refused later.
    """
    if not all(is_path(item) and str(item) != STDIN for item in items):
        return {}
    try:
        states = {path: path.stat() for path in expanded(items)}
    except (InputDataError, OSError):
        return {}
    return {path: (state.st_dev, state.st_ino) for path, state in states.items()}


def csv_region(domain: Domain, columns: Columns) -> Region:
    """Region of a domain for rows of CSV, with the columns that give their positions."""
    return Region(
        bounds=domain.bounds,
        crs=domain.crs,
        columns=(BY_FIELDS, f"x={columns.x}", f"y={columns.y}"),
        lattice=domain.lattice,
    )
