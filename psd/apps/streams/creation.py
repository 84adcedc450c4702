"""Create a stream: choose its counter, charge a ledger once, write its state. Private side.

Totals of Gaussian slices, which have all of rho, are sums; a counter with noise of its own is for
units in one slice, and is chosen by the predicted error of its last total, from public numbers.
"""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from psd._util.atomic_write import check_targets
from psd._util.file_endings import check_release_name
from psd._util.instances import check_choice
from psd._util.wall_clock import zone_rules
from psd.apps.streams.drawing import bounded_period, slices_part
from psd.apps.streams.plan import (
    COUNTERS,
    Counter,
    StreamPlan,
    StreamRequest,
    file_digests,
    read_public_inputs,
    stream_charge,
    toeplitz_squared_sensitivity,
    tree_levels,
    variance_factors,
)
from psd.apps.streams.state import check_beside, create_state
from psd.decompositions.grid import Grid
from psd.decompositions.quadtree import Quadtree
from psd.errors import LedgerError, ParameterError, WriteError
from psd.privacy.budget import Budget
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import Loss, delta_text, epsilon_text
from psd.privacy.unit import squared_sensitivity
from psd.publish.charging import PendingCharge
from psd.publish.refusals import dry_run_method
from psd.publish.request_values import request_to_toml
from psd.publish.request_warnings import warn_of_request

if TYPE_CHECKING:
    from psd.apps.streams.plan import StreamRequest
    from psd.ledger.account import Account
    from psd.publish.request import BuildRequest


AUTO: Final = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenCounter:
    """A counter, and the predicted errors by which it was chosen. Public."""

    name: Counter
    # Predicted error of one count of the last total, by counter, in records, if a count had all of
    # the epsilon of its counter; shares of levels make all of them larger alike.
    errors: dict[Counter, float]

    @property
    def text(self) -> str:
        """The choice in words."""
        errors = ", ".join(f"{name} {error:.1f}" for name, error in self.errors.items())
        return f"totals by {self.name}; predicted error of a count in the last one: {errors}"


def settled_noise(request: StreamRequest, counter: str | None) -> StreamRequest:
    """Request with the law of the noise of its slices in place of "auto", if it has a delta."""
    if request.delta is None or request.noise != "auto":
        return request
    # A law that is named here stays for all slices, also if a later version of the rule behind
    # "auto" would choose another one. A unit that lies in one slice gains little by Gaussian
    # slices, so where totals may be by a counter with noise of its own, "auto" is Laplace.
    may_count = counter not in (None, "slices") and _lies_in_one(request)
    return replace(request, noise="laplace" if may_count else request.law)


def noise_text(
    request: StreamRequest, settled: StreamRequest, counter: Counter | None
) -> str | None:
    """What was decided about a delta that may be spent; None without delta."""
    if counter == "toeplitz":
        return (
            "noise of the slices is discrete Laplace; noise of the totals is discrete Gaussian, "
            "which spends delta"
        )
    return request.noise_text if request.law == settled.law else settled.noise_text


def choose_counter(
    request: StreamRequest, counter: str, *, spends_delta: bool = True
) -> ChosenCounter:
    """Choose the counter of a stream by its error in the last total, or check the named one."""
    check_choice("counter", counter, (AUTO, *COUNTERS))
    method = request.method
    if not isinstance(method, Quadtree) and not (isinstance(method, Grid) and method.size):
        raise ParameterError(
            f"totals must be of a grid with size or of a quadtree, got {method.name}; cells that "
            "follow the records differ from slice to slice"
        )
    if counter == "toeplitz" and request.delta is None:
        raise ParameterError("counter must be slices or tree without delta=, got toeplitz")
    lies_in_one = _lies_in_one(request)
    if counter in COUNTERS[1:] and not lies_in_one:
        raise ParameterError(
            f"counter must be slices where a user may be in several slices, got {counter}; such a "
            "user changes many of its counts"
        )
    if counter in COUNTERS[1:] and not request.loss.is_pure:
        raise ParameterError(
            f'counter must be slices with noise="gaussian", got {counter}; the slices have all '
            "of rho, and their totals are sums"
        )
    is_sum = not (lies_in_one and request.loss.is_pure)
    # With a ledger `toeplitz` cannot be chosen: there is no charge for it.
    names = COUNTERS[: 1 if is_sum else 3 if spends_delta and request.delta is not None else 2]
    errors = {name: _error(name, request) for name in names}
    best = min(errors, key=lambda name: errors[name])
    return ChosenCounter(name=best if counter == AUTO else counter, errors=errors)  # type: ignore[arg-type]


def _lies_in_one(request: StreamRequest) -> bool:
    """Whether all records of a unit lie in one slice."""
    period = bounded_period(request.unit, request.slices.by, request.slices.names[0])
    return request.contribution_scope == "series" and period is None


def _error(counter: Counter, request: StreamRequest) -> float:
    """Standard deviation of the noise of one count of the last total, with all its loss."""
    slices, total, k = len(request.slices), request.nano_epsilon, request.unit.contributions
    factor = float(variance_factors(counter, slices)[-1])
    part = total - slices_part(total, counter)
    if counter == "toeplitz":
        assert request.delta is not None  # this counter has Gaussian noise
        noise, loss = CountNoise.gaussian(k**2), Loss.gaussian(part, request.delta).rho
        factor *= toeplitz_squared_sensitivity(slices)
    elif counter == "tree":
        noise, loss = CountNoise.laplace(k), max(part // tree_levels(slices), 1)
    elif not request.loss.is_pure:
        squared = squared_sensitivity(request.unit, request.contribution_scope, slices)
        noise, loss = CountNoise.gaussian(squared), request.loss.rho
    else:
        shares = slices if request.contribution_scope == "slice" else 1
        noise, loss = CountNoise.laplace(k), max(total // shares, 1)
    return float((float(noise.variance(np.array([loss]))[0]) * factor) ** 0.5)


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
