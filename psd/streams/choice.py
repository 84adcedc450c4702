"""Which counter a stream has, by the predicted error of its last total. Public numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from psd.decompositions.grid import Grid
from psd.decompositions.quadtree import Quadtree
from psd.errors import ParameterError
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import Loss
from psd.space.time_slices import By, TimeSlices
from psd.streams.counters import (
    COUNTERS,
    Counter,
    toeplitz_squared_sensitivity,
    tree_levels,
    variance_factors,
)
from psd.streams.counting import bounded_period
from psd.streams.drawing import slices_part

if TYPE_CHECKING:
    from fractions import Fraction

    from psd.privacy.unit import PrivacyUnit
    from psd.publish.request import BuildRequest

__all__ = ["AUTO", "ChosenCounter", "choose_counter"]

AUTO: Final = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenCounter:
    """A counter, and the predicted errors by which it was chosen. Public.

    Parameters
    ----------
    name : {"slices", "tree", "toeplitz"}
        The counter.
    errors : mapping
        Predicted error of one count of the last total, by counter, in records, if a count had all
        of the epsilon of its counter; shares of levels make all of them larger alike.
    """

    name: Counter
    errors: dict[Counter, float]

    @property
    def text(self) -> str:
        """The choice in words.

        Examples
        --------
        >>> ChosenCounter(name="slices", errors={"slices": 9.78, "tree": 40.1}).text
        'totals by slices; predicted error of a count in the last one: slices 9.8, tree 40.1'
        """
        errors = ", ".join(f"{name} {error:.1f}" for name, error in self.errors.items())
        unspent = "; no delta is spent" if "toeplitz" in self.errors else ""
        return (
            f"totals by {self.name}; predicted error of a count in the last one: {errors}"
            f"{unspent * (self.name != 'toeplitz')}"
        )


def choose_counter(
    request: BuildRequest, counter: str, delta: Fraction | None = None
) -> ChosenCounter:
    """Choose the counter of a stream, or check the one that was named.

    Parameters
    ----------
    request : BuildRequest
        Of the stream. Public.
    counter : {"auto", "slices", "tree", "toeplitz"}
        ``auto`` takes the smallest predicted error of the last total.
    delta : Fraction, optional
        What the Gaussian noise of ``toeplitz`` may spend. Public.

    Raises
    ------
    ParameterError
        If the cells differ from slice to slice, or the counter does not exist, is not for the unit
        of privacy, or needs a delta.
    """
    if counter not in (AUTO, *COUNTERS):
        raise ParameterError(
            f"counter must be one of {', '.join((AUTO, *COUNTERS))}, got {str(counter)[:80]!r}"
        )
    _check_cells(request)
    if counter == "toeplitz" and delta is None:
        raise ParameterError("counter must be slices or tree without delta=, got toeplitz")
    assert request.slices is not None
    lies_in_one = _lies_in_one(request, request.slices)
    if counter in COUNTERS[1:] and not lies_in_one:
        raise ParameterError(
            f"counter must be slices where a user may be in several slices, got {counter}; such a "
            "user changes many of its counts"
        )
    names = COUNTERS[: 1 if not lies_in_one else 2 if delta is None else 3]
    errors = {name: _error(name, request, delta) for name in names}
    best = min(errors, key=lambda name: errors[name])
    return ChosenCounter(name=best if counter == AUTO else counter, errors=errors)  # type: ignore[arg-type]


def _check_cells(request: BuildRequest) -> None:
    """Refuse methods whose cells depend on the records of a slice."""
    method = request.method
    if not isinstance(method, Quadtree) and not (isinstance(method, Grid) and method.size):
        raise ParameterError(
            f"totals must be of a grid with size or of a quadtree, got {method.name}; cells that "
            "follow the records differ from slice to slice"
        )


def _lies_in_one(request: BuildRequest, slices: TimeSlices) -> bool:
    """Whether all records of a unit lie in one slice."""
    scope, unit = request.contribution_scope, request.unit
    return scope == "series" and not _spans(unit, slices.by, slices.names[0])


def _spans(unit: PrivacyUnit, by: By, name: str) -> bool:
    """Whether a unit may have records in several slices."""
    return bounded_period(unit, by, name) is not None


def _error(counter: Counter, request: BuildRequest, delta: Fraction | None) -> float:
    """Standard deviation of the noise of one count of the last total, with all its epsilon."""
    assert request.slices is not None
    slices, total, k = len(request.slices), request.nano_epsilon, request.unit.contributions
    factor = float(variance_factors(counter, slices)[-1])
    part = total - slices_part(total, counter)
    if counter == "toeplitz":
        assert delta is not None
        noise, loss = CountNoise.gaussian(k**2), Loss.gaussian(part, delta).rho
        factor *= toeplitz_squared_sensitivity(slices)
    elif counter == "tree":
        noise, loss = CountNoise.laplace(k), max(part // tree_levels(slices), 1)
    else:
        shares = slices if request.contribution_scope == "slice" else 1
        noise, loss = CountNoise.laplace(k), max(total // shares, 1)
    return float((float(noise.variance(np.array([loss]))[0]) * factor) ** 0.5)
