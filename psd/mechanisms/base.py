"""What a mechanism is, and what draws from it. Private side."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Answer", "Mechanism", "Sampler"]

Answer = TypeVar("Answer", bound=NDArray[Any])


class Mechanism(Protocol[Answer]):
    """One draw that is ready to be made: a private input, public scales, the law of the answer.

    A frozen value. It knows what the draw costs, how it is made and how probable an answer is, so
    nothing else needs to be changed where another mechanism is added.

    Guarantees
    ----------
    - `sample` has the stated law exactly: integers alone decide an answer, and every random bit
      comes from the operating system.
    - `cost` and `public` are functions of public numbers.
    """

    @staticmethod
    def neighbours() -> tuple[Any, Any]:
        """Two small examples: a question, and the same one with one unit of privacy more.

        The contract tests draw from both, and compare law, loss and cost.
        """

    @property
    def cost(self) -> NDArray[np.int64]:
        """Nano-epsilon that is charged for each answer, shape (n,). Public."""

    @property
    def public(self) -> tuple[Any, ...]:
        """All arguments but the private input: two draws that differ in them are different."""

    def sample(self) -> Answer:
        """Draw one answer for each element."""

    def log_probability(self, answer: Answer) -> NDArray[np.float64]:
        """Logarithm of the probability of each answer; -inf where it is impossible.

        For audits, replays and tests of the law: it decides no draw, so it may use floats.
        """


class Sampler(Protocol):
    """What a curator draws through: `psd.mechanisms.sampler.SecureSampler` for releases.

    Others repeat a draw by a seed, record it, or give a recorded answer back.
    """

    def draw(self, mechanism: Mechanism[Answer]) -> Answer:
        """Answer of a mechanism."""
