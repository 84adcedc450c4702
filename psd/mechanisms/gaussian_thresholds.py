"""Survival probabilities of the magnitude of discrete Gaussian noise, as certified integers.

As in `psd.mechanisms.certified_thresholds`, every number is enclosed between two integers, and a
floor is returned only if both ends of the enclosure have the same floor.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import ClassVar

from psd.mechanisms.certified_thresholds import WORD_BITS, exp_enclosure

_GUARD_BITS = 96
_MORE_BITS = 32  # sums of thousands of terms are known less closely than one term


@dataclass(frozen=True, slots=True)
class GaussianSurvival:
    """The probabilities P(|X| >= k), k >= 1, where P(X = x) is proportional to exp(-x^2 / (2 s)).

    The excess of |X| over a value has a law of its own for each value. So the table goes on until
    the probabilities are below 2**-63, and more bits decide a word that ties with an entry.
    """

    numerator: int  # s is numerator / denominator, positive, of any size
    denominator: int

    has_geometric_excess: ClassVar[bool] = False

    def floor(self, k: int, bits: int) -> int:
        """Compute the floor of 2**bits * P(|X| >= k), k >= 1."""
        guard = _GUARD_BITS
        # If 2**bits * P(|X| >= k) were a whole number, the loop would not end, and nothing would be
        # drawn. No rational s is known for which it is one.
        while True:
            low, high = self._enclosures(bits + guard)
            at = min(k, len(low)) - 1  # the last lower end is 0, as are all beyond it
            if low[at] >> guard == high[at] >> guard:
                return low[at] >> guard
            guard *= 2

    def entries(self, guard: int) -> list[int] | None:
        """List the floors of 2**63 * P(|X| >= k) up to the first 0; None if undecided."""
        guard += _MORE_BITS
        entries = []
        for low, high in zip(*self._enclosures(WORD_BITS + guard), strict=True):
            if low >> guard != high >> guard:
                return None
            entries.append(low >> guard)
            if not entries[-1]:
                return entries
        return None

    def _enclosures(self, bits: int) -> tuple[list[int], list[int]]:
        """Enclose 2**bits * P(|X| >= k), k = 1, 2, ..., until the lower end of a weight is 0."""
        unit = 1 << bits
        low, high = (self._sums(weights) for weights in zip(*self._weights(bits), strict=True))
        # With w(j) = exp(-j^2 / (2 s)) and A(k) the sum of w(j) over j >= k, the probability is 2
        # A(k) / (1 + 2 A(1)).
        low_total, high_total = unit + 2 * low[0], unit + 2 * high[0]
        return (
            [(2 * a << bits) // high_total for a in low],
            [-(-(2 * a << bits) // low_total) for a in high],
        )

    def _sums(self, weights: tuple[int, ...]) -> list[int]:
        """Sums of the weights from each on."""
        return list(accumulate(reversed(weights)))[::-1]

    def _weights(self, bits: int) -> Iterator[tuple[int, int]]:
        """Enclose 2**bits * w(j), j = 1, 2, ...; the last has all later weights in its upper end.

        P1. The ratio w(j + 1) / w(j) is exp(-(2 j + 1) / (2 s)), and the ratio of two of these is
        exp(-1 / s). Low ends are rounded down and high ends up. Ratios fall, so all weights from
        one on add up to at most that weight over 1 minus its ratio.
        """
        unit = 1 << bits
        low, high = exp_enclosure(self.denominator, 2 * self.numerator, bits)
        low_step, high_step = exp_enclosure(self.denominator, self.numerator, bits)
        low_ratio, high_ratio = low * low_step >> bits, -(-high * high_step >> bits)
        while low:
            yield low, high
            low, high = low * low_ratio >> bits, -(-high * high_ratio >> bits)
            low_ratio = low_ratio * low_step >> bits
            high_ratio = -(-high_ratio * high_step >> bits)
        yield 0, -(-(high << bits) // (unit - high_ratio))
