"""A dataset of a ledger, as one analyst spends from it. Private side.

1. check that the dataset could pay; 2. read and tally; 3. charge, on the disk; 4. draw; 5. write;
6. note that it is done. A build that ends before 3 has cost nothing and drawn nothing. One that
ends after 3 is charged, whether or not there is a release.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path

from psd.errors import LedgerError, ParameterError, ReleaseFormatError
from psd.ledger.file import network
from psd.ledger.ledger import Ledger
from psd.ledger.receipts import Receipt, is_sound, receipt_of, receipts
from psd.ledger.state import Claim
from psd.release.file import stated_digest
from psd.release.signing import verify

__all__ = ["Account"]


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
