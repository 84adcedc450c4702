"""The sampler of releases: exact laws, randomness of the operating system. Private side."""

from __future__ import annotations

from psd.mechanisms.base import Answer, Mechanism

__all__ = ["SecureSampler"]


class SecureSampler:
    """Draws each mechanism by its exact law; without state, so forks share no draws."""

    __slots__ = ()

    def draw(self, mechanism: Mechanism[Answer]) -> Answer:
        """Draw the answer of a mechanism with the randomness of the operating system."""
        return mechanism.sample()
