"""What draws cost in rho of zero-concentrated privacy, and what a rho means as (epsilon, delta).

A mechanism with outputs P and Q on two neighbours is rho-zCDP if the Rényi divergence of every
order a > 1, in both directions, is at most a * rho. The rhos of all draws on the same people add
up, also if a question depends on earlier answers. Here rho is a whole number of 1e-12, so that
sums are exact. Every cost is rounded up, every budget is rounded down, and an epsilon that is
stated is rounded up: the promise is never larger than the proof.

`psd ledger account` prints these numbers for other people's spendings too.

References
----------
.. [1] M. Bun, T. Steinke, "Concentrated Differential Privacy", TCC 2016, arXiv:1605.02065.
.. [2] C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy",
   NeurIPS 2020, arXiv:2004.00010, Corollary 13.
.. [3] I. Mironov, K. Talwar, L. Zhang, "Rényi Differential Privacy of the Sampled Gaussian
   Mechanism", 2019, arXiv:1908.10530, section 3.3.
.. [4] P. Kairouz, B. McMahan, S. Song, O. Thakkar, A. Thakurta, Z. Xu, "Practical and Private
   (Deep) Learning without Sampling or Shuffling", ICML 2021, arXiv:2103.00039.
.. [5] A. Koskela, J. Jälkö, A. Honkela, "Computing Tight Differential Privacy Guarantees Using
   FFT", AISTATS 2020, arXiv:1906.03049.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction

from psd.errors import ParameterError

__all__ = ["PICO"]

PICO = 10**12
_NANO = 10**9
_DIGITS = 60
# Decimal rounds each result, its logarithms and exponentials too, to 60 digits. The sums here
# lose at most 20 of them, so a result is known far more closely than this.
_CLOSE = Decimal(10) ** -30
# The optimal order lies inside: ln(order - 1) at rho 1e6 and at rho 1e-12 with delta 1e-300.
_LEAST, _LARGEST, _STEPS = -30.0, 30.0, 80
_ORDERS = (*range(2, 65), 80, 96, 128, 192, 256, 384, 512, 768, 1024)
# Much noise on few people, or little noise, has its best order between these: in tenths up to 11.
_TENTHS = tuple(n / 10 for n in range(11, 110) if n % 10)
_TERMS = 2**12
# Losses are composed in floats, whose rounding is far below this part of delta.
_LEAST_DELTA, _ROUNDED = Fraction(1, 10**9), 1e-12


def rho_of(epsilon_nano: int, delta: Fraction) -> int:
    """Largest rho, in 1e-12, whose draws are (epsilon, delta)-private, rounded down; 0 below 1e-12.

    P1. Every rho-zCDP mechanism of at most this rho is (epsilon, delta)-differentially private: the
    bound of [2]_, ln(delta) = (a - 1) (a rho - epsilon) + (a - 1) ln(1 - 1/a) - ln(a), holds at
    every order a > 1, and is evaluated at one of them with 60 digits.
    """
    _check(epsilon_nano, "epsilon", least=1)
    with _exact():
        log_delta = _log_delta(delta)
        epsilon = Decimal(epsilon_nano) / _NANO
        rise = float(epsilon)
        # At a fixed order the bound gives a rho; the best order gives the largest. The right side
        # is convex in the order, so its derivative, at the rho of that order, changes sign once, at
        # the best one, which bisection finds.
        beyond = _best(lambda x: (_rho_at(x, rise, float(log_delta)), rise))
        rho = (log_delta + _order_term(beyond) + beyond * epsilon) / (beyond * (1 + beyond))
        return max(_down(rho * PICO), 0)


def epsilon_of(rho_pico: int, delta: Fraction) -> int:
    """Smallest nano-epsilon such that draws of a rho in 1e-12 are private, rounded up.

    P2. Every rho-zCDP mechanism of this rho is (epsilon, delta)-differentially private [2]_.
    """
    _check(rho_pico, "rho", least=0)
    with _exact():
        log_delta = _log_delta(delta)
        rho = Decimal(rho_pico) / PICO
        slope = float(rho)
        beyond = _best(lambda x: (slope, _epsilon_at(x, slope, float(log_delta))))
        epsilon = (1 + beyond) * rho - (log_delta + _order_term(beyond)) / beyond
        return max(_up(epsilon * _NANO), 0) if rho_pico else 0


def pure_rho(epsilon_nano: int) -> int:
    """Rho in 1e-12 of any mechanism of nano-epsilon: epsilon * tanh(epsilon / 2), rounded up.

    P3. Randomised response has the largest divergences of all such mechanisms, and those are
    largest, per order, as the order goes to 1.
    """
    _check(epsilon_nano, "epsilon", least=0)
    with _exact():
        epsilon = Decimal(epsilon_nano) / _NANO
        odds = (-epsilon).exp()
        return _up(epsilon * (1 - odds) / (1 + odds) * PICO) if epsilon_nano else 0


def selection_rho(epsilon_nano: int) -> int:
    """Rho in 1e-12 of the exponential mechanism of nano-epsilon: epsilon ** 2 / 8, rounded up.

    P4. Its log-ratios on two neighbours lie in an interval of length epsilon (bounded range).
    """
    _check(epsilon_nano, "epsilon", least=0)
    return -(-(epsilon_nano**2) * PICO // (8 * _NANO**2))


def gaussian_rho(multiplier: Fraction) -> int:
    """Rho in 1e-12 of Gaussian noise, discrete or continuous: 1 / (2 multiplier ** 2), rounded up.

    The multiplier is the standard deviation (of discrete noise sigma) over the L2 sensitivity.
    """
    return tree_rho(1, multiplier)


def tree_rho(steps: int, multiplier: Fraction) -> int:
    """Rho in 1e-12 of a binary tree of Gaussian sums over steps, a person being in one [4]_."""
    _check(steps, "steps", least=1)
    _check_multiplier(multiplier)
    # A step is in one node of each level; the multiplier is of a node, over a step.
    return math.ceil(steps.bit_length() * PICO / (2 * multiplier**2))


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledGaussian:
    """Continuous Gaussian noise on samples of the people, a new one in each step (DP-SGD)."""

    # Probability to be in a sample, independent of other people and steps, in (0, 1).
    rate: Fraction
    multiplier: Fraction  # standard deviation over the L2 sensitivity of a step, above 0
    steps: int  # number of steps, at least 1

    def __post_init__(self) -> None:
        """Check the parameters."""
        if not 0 < self.rate < 1:
            raise ParameterError(
                f"rate must be above 0 and below 1, got {float(self.rate):g}; "
                "noise without sampling is a plain Gaussian",
                name="rate",
                value=self.rate,
            )
        _check_multiplier(self.multiplier)
        _check(self.steps, "steps", least=1)

    def divergences(self) -> list[Decimal]:
        """Rényi divergence of all steps at each integer order of the table, to 60 digits."""
        # At an integer order a it is the logarithm, over a - 1, of the sum over i of C(a, i) (1 -
        # q)^(a - i) q^i exp((i^2 - i) / (2 multiplier^2)), by [3].
        with _exact():
            inside, outside = _decimal(self.rate), _decimal(1 - self.rate)
            half = 1 / (2 * _decimal(self.multiplier**2))
            moments = [((i * i - i) * half).exp() for i in range(_ORDERS[-1] + 1)]
            odds = inside / outside
            terms = [moment * odds**i for i, moment in enumerate(moments)]
            return [self.steps * _divergence(a, outside, terms) for a in _ORDERS]

    def fractional_divergences(self) -> list[Decimal]:
        """Rényi divergence of all steps at each tenth of `_TENTHS`, rounded up."""
        rate, multiplier = float(self.rate), float(self.multiplier)
        return [self.steps * _fractional_divergence(a, rate, multiplier) for a in _TENTHS]


def epsilon_with_samples(rho_pico: int, samples: Sequence[SampledGaussian], delta: Fraction) -> int:
    """Nano-epsilon of draws of a rho in 1e-12 and of sampled Gaussians together, rounded up."""
    _check(rho_pico, "rho", least=0)
    parts = [[*each.divergences(), *each.fractional_divergences()] for each in samples]
    with _exact():
        log_delta = _log_delta(delta)
        # The best order of a table is taken, of tenths up to 11 and integers up to 1,024, so the
        # result may be slightly above that of the best order. Draws of a rho alone have theirs in
        # `epsilon_of`.
        rho, orders = Decimal(rho_pico) / PICO, [Decimal(str(a)) for a in (*_ORDERS, *_TENTHS)]
        sums = [sum(at, a * rho) for a, *at in zip(orders, *parts, strict=True)]
        bounds = [
            total + (1 - 1 / a).ln() - (log_delta + a.ln()) / (a - 1)
            for a, total in zip(orders, sums, strict=True)
        ]
        return max(_up(min(bounds) * _NANO), 0)


def compose_losses(
    pure: Sequence[tuple[int, int]], samples: Sequence[SampledGaussian], delta: Fraction
) -> int | None:
    """Nano-epsilon of pure spendings and of sampled Gaussians, by the law of their losses [5]_.

    By Google's dp-accounting, of the extra ``account``; None without it, below a delta of 1e-9, and
    without spendings. `pure` has nano-epsilons, and how many there are of each.
    P5. A pure mechanism is dominated by randomised response of its epsilon, and a sampled Gaussian
    by its own two laws, with a person and without. The losses of independent draws from these add
    up, also if each spending is chosen by the answers of those before.
    P6. The steps are rounded up. Floats are rounded to either side, by less than 1e-12 of delta,
    which is taken off delta beforehand.
    """
    try:
        from dp_accounting.pld import common
        from dp_accounting.pld import privacy_loss_distribution as law
    except ImportError:
        return None
    if delta < _LEAST_DELTA or not (pure or samples):
        return None
    # A million steps for the largest losses, of one spending and of all together.
    widest = [sum(each * times for each, times in pure) / _NANO]
    widest += [float(1 / (2 * each.multiplier**2) + 10 / each.multiplier) for each in samples]
    step = max(1e-4, max(widest) / 10**6)
    dominating = [
        law.from_privacy_parameters(
            common.DifferentialPrivacyParameters(epsilon / _NANO, 0),
            value_discretization_interval=step,
        ).self_compose(times)
        for epsilon, times in pure
    ] + [
        law.from_gaussian_mechanism(
            float(each.multiplier),
            sampling_prob=float(each.rate),
            value_discretization_interval=step,
        ).self_compose(each.steps)
        for each in samples
    ]
    together = functools.reduce(lambda one, other: one.compose(other), dominating)
    epsilon = together.get_epsilon_for_delta(float(delta) - _ROUNDED)
    return math.ceil(epsilon * _NANO) + 1 if math.isfinite(epsilon) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """What several spendings on the same people cost together, by two bounds or three."""

    added: int  # nano-epsilon: pure epsilons, and that of all other spendings together, added
    converted: int  # nano-epsilon: rhos, or divergences of each order, of all spendings added
    # Nano-epsilon: losses of pure and sampled spendings composed, and what the others cost at half
    # of delta added; None if `compose_losses` gives none.
    composed: int | None
    rho: int  # of all spendings but those on samples, in 1e-12

    @classmethod
    def of(
        cls,
        delta: Fraction,
        *,
        pure: Sequence[tuple[int, int]] = (),
        rho: int = 0,
        samples: Sequence[SampledGaussian] = (),
    ) -> Composition:
        """Bound the cost of pure spendings, of draws of a rho in 1e-12, and of sampled Gaussians.

        P7. All spendings together are (`epsilon`, delta)-differentially private, also if each was
        chosen by the answers of those before. Which spendings there are is fixed beforehand.
        """
        total = rho + sum(times * pure_rho(epsilon) for epsilon, times in pure)
        part = delta / 2 if rho else delta
        composed = compose_losses(pure, samples, part)
        return cls(
            added=sum(map(math.prod, pure)) + _converted(rho, samples, delta),
            converted=_converted(total, samples, delta),
            composed=None if composed is None else composed + epsilon_of(rho, part),
            rho=total,
        )

    @property
    def epsilon(self) -> int:
        """The smallest of them, in nano-epsilon."""
        return min(self.added, self.converted, *filter(None, [self.composed]))


def _converted(rho: int, samples: Sequence[SampledGaussian], delta: Fraction) -> int:
    """Epsilon of draws of a rho, and of samples if there are any."""
    if not samples:
        return epsilon_of(rho, delta)
    return epsilon_with_samples(rho, samples, delta)


def _divergence(order: int, outside: Decimal, terms: Sequence[Decimal]) -> Decimal:
    """Rényi divergence of one sampled step at an integer order."""
    total = sum((math.comb(order, i) * terms[i] for i in range(order + 1)), Decimal(0))
    return (order * outside.ln() + total.ln()) / (order - 1)


def _fractional_divergence(order: float, rate: float, multiplier: float) -> Decimal:
    """Rényi divergence of one sampled step at an order that is no integer, rounded up [3]_."""
    import numpy as np
    from scipy.special import gammaln, gammasgn, log_ndtr

    # The densities cross at a point. Below it the sum is in powers of the rate, above it in powers
    # of the rest, at any order a the logarithm, over a - 1, of two sums over i of C(a, i).
    point, i = 0.5 + multiplier**2 * math.log(1 / rate - 1), np.arange(_TERMS, dtype=float)
    j, double = order - i, 2 * multiplier**2
    gammas = np.array([np.full(_TERMS, gammaln(order + 1)), -gammaln(i + 1), -gammaln(j + 1)])
    sign = gammasgn(j + 1)
    sides = [
        (i * math.log(rate), j * math.log1p(-rate), (i * i - i) / double, (point - i) / multiplier),
        (j * math.log(rate), i * math.log1p(-rate), (j * j - j) / double, (j - point) / multiplier),
    ]
    exponents = np.array([[*gammas, *parts, log_ndtr(reach)] for *parts, reach in sides])
    logs, sizes = exponents.sum(axis=1), abs(exponents).sum(axis=1)
    largest = logs.max()
    terms = np.exp(logs - largest)
    # What is left out is below the last terms, which alternate and shrink.
    total = math.fsum((sign * terms).ravel()) + terms[:, -1].sum()
    if not (math.isfinite(largest) and total > 0):
        return Decimal("Infinity")
    # An exponent is off by less than 2^-48 of the sizes that it is a sum of, gammas of the binomial
    # among them.
    error = 2.0**-48 * (1 + abs(largest) + float((terms * sizes).sum()) / total)
    return Decimal((largest + math.log(total) + error) / (order - 1))


def _best(at: Callable[[float], tuple[float, float]]) -> Decimal:
    """Order less 1 at which the derivative of the bound is 0; any other is valid, but worse."""
    low, high = _LEAST, _LARGEST
    for _ in range(_STEPS):
        middle = (low + high) / 2
        x = math.exp(middle)
        # Rho and epsilon that the bound ties together at this order.
        rho, epsilon = at(x)
        rises = (1 + 2 * x) * rho - epsilon - math.log1p(1 / x) > 0
        low, high = (low, middle) if rises else (middle, high)
    return Decimal(math.exp(low))


def _rho_at(x: float, epsilon: float, log_delta: float) -> float:
    """Rho that the order 1 + x gives, about."""
    return (log_delta + math.log1p(x) + x * math.log1p(1 / x) + x * epsilon) / (x * (1 + x))


def _epsilon_at(x: float, rho: float, log_delta: float) -> float:
    """Epsilon that the order 1 + x gives, about."""
    return (1 + x) * rho - (log_delta + math.log1p(x)) / x - math.log1p(1 / x)


def _order_term(x: Decimal) -> Decimal:
    """Terms ln(a) - (a - 1) ln(1 - 1/a) of the bound at the order a = 1 + x."""
    return (1 + x).ln() + x * (1 + 1 / x).ln()


@contextmanager
def _exact() -> Iterator[None]:
    """Decimal arithmetic of 60 digits, whatever the caller's context is."""
    with localcontext(Context(prec=_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        yield


def _down(value: Decimal) -> int:
    """Round down a value that is known to `_CLOSE`."""
    return int((value - _CLOSE).to_integral_value(ROUND_FLOOR))


def _up(value: Decimal) -> int:
    """Round up a value that is known to `_CLOSE`."""
    return int((value + _CLOSE).to_integral_value(ROUND_CEILING))


def _decimal(value: Fraction) -> Decimal:
    """Value to 60 digits."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def _log_delta(delta: Fraction) -> Decimal:
    """Logarithm of delta."""
    if not 0 < delta < 1:
        raise ParameterError(
            f"delta must be above 0 and below 1, got {delta}", name="delta", value=delta
        )
    return _decimal(delta).ln()


def _check(value: int, name: str, *, least: int) -> None:
    """Refuse a public integer below the least."""
    if value < least:
        raise ParameterError(
            f"{name} must be at least {least}, got {value}", name=name, value=value
        )


def _check_multiplier(multiplier: Fraction) -> None:
    """Refuse a multiplier that is not above 0."""
    if multiplier <= 0:
        raise ParameterError(
            f"multiplier must be above 0, got {multiplier}", name="multiplier", value=multiplier
        )
