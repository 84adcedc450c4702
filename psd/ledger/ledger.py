"""The ledger: budgets of datasets, and all charges to them. Private side.

A release is charged before it is drawn, in one transaction that checks the balance again. Charges
are never refunded, because an answer that was seen cannot be withdrawn.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from psd.errors import BudgetError, LedgerError, ParameterError, RandomnessError
from psd.ingest.sources import Columns
from psd.ledger.charges import ChargeRequest, DrawnSlice, check_drawn, check_name
from psd.ledger.entries import entry, replay_entries
from psd.ledger.extents import region_fields, slices_fields
from psd.ledger.file import (
    append,
    create_file,
    dry_run,
    exclusive,
    is_intact,
    last_hash,
    last_number,
    rows,
    snapshot,
    validate_entry,
)
from psd.ledger.receipts import check_releases, check_seal, write_seal
from psd.ledger.registration import (
    UnitKind,
    budget_nano,
    comparable_name,
    dataset_body,
    input_marks,
)
from psd.ledger.state import LedgerState
from psd.privacy.loss import delta_text, epsilon_text

__all__ = ["UnitKind"]

# Largest number of input files that a charge records; a folder may have more.
_MOST_FILES = 1000


# What is guessed as a member of a ledger, and what has it.
_GUESSED: Final = {
    **dict.fromkeys(
        ("left", "balance", "budget", "budget_left"), "remaining(dataset) is what is left"
    ),
    **dict.fromkeys(
        ("status", "datasets", "charges", "spent", "history", "entries"),
        "state() has datasets, charges and balance(dataset)",
    ),
    "charge": "psd.build(..., ledger=, dataset=) charges, and so does psd.ask",
    "add": "register(dataset, budget=) adds a dataset",
}


class Ledger:
    """A file with the budgets of datasets and what was spent from them.

    Guarantees
    ----------
    - The releases of a dataset together never cost more than its budget, for any number of
      processes that charge it, and at whatever step these end. Epsilons are integer multiples of
      1e-9, and rhos of 1e-12.
    - No entry depends on a record of a dataset.
    - All charges of a dataset with users have one column of ids and one set of rules for ids.
      Charges count in parallel only if their records get their positions as the dataset registers.
    - Entries are appended and never changed. If an entry is changed or removed and the later
      hashes or the counter of entries stay, this is detected, and the ledger allows no charges.

    Parameters
    ----------
    path : path-like
        File that `create` wrote.

    Notes
    -----
    The ledger protects against mistakes, not against its users. A person who may write the file can
    restore an old copy, or change an entry and recompute the chain. A person who has the data can
    build releases without a ledger. `verify` detects the first two by a head that was stored
    elsewhere, by a seal, and by releases. Only releases cover entries after the last head and seal.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger.create(folder.name + "/city.ledger")
    >>> ledger.register("visits", "1.5", unit="user", columns=Columns(user="user_id"))
    >>> ledger.state().datasets["visits"].budget
    1500000000
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        """The path alone; nothing is read."""
        return f"<Ledger: {self.path}>"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Refuse a name as Python does, with what is meant where that is known."""
            hint = f"; {_GUESSED[name]}" if name in _GUESSED else ""
            text = f"{type(self).__name__!r} object has no attribute {name!r}{hint}"
            raise AttributeError(text, name=name)

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Ledger:
        """Create a ledger without datasets, readable only by its owner.

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
        delta: str | float | Decimal | None = None,
        caps: Mapping[str, str | float | Decimal] | None = None,
        columns: Columns | None = None,
        coordinate_resolution: str | float | Decimal | None = None,
        inputs: Sequence[Any] = (),
    ) -> None:
        """Register a dataset with its budget and with how its records are read.

        Only `raise_budget` changes the budget; the columns never change.

        Parameters
        ----------
        name : str
            Name that charges refer to. Register all records about the same people as one dataset.
        budget : str, int, float or Decimal
            Epsilon of all releases together.
        unit : {"record", "user", "user-day"}
            Unit of privacy of all releases; epsilons of different ones do not add up.
        time_zone : str, optional
            Time zone whose days are the unit; UTC by default.
        max_contributions : int, optional
            Contribution bound k, which all releases must have. Optional, since any k protects all
            records of a user.
        delta : str, float or Decimal, optional
            Probability with which the bound of the budget may fail, in all releases together; it
            allows charges of Gaussian noise with this delta, see `psd.ledger.charges`. Far below
            one over the number of users. It never changes.
        caps : mapping, optional
            Epsilon that each analyst may spend; with caps, other analysts cannot spend.
        columns : Columns, optional
            How all records are read; lon and lat by default. A charge with another column of ids
            is refused. So is a charge with another column of times, if a column of times is
            registered. A charge that differs in another option counts everywhere. A unit with users
            needs a column of ids; a unit with days needs a column of times too.
        coordinate_resolution : str, int, float or Decimal, optional
            Step to which all coordinates are rounded, as in `psd.Domain`. A charge with another
            one, or without one, counts everywhere.
        inputs : sequence
            Files, folders, tables of a database or tallies, see `register_inputs`. If there are
            registered inputs, all others are refused; by default any input may be read.

        Raises
        ------
        ParameterError
            If an argument is wrong.
        LedgerError
            If the dataset is registered already, or the ledger cannot be written.
        """
        body = dataset_body(
            name,
            budget,
            unit=unit,
            time_zone=time_zone,
            max_contributions=max_contributions,
            delta=delta,
            caps=caps or {},
            columns=columns,
            coordinate_resolution=coordinate_resolution,
        )
        with exclusive(self.path) as ledger:
            state = _state_of(ledger)
            if comparable_name(name) in map(comparable_name, state.datasets):
                raise LedgerError(
                    f"dataset {name!r} is already registered in {self.path} (names ignore case); "
                    "to change its budget, use `psd ledger raise`"
                )
            body["inputs"] = input_marks(state, inputs)
            _append(ledger, state, "register", body)

    def register_inputs(self, name: str, inputs: Sequence[Any]) -> int:
        """Append inputs that may be read for a dataset; others are refused before they are read.

        A file is recognised by its device and inode, a table by its address, a tally by its parts.
        A copy of a file is another input. A folder stands for the files that are in it now.

        Parameters
        ----------
        name : str
            A registered dataset.
        inputs : sequence
            Paths, `psd.sources.PostGIS`, tables of an engine, or tallies and their files. Private.

        Returns
        -------
        int
            Number of inputs that were not registered before.

        Raises
        ------
        ParameterError
            If an input cannot be recognised again, such as a table in memory, or does not exist.
        LedgerError
            If the dataset is not registered, or the ledger cannot be written.
        """
        with exclusive(self.path) as ledger:
            state = _state_of(ledger)
            before = set(state.dataset(name).inputs)
            added = [mark for mark in input_marks(state, inputs) if mark not in before]
            if added:
                _append(ledger, state, "inputs", {"name": name, "inputs": added})
        return len(added)

    def raise_budget(self, name: str, budget: str | float | Decimal) -> None:
        """Append a larger budget of a dataset.

        Parameters
        ----------
        name : str
            A registered dataset.
        budget : str, int, float or Decimal
            Epsilon of all releases together, earlier ones included.

        Raises
        ------
        ParameterError
            If the budget is out of range, or not above the current budget.
        LedgerError
            If the dataset is not registered, or the ledger cannot be written.
        """
        nano = budget_nano("budget", budget)
        with exclusive(self.path) as ledger:
            state = _state_of(ledger)
            before = state.dataset(name).budget
            if nano <= before:
                raise ParameterError(
                    f"budget must be above {epsilon_text(before)}, got {epsilon_text(nano)}; a "
                    "budget is never lowered"
                )
            _append(ledger, state, "raise", {"name": name, "budget": nano})

    def check(
        self, name: str, request: ChargeRequest, *, analyst: str | None = None
    ) -> LedgerState:
        """Refuse a charge that the dataset cannot pay now. The check costs and reserves nothing.

        Returns
        -------
        LedgerState
            State of the ledger at this moment.

        Raises
        ------
        LedgerError
            If the ledger cannot be written, or the dataset is not for this unit or analyst.
        BudgetError
            If the charge is above what is left.
        """
        with dry_run(self.path) as ledger:
            state = _state_of(ledger)
            state.check(name, request, analyst)
        return state

    def check_all(
        self, name: str, requests: Sequence[ChargeRequest], *, analyst: str | None = None
    ) -> None:
        """Refuse charges that the dataset cannot pay one after the other; reserves nothing.

        Raises
        ------
        LedgerError
            As `check`.
        BudgetError
            If what is left pays for some of them alone; it names the first one that is not paid.
        """
        with dry_run(self.path) as ledger:
            for number, request in enumerate(requests, 1):
                state = _state_of(ledger)
                try:
                    charged = state.check(name, request, analyst)
                except BudgetError as error:
                    if number == 1:
                        raise
                    raise BudgetError(
                        f"release {number} of {len(requests)} cannot be paid after those before "
                        f"it: {error}",
                        requested=error.requested,
                        left=error.left,
                    ) from None
                _append_charge(ledger, state, name, charged, analyst)

    def charge(self, name: str, request: ChargeRequest, *, analyst: str | None = None) -> str:
        """Charge the release or answer that is drawn next.

        Guarantees
        ----------
        - One transaction checks the balance and writes the entry; no other charge comes between.
        - The entry is on the disk when the method returns, and cannot be removed.

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
        check_name("what", request.what)
        with exclusive(self.path) as ledger:
            state = _state_of(ledger)
            request = state.check(name, request, analyst)
            return _append_charge(ledger, state, name, request, analyst)

    def charge_fault(
        self, name: str, request: ChargeRequest, *, analyst: str | None = None
    ) -> None:
        """Charge what a fault of a build costs beyond its own charge, which was made before.

        A fault that depends on where records lie shows a bit that epsilon does not cover, so it has
        a price that the person who builds cannot choose; see `LedgerState.fault_charge`. A fault
        of an addition to a stream, which costs nothing itself, is noted where nothing is left.

        Raises
        ------
        LedgerError
            If the ledger cannot be written, or the dataset is not registered.
        """
        with exclusive(self.path) as ledger:
            state = _state_of(ledger)
            fault = state.fault_charge(name, request, analyst)
            if fault.loss.epsilon:
                _append_charge(ledger, state, name, fault, analyst)
            elif not request.loss.epsilon:
                _append(ledger, state, "fault", {"name": name})

    def draw_slice(
        self,
        charge: str,
        name: str,
        drawn: DrawnSlice,
        kept: Mapping[str, str],
        opened: LedgerState | None = None,
    ) -> None:
        """Record that a slice of a stream was drawn, before it is published; it costs nothing.

        Two copies of a state may draw at the same time, the same slice or two. The first one
        records it, and the second is refused, whatever it drew: what is compared are random ids,
        never answers. Of two slices the second would have kept records of a unit anew.

        Parameters
        ----------
        charge : str
            Id of the charge of the stream.
        name : str
            The slice. Public.
        drawn : DrawnSlice
            Its draw.
        kept : mapping
            Ids of all draws that the state has, by slice.
        opened : LedgerState, optional
            The ledger as it was checked a moment ago; it is not checked again if it has the same
            last entry.

        Raises
        ------
        LedgerError
            If the charge does not exist, a draw is recorded that the state has not, or the ledger
            cannot be written.
        """
        with exclusive(self.path) as ledger:
            state = _state_of(ledger, opened)
            if charge not in state.charges:
                raise LedgerError(f"charge {charge} is not in {self.path}")
            recorded = state.charges[charge].drawn
            check_drawn(recorded, kept)
            if name not in recorded:
                body = {"id": charge, "slice": name, "draw": drawn.draw}
                _append(ledger, state, "slice", {**body, "digests": list(drawn.digests)})

    def finish(self, charge: str, *, digest: str | None = None) -> None:
        """Record that a charged release was saved, or a charged answer given.

        The build calls this method, or the next build that finds the release. A digest that is
        already recorded does not change.

        Parameters
        ----------
        charge : str
            Id of the charge.
        digest : str, optional
            Of the release file, which is public.

        Raises
        ------
        LedgerError
            If the charge does not exist or is finished already, or the ledger cannot be written.
        """
        with exclusive(self.path) as ledger:
            state = _state_of(ledger)
            recorded = state.charges.get(charge)
            if recorded is not None and digest is not None and recorded.digest == digest:
                return
            if recorded is None or recorded.done:
                raise LedgerError(f"charge {charge} is finished, or is not in {self.path}")
            _append(ledger, state, "done", {"id": charge, "digest": digest})

    def state(self) -> LedgerState:
        """Read the current state of the ledger.

        Raises
        ------
        LedgerError
            If the file cannot be read, or an entry was changed.
        """
        with snapshot(self.path) as ledger:
            return _state_of(ledger)

    def remaining(self, dataset: str) -> Decimal:
        """Epsilon that a release of a whole dataset may still cost, without a delta.

        Parameters
        ----------
        dataset : str
            A registered dataset.

        Raises
        ------
        LedgerError
            If the file cannot be read, or the dataset is not registered.

        Examples
        --------
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> ledger = Ledger.create(folder.name + "/city.ledger")
        >>> ledger.register("visits", budget="1.5")
        >>> ledger.remaining("visits")
        Decimal('1.5')
        >>> folder.cleanup()
        """
        return Decimal(epsilon_text(self.state().balance(dataset).largest_pure))

    def seal(self, key: str | os.PathLike[str]) -> int:
        """Seal all entries with a key of the owner, see `psd.ledger.receipts`.

        The file of the seal has the name of the ledger with ``.seal`` after it. Without the key, a
        chain with a changed entry cannot be sealed. Keep the key where people who may write the
        ledger cannot read it.

        Parameters
        ----------
        key : path-like
            File of the key; created if it does not exist, readable by its owner only.

        Returns
        -------
        int
            Number of sealed entries.

        Raises
        ------
        LedgerError
            If an entry was changed, or an earlier seal does not agree with the chain or the key.
        ParameterError, InputDataError, WriteError
            If the key cannot be read, or a file cannot be written.
        """
        state = self.verify()
        write_seal(self.path, state, key)
        return len(state.hashes)

    def verify(
        self,
        *,
        head: str | None = None,
        key: str | os.PathLike[str] | None = None,
        releases: str | os.PathLike[str] | None = None,
    ) -> LedgerState:
        """Check the file and all entries.

        Parameters
        ----------
        head : str, optional
            A head that was stored elsewhere, alone or after its number. If it is not in the
            chain, the file is an older copy or another ledger, or was edited.
        key : path-like, optional
            Key of the seal; all entries up to the seal must be those that were sealed.
        releases : path-like, optional
            Folder whose releases are compared with their charges.

        Raises
        ------
        LedgerError
            With the number of the first wrong entry, or with what does not agree.
        ParameterError, InputDataError
            If the key cannot be read.
        """
        with snapshot(self.path) as ledger:
            if not is_intact(ledger):
                raise LedgerError(f"ledger {self.path} is damaged; restore it from a copy")
            state = _state_of(ledger)
        if head is not None and not state.has_head(head):
            raise LedgerError(
                f"head {head} is not in {self.path}: this is an older copy, or another ledger, or "
                "an entry was changed and the chain recomputed"
            )
        if key is not None:
            check_seal(self.path, state, key)
        if releases is not None:
            check_releases(state, releases, self.path, reads_slices=True)
        return state


def _append(
    ledger: sqlite3.Connection, state: LedgerState, kind: str, body: Mapping[str, Any]
) -> None:
    """Validate and append an entry; an invalid entry would make the ledger unreadable."""
    row = entry(state.hashes, kind, body)
    validate_entry(kind, json.loads(row[3]))
    append(ledger, row)


def _append_charge(
    ledger: sqlite3.Connection,
    state: LedgerState,
    name: str,
    request: ChargeRequest,
    analyst: str | None,
) -> str:
    """Append a charge that was checked; return its id."""
    body = {
        "id": _random_id(),
        "dataset": name,
        "analyst": analyst,
        "files": state.marks(request)[:_MOST_FILES],
        **_body(request),
    }
    _append(ledger, state, "charge", body)
    return str(body["id"])


def _state_of(ledger: sqlite3.Connection, opened: LedgerState | None = None) -> LedgerState:
    """State of an open ledger, or the one that was read before if its last entry is the same."""
    if opened is not None and (last_number(ledger), last_hash(ledger)) == (
        len(opened.hashes),
        opened.head,
    ):
        return opened
    state = replay_entries(rows(ledger))
    # SQLite stores the largest number that an entry ever had, also after the entry is deleted. A
    # new entry would reuse the number of a deleted one, so nothing is appended if the two disagree.
    if last_number(ledger) != len(state.hashes):
        raise LedgerError(
            f"entry {len(state.hashes) + 1} of the ledger was removed, with all later entries; "
            "the ledger allows no charges"
        )
    return state


def _body(request: ChargeRequest) -> dict[str, object]:
    """Public fields of a charge, for its entry."""
    delta = request.loss.delta
    return {
        "what": request.what,
        "epsilon": request.loss.epsilon,
        "rho": None if delta is None else request.loss.rho,
        "delta": None if delta is None else delta_text(delta),
        "bound": None if request.chosen else request.unit.contributions,
        "region": region_fields(request.region),
        "slices": slices_fields(request.slices),
        "terms": dict(request.terms),
    }


def _random_id() -> str:
    """Return 128 random bits of the operating system, in hexadecimal."""
    try:
        return os.urandom(16).hex()
    except (OSError, NotImplementedError):
        raise RandomnessError(
            "the operating system gives no random numbers; nothing was charged"
        ) from None
