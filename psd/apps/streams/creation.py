"""Create a stream: check its request, charge a ledger once, write its state. Private side."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd._util.atomic_write import check_targets
from psd._util.file_endings import check_release_name
from psd._util.wall_clock import zone_rules
from psd.apps.streams.choice import AUTO, ChosenCounter, choose_counter, noise_text, settled_noise
from psd.apps.streams.counters import tree_levels
from psd.apps.streams.drawing import slices_part
from psd.apps.streams.plan import (
    StreamPlan,
    StreamRequest,
    file_digests,
    read_public_inputs,
    stream_charge,
)
from psd.apps.streams.state import check_beside, create_state
from psd.errors import LedgerError, ParameterError, WriteError
from psd.privacy.budget import Budget
from psd.privacy.loss import delta_text, epsilon_text
from psd.publish.charging import PendingCharge
from psd.publish.refusals import dry_run_method
from psd.publish.request_values import request_to_toml
from psd.publish.request_warnings import warn_of_request

if TYPE_CHECKING:
    from psd.ledger.account import Account
    from psd.publish.request import BuildRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedStream:
    """What was decided when a stream was created. Public."""

    counter: ChosenCounter | None  # of the totals, if there are any
    noise_text: str | None  # the law of the noise in words; None without a delta


def create_stream(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    request: BuildRequest,
    *,
    account: Account | None = None,
    folder: Path | None = None,
    totals: bool = False,
    counter: str | None = None,
) -> CreatedStream:
    """Create a stream of a request; see `psd.apps.streams.stream.Stream.create`."""
    # Relative paths of the request begin in the folder.
    request = StreamRequest.of(request)
    slices, folder = request.slices, (folder or Path.cwd()).resolve()
    warn_of_request(request)
    if counter is not None and not totals:
        raise ParameterError("counter must be given with totals=True, which it computes")
    if request.is_cube:
        raise ParameterError(
            f"method must count each slice by itself in a stream, got {request.method.name}; its "
            "slices are drawn one after another",
            name="method",
        )
    if request.values:
        raise ParameterError(
            "values must be left out for a stream, which counts records alone; build a series"
        )
    settled = settled_noise(request, counter or AUTO if totals else None)
    if counter == "toeplitz" and account is not None:
        raise ParameterError(
            "counter must be slices or tree with a ledger, got toeplitz; the ledger adds the rho "
            "of the slices to that of the totals, and half of epsilon alone usually has a larger "
            "rho than all of epsilon with delta"
        )
    alone = account is None
    chosen = choose_counter(settled, counter or AUTO, spends_delta=alone) if totals else None
    name = None if chosen is None else chosen.name
    # Delta is spent by the slices, if their noise is Gaussian, or else by totals.
    spent = settled.delta if name == "toeplitz" else None
    outputs = [Path(output).resolve(), *([totals_path(output)] if totals else [])]
    files = file_digests(request, folder)
    if account is not None:
        account.refuse_records(files)
    for new in (path, *outputs):  # nothing of a stream is overwritten
        if os.path.lexists(new):
            raise WriteError(f"{new} exists; choose another name for a stream", path=new)
    check_targets([path, *outputs], overwrite=False, inputs=files)
    check_release_name(output)
    check_beside(path)
    # A slice and a block of totals are drawn without records, each with its part of the loss.
    inputs, total = read_public_inputs(settled), settled.nano_epsilon
    part, levels = slices_part(total, name), tree_levels(len(settled.slices))
    if name == "tree" and total < 2 * levels:
        raise ParameterError(
            f'epsilon must be at least {epsilon_text(2 * levels)} with counter="tree", half of it '
            f"1e-9 for each level of its blocks, got {epsilon_text(total)}"
        )
    dry_run_method(settled, inputs, Budget(settled.loss if part == total else part))
    if name == "tree":
        dry_run_method(settled, inputs, Budget(total - part).in_sequence(levels)[0])
    delta = None if spent is None else delta_text(spent)
    owed = stream_charge(settled, name, delta)
    statement: dict[str, Any] = {}
    if account is not None:
        if account.ledger.state().dataset(account.dataset).inputs:
            raise LedgerError(
                f"dataset {account.dataset!r} has registered inputs, and those of a stream are not "
                "there yet; register a dataset without inputs for it"
            )
        pending = PendingCharge(account, owed)
        if not pending.reads_as_registered:
            raise LedgerError(
                f"dataset {account.dataset!r} registers other columns or another time zone than "
                "this stream; read the same ones, since each addition would tell more of others"
            )
        statement = dict(pending.charge())
    plan = StreamPlan(
        request=request_to_toml(settled),
        folder=str(folder),
        output=str(outputs[0]),
        totals=str(outputs[1]) if totals else None,
        counter=name,
        delta=delta,
        key=secrets.token_hex(32),
        files=files,
        clock=zone_rules(slices.time_zone),
        ledger=None if account is None else str(Path(account.ledger.path).resolve()),
        dataset=None if account is None else account.dataset,
        analyst=None if account is None else account.analyst,
        statement={**statement, "stream_slices": len(slices)},
    )
    create_state(path, plan.to_rows())
    return CreatedStream(counter=chosen, noise_text=noise_text(request, settled, name))


def totals_path(output: str | os.PathLike[str]) -> Path:
    """File of the running totals, beside that of the slices."""
    path = Path(output).resolve()
    stem, dot, ending = path.name.partition(".")
    return path.with_name(f"{stem}.totals{dot}{ending}")
