"""How a build pays a ledger: checked before the data are read, charged before the first draw."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.errors import InputDataError
from psd.ingest.sources._paths import STDIN, expanded, is_path, kind
from psd.ledger.regions import BY_FIELDS, Region
from psd.ledger.state import Claim
from psd.space.domain import Domain

if TYPE_CHECKING:
    from psd.curator.private_bounds import PrivateBounds
    from psd.ingest.engines import Engine
    from psd.ingest.sources import Columns
    from psd.ledger.account import Account
    from psd.ledger.receipts import Receipt
    from psd.privacy.budget import Statement
    from psd.publish.count_rows import Wanted

__all__ = ["PendingCharge", "claim_of", "region_of"]


class PendingCharge:
    """One claim on an account: checked at once, charged once, before anything is drawn.

    Parameters
    ----------
    account : Account or None
        Who pays; without one all methods do nothing.
    claim : Claim
        What for. Public.

    Raises
    ------
    LedgerError, BudgetError
        As `psd.ledger.ledger.Ledger.check`.
    """

    def __init__(self, account: Account | None, claim: Claim) -> None:
        self._account, self._claim = account, claim
        self._receipt: Receipt | None = None
        if account is not None:
            account.check(claim)

    def charge(self) -> Statement:
        """Pay, unless that was done; what the release states of it. Nothing without an account.

        A `psd.privacy.budget.Budget` calls it before its first spend.
        """
        if self._account is None:
            return {}
        if self._receipt is None:
            self._receipt = self._account.charge(self._claim)
        return self._receipt.parameters()


def claim_of(
    what: str,
    epsilon: int,
    asked: Wanted,
    place: Domain | PrivateBounds,
    data: Any,
    *,
    engine: Engine | None = None,
) -> Claim:
    """Claim of a build of rows, from its public arguments.

    Parameters
    ----------
    what : str
        What is made.
    epsilon : int
        Nano-epsilon.
    asked : Wanted
        Columns and unit.
    place : Domain or PrivateBounds
        Where; bounds that are found are everywhere until they are.
    data : object or list of objects
        What is read. A row of CSV has one place, by its fields. A geometry may lie elsewhere than
        the fields beside it, and a view, a query, a table in memory or a stream may show the same
        row in several places.
    engine : Engine, optional
        Reads elsewhere, by its own rules of what is CSV.
    """
    files = _files(data if isinstance(data, list | tuple) else [data])
    by_fields = engine is None and {kind(path) for path in files} == {"csv"}
    region = None
    if by_fields and isinstance(place, Domain):
        region = region_of(place, asked.columns)
    return Claim(
        epsilon=epsilon,
        unit=asked.unit,
        what=what,
        region=region,
        chosen=asked.choice is not None,
        files=tuple(files.values()),
    )


def _files(items: Iterable[Any]) -> dict[Path, tuple[int, int]]:
    """Input files, and where the file system keeps them; none if an input is something else.

    What cannot be read is refused later.
    """
    if not all(is_path(item) and str(item) != STDIN for item in items):
        return {}
    try:
        states = {path: path.stat() for path in expanded(items)}
    except (InputDataError, OSError):
        return {}
    return {path: (state.st_dev, state.st_ino) for path, state in states.items()}


def region_of(domain: Domain, columns: Columns) -> Region:
    """Region of a domain for rows of CSV, and what places them in it."""
    return Region(
        bounds=domain.bounds,
        crs=domain.crs,
        columns=(BY_FIELDS, f"x={columns.x}", f"y={columns.y}"),
        lattice=domain.lattice,
    )
