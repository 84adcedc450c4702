"""What a charge costs: pure epsilon, or rho of zero-concentrated privacy with (epsilon, delta).

A budget with a delta counts in both currencies, see `psd.ledger.state`. Sums of either are exact:
epsilon is a whole number of 1e-9, and rho one of 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from psd.accounting import PICO, pure_rho, rho_of
from psd.errors import ParameterError
from psd.privacy.delta import delta_text, failure_text
from psd.privacy.epsilon import MAX_EPSILON, NANO, epsilon_text

__all__ = ["Loss", "largest_pure_epsilon", "rho_text", "rho_within"]

# A ledger asks for the same few numbers at every charge.
_pure_rho = lru_cache(maxsize=1024)(pure_rho)
_rho_of = lru_cache(maxsize=1024)(rho_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Privacy loss of what is drawn for one charge. Public.

    P1. A pure loss holds what is epsilon-differentially private, so it is rho-zCDP too.

    P2. A Gaussian loss holds what is rho-zCDP, and rho is small enough for (epsilon, delta).

    A pure epsilon is rho-zCDP with rho = epsilon tanh(epsilon / 2), `psd.accounting.pure_rho`. The
    smaller epsilon^2 / 8 holds for the exponential mechanism alone, and no charge counts it, since
    a release has other draws too.
    """

    epsilon: int  # nano-epsilon
    rho: int  # in units of 1e-12
    delta: Fraction | None = None  # delta of a Gaussian loss; None for a pure one

    def __post_init__(self) -> None:
        """Check that rho belongs to epsilon and delta."""
        if self.delta is None:
            if self.rho != _pure_rho(self.epsilon):
                raise ParameterError("rho of a pure loss must be that of its epsilon")
        elif not 0 < self.rho <= _rho_of(self.epsilon, self.delta):
            raise ParameterError(
                "rho must be above 0 and at most that of epsilon "
                f"{epsilon_text(self.epsilon)} and delta {delta_text(self.delta)}, got "
                f"{rho_text(self.rho)}; epsilon may be too small for Gaussian noise"
            )

    @classmethod
    def pure(cls, epsilon: int) -> Loss:
        """Loss of a mechanism of pure epsilon, in nano-epsilon."""
        return cls(epsilon=epsilon, rho=_pure_rho(epsilon))

    @classmethod
    def gaussian(cls, epsilon: int, delta: Fraction, rho: int | None = None) -> Loss:
        """Loss of Gaussian noise of a rho, by default the largest for epsilon and delta."""
        largest = _rho_of(epsilon, delta) if rho is None else rho
        return cls(epsilon=epsilon, rho=largest, delta=delta)

    @property
    def is_pure(self) -> bool:
        """Whether no delta is spent."""
        return self.delta is None

    @property
    def failure_note(self) -> str:
        """What may happen with the probability delta, to be read after a guarantee."""
        return "" if self.delta is None else f"; {failure_text(self.delta)}"

    @property
    def text(self) -> str:
        """Both numbers of a Gaussian loss, or the epsilon of a pure one."""
        if self.delta is None:
            return f"epsilon {epsilon_text(self.epsilon)}"
        return (
            f"epsilon {epsilon_text(self.epsilon)} and delta {delta_text(self.delta)} "
            f"(rho {rho_text(self.rho)})"
        )


def rho_within(epsilon: int, delta: Fraction) -> int:
    """Largest rho, in 1e-12, that nano-epsilon and delta allow, rounded down; 0 if below 1e-12."""
    return _rho_of(epsilon, delta)


def largest_pure_epsilon(rho: int) -> int:
    """Largest nano-epsilon whose pure mechanisms cost at most a rho in 1e-12; 0 for one below 0."""
    low, high = 0, MAX_EPSILON * NANO
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if pure_rho(middle) <= rho else (low, middle - 1)
    return low


def rho_text(pico: int) -> str:
    """Shortest decimal text of a rho in units of 1e-12."""
    return f"{pico // PICO}.{pico % PICO:012d}".rstrip("0").rstrip(".")
