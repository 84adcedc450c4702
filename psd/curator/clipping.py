"""Clip the part of one person, and round it to whole steps, so sums are integers. Private side."""

from __future__ import annotations

import numpy as np

from psd._util.arrays import Floats, Integers

STEP_BITS = 20
"""A step is 2^-20; a part of norm 1 has 2^20 of them."""

_LIMIT = 1 << 2 * STEP_BITS


def clip_to_steps(values: Floats) -> Integers:
    """Scale values to a norm of at most 1, and round each towards zero to steps of 2^-20.

    values: float64 of any shape, the part of one person, private; returns int64 of the same shape.

    P1. The sum of the squares of the steps is at most 2^40, for any values; it is checked with
    integers. Values that are not finite become 0.
    """
    if not np.isfinite(values).all():
        return np.zeros(values.shape, np.int64)
    largest = np.abs(values).max(initial=0)
    scaled = values / max(largest, 1)  # whose squares do not overflow
    norm = max(float(np.linalg.norm(scaled)), 1 / max(largest, 1))
    steps: Integers = np.trunc(scaled / norm * 2**STEP_BITS).astype(np.int64)
    while int((steps * steps).sum()) > _LIMIT:  # by the rounding of the norm
        steps -= np.sign(steps)
    return steps
