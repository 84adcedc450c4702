"""Account of an analyst with a dataset of a ledger. Private side.

A build checks the budget, reads and tallies, writes the charge to the disk, draws, writes the
release, and records the charge as done. One that ends before the charge is free, later ones pay.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence

from psd._util.file_endings import file_of
from psd.errors import LedgerError, ParameterError, ReleaseFormatError
from psd.ingest.columns import Reading
from psd.ingest.input_names import input_names
from psd.ledger.charges import ChargeRequest
from psd.ledger.file import network_file_system
from psd.ledger.ledger import Ledger
from psd.ledger.receipts import ChargeReceipt, check_releases, read_receipt
from psd.ledger.state import LedgerState
from psd.release.file import stated_digest
from psd.signing import verify

__all__ = ["Account"]


class Account:
    """Account of an analyst with a dataset of a ledger.

    Parameters
    ----------
    ledger : Ledger or path-like
        An existing ledger.
    dataset : str
        A dataset that is registered in it.
    analyst : str, optional
        Name of the analyst who spends; required if the dataset has caps.
    warn : callable
        Called with a warning about use that is allowed but risky.

    Attributes
    ----------
    opened : LedgerState
        The ledger when the account was opened.

    Raises
    ------
    LedgerError
        If the ledger cannot be used, or the dataset is not registered in it.

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
        self._paid: set[ChargeReceipt] = set()
        self.opened = self.ledger.state()
        self.opened.dataset(dataset)
        self._id, self.warn = self.opened.id, warn
        kind = network_file_system(self.ledger.path)
        if kind is not None:
            warn(
                f"ledger {self.ledger.path} is on a network file system ({kind}), where locks may "
                "fail and a budget may be spent twice; move it to a local disk"
            )

    @property
    def left(self) -> int:
        """Nano-epsilon that a pure release of the whole dataset may still cost."""
        return self.ledger.state().balance(self.dataset).largest_pure

    @property
    def rho_left(self) -> int:
        """Rho in 1e-12 that Gaussian noise on the whole dataset may still cost.

        It is 0 if the dataset has no delta.
        """
        return self.ledger.state().balance(self.dataset).rho_left

    @property
    def head(self) -> str:
        """Number and hash of the last entry of the ledger, which cover all charges so far.

        Keep a copy outside the machine. With it, `psd.ledger.ledger.Ledger.verify` detects that an
        entry up to this one was changed or removed.
        """
        return self.ledger.state().head_text

    def check(self, request: ChargeRequest) -> Reading:
        """Refuse a charge that the dataset cannot pay now; see `psd.ledger.ledger.Ledger.check`.

        Warns if a file was charged to another dataset, since the same people then have two budgets.

        Returns
        -------
        mapping
            How the records of the dataset are read, as it registers.
        """
        state = self.ledger.check(self.dataset, request, analyst=self.analyst)
        self._warn_elsewhere(state, request)
        return state.dataset(self.dataset).reading

    def check_all(self, requests: Sequence[ChargeRequest]) -> None:
        """Refuse several charges that cannot be paid together; see `Ledger.check_all`."""
        self.ledger.check_all(self.dataset, requests, analyst=self.analyst)

    def warn_elsewhere(self, request: ChargeRequest) -> None:
        """Warn if a file was charged to another dataset; nothing is charged or refused."""
        self._warn_elsewhere(self.opened, request)

    def _warn_elsewhere(self, state: LedgerState, request: ChargeRequest) -> None:
        """Warn of files that another dataset was charged for, as a state of the ledger has it."""
        for other in state.elsewhere(self.dataset, request):
            self.warn(
                f"a file of this input was also charged to dataset {other!r}; the same records in "
                "two datasets have two budgets, whose epsilons add up"
            )

    def refuse_records(self, paths: Iterable[str]) -> None:
        """Refuse public files that are inputs of records, of any dataset of the ledger.

        Parameters
        ----------
        paths : iterable of str
            Files of regions, boundaries, bounds, covariates and workloads. Public. Those that do
            not exist are passed over.

        Raises
        ------
        LedgerError
            If one of them is registered, or was charged for. A copy of such a file is not found.
        """
        files = map(file_of, paths)
        names = input_names([path for path in files if os.path.exists(path)])
        self.ledger.state().refuse_records(names)

    def compare(self, folder: str | os.PathLike[str]) -> None:
        """Compare the ledger with the releases in a folder.

        Every release states two random ids: that of the ledger and that of the charge that paid for
        it. If the build of a valid release ended before it recorded the charge as done, this method
        records it. Nothing is refunded.

        Raises
        ------
        LedgerError
            If a release states a charge that this ledger does not have, because an older copy of
            the ledger was restored; or if a release and its charge differ in epsilon, unit, bound
            or area, because the ledger was edited.
        """
        for path, charge in check_releases(self.ledger.state(), folder, self.ledger.path):
            if charge.done:
                continue
            try:
                digest = verify(path)
            except ReleaseFormatError:  # damaged, or removed meanwhile: the charge stays open
                continue
            try:
                self.ledger.finish(charge.id, digest=digest)
            except LedgerError:  # of another process, which recorded it meanwhile
                if not self.ledger.state().charges[charge.id].done:
                    raise

    def charge(self, request: ChargeRequest) -> ChargeReceipt:
        """Charge the next draw; see `psd.ledger.ledger.Ledger.charge`."""
        self.last = self.ledger.charge(self.dataset, request, analyst=self.analyst)
        receipt = ChargeReceipt(ledger=self._id, charge=self.last)
        self._paid.add(receipt)
        return receipt

    def fault_price(self, request: ChargeRequest) -> int:
        """Nano-epsilon that a fault would cost now; 0 if nothing is left."""
        state = self.ledger.state()
        return state.fault_charge(self.dataset, request, self.analyst).loss.epsilon

    def charge_fault(self, request: ChargeRequest) -> None:
        """Charge a fault of a build; see `psd.ledger.ledger.Ledger.charge_fault`."""
        self.ledger.charge_fault(self.dataset, request, analyst=self.analyst)

    def finish(self, path: str | os.PathLike[str] | None = None) -> None:
        """Record that a release was saved, or that the last charged answer was given.

        Parameters
        ----------
        path : path-like, optional
            The release file, which states its charge. Its digest is recorded in the ledger; `psd
            info` shows the same digest. Without a path, the last charge was for an answer.

        Raises
        ------
        ParameterError
            If this account has charged nothing, or did not pay for this release.
        LedgerError
            If the ledger cannot be written; the charge stays.
        """
        if self.last is None:
            raise ParameterError("finish needs a charge; this account has charged nothing yet")
        charge = self.last
        if path is not None:
            receipt = read_receipt(path)
            if receipt is None or receipt not in self._paid:
                raise ParameterError(
                    f"{path} is not a release that this account paid for, so nothing was recorded; "
                    "pass the path that the release was saved to"
                )
            charge = receipt.charge
        try:
            self.ledger.finish(charge, digest=None if path is None else stated_digest(path))
        except LedgerError as error:
            what = "the answer" if path is None else path
            raise LedgerError(
                f"{what} was released and charged, but could not be recorded as done: {error}"
            ) from None
