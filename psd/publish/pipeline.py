"""From a request and its data to a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd.errors import ParameterError
from psd.ingest.partial_tally import PartialTally
from psd.publish.build import build
from psd.publish.from_tallies import build_tally
from psd.publish.observer import SILENT, Observer
from psd.publish.request import BuildRequest, ReadRequest
from psd.publish.series import build_series

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.api.series import SeriesRelease
    from psd.ingest.engines import Engine
    from psd.ledger.account import Account

__all__ = ["publish", "reading_of"]


def publish(
    request: BuildRequest,
    data: Any,
    *,
    engine: Engine | None = None,
    memory: str | int | None = None,
    account: Account | None = None,
    observer: Observer = SILENT,
) -> Release | SeriesRelease:
    """Build what a request says.

    Guarantees
    ----------
    - The release is ``request.epsilon``-differentially private for the unit of the request.
    - Reading comes first: an input that cannot be read costs no epsilon.
    - With an account, epsilon is charged to it before anything is drawn, or nothing is drawn.

    Parameters
    ----------
    request : BuildRequest
        Public.
    data : object or list of objects
        As in `psd.build`, or a `PartialTally`. Private.
    engine : Engine, optional
        Where records are read and counted.
    memory : str or int, optional
        Limit on the memory that reading takes, such as ``"2GB"``.
    account : Account, optional
        Dataset of a ledger that is charged.
    observer : Observer
        What is called while the build runs.

    Returns
    -------
    Release or SeriesRelease
        A series if the request has slices.

    Raises
    ------
    ParameterError
        If the request has no bounds and the data are records.
    InputDataError
        If the input cannot be read.
    DomainError
        If the points do not lie where the domain says.
    BudgetError, LedgerError
        If the account cannot be charged.
    """
    assert request.post_processing is not None
    given: dict[str, Any] = {
        "epsilon": request.epsilon,
        "method": request.method,
        "estimate": request.post_processing.estimate,
        "density": request.post_processing.density,
        "covariate": request.covariate,
        "account": account,
        "progress": observer.progress,
    }
    if isinstance(data, PartialTally):
        return build_tally(data, **given)
    if request.domain is None or request.columns is None:
        raise ParameterError(
            "bounds must be given for records, or a boundary, got neither; only tallies state "
            "their own"
        )
    columns = request.columns
    given |= {"domain": request.domain, "boundary": request.boundary, "memory": memory}
    given |= {
        name: getattr(columns, name) for name in ("x", "y", "user", "geometry", "layer", "time")
    }
    unit = request.unit
    given["max_contributions"] = request.contribution_choice or (
        unit.max_contributions if unit.has_user and not unit.weight else None
    )
    given["per"] = "day" if unit.kind == "user-day" else None
    given["count"] = "users" if unit.weight else "rows"
    given["private_report"] = observer.private_report
    given["private_tally"] = observer.private_tally
    if request.slices is None:
        return build(data, time_zone=columns.time_zone, engine=engine, **given)
    if engine is not None:
        raise ParameterError("slices must be left out with an engine; build in this process")
    given["per"] = "slice" if request.contribution_scope == "slice" else given["per"]
    return build_series(data, slices=request.slices, **given)


def reading_of(tally: PartialTally) -> ReadRequest:
    """The part of a request that tallies state themselves."""
    return ReadRequest(
        columns=None,
        unit=tally.unit,
        slices=tally.terms.slices,
        contribution_scope=tally.terms.bound,
    )
