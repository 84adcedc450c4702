"""The ledger: budgets of datasets, and every release that was paid from them. Private side.

A release is charged before it is drawn, in one transaction that checks the balance again, and
what was charged stays charged: whoever saw a draw cannot be made to forget it.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Literal, get_args

from psd._util.fields import integer_between
from psd._util.wall_clock import check_zone
from psd.errors import LedgerError, ParameterError, RandomnessError
from psd.ledger.entries import entry, read_book
from psd.ledger.file import (
    appended,
    create_file,
    last_number,
    reading,
    rows,
    trying,
    whole,
    writing,
)
from psd.ledger.state import Book, Claim, check_name
from psd.privacy.epsilon import epsilon_text, parse_epsilon
from psd.privacy.unit import MAX_CONTRIBUTIONS

__all__ = ["Ledger", "UnitKind"]

UnitKind = Literal["record", "user", "user-day"]

# Input files of one charge that are known again; a folder may have many more.
_MOST_FILES = 1000


class Ledger:
    """A file with the budgets of datasets and what was spent of them.

    Guarantees
    ----------
    - The releases of a dataset together never cost more than its budget, however many
      processes charge them, and whenever these end. Epsilons are whole numbers of 1e-9.
    - Nothing in it depends on a row of a dataset.
    - Entries are appended and never changed; one that was is found, and nothing is granted then.

    Parameters
    ----------
    path : path-like
        A ledger that `create` made.

    Notes
    -----
    It is a record for those who are honest. Whoever may write the file may also put an old copy
    in its place, and whoever has the data may draw from them without it.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/city.ledger")
    >>> ledger.register("visits", "1.5", unit="user")
    >>> ledger.book().datasets["visits"].budget
    1500000000
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Ledger:
        """Make a ledger without datasets, readable by its owner alone.

        Raises
        ------
        WriteError
            If the file exists, or cannot be written.
        """
        create_file(path, entry((), "create", {"id": _random_id()}))
        return cls(path)

    def register(
        self,
        name: str,
        budget: str | float | Decimal,
        *,
        unit: UnitKind = "record",
        time_zone: str | None = None,
        max_contributions: int | None = None,
        caps: Mapping[str, str | float | Decimal] | None = None,
    ) -> None:
        """Enter a dataset with its budget, which only `raise_budget` changes.

        Parameters
        ----------
        name : str
            What charges call it. All rows that the same people may be in are one dataset.
        budget : str, int, float or Decimal
            Epsilon of all releases together.
        unit : {"record", "user", "user-day"}
            Unit of privacy of all releases; epsilons of different ones do not add up.
        time_zone : str, optional
            Of the clock whose days are the unit; UTC where not given.
        max_contributions : int, optional
            k of all releases. A user is hidden whole under any k, so that it need not be given.
        caps : mapping, optional
            Epsilon of each analyst; where there are any, nobody else spends.

        Raises
        ------
        ParameterError
            If an argument is wrong.
        LedgerError
            If the dataset is registered already, or the ledger cannot be written.
        """
        bound, nano = _checked_unit(unit, time_zone, max_contributions), _nano("budget", budget)
        for kind, called in (("dataset", name), *(("analyst", who) for who in caps or {})):
            check_name(kind, called)
        body = {
            "name": name,
            "budget": nano,
            "unit": unit,
            "time_zone": (time_zone or "UTC") if unit == "user-day" else None,
            "bound": bound,
            "caps": {who: _cap(who, cap, nano) for who, cap in (caps or {}).items()},
        }
        with writing(self.path) as ledger:
            book = read_book(rows(ledger))
            if _plain(name) in map(_plain, book.datasets):
                raise LedgerError(
                    f"dataset {name!r} is registered in {self.path} already, perhaps in other "
                    "letters; a second budget would double the first"
                )
            appended(ledger, entry(book.hashes, "register", body))

    def raise_budget(self, name: str, budget: str | float | Decimal) -> None:
        """Enter a larger budget of a dataset; the entry stays, as all do.

        Parameters
        ----------
        name : str
            A dataset that is registered.
        budget : str, int, float or Decimal
            Epsilon of all releases together, those that were made too.

        Raises
        ------
        ParameterError
            If it is no budget, or not above the one before.
        LedgerError
            If the dataset is not registered, or the ledger cannot be written.
        """
        nano = _nano("budget", budget)
        with writing(self.path) as ledger:
            book = read_book(rows(ledger))
            before = book.dataset(name).budget
            if nano <= before:
                raise ParameterError(
                    f"budget {epsilon_text(nano)} is not above {epsilon_text(before)}; a budget "
                    "is raised and never lowered"
                )
            appended(ledger, entry(book.hashes, "raise", {"name": name, "budget": nano}))

    def check(self, name: str, claim: Claim, *, analyst: str | None = None) -> Book:
        """Refuse a claim that could not be paid now; costs nothing and keeps nothing.

        Returns
        -------
        Book
            What the ledger says at this moment.

        Raises
        ------
        LedgerError
            If the ledger cannot be written, or the dataset is not for this unit or analyst.
        BudgetError
            If the claim is above what is left.
        """
        with trying(self.path) as ledger:
            book = read_book(rows(ledger))
            book.check(name, claim, analyst)
        return book

    def charge(self, name: str, claim: Claim, *, analyst: str | None = None) -> str:
        """Pay for a release that is drawn next.

        Guarantees
        ----------
        - Balance and entry are one transaction: no other charge comes between the two.
        - The entry is on the disk when this returns; no way leads back.

        Returns
        -------
        str
            Id of the charge, random.

        Raises
        ------
        LedgerError
            As `check`; nothing was charged.
        BudgetError
            As `check`; nothing was charged.
        """
        check_name("what is charged for,", claim.what)
        with writing(self.path) as ledger:
            book = read_book(rows(ledger))
            book.check(name, claim, analyst)
            body = {
                "id": _random_id(),
                "dataset": name,
                "analyst": analyst,
                "files": book.marks(claim)[:_MOST_FILES],
                **_body(claim),
            }
            appended(ledger, entry(book.hashes, "charge", body))
        return str(body["id"])

    def finish(self, charge: str, *, digest: str | None = None) -> None:
        """Note that what was paid has been given out.

        A digest that is noted already is left as it is: whoever finds the release first may
        note it, the build itself or the next one.

        Parameters
        ----------
        charge : str
            Id of the charge.
        digest : str, optional
            Of the release file, which is public.

        Raises
        ------
        LedgerError
            If there is no such charge, or it is finished in another way, or the ledger cannot
            be written.
        """
        with writing(self.path) as ledger:
            book = read_book(rows(ledger))
            known = book.charges.get(charge)
            if known is not None and digest is not None and known.digest == digest:
                return
            if known is None or known.done:
                raise LedgerError(f"charge {charge} is finished, or is not in {self.path}")
            appended(ledger, entry(book.hashes, "done", {"id": charge, "digest": digest}))

    def book(self) -> Book:
        """What the ledger says now.

        Raises
        ------
        LedgerError
            If it cannot be read, or an entry was changed.
        """
        with reading(self.path) as ledger:
            return read_book(rows(ledger))

    def verify(self, *, head: str | None = None) -> Book:
        """Check the file and all entries.

        Parameters
        ----------
        head : str, optional
            A head that was noted elsewhere: it must be in the chain, or else the ledger is an
            older copy, or another one.

        Raises
        ------
        LedgerError
            Naming the first entry that is wrong.
        """
        with reading(self.path) as ledger:
            if not whole(ledger):
                raise LedgerError(f"ledger {self.path} is damaged; restore it from a copy")
            book, last = read_book(rows(ledger)), last_number(ledger)
        if last != len(book.hashes):
            raise LedgerError(
                f"entry {len(book.hashes) + 1} of the ledger was removed, and all after it"
            )
        if head is not None and head not in book.hashes:
            raise LedgerError(
                f"head {head} is not in {self.path}: this is an older copy, or another ledger"
            )
        return book


