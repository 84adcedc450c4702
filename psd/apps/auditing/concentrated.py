"""Bound the loss in rho of a build that was recorded on one data set and replayed on a neighbour.

The counterpart of `psd.testing.replay.transcript_loss` for builds whose loss is counted in rho.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from psd.mechanisms.threshold import ThresholdMechanism
from psd.privacy.loss import NANO, RHO
from psd.testing.transcripts import Draw, LeakError

__all__ = ["transcript_rho"]


def transcript_rho(draws: Sequence[Draw], others: Sequence[Draw]) -> Fraction:
    """Bound the rho, not in parts, of the difference of data sets that get the same answers."""
    total = Fraction(0)
    shapes: dict[int, Fraction] = {}
    for a, b in zip(draws, others, strict=True):
        if a.kind == "gaussian":
            # Noise of rho r and squared sensitivity s costs d^2 r / s where a count differs by d.
            total += _gaussian(a, b)
        elif a.kind == "select":
            # Log-ratios that lie in an interval of length e cost e^2 / 8.
            total += _selection(a, b)
        elif a.kind == "threshold":
            # The comparisons of one question are those of a PrivTree: where a record costs e and
            # the counts differ by at most n, they cost (n e)^2 / 2.
            shapes[a.question] = max(shapes.get(a.question, Fraction(0)), _pure_loss(a, b))
        else:
            raise LeakError(f"a draw of {type(a.mechanism).__name__} is not charged in rho")
    return total + sum((loss**2 / 2 for loss in shapes.values()), Fraction(0))


def _gaussian(a: Draw, b: Draw) -> Fraction:
    """Rho of noisy counts."""
    change = [int(d) for d in a.true - b.true]
    parts = zip(change, a.loss.tolist(), a.sensitivity.tolist(), strict=True)
    return sum((Fraction(d * d * r, RHO.parts * s) for d, r, s in parts), Fraction(0))


def _selection(a: Draw, b: Draw) -> Fraction:
    """Rho of selections, by the largest and the smallest change of a score in each group."""
    total = Fraction(0)
    for index, (loss, sensitivity) in enumerate(zip(a.loss, a.sensitivity, strict=True)):
        change = (a.true - b.true)[a.group == index]
        rate = Fraction(int(loss), 2 * NANO * int(sensitivity))
        total += (rate * int(np.ptp(change))) ** 2 / 8
    return total


def _pure_loss(a: Draw, b: Draw) -> Fraction:
    """Largest epsilon of the comparisons of a PrivTree: 7 / 3 over the scale for each record."""
    assert isinstance(a.mechanism, ThresholdMechanism)
    change, numerator = np.abs(a.true - b.true), a.mechanism.numerator
    parts = zip(change.tolist(), a.mechanism.denominator.tolist(), strict=True)
    return max((Fraction(7 * d * down, 3 * numerator) for d, down in parts), default=Fraction(0))
