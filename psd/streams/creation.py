"""Create a stream: check its request, charge a ledger once, write its state. Private side."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd._util.atomic_write import check_targets
from psd._util.file_endings import check_release_name
from psd.errors import LedgerError, ParameterError, WriteError
from psd.privacy.budget import Budget
from psd.privacy.delta import delta_text, parse_delta
from psd.publish.charging import PendingCharge
from psd.publish.refusals import rehearse
from psd.publish.request_toml import to_toml
from psd.publish.series import check_shares
from psd.streams.choice import AUTO, ChosenCounter, choose_counter
from psd.streams.plan import (
    StreamPlan,
    check_offered,
    file_digests,
    read_public_inputs,
    stream_charge,
)
from psd.streams.state import check_beside, create_state

if TYPE_CHECKING:
    from decimal import Decimal

    from psd.ledger.account import Account
    from psd.publish.request import BuildRequest

__all__ = ["create_stream", "totals_path"]


def create_stream(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    request: BuildRequest,
    *,
    account: Account | None = None,
    folder: Path | None = None,
    totals: bool = False,
    counter: str | None = None,
    delta: str | float | Decimal | None = None,
) -> ChosenCounter | None:
    """Create a stream of a request; see `psd.streams.stream.Stream.create`.

    Parameters
    ----------
    path, output, account
        As in `psd.streams.stream.Stream.create`.
    request : BuildRequest
        Public.
    folder : Path, optional
        Where the relative paths of the request begin; the working folder by default.
    totals, counter, delta
        As in `psd.streams.stream.Stream.create`.

    Returns
    -------
    ChosenCounter or None
        Counter of the totals, if there are any.
    """
    slices, folder = check_offered(request), (folder or Path.cwd()).resolve()
    if counter is not None and not totals:
        raise ParameterError("counter must be given with totals=True, which it computes")
    if delta is not None and not totals:
        raise ParameterError("delta must be given with totals=True, whose Gaussian noise spends it")
    limit = None if delta is None else parse_delta(delta)
    chosen = choose_counter(request, counter or AUTO, limit) if totals else None
    spent = limit if chosen is not None and chosen.name == "toeplitz" else None
    if spent is not None and account is not None:
        raise ParameterError(
            "counter must be slices or tree with an account; epsilon of the slices and rho of the "
            "totals do not add up in a ledger"
        )
    outputs = [Path(output).resolve(), *([totals_path(output)] if totals else [])]
    files = file_digests(request, folder)
    if account is not None:
        account.refuse_records(files)
    _check_new([path, *outputs], files)
    check_release_name(output)
    check_beside(path)
    check_shares(request.nano_epsilon, len(slices), request.unit, request.contribution_scope)
    rehearse(request, read_public_inputs(request), Budget(request.nano_epsilon))
    statement = {} if account is None else _charge(account, request)
    plan = StreamPlan(
        request=to_toml(request),
        folder=str(folder),
        output=str(outputs[0]),
        totals=str(outputs[1]) if totals else None,
        counter=None if chosen is None else chosen.name,
        delta=None if spent is None else delta_text(spent),
        key=secrets.token_hex(32),
        files=files,
        ledger=None if account is None else str(Path(account.ledger.path).resolve()),
        dataset=None if account is None else account.dataset,
        analyst=None if account is None else account.analyst,
        statement={**statement, "stream_slices": len(slices)},
    )
    create_state(path, plan.to_rows())
    return chosen


def totals_path(output: str | os.PathLike[str]) -> Path:
    """File of the running totals, beside that of the slices.

    Examples
    --------
    >>> totals_path("/data/city.psd.parquet").name
    'city.totals.psd.parquet'
    """
    path = Path(output).resolve()
    stem, dot, ending = path.name.partition(".")
    return path.with_name(f"{stem}.totals{dot}{ending}")


def _check_new(paths: Iterable[str | os.PathLike[str]], files: Iterable[str]) -> None:
    """Refuse names that exist or are the same, since nothing of a stream is overwritten."""
    paths = list(paths)
    for path in paths:
        if os.path.lexists(path):
            raise WriteError(f"{path} exists; choose another name for a stream", path=path)
    check_targets(paths, overwrite=False, inputs=files)


def _charge(account: Account, request: BuildRequest) -> dict[str, Any]:
    """Charge a stream to its account, and return what its slices state of the charge."""
    if account.ledger.state().dataset(account.dataset).inputs:
        raise LedgerError(
            f"dataset {account.dataset!r} has registered inputs, and those of a stream are not "
            "there yet; register a dataset without inputs for it"
        )
    pending = PendingCharge(account, stream_charge(request))
    if not pending.reads_as_registered:
        raise LedgerError(
            f"dataset {account.dataset!r} registers other columns or another time zone than this "
            "stream; read the same ones, since each addition would tell more of others"
        )
    return dict(pending.charge())
