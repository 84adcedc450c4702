"""Law of the splits of shapes: how often a number plus noise is above 0."""

from fractions import Fraction

import numpy as np
from scipy import stats

from support.privacy.samplers import exceeds
from support.privacy.shapes import log_above

N = 100_000


def p_value(scale, factor=1):
    """Smallest of the p-values over b around 0, corrected for their number."""
    around = (Fraction(b) * max(scale, 1) for b in (-2, -1, Fraction(-1, 2), 0, 1, Fraction(3, 2)))
    found = []
    for b in sorted({round(b) for b in around}):
        drawn = scale * factor
        denominators = np.full(N, drawn.denominator)
        above = exceeds(np.full(N, b), drawn.numerator, denominators)
        found.append(stats.binomtest(int(above.sum()), N, np.exp(log_above(b, float(scale)))))
    return min(test.pvalue for test in found) * len(found)
