"""rappor: bits that are settled once for all reports of an answer, and randomised in each report.

A word has the bits of its hashes (a Bloom filter), in one of several cohorts; an option or a known
cell has a bit of its own. Hashes are of google/rappor (Erlingsson, Pihur, Korolova, CCS 2014).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from psd.apps.local.device import UNIT, RapporDraw, mask_text
from psd.apps.local.protocols.answers import (
    MaskProtocol,
    Masks,
    count_masks,
    noise_variance,
    within,
)

_REPORTS = 4
"""Reports that the epsilon of all reports covers by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rappor(MaskProtocol):
    """Bits of an answer, settled once with f = flips / 128 and randomised again in each report.

    P1. The largest ratio of a law is at most exp(epsilon). A settled bit is a coin with probability
    f, else the true bit; a report has 1 with probability p' for a settled 0, and q' for a settled
    1. So a bit of a report is 1 with probability q = f/2 (p' + q') + (1 - f) p' where the answer
    has 0, and p = f/2 (p' + q') + (1 - f) q' where it has 1. Without settings p' = 1 - q' follows
    from epsilon; with ``p`` and ``q``, which are p' and q', epsilon follows.
    P2. Two answers differ in at most 2 h bits, h of each kind. A report multiplies their odds by at
    most (p (1 - q) / (q (1 - p)))^h, and all reports of one answer by at most ((1 - f/2) /
    (f/2))^(2 h), since they follow from settled bits. Both are reached where no bit is shared.
    """

    draw: RapporDraw

    name: ClassVar[str] = "rappor"
    stated: ClassVar[tuple[str, ...]] = ("p", "q")
    use: ClassVar[str] = "places, options, words"

    @classmethod
    def best(cls, nano_epsilon: int, answers: int) -> Rappor:
        """A bit for each answer, with as few flips as four reports need."""
        cls.check_answers(answers)
        return cls(draw=RapporDraw(nano_epsilon, answers, "one-hot", fewest_flips(nano_epsilon)))

    @classmethod
    def of_words(
        cls, nano_epsilon: int, *, bits: int = 128, hashes: int = 1, cohorts: int = 16
    ) -> Rappor:
        """Bits of the hashes of a word, with as few flips as four reports need."""
        flips = fewest_flips(nano_epsilon, hashes)
        return cls(draw=RapporDraw(nano_epsilon, bits, "bloom", flips, hashes, cohorts))

    @property
    def is_bloom(self) -> bool:
        """Whether the bits are those of a word."""
        return self.draw.encoding == "bloom"

    @property
    def settings(self) -> dict[str, Any]:
        """Settings, as a campaign states them."""
        settings: dict[str, Any] = {"encoding": self.draw.encoding, "flips": self.draw.flips}
        if self.is_bloom:
            sizes = {"hashes": self.draw.hashes, "cohorts": self.draw.cohorts}
            settings |= {"bits": self.answers, **sizes}
        if self.draw.q:
            settings |= {"p": self.draw.p, "q": self.draw.q}
        return settings

    @property
    def lifetime(self) -> int:
        """Nano-epsilon of any number of reports of one answer."""
        return self.draw.lifetime

    @property
    def p(self) -> Fraction:
        """Probability of a 1 in a bit that the answer has."""
        return self._rate(256 - self.draw.flips)

    @property
    def q(self) -> Fraction:
        """Probability of a 1 in another bit."""
        return self._rate(self.draw.flips)

    def _rate(self, settled: int) -> Fraction:
        """Probability of a 1, if the settled bit is 1 in so many of 256 cases."""
        low, high = self.draw.thresholds
        return Fraction(settled * high + (256 - settled) * low, 256 * UNIT)

    def variance(self, share: Fraction | int) -> Fraction:
        """Variance of an estimate from one report; of a word whose bits no other word has."""
        return noise_variance(self.p, self.q, share) / self.draw.hashes

    @property
    def width(self) -> int:
        """Bytes of a report: the bits, and of a word two of the cohort."""
        return -(-self.answers // 8) + 2 * self.is_bloom

    def law(self, answer: Any) -> Iterator[tuple[str, Fraction]]:
        """Every report and its probability."""
        for cohort in range(self.draw.cohorts):
            ones = self.draw.bits(answer, cohort)
            for mask in range(2**self.answers):
                chance = Fraction(1, self.draw.cohorts)
                for i in range(self.answers):
                    rate = self.p if i in ones else self.q
                    chance *= rate if mask >> i & 1 else 1 - rate
                end = 8 * (self.width - 2 * self.is_bloom)
                yield mask_text(mask | cohort << end, 8 * self.width), chance

    def read_masks(self, masks: Masks) -> NDArray[np.bool_]:
        """Which reports have no bit beyond the last one, and a cohort that there is."""
        if masks.shape[1] != self.width:
            return np.zeros(len(masks), bool)
        # The last byte may have room for more bits than there are answers.
        has_bits = within(masks[:, : -(-self.answers // 8)], self.answers)
        return has_bits & (self._cohorts(masks) < self.draw.cohorts)

    def tabulate(self, codes: Masks) -> NDArray[np.int64]:
        """Reports with a 1 in each bit; of words, a row for each cohort, then all of them."""
        bits = codes[:, : -(-self.answers // 8)]
        if not self.is_bloom:
            return count_masks(bits, self.answers)
        table = np.zeros((self.draw.cohorts, self.answers + 1), np.int64)
        cohorts = self._cohorts(codes)
        # Cohorts hash a word to other bits, so their counts stay apart.
        for cohort in np.unique(cohorts).tolist():
            mine = bits[cohorts == cohort]
            table[cohort] = [*count_masks(mine, self.answers), len(mine)]
        return table

    def _cohorts(self, masks: Masks) -> NDArray[np.int64]:
        if not self.is_bloom:
            return np.zeros(len(masks), np.int64)
        # The last two bytes of a report, the lower one first.
        low, high = masks[:, -2:].T.astype(np.int64)
        cohorts: NDArray[np.int64] = low | high << 8
        return cohorts


def fewest_flips(nano_epsilon: int, hashes: int = 1) -> int:
    """Fewest of 128 bits whose flips let all reports cost as much as four, or 127 if none do."""
    costs = (RapporDraw(nano_epsilon, 2, "one-hot", n, hashes).lifetime for n in range(1, 128))
    fits = (n for n, cost in enumerate(costs, start=1) if cost <= _REPORTS * nano_epsilon)
    return next(fits, 127)