def _checked_unit(unit: str, time_zone: str | None, bound: int | None) -> int | None:
    """Bound of a unit, if what is said of it goes together."""
    if unit not in get_args(UnitKind):
        raise ParameterError(f"unit {unit!r} is none of {', '.join(get_args(UnitKind))}")
    if unit != "user-day" and time_zone is not None:
        raise ParameterError("a time zone goes with unit user-day alone")
    if unit == "record" and bound is not None:
        raise ParameterError("max_contributions goes with units that have users")
    check_zone(time_zone or "UTC")
    check = integer_between(1, MAX_CONTRIBUTIONS)
    return None if bound is None else int(check("max_contributions", bound))


def _nano(name: str, value: str | float | Decimal) -> int:
    """Nano-epsilon of a budget or a cap."""
    try:
        return parse_epsilon(value)
    except ParameterError as error:
        raise ParameterError(str(error).replace("epsilon", name, 1)) from None


def _cap(who: str, value: str | float | Decimal, budget: int) -> int:
    """Nano-epsilon of an analyst's cap, which the budget has room for."""
    nano = _nano("cap", value)
    if nano > budget:
        raise ParameterError(
            f"the cap of {who} is {epsilon_text(nano)}, above the budget {epsilon_text(budget)}, "
            "so it would never hold anybody back; are the two swapped?"
        )
    return nano


def _body(claim: Claim) -> dict[str, object]:
    """Public fields of a claim, for its entry."""
    place = claim.region and {
        "bounds": claim.region.bounds,
        "crs": claim.region.crs,
        "columns": claim.region.columns,
        "lattice": claim.region.lattice,
    }
    bound = None if claim.chosen else claim.unit.contributions
    return {"what": claim.what, "epsilon": claim.epsilon, "bound": bound, "region": place}


def _random_id() -> str:
    """128 random bits of the operating system."""
    try:
        return os.urandom(16).hex()
    except (OSError, NotImplementedError):
        raise RandomnessError(
            "the operating system gives no random numbers; nothing was charged"
        ) from None


def _plain(name: str) -> str:
    """A name as it is compared."""
    return unicodedata.normalize("NFKC", name).casefold()
