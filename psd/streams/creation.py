"""Create a stream: check its request, charge a ledger once, write its state. Private side."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd._util.atomic_write import check_targets
from psd._util.file_endings import check_release_name
from psd.errors import LedgerError
from psd.privacy.budget import Budget
from psd.publish.charging import PendingCharge
from psd.publish.refusals import rehearse
from psd.publish.request_toml import to_toml
from psd.publish.series import check_shares
from psd.streams.plan import (
    StreamPlan,
    check_offered,
    file_digests,
    read_public_inputs,
    stream_charge,
)
from psd.streams.state import check_beside, create_state

if TYPE_CHECKING:
    from psd.ledger.account import Account
    from psd.publish.request import BuildRequest

__all__ = ["create_stream"]


def create_stream(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    request: BuildRequest,
    *,
    account: Account | None = None,
    folder: Path | None = None,
) -> None:
    """Create a stream of a request; see `psd.streams.stream.Stream.create`.

    Parameters
    ----------
    path, output, account
        As in `psd.streams.stream.Stream.create`.
    request : BuildRequest
        Public.
    folder : Path, optional
        Where the relative paths of the request begin; the working folder by default.
    """
    slices, folder = check_offered(request), (folder or Path.cwd()).resolve()
    files = file_digests(request, folder)
    check_targets([path, output], overwrite=False, inputs=files)
    check_release_name(output)
    check_beside(path)
    check_shares(request.nano_epsilon, len(slices), request.unit, request.contribution_scope)
    rehearse(request, read_public_inputs(request), Budget(request.nano_epsilon))
    statement = {} if account is None else _charge(account, request, files)
    plan = StreamPlan(
        request=to_toml(request),
        folder=str(folder),
        output=str(Path(output).resolve()),
        key=secrets.token_hex(32),
        files=files,
        ledger=None if account is None else str(Path(account.ledger.path).resolve()),
        dataset=None if account is None else account.dataset,
        analyst=None if account is None else account.analyst,
        statement={**statement, "stream_slices": len(slices)},
    )
    create_state(path, plan.to_rows())


def _charge(account: Account, request: BuildRequest, files: dict[str, str]) -> dict[str, Any]:
    """Charge a stream to its account, and return what its slices state of the charge."""
    account.refuse_records(files)
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
