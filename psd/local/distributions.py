"""Distribution of numbers from their reports: expectation maximisation with smoothing.

References
----------
Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric. "Estimating Numerical Distributions under Local
Differential Privacy." SIGMOD 2020, section 5.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats

__all__ = ["BINS", "estimate_distribution"]

BINS: Final = 64
"""Even parts of the range whose shares are estimated."""

_FINE = 256  # parts in which it is computed
_OUTPUTS = 4  # outputs that are counted together
_STEPS = 2_000
_TOLERANCE = 1e-3  # of the log-likelihood
_SAMPLES = 60


def estimate_distribution(matrix: Floats, counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Shares of even parts of the range, and their errors.

    Parameters
    ----------
    matrix : ndarray, shape (steps, outputs)
        Probability of each output at each step.
    counts : ndarray, shape (outputs,), int64
        Reports of each output.

    Returns
    -------
    tuple of ndarray, shape (BINS,)
        Shares, and the roots of the mean squared errors of the estimates of samples of as many
        reports as there are, from the estimated distribution (parametric bootstrap). So the bias
        of the smoothing is in them as far as the estimate shows it. The samples follow from a fixed
        seed.
    """
    reports = int(counts.sum())
    chances = _gather(matrix.reshape(_FINE, -1, matrix.shape[1]).mean(axis=1))
    table = _gather(counts[None].astype(np.float64))
    shares, steps = _maximise(chances, table, _STEPS)
    generator = np.random.default_rng(0)
    expected = (shares @ chances)[0]
    samples = generator.multinomial(reports, expected / expected.sum(), _SAMPLES)
    others, _ = _maximise(chances, samples.astype(np.float64), steps)
    coarse = shares.reshape(BINS, -1).sum(axis=1)
    wrong = others.reshape(_SAMPLES, BINS, -1).sum(axis=2) - coarse
    return coarse, np.sqrt((wrong**2).mean(axis=0))


def _gather(table: Floats) -> Floats:
    """Add neighbouring outputs."""
    starts = np.arange(0, table.shape[1], _OUTPUTS)
    gathered: Floats = np.add.reduceat(table, starts, axis=1)
    return gathered


def _maximise(chances: Floats, tables: Floats, limit: int) -> tuple[Floats, int]:
    """Shares of each table, and the number of steps, until the likelihood stays."""
    total = tables.sum(axis=1, keepdims=True)
    shares = np.full((len(tables), len(chances)), 1 / len(chances))
    before, step = -np.inf, 0
    while step < limit:
        step += 1
        expected = np.maximum(shares @ chances, 1e-300)
        shares *= (tables / expected) @ chances.T / total
        wide = np.pad(shares, ((0, 0), (1, 1)), mode="edge")
        shares = wide[:, :-2] / 4 + wide[:, 1:-1] / 2 + wide[:, 2:] / 4
        shares /= shares.sum(axis=1, keepdims=True)
        likelihood = float((tables * np.log(expected)).sum())
        if len(tables) == 1 and abs(likelihood - before) < _TOLERANCE:
            break
        before = likelihood
    return shares, step
