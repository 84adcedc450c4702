"""Which counter a stream has, by the predicted error of its last total. Public numbers.

Totals of slices with Gaussian noise are sums of the slices: all of rho is for the slices, and a
counter with noise of its own is for units that lie in one slice, where Gaussian slices do not pay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from psd._util.instances import check_choice
from psd.apps.streams.counters import (
    COUNTERS,
    Counter,
    toeplitz_squared_sensitivity,
    tree_levels,
    variance_factors,
)
from psd.apps.streams.drawing import bounded_period, slices_part
from psd.decompositions.grid import Grid
from psd.decompositions.quadtree import Quadtree
from psd.errors import ParameterError
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import Loss
from psd.privacy.unit import squared_sensitivity

if TYPE_CHECKING:
    from psd.apps.streams.plan import StreamRequest


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
