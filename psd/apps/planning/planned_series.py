"""Time slices and the delta of a plan: the losses of one slice under each law of noise."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypedDict, Unpack

from psd._util.declared_parameters import integer_between
from psd.errors import ParameterError
from psd.privacy.loss import Loss, parse_delta
from psd.privacy.unit import MAX_CONTRIBUTIONS
from psd.publish.noise_choice import NoisePlan, chosen_law

if TYPE_CHECKING:
    from psd.decompositions import Decomposition
    from psd.publish.noise_choice import Law

__all__ = ["MAX_SLICES", "PlannedSeries", "UserArguments"]

MAX_SLICES = 10_000


class UserArguments(TypedDict, total=False):
    """Arguments of a plan about users, slices and delta.

    Parameters
    ----------
    max_contributions : int
        Bound on the records of one user, if the user is the unit of privacy; in a series, in all
        slices together, by default T M.
    slices : int
        T, the number of time slices of a series, of which one is planned: the count is that of one
        slice. The user is the unit of privacy.
    max_per_slice : int
        M, bound on the records of one user in each slice, by default 1.
    delta : str, float or Decimal
        Delta of Gaussian noise, which is planned beside Laplace noise. With at most this
        probability more may be revealed than epsilon allows.
    """

    max_contributions: int | None
    slices: int | None
    max_per_slice: int | None
    delta: str | float | Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedSeries:
    """Slices of a series that is planned, and the delta that it may spend. Public.

    Parameters
    ----------
    slices : int
        Number of time slices; 1 for a single release.
    max_per_slice : int, optional
        Bound on the records of one user in each slice.
    delta : Fraction, optional
        Delta of Gaussian noise, which is then planned beside Laplace noise.
    """

    slices: int = 1
    max_per_slice: int | None = None
    delta: Fraction | None = None

    @classmethod
    def of(cls, **users: Unpack[UserArguments]) -> tuple[PlannedSeries, int | None]:
        """Series of the arguments of a plan, and the bound of all slices together.

        In a series a user has at most one record in each slice, unless a bound is given, and all of
        them are kept: k = T M.

        Raises
        ------
        ParameterError
            If a number is out of range, or a bound of slices has no slices.

        Examples
        --------
        >>> series, k = PlannedSeries.of(slices=52, delta="1e-6")
        >>> series.max_per_slice, k
        (1, 52)
        """
        delta = None if users.get("delta") is None else parse_delta(users["delta"])  # type: ignore[arg-type]
        k, slices = users.get("max_contributions"), users.get("slices")
        if k is not None:
            k = _positive("max_contributions", k, MAX_CONTRIBUTIONS)
        if slices is None:
            if users.get("max_per_slice") is not None:
                raise ParameterError("slices must be given with max_per_slice=, which limits each")
            return cls(delta=delta), k
        number = _positive("slices", slices, MAX_SLICES)
        limit = _positive("max_per_slice", users.get("max_per_slice", 1), MAX_CONTRIBUTIONS)
        k = number * limit if k is None else k
        return cls(slices=number, max_per_slice=limit, delta=delta), k

    @property
    def laws(self) -> tuple[Law, ...]:
        """Laws that are planned beside each other."""
        return ("laplace",) if self.delta is None else ("laplace", "gaussian")

    def loss(self, epsilon: int, law: Law) -> Loss:
        """Loss of a build with a law.

        Parameters
        ----------
        epsilon : int
            Nano-epsilon.
        law : {"laplace", "gaussian"}
            Law of the noise.
        """
        if law == "laplace" or self.delta is None:
            return Loss.pure(epsilon)
        return Loss.gaussian(epsilon, self.delta)

    def chosen(self, method: Decomposition, epsilon: int, contributions: int) -> Law:
        """Law that a build chooses by itself."""
        plan = NoisePlan(
            epsilon=epsilon,
            delta=self.delta,
            contributions=contributions,
            per_question=self.max_per_slice or contributions,
            slices=self.slices,
        )
        return chosen_law(method, plan)


def _positive(name: str, value: object, largest: int) -> int:
    """An integer from 1."""
    checked: int = integer_between(1, largest)(name, value)
    return checked
