"""`Stream`: a series that grows by one time slice at a time, paid for once. Private side."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from psd.apps.streams.addition import Addition
from psd.apps.streams.creation import create_stream
from psd.apps.streams.plan import StreamPlan, guarantee_of
from psd.apps.streams.state import opened_state
from psd.errors import ParameterError
from psd.publish.observer import SILENT, Observer
from psd.publish.request_values import RequestArguments, request_from_values

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.ledger.account import Account
    from psd.space.time_slices import TimeSlices


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamStatus:
    """How far a stream has grown. Public.

    ``skipped`` slices were passed over and are too late; ``next`` is None at the end. ``output`` is
    the file of the public series, ``totals`` that of the running totals by ``counter``;
    ``published``: whether the files hold all slices that were added. ``guarantee`` is of the whole
    stream, which ``ledger`` and ``dataset`` paid for.
    """

    slices: TimeSlices
    added: tuple[str, ...]
    skipped: tuple[str, ...]
    next: str | None
    output: str
    totals: str | None
    counter: str | None
    published: bool
    method: str
    guarantee: str
    ledger: str | None
    dataset: str | None


class Stream:
    """A series of time slices that are added one by one, under one guarantee.

    Guarantees
    ----------
    - All slices together are epsilon-differentially private for adding or removing one unit, and
      (epsilon, delta)-differentially private with Gaussian noise; see
      `psd.publish.drawing.draw_series` and `psd.apps.streams.drawing.count_slice`.
    - The loss is for the whole list of slices. A ledger is charged once, at the creation.
    - A slice is drawn once, also if processes are killed; see `psd.apps.streams.state`.
    - The state is readable by its owner alone; the public series holds noisy answers and public
      parameters, and is replaced as a whole.

    Parameters
    ----------
    path : path-like
        State of the stream, which `Stream.create` writes. PRIVATE.

    Raises
    ------
    InputDataError
        If the file is not the state of a stream, is damaged, of another version, in use, or
        readable by others than its owner.

    Examples
    --------
    >>> import tempfile, pandas as pd, psd
    >>> folder = tempfile.TemporaryDirectory()
    >>> stream = psd.apps.streams.Stream.create(
    ...     folder.name + "/city.stream",
    ...     folder.name + "/city.psd.parquet",
    ...     domain=(126.4, 37, 127.6, 38),
    ...     epsilon=1,
    ...     slices=psd.TimeSlices.parse("day", "2026-01-05..2026-01-11"),
    ...     method=psd.decompositions.Grid(size=8),
    ...     time="seen",
    ... )
    >>> monday = pd.DataFrame({"lon": [126.9], "lat": [37.5], "seen": ["2026-01-05 08:30"]})
    >>> monday["seen"] = pd.to_datetime(monday["seen"])
    >>> stream.add(monday, "2026-01-05")
    <Release: 1 slices by day, grid, epsilon 1 per record>
    >>> stream.status().next
    '2026-01-06'
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with opened_state(self.path) as state:
            StreamPlan.from_rows(state.plan())

    def __repr__(self) -> str:
        return f"<Stream: {self.path}, private>"

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        output: str | os.PathLike[str],
        *,
        account: Account | None = None,
        totals: bool = False,
        counter: str | None = None,
        **arguments: Unpack[RequestArguments],
    ) -> Stream:
        """Create a stream, and charge its account once for all slices.

        Parameters
        ----------
        path : path-like
            State to write. PRIVATE.
        output : path-like
            File of the public series, which the first addition writes.
        **arguments
            As in `psd.build`, with ``epsilon`` and ``slices``; covariate, boundary and regions are
            files. ``delta`` is what Gaussian noise may spend: the probability with which the
            slices, or the totals of the counter ``toeplitz``, may tell more of a unit than epsilon
            allows. ``noise`` is the
            law of the noise of the slices, fixed at creation: with "auto" and a delta it is
            Gaussian where a unit in several slices then has less noise. Public.
        account : Account, optional
            Dataset of a ledger that is charged.
        totals : bool
            Whether a series of running totals is written as well, beside the output with
            ``totals`` in its name; the method is a grid with size or a quadtree. Public.
        counter : {"auto", "slices", "tree", "toeplitz"}, optional
            How totals are computed: as sums of the slices, or by a counter with noise of its own,
            which gets half of epsilon; ``toeplitz`` needs a delta, and slices with Gaussian noise
            have sums. By default the smallest predicted error of the last total decides, see
            `psd.apps.streams.creation`; a ledger has no charge for ``toeplitz``. Public.

        Returns
        -------
        Stream

        Raises
        ------
        ParameterError
            If a public parameter is wrong, or a stream does not offer the unit.
        WriteError
            If a file exists or cannot be written.
        BudgetError, LedgerError
            If the account cannot be charged.
        """
        if arguments.get("slices") is None:
            raise ParameterError("slices must be given; they are all that the stream can have")
        # A method by default would count many slices together.
        arguments["method"] = arguments.get("method") or "auto"
        request = request_from_values(arguments)
        create_stream(path, output, request, account=account, totals=totals, counter=counter)
        return cls(path)

    def add(
        self,
        data: Any,
        name: str,
        *,
        skip: bool = False,
        memory: str | int | None = None,
        observer: Observer | Mapping[str, Callable[[Any], None]] = SILENT,
        warn: Callable[[str], None] | None = None,
    ) -> Release:
        """Count one slice, draw its noise, and write the public series anew.

        Parameters
        ----------
        data : object or list of objects
            As in `psd.build`, with the columns of the stream. Records of other slices are left
            out. Private.
        name : str
            The slice; the next one of the list. Public.
        skip : bool
            Whether slices before it may be left out for good.
        memory : str or int, optional
            Limit on the memory that reading takes.
        observer : mapping of callables, optional
            As in `psd.build`.
        warn : callable, optional
            Called with a warning about the ledger; `warnings.warn` by default.

        Returns
        -------
        Release
            The series with the slice. If a process was killed after it drew this slice and before
            it published it, the same answer is published now.

        Raises
        ------
        ParameterError
            If the slice is not in the list, was added before, or is not the next one.
        InputDataError
            If the state or the input cannot be read; nothing was drawn.
        LedgerError
            If the ledger has not the charge of the stream, or another one than the state says; or
            if another copy of the state drew a slice that this one has not.
        WriteError
            If the series cannot be written; the next addition writes it.
        """
        with opened_state(self.path) as state:
            addition = Addition.of(state)
            number = addition.number_of(name)
            addition.open_account(warn)
            if not addition.is_unpublished(number):
                addition.check_turn(number, skip=skip)
                addition.add(number, data, memory=memory, observer=Observer.of(observer))
            addition.record()
            series = addition.publish()
            addition.note_end()
            return series

    def status(self) -> StreamStatus:
        """Return which slices were added, and which is next.

        Raises
        ------
        InputDataError
            If the state cannot be read.
        """
        with opened_state(self.path) as state:
            addition = Addition.of(state, checks_outputs=False)
            plan, slices, request = addition.plan, addition.slices, addition.request
            names, last = slices.names, addition.last
            return StreamStatus(
                slices=slices,
                added=tuple(names[number] for number in addition.digests),
                skipped=tuple(
                    names[number] for number in range(last + 1) if number not in addition.digests
                ),
                next=names[last + 1] if last + 1 < len(names) else None,
                output=plan.output,
                totals=plan.totals,
                counter=plan.counter,
                published=addition.is_published,
                method=request.method.name,
                guarantee=guarantee_of(request, plan.delta),
                ledger=plan.ledger,
                dataset=plan.dataset,
            )
