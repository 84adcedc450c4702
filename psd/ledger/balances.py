"""Budgets in two currencies: what was spent, what is left, and whether a charge fits.

Private side, reads no points. A budget of epsilon alone takes pure charges, and their epsilons add
up. A budget of (epsilon, delta) counts in rho of zero-concentrated privacy too.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from psd.ledger.charges import Dataset
from psd.privacy.loss import Loss, epsilon_text, largest_pure_epsilon, rho_text, rho_within

__all__ = ["Allowance", "Balance", "Spent"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """Budget of a dataset, or cap of an analyst. Public."""

    epsilon: int  # nano-epsilon
    delta: Fraction | None = None  # delta of the dataset; without one, only pure charges fit

    @property
    def rho(self) -> int:
        """Largest rho, in 1e-12, that epsilon and delta allow; 0 without a delta."""
        return 0 if self.delta is None else rho_within(self.epsilon, self.delta)

    @staticmethod
    def of_dataset(dataset: Dataset, analyst: str | None = None) -> Allowance:
        """Budget of a dataset, or the cap of one of its analysts."""
        epsilon = dataset.budget if analyst is None else dataset.caps[analyst]
        return Allowance(epsilon=epsilon, delta=dataset.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Largest sums over the points and times of an extent, each on its own. Public."""

    epsilon: int  # nano-epsilon of the pure charges
    rho: int = 0  # of all charges, in 1e-12; 0 if the dataset has no delta
    gaussian: int = 0  # rho of the Gaussian charges, in 1e-12; 0 if all are pure


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """What is left of an allowance.

    P1. Without a delta, all charges that were granted are epsilon-differentially private together
    for one unit of privacy; with a delta, they are (epsilon, delta)-differentially private.

    A charge is granted if one of two sums stays within the allowance (B, delta), where R is the
    largest rho that is (B, delta)-private, `psd.accounting.rho_of`:

    1. all charges are pure, and their epsilons add up to at most B;
    2. the rhos add up to at most R. A pure charge of epsilon e counts e tanh(e / 2), and a Gaussian
       one its rho.

    Proof. Let D and D' differ in one unit z. Only charges that hold records of z count, see
    `psd.ledger.extents.largest_sum`; the sums here are at least those of z. Whether a charge is
    granted is a function of the charges before it, so of the transcript t. Let T1 be the
    transcripts at whose end all charges of z are pure and their epsilons are at most B, and T2 all
    others. Every charge of z was granted by a sum over all charges of z up to it. So at the end of
    a transcript of T2, the rhos of z are at most R, and they were at most R at all times before.

    On T1 every transcript has P(t | D) <= e^B P(t | D'), by basic composition: a filter of pure
    epsilons [1]_. For T2, let A be the same interaction which ends before a charge that would take
    the rhos of z above R. A is R-zCDP, since a fixed sum of rhos is a filter too [2]_, and so
    (B, delta)-private [3]_. A gives the transcripts of T2 with the same probabilities. So for any
    set E of transcripts,

        P(E | D) = P(E and T1 | D) + P(E and T2 | D)
                <= e^B P(E and T1 | D') + e^B P(E and T2 | D') + delta = e^B P(E | D') + delta.

    The delta is spent once, in T2. A third sum, of some charges in epsilon and the others in rho,
    would need parts of B and delta that are fixed before the first charge, so it is not offered.
    If a budget is raised, the proof holds with the new B and R. The cap of an analyst is an
    allowance like a budget, over the charges of the analyst.

    References
    ----------
    .. [1] Rogers, Roth, Ullman, Vadhan. "Privacy Odometers and Filters: Pay-as-you-Go
       Composition." NeurIPS 2016.
    .. [2] Feldman, Zrnic. "Individual Privacy Accounting via a Rényi Filter." NeurIPS 2021.
    .. [3] Canonne, Kamath, Steinke. "The Discrete Gaussian for Differential Privacy." NeurIPS 2020,
       corollary 13.
    """

    allowance: Allowance
    spent: Spent

    def grants(self, loss: Loss) -> bool:
        """Whether a charge fits by one of the two sums."""
        is_all_pure = loss.is_pure and self.spent.gaussian == 0
        if is_all_pure and self.spent.epsilon + loss.epsilon <= self.allowance.epsilon:
            return True
        return self.allowance.delta is not None and loss.rho <= self.rho_left

    @property
    def epsilon_left(self) -> int:
        """Nano-epsilon that is left if only pure charges are made; 0 after a Gaussian charge."""
        if self.spent.gaussian:
            return 0
        return max(self.allowance.epsilon - self.spent.epsilon, 0)

    @property
    def rho_left(self) -> int:
        """Rho in 1e-12 that is left; 0 without a delta."""
        return max(self.allowance.rho - self.spent.rho, 0)

    @property
    def largest_pure(self) -> int:
        """Nano-epsilon of the largest pure charge that fits, by either sum."""
        if self.allowance.delta is None:
            return self.epsilon_left
        return max(self.epsilon_left, largest_pure_epsilon(self.rho_left))

    @property
    def text(self) -> str:
        """What is left, in words."""
        if self.allowance.delta is None:
            return f"epsilon {epsilon_text(self.epsilon_left)} left"
        return (
            f"epsilon {epsilon_text(self.largest_pure)} left for a pure charge, rho "
            f"{rho_text(self.rho_left)} for Gaussian noise"
        )
