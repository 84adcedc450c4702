"""A sampler with a seed, for demonstrations and for reproducing faults; never for a release.

Who guesses the seed can subtract the noise. So a release of it is marked as insecure, cannot be
saved or exported, and is not charged to a ledger. It gives floats to the `approximate` of each
mechanism, which nothing else calls and which shares nothing with the draws of a release.
"""

from __future__ import annotations

from hashlib import shake_256

import numpy as np

from psd._util.arrays import Floats
from psd._util.declared_parameters import integer_between
from psd.errors import ParameterError
from psd.mechanisms.base import Answer, Mechanism, Sampler

__all__ = ["SeededSampler", "refuse_seed"]


class SeededSampler:
    """Draws approximately from the law of each mechanism, with a seeded generator.

    Guarantees
    ----------
    - The same seed, data and parameters give the same answers. The records of a user that are kept
      are still selected at random.
    - A release built with it cannot be saved or exported, and is not charged to a ledger.

    Parameters
    ----------
    seed : int
        0 to 2^63 - 1.

    Examples
    --------
    >>> import pandas as pd, psd
    >>> points = pd.DataFrame({"lon": [126.98, 127.03], "lat": [37.57, 37.50]})
    >>> domain = psd.Domain(bounds=(126.40, 37.00, 127.60, 38.00))
    >>> how = {"domain": domain, "epsilon": 1, "method": psd.decompositions.Grid(size=2)}
    >>> first, again = (psd.build(points, **how, sampler=SeededSampler(7)) for _ in range(2))
    >>> bool((first.tree.count == again.tree.count).all()), first.record.source
    (True, 'insecure')
    """

    def __init__(self, seed: int) -> None:
        self.seed = integer_between(0, 2**63 - 1)("insecure_seed", seed)
        self._draws = 0

    def draw(self, mechanism: Mechanism[Answer]) -> Answer:
        """Draw the answer of a mechanism.

        Raises
        ------
        ParameterError
            If the mechanism, of another package, has no `approximate`.
        """
        if not hasattr(mechanism, "approximate"):
            raise ParameterError(
                f"mechanism must be one that a seed can repeat, got {type(mechanism).__name__}"
            )
        return mechanism.approximate(self._uniform)

    def _uniform(self, size: int) -> Floats:
        """Draw numbers in (0, 1)."""
        self._draws += 1
        name = f"psd insecure {self.seed} {self._draws}".encode()
        words = np.frombuffer(shake_256(name).digest(8 * size), dtype="<u8")
        return ((words >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def refuse_seed(sampler: Sampler | None) -> None:
    """Refuse a seeded sampler where the result is no release, and would not state it."""
    if isinstance(sampler, SeededSampler):
        raise ParameterError(
            "sampler must be left out, got one with a seed; only a release states that its noise "
            "is no secret"
        )
