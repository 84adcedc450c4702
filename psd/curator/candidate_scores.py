"""What a curator needs to know of candidates to choose one of them. Private side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from psd._util.arrays import Integers
    from psd.ingest.tally import Tally
    from psd.space.domain import Domain

__all__ = ["CandidateScores"]


class CandidateScores(Protocol):
    """Public candidates, and how records score them. A frozen value that holds no record.

    P1. All members but `scores` are functions of public parameters.

    P2. One record more or less changes no score by more than ``sensitivity(1)``, and k records by
    no more than ``sensitivity(k)``; if `is_monotone`, a record more never lowers a score.
    `Curator.choose` relies on both.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the scores of the next draw."""

    @property
    def is_monotone(self) -> bool:
        """Whether a record more can never lower a score."""

    def sensitivity(self, contributions: int) -> int:
        """Largest change of a score by records of one unit, of at most so many contributions."""

    def scores(self, tally: Tally, domain: Domain) -> Integers:
        """Compute all scores, int64. Private."""
