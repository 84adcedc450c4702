"""How a build pays: the balance before the data, the charge before the first draw. Private side.

1. check that the dataset could pay; 2. read and tally; 3. charge, on the disk; 4. draw; 5. write;
6. note that it is done. Ended before 3, a build has cost nothing and drawn nothing; ended after,
it is charged, whether or not there is a release.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd.errors import InputDataError, LedgerError, ParameterError, ReleaseFormatError
from psd.ingest.sources._paths import STDIN, expanded, is_path, kind
from psd.ledger.file import network
from psd.ledger.ledger import Ledger
from psd.ledger.receipts import Receipt, is_sound, receipt_of, receipts
from psd.ledger.regions import BY_FIELDS, Region
from psd.ledger.state import Claim
from psd.release.file import stated_digest
from psd.release.signing import verify

if TYPE_CHECKING:
    from psd.curator.private_bounds import PrivateBounds
    from psd.ingest.engines import Engine
    from psd.ingest.sources import Columns
    from psd.mechanisms import Noise
    from psd.publish.count_rows import Wanted
    from psd.space.domain import Domain

__all__ = ["Account", "Spending", "claim_of", "region_of"]


class Account:
    """A dataset of a ledger, as one analyst spends from it.

    Parameters
    ----------
    ledger : Ledger or path-like
        A ledger that exists.
    dataset : str
        A dataset that is registered in it.
    analyst : str, optional
        Who spends; needed where the dataset has caps.
    warn : callable
        Told, in a sentence, what is allowed and yet not as it should be.

    Raises
    ------
    LedgerError
        If the ledger cannot be used, or has no such dataset.

    Examples
    --------
    >>> import tempfile, pandas as pd, psd
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/city.ledger")
    >>> ledger.register("visits", budget=1)
    >>> account = Account(ledger, "visits", analyst="ann")
    >>> points = pd.DataFrame({"lon": [126.98, 127.03], "lat": [37.57, 37.50]})
    >>> domain = psd.Domain(bounds=(126.40, 37.00, 127.60, 38.00))
    >>> release = psd.build(points, domain=domain, epsilon="0.4", method="grid", account=account)
    >>> release.save(folder.name + "/visits.psd.parquet")
    >>> account.finish(folder.name + "/visits.psd.parquet")
    >>> account.left
    600000000
    >>> folder.cleanup()
    """

    def __init__(
        self,
        ledger: Ledger | str | os.PathLike[str],
        dataset: str,
        *,
        analyst: str | None = None,
        warn: Callable[[str], None] = warnings.warn,
    ) -> None:
        self.ledger = ledger if isinstance(ledger, Ledger) else Ledger(ledger)
        self.dataset = dataset
        self.analyst = analyst
        self.last: str | None = None
        self._paid: set[Receipt] = set()
        book = self.ledger.book()
        book.dataset(dataset)
        self._id, self._warn = book.id, warn
        kind = network(self.ledger.path)
        if kind is not None:
            warn(
                f"ledger {self.ledger.path} lies on a network file system ({kind}), where locks "
                "may fail and a budget be spent twice; keep it on a local disk"
            )

    @property
    def left(self) -> int:
        """Nano-epsilon that a release of the whole dataset may still cost."""
        book = self.ledger.book()
        return book.dataset(self.dataset).budget - book.spent(self.dataset)

    def check(self, claim: Claim) -> None:
        """Refuse what could not be paid now; see `psd.ledger.ledger.Ledger.check`.

        Warns where a file was charged to another dataset: the same people have two budgets then.
        """
        book = self.ledger.check(self.dataset, claim, analyst=self.analyst)
        for other in book.elsewhere(self.dataset, claim):
            self._warn(
                f"a file of this input was charged to dataset {other!r} too; the same rows under "
                "two names have two budgets, and epsilon adds up over both"
            )

    def compare(self, folder: str | os.PathLike[str]) -> None:
        """Hold a ledger against the releases in a folder.

        Every release says, by two random ids, which charge of which ledger paid it. One that is
        sound, and whose build ended before that was noted, is noted as done; nothing is given
        back.

        Raises
        ------
        LedgerError
            If one says a charge of this ledger that is not in it: an older copy was restored.
        """
        book = self.ledger.book()
        for path, receipt in receipts(folder):
            if receipt.ledger != book.id:
                continue
            charge = book.charges.get(receipt.charge)
            if charge is None and is_sound(path):
                raise LedgerError(
                    f"release {path} was paid from ledger {self.ledger.path}, which does not know "
                    "it: an older copy was put in its place, or that file is forged; restore the "
                    "latest copy, or remove the file"
                )
            if charge is not None and not charge.done:
                self._complete(charge.id, path)

    def _complete(self, charge: str, path: Path) -> None:
        """Note a release as done that its build has not noted, or not yet."""
        try:
            digest = verify(path)
        except ReleaseFormatError:  # damaged, or gone meanwhile: it stays as it is
            return
        try:
            self.ledger.finish(charge, digest=digest)
        except LedgerError:
            if not self.ledger.book().charges[charge].done:
                raise

    def charge(self, claim: Claim) -> Receipt:
        """Pay for what is drawn next; see `psd.ledger.ledger.Ledger.charge`."""
        self.last = self.ledger.charge(self.dataset, claim, analyst=self.analyst)
        receipt = Receipt(ledger=self._id, charge=self.last)
        self._paid.add(receipt)
        return receipt

    def finish(self, path: str | os.PathLike[str] | None = None) -> None:
        """Note that a release, or what was paid last, has been given out.

        Parameters
        ----------
        path : path-like, optional
            The release file, which says what paid it; its digest goes into the ledger, and
            `psd info` shows the same. Without one, what was paid last is an answer.

        Raises
        ------
        ParameterError
            If nothing was charged by this account, or not this release.
        LedgerError
            If the ledger cannot be written; what was given out is charged nevertheless.
        """
        if self.last is None:
            raise ParameterError("nothing was charged by this account, so nothing is finished")
        charge = self.last if path is None else self._charge_of(path)
        try:
            self.ledger.finish(charge, digest=None if path is None else stated_digest(path))
        except LedgerError as error:
            what = "the answer" if path is None else path
            raise LedgerError(
                f"{what} was given out and is charged, but is not noted as done: {error}"
            ) from None

    def _charge_of(self, path: str | os.PathLike[str]) -> str:
        """Charge of a release that this account paid."""
        receipt = receipt_of(path)
        if receipt is None or receipt not in self._paid:
            raise ParameterError(
                f"{path} is no release that this account paid, so nothing is noted as done; name "
                "the file that such a release was saved to"
            )
        return receipt.charge


class Spending:
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

    def charge(self) -> None:
        """Pay, unless that was done."""
        if self._account is not None and self._receipt is None:
            self._receipt = self._account.charge(self._claim)

    @property
    def stated(self) -> dict[str, int | str]:
        """What the release says of who paid it; nothing without an account."""
        return {} if self._receipt is None else self._receipt.parameters()

    def before(self, noise: Noise) -> Noise:
        """The same noise, which charges before its first draw."""
        return noise if self._account is None else _Paid(noise, self.charge)


class _Paid:
    """Noise that is paid before it is drawn: no draw can come first, wherever it is made."""

    def __init__(self, noise: Noise, charge: Callable[[], None]) -> None:
        self._noise, self._charge = noise, charge

    def count(self, *args: Any, **named: Any) -> Any:
        """As of the noise."""
        self._charge()
        return self._noise.count(*args, **named)

    def select(self, *args: Any, **named: Any) -> Any:
        """As of the noise."""
        self._charge()
        return self._noise.select(*args, **named)

    def exceeds(self, *args: Any, **named: Any) -> Any:
        """As of the noise."""
        self._charge()
        return self._noise.exceeds(*args, **named)


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
    from psd.space.domain import Domain

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
