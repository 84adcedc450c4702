"""Which words devices have, from the bits of their reports.

References
----------
Erlingsson, Pihur, Korolova. "RAPPOR: Randomized Aggregatable Privacy-Preserving Ordinal Response."
CCS 2014, section 4. They select words by the LASSO; non-negative least squares has the same error
and no setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls
from scipy.sparse import csr_array

from psd._util.arrays import Floats
from psd.apps.local.protocols._base import noise_variance
from psd.apps.local.protocols.rappor import Rappor
from psd.errors import ParameterError

__all__ = ["DecodedWords", "decode_words"]

_LEAST_PIVOT = 1e-9
"""Smallest square of a pivot, relative to its word, of words that differ in their bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedWords:
    """Shares of the devices that have each word."""

    shares: Floats  # (words,); non-negative least squares
    unbiased: Floats  # (words,); least squares, which may be negative
    errors: Floats  # (words,); standard errors of the latter


def decode_words(protocol: Rappor, table: NDArray[np.int64], words: Sequence[str]) -> DecodedWords:
    """Estimate the share of each word, of which none may have the bits of another.

    table: (cohorts, bits + 1) int64, reports with a 1 in each bit, and all reports of the cohort.
    There are at most as many words as bits of all cohorts.

    P1. If every device has one of the words, the least squares are unbiased where p = 1 - q, and
    else up to the order of 1 / reports. Their errors are those of the randomised bits and of the
    random cohorts.

    Let t be the share of 1 of a bit of a cohort, (c / N - q) / (p - q), and A the 0/1 matrix of the
    bits of words, so the mean of t is A x. Of the N devices s N have the bit, s = (A x) in this
    bit. Given their answers, bits of reports are independent, and c is a sum of s N Bernoulli
    variables of p and (1 - s) N of q. So the noises of t are independent, and each has the variance
    v(s) / N, v(s) = (s p (1 - p) + (1 - s) q (1 - q)) / (p - q)^2, which is `noise_variance`. The
    least squares of the least variance have the weights N / v(s). With p = 1 - q, v does not depend
    on s. Else a first pass, with v(0), estimates s, and a second one has its weights. Weights of
    any s give unbiased estimates if they do not depend on t. These depend on it through s, whose
    errors are of the order of 1 / root N, as are those of t: the bias is of the order of their
    product, 1 / N, and the error of the variance is of a smaller order than the variance.

    The devices of a cohort are a random part of all, so the shares of words in cohort c are
    x + d_c, with covariance S (1 / N_c - 1 / n) and -S / n between cohorts, S = diag(x) - x x'.
    With G the matrix of least squares, G A = 1, so the covariance of the estimates is
    G diag_c((diag(v) + A_c S A_c') / N_c) G' - S / n. With the weights W = N / v, its first part is
    (A' W A)^-1. Words that are not given add to t; where the weighted squares of residuals are
    larger than expected, errors are multiplied by the root of their ratio. Expected are the bits
    less the words, for the noise, and tr(W C) - tr((A' W A)^-1 A' W C W A) for the random cohorts,
    C = diag_c(A_c S A_c' / N_c): the term S / n is the same in all cohorts and leaves no residual.
    """
    bits, (reports, means) = protocol.answers, _means(protocol, table)
    cohorts = np.flatnonzero(reports)
    matrices = [_bits_of(protocol, words, int(cohort)) for cohort in cohorts]
    least, most = (float(noise_variance(protocol.p, protocol.q, share)) for share in (0, 1))
    shares = np.zeros(len(words))
    for _ in range(1 + (least != most)):
        held = [np.minimum(matrix @ shares, 1.0) for matrix in matrices]
        weights = [
            count / (least + (most - least) * share)
            for count, share in zip(reports[cohorts], held, strict=True)
        ]
        normal = np.zeros((len(words), len(words)))
        right = np.zeros(len(words))
        for matrix, weight, mean in zip(matrices, weights, means[cohorts], strict=True):
            normal += (matrix.T @ (matrix * weight[:, None])).toarray()
            right += matrix.T @ (weight * mean)
        factor = _factor(normal, len(cohorts) * bits)
        # |R x - R^-T b| differs from the weighted residuals by a constant.
        shares, _ = nnls(factor, solve_triangular(factor, right, trans="T"))
    unbiased = cho_solve((factor, False), right)
    variances, expected = _errors(factor, matrices, weights, shares, reports[cohorts])
    misfit = sum(
        float(weight @ (mean - matrix @ unbiased) ** 2)
        for matrix, weight, mean in zip(matrices, weights, means[cohorts], strict=True)
    )
    free = len(cohorts) * bits - len(words)
    larger = max(1.0, misfit / (free + expected)) if free else 1.0
    return DecodedWords(shares=shares, unbiased=unbiased, errors=np.sqrt(variances * larger))


def _means(protocol: Rappor, table: NDArray[np.int64]) -> tuple[NDArray[np.int64], Floats]:
    """Reports of each cohort, and the estimated share of the devices with each bit."""
    reports, p, q = table[:, -1], float(protocol.p), float(protocol.q)
    means: Floats = (table[:, :-1] / np.maximum(reports, 1)[:, None] - q) / (p - q)
    return reports, means


def _bits_of(protocol: Rappor, words: Sequence[str], cohort: int) -> csr_array:
    """Which bits each word has: a row for each bit, a column for each word."""
    pairs = [(i, j) for j, word in enumerate(words) for i in protocol.draw.bits(word, cohort)]
    rows, columns = np.array(pairs).T
    shape = (protocol.answers, len(words))
    return csr_array((np.ones(len(pairs)), (rows, columns)), shape=shape)


def _factor(normal: Floats, bits: int) -> Floats:
    """Upper factor of the normal matrix, whose words must differ in their bits."""
    words = len(normal)
    if words > bits:
        raise ParameterError(
            f"words must be at most the bits of all cohorts with reports, {bits:,}, got {words:,}; "
            "design a campaign with more bits or cohorts",
            name="words",
        )
    scale = np.sqrt(normal.diagonal())
    try:
        factor: Floats = cho_factor(normal / np.outer(scale, scale))[0]
        is_clear = bool((factor.diagonal() ** 2 > _LEAST_PIVOT).all())
    except np.linalg.LinAlgError:
        is_clear = False
    if not is_clear:
        raise ParameterError(
            "words must differ in their bits, got some that no report tells apart; design a "
            "campaign with more bits or cohorts",
            name="words",
        )
    upper: Floats = np.triu(factor) * scale
    return upper


def _errors(
    factor: Floats,
    matrices: Sequence[csr_array],
    weights: Sequence[Floats],
    shares: Floats,
    reports: NDArray[np.int64],
) -> tuple[Floats, float]:
    """Variance of each word, and the weighted squares that random cohorts add to residuals."""
    middle, squares = np.zeros_like(factor), 0.0
    for matrix, weight, count in zip(matrices, weights, reports, strict=True):
        together = (matrix * shares) @ matrix.T - np.outer(matrix @ shares, matrix @ shares)
        weighted = (matrix * weight[:, None]).T
        middle += weighted @ (weighted @ together.T).T / count
        squares += float(weight @ together.diagonal()) / count
    inverse = cho_solve((factor, False), np.eye(len(factor)))
    noise = inverse.diagonal()
    cohorts = np.einsum("ij,jk,ik->i", inverse, middle, inverse, optimize=True)
    sampled = shares * (1 - shares) / reports.sum()
    variances: Floats = noise + np.maximum(cohorts - sampled, 0.0)
    return variances, squares - float((inverse * middle).sum())
