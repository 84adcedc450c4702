"""Interfaces of mechanisms and of the samplers that draw from them. Private side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers

__all__ = ["MAX_SENSITIVITY", "Sampler", "UnscoredMechanism"]

Answer = TypeVar("Answer", bound=NDArray[Any])

Uniform = Callable[[int], Floats]
"""Draws so many floats between 0 and 1, neither of them included."""


class Mechanism(Protocol[Answer]):
    """A draw: its private input, its public scales and the law of its answer.

    A mechanism is a frozen value. It states the cost of the draw, samples the answer and computes
    the probability of an answer. So a new mechanism needs no change in other modules.

    Guarantees
    ----------
    - `sample` has exactly the stated law: only integers decide an answer, and every random bit
      comes from the operating system. It never calls `approximate`.
    - `cost` and `public` are functions of public numbers.
    """

    @staticmethod
    def neighbours() -> tuple[Any, Any]:
        """Return two small examples for contract tests; the second has one more unit of privacy."""

    @property
    def cost(self) -> NDArray[np.int64]:
        """Charge of each answer, (n,), nano-epsilon, or rho in units of 1e-12. Public."""

    @property
    def public(self) -> tuple[Any, ...]:
        """All arguments except the private input; draws that differ in them are different draws."""

    def sample(self) -> Answer:
        """Draw one answer for each element, shape (n, ...)."""

    def log_probability(self, answer: Answer) -> NDArray[np.float64]:
        """Compute log-probabilities of answers by floats, for audits; -inf if impossible."""

    def approximate(self, uniform: Uniform) -> Answer:
        """Draw by given floats, about the law: for `psd.publish.insecure.SeededSampler` alone.

        The same floats give the same answer in all versions. A mechanism of another package may
        leave it out; a seed cannot repeat its draws then.
        """


class ScoreMechanism(Mechanism[Integers], Protocol):
    """A choice among public candidates by exact scores.

    Guarantees
    ----------
    - The answer is epsilon-private if one unit moves the score of no candidate by more than the
      sensitivity and, if `is_monotone`, one unit more never lowers one.

    Parameters
    ----------
    scores : ndarray, int64
        **Private.**
    epsilon : int
        Nano-epsilon of the choice, above 0. **Public.**
    sensitivity : int
        Largest change of any score by one unit of privacy, 1 to `MAX_SENSITIVITY`. **Public.**
    is_monotone : bool
        Whether one unit more never lowers any score. **Public.**
    **parameters
        All others, which are **public**.
    """

    score_axes: ClassVar[int]
    """Axes of the scores."""


UnscoredMechanism = Callable[..., ScoreMechanism]
"""A choice without its scores: a class of `psd.mechanisms`, or `functools.partial` of it with its
public parameters. `psd.curator.curator.Curator.choose` fills in the first four of the above."""

MAX_SENSITIVITY = 2**32
"""Twice as many nano-units of it are below 2^63, so that denominators of rates are of 64 bits."""


class Sampler(Protocol):
    """Draws for a curator: securely, by a seed, recording, or returning recorded answers."""

    def draw(self, mechanism: Mechanism[Answer]) -> Answer:
        """Draw the answer of a mechanism."""
