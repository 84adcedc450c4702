"""From the reports of options, numbers and words to tables of estimates with errors.

.. [1] Li, Wang, Lopuhaa-Zwakenberg, Li, Skoric. SIGMOD 2020, section 5: distributions of numbers.
.. [2] Erlingsson, Pihur, Korolova. "RAPPOR." CCS 2014, section 4: words, selected by the LASSO;
   here by non-negative least squares, which have the same error and no setting.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import nnls
from scipy.sparse import csr_array
from scipy.stats import norm

from psd._util.arrays import Floats
from psd._util.column_kinds import guard_text
from psd.apps.local.aggregation import count_support
from psd.apps.local.campaigns import load_campaign
from psd.apps.local.protocols import LocalProtocol
from psd.apps.local.protocols.answers import noise_variance
from psd.apps.local.protocols.numbers import NumberProtocol, SingleValueProtocol, UnbiasedProtocol
from psd.apps.local.protocols.rappor import Rappor
from psd.errors import InputDataError, ParameterError


def read_list(path: str, name: str) -> list[str]:
    """Lines of a file in UTF-8."""
    try:
        return Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise ParameterError(f"{name} must be a file of lines in UTF-8", name=name) from None


BINS: Final = 64
"""Even parts of the range whose shares are estimated."""

_FINE = 256  # parts in which it is computed
_OUTPUTS = 4  # outputs that are counted together
_STEPS = 2_000
_TOLERANCE = 1e-3  # of the log-likelihood
_SAMPLES = 60
_BIAS_ROUNDS = 4
_LEAST = 1e-9  # share of a part, so that none is given up


def estimate_distribution(matrix: Floats, counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Shares of bins and errors, (BINS,), of a matrix (steps, outputs) and counts (outputs,)."""
    reports = int(counts.sum())
    chances = _gather(matrix.reshape(_FINE, -1, matrix.shape[1]).mean(axis=1))
    table = _gather(counts[None].astype(np.float64))
    shares, steps = _maximise(chances, table, _STEPS)
    # The variance is that of samples of as many reports from the estimated distribution (parametric
    # bootstrap, with a fixed seed); the bias is that of the smoothing.
    generator = np.random.default_rng(0)
    expected = (shares @ chances)[0]
    samples = generator.multinomial(reports, expected / expected.sum(), _SAMPLES)
    others, _ = _maximise(chances, samples.astype(np.float64), steps)
    variances = _bins(others).var(axis=0)
    # The bias of each bin: the truth is not known, and the estimate is smoother than the truth. So
    # a sharper distribution is looked for whose estimate without noise is the estimate at hand:
    # what each round lacks is added. By `python lab/bench_local.py numbers`, 4 rounds cover 86 to
    # 99 % of the bins alone and 91 % and more with neighbours; the bootstrap alone covers 79 %.
    truth = shares
    for _ in range(_BIAS_ROUNDS):
        again, _ = _maximise(chances, truth @ chances * reports, steps, stops=False)
        bias = np.abs(_bins(again - truth))
        truth = np.maximum(truth + shares - again, _LEAST)
        truth /= truth.sum()
    # The bias changes its sign beside a peak: a bin has the largest of the bins beside it.
    wide = np.pad(bias[0], 1, mode="edge")
    largest: Floats = np.maximum(wide[1:-1], np.maximum(wide[:-2], wide[2:]))
    return _bins(shares)[0], np.sqrt(variances + largest**2)


def _bins(shares: Floats) -> Floats:
    """Shares of the bins, (tables, bins), of those of the steps, (tables, steps)."""
    binned: Floats = shares.reshape(len(shares), BINS, -1).sum(axis=2)
    return binned


def _gather(table: Floats) -> Floats:
    """Add neighbouring outputs."""
    starts = np.arange(0, table.shape[1], _OUTPUTS)
    return np.add.reduceat(table, starts, axis=1)


def _maximise(
    chances: Floats, tables: Floats, limit: int, *, stops: bool = True
) -> tuple[Floats, int]:
    """Shares of each table, and the number of steps; of one table until the likelihood stays."""
    total = tables.sum(axis=1, keepdims=True)
    shares = np.full((len(tables), len(chances)), 1 / len(chances))
    before, step = -np.inf, 0
    while step < limit:
        step += 1
        # Expectation and maximisation: each output's reports, shared among the steps by likelihood.
        expected = np.maximum(shares @ chances, 1e-300)
        shares *= (tables / expected) @ chances.T / total
        # Smoothing by 1/4, 1/2, 1/4, without which peaks grow out of noise.
        wide = np.pad(shares, ((0, 0), (1, 1)), mode="edge")
        shares = wide[:, :-2] / 4 + wide[:, 1:-1] / 2 + wide[:, 2:] / 4
        shares /= shares.sum(axis=1, keepdims=True)
        likelihood = float((tables * np.log(expected)).sum())
        if stops and len(tables) == 1 and abs(likelihood - before) < _TOLERANCE:
            break
        before = likelihood
    return shares, step


QUANTILE: Final = 1.959963984540054
"""Quantile of the normal distribution for intervals of 95 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRow:
    """One estimate: of an option, ``mean``, a bin ``LOW to HIGH``, or a single value.

    ``estimate``: devices, the mean, or the reports of the single value. ``error``: a standard
    deviation; of a bin the root of the mean squared error of samples from the estimated
    distribution, of a single value the largest such root of one report, in units of the range.
    ``low`` and ``high``: interval of 95 %; of a single value, ``error`` to both sides within the
    range.
    """

    answer: str
    estimate: float
    error: float
    low: float
    high: float


def tabulate(campaign: str, folder: str) -> list[AnswerRow]:
    """Estimates of a campaign that asks for options or numbers, from its parts.

    Guarantees
    ----------
    - It reads reports alone, so it costs no epsilon.

    Parameters
    ----------
    campaign : str
        File of the campaign.
    folder : str
        Folder of its parts, which `psd.apps.local.collection` wrote.

    Raises
    ------
    ParameterError
        If the campaign is not valid, or asks for places.
    InputDataError
        If parts are missing, damaged or of another campaign, or there is no report.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psd.apps import local
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name)
    >>> campaign = local.design_options(["bus", "train"], 4, 2000)
    >>> local.write_campaign(campaign, path / "c.json")
    >>> import pandas as pd
    >>> pd.DataFrame({"value": ["bus"] * 2000}).to_csv(path / "rows.csv", index=False)
    >>> local.randomize(f"{path}/c.json", f"{path}/rows.csv", f"{path}/lines")
    2000
    >>> collected = local.collect(f"{path}/c.json", [f"{path}/lines"], f"{path}/parts")
    >>> [row.answer for row in tabulate(f"{path}/c.json", f"{path}/parts")]
    ['bus', 'train', 'none of these']
    >>> folder.cleanup()
    """
    loaded = load_campaign(campaign)
    if loaded.question not in ("options", "numbers"):
        raise ParameterError(
            f"campaign must ask for options or numbers, got {loaded.question}; `aggregate` makes "
            "the release of places, and `tabulate_words` the table of words"
        )
    [counts] = count_support(loaded, Path(folder)).groups
    if not counts.reports:
        raise InputDataError("campaign must have reports; collect more lines")
    protocol = counts.protocol
    if isinstance(protocol, LocalProtocol):
        p, q, n = float(protocol.p), float(protocol.q), counts.reports
        shares = (counts.support / n - q) / (p - q)
        names = [*loaded.groups[counts.group].partition.cells, "none of these"]
        rows = []
        for name, share in zip(names, shares.tolist(), strict=True):
            fixed, growth = float(protocol.variance(0)), float(protocol.variance(1))
            variance = fixed + min(max(share, 0.0), 1.0) * (growth - fixed)
            rows.append(AnswerRow(answer=name, **_interval(share * n, (variance * n) ** 0.5)))
        return rows
    assert isinstance(protocol, NumberProtocol)
    low, high = loaded.groups[counts.group].partition.starts
    step, n = (high - low) / (protocol.answers - 1), counts.reports
    if isinstance(protocol, UnbiasedProtocol):
        # The error of the mean is that of the reports, and so of the numbers too.
        values = np.array([float(value) for value in protocol.decoded()])
        mean = float(counts.support @ values) / n
        spread = float(counts.support @ (values - mean) ** 2) / max(n - 1, 1)
        error = (spread / n) ** 0.5 * step
        return [AnswerRow(answer="mean", **_interval(low + mean * step, error))]
    if isinstance(protocol, SingleValueProtocol):
        # Each value is an answer of its own, with its error.
        error = float(protocol.squared_errors().max()) ** 0.5 * step
        outputs = np.flatnonzero(counts.support).tolist()
        return [
            AnswerRow(
                answer=f"{value:.6g}",
                estimate=int(counts.support[output]),
                error=error,
                low=max(value - error, low),
                high=min(value + error, high),
            )
            for output, value in ((output, low + output * step) for output in outputs)
        ]
    # Devices in each of 64 even parts of the range.
    in_bins, errors = estimate_distribution(protocol.matrix(), counts.support)
    edges: Floats = np.linspace(low, high, BINS + 1)
    return [
        AnswerRow(
            answer=f"{edges[i]:.6g} to {edges[i + 1]:.6g}",
            **_interval(float(in_bins[i]) * n, float(errors[i]) * n),
        )
        for i in range(BINS)
    ]


def encode_table(rows: Sequence[Any]) -> bytes:
    """CSV file of a table, of at least one row of a dataclass."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [field.name for field in fields(rows[0])], lineterminator="\n")
    writer.writeheader()
    for row in rows:
        # Numbers have six digits, and no text would be a formula.
        texts = {
            name: str(value).lower()
            if isinstance(value, bool)
            else str(guard_text(value))
            if isinstance(value, str)
            else f"{value:.6g}"
            for name, value in asdict(row).items()
        }
        writer.writerow(texts)
    return out.getvalue().encode()


def _interval(estimate: float, error: float) -> dict[str, float]:
    """Fields of an estimate with its interval."""
    margin = QUANTILE * error
    return {
        "estimate": estimate,
        "error": error,
        "low": estimate - margin,
        "high": estimate + margin,
    }


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
    else up to the order of 1 / reports. Their errors come from random bits and cohorts.

    Let t be the share of 1 of a bit of a cohort, (c / N - q) / (p - q), and A the 0/1 matrix of the
    bits of words, so the mean of t is A x. Of the N devices s N have the bit, s = (A x) in this
    bit. Given their answers, bits of reports are independent, and c is a sum of s N Bernoulli
    variables of p and (1 - s) N of q. So the noises of t are independent, of variance v(s) / N,
    v(s) = (s p (1 - p) + (1 - s) q (1 - q)) / (p - q)^2, which is `noise_variance`. The least
    squares of the least variance have the weights N / v(s). With p = 1 - q, v does not depend on s.
    Else a first pass, with v(0), estimates s, and a second one has its weights. Weights of any s
    give unbiased estimates if they do not depend on t. These depend on it through s, whose errors
    are of the order of 1 / root N, as are those of t: the bias is of the order of their product, 1
    / N, and the error of the variance is of a smaller order than the variance.

    The devices of a cohort are a random part of all, so the shares of words in cohort c are x +
    d_c, with covariance S (1 / N_c - 1 / n) and -S / n between cohorts, S = diag(x) - x x'. With G
    the matrix of least squares, G A = 1, so the covariance of the estimates is G diag_c((diag(v) +
    A_c S A_c') / N_c) G' - S / n. With the weights W = N / v, its first part is (A' W A)^-1. Words
    that are not given add to t; where the weighted squares of residuals are larger than expected,
    errors are multiplied by the root of their ratio. Expected are the bits less the words, for the
    noise, and tr(W C) - tr((A' W A)^-1 A' W C W A) for the random cohorts, C = diag_c(A_c S A_c' /
    N_c): the term S / n is the same in all cohorts and leaves no residual.
    """
    # Reports, (cohorts,), and the estimated shares of the devices with each bit, (cohorts, bits).
    bits, reports, p, q = protocol.answers, table[:, -1], float(protocol.p), float(protocol.q)
    # Unbiased share of the devices that have each bit, (cohorts, bits).
    means = (table[:, :-1] / np.maximum(reports, 1)[:, None] - q) / (p - q)
    cohorts = np.flatnonzero(reports)
    # Of each cohort which bits each word has, (bits, words).
    matrices = []
    for cohort in cohorts.tolist():
        pairs = [(i, j) for j, word in enumerate(words) for i in protocol.draw.bits(word, cohort)]
        ones = (np.ones(len(pairs)), np.array(pairs).T)
        matrices.append(csr_array(ones, shape=(bits, len(words))))
    least, most = (float(noise_variance(protocol.p, protocol.q, share)) for share in (0, 1))
    shares = np.zeros(len(words))
    # Weighted least squares; where variances depend on shares, once more with those found.
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
    # Residuals beyond what noise and random cohorts explain widen all errors.
    residuals = sum(
        float(weight @ (mean - matrix @ unbiased) ** 2)
        for matrix, weight, mean in zip(matrices, weights, means[cohorts], strict=True)
    )
    free = len(cohorts) * bits - len(words)
    larger = max(1.0, residuals / (free + expected)) if free else 1.0
    return DecodedWords(shares=shares, unbiased=unbiased, errors=np.sqrt(variances * larger))


def _factor(normal: Floats, bits: int) -> Floats:
    """Upper factor of the normal matrix, whose words must differ in their bits."""
    words = len(normal)
    if words > bits:
        raise ParameterError(
            f"words must be at most the bits of all cohorts with reports, {bits:,}, got {words:,}; "
            "design a campaign with more bits or cohorts",
            name="words",
        )
    # With a diagonal of 1, a small pivot says that a word is nearly a sum of others.
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
    # `cho_factor` leaves other numbers below the diagonal; columns are scaled back.
    return np.triu(factor) * scale


def _errors(
    factor: Floats,
    matrices: Sequence[csr_array],
    weights: Sequence[Floats],
    shares: Floats,
    reports: NDArray[np.int64],
) -> tuple[Floats, float]:
    """Variance of each word, and the weighted squares that random cohorts add to residuals."""
    # The sum over cohorts of A' W C W A, (words, words), and tr(W C), as in `decode_words`.
    middle, squares = np.zeros_like(factor), 0.0
    for matrix, weight, count in zip(matrices, weights, reports, strict=True):
        # A S A' of the cohort, (bits, bits): how its bits vary together with its random devices.
        covariance = (matrix * shares) @ matrix.T - np.outer(matrix @ shares, matrix @ shares)
        weighing = (matrix * weight[:, None]).T
        middle += weighing @ (weighing @ covariance.T).T / count
        squares += float(weight @ covariance.diagonal()) / count
    inverse = cho_solve((factor, False), np.eye(len(factor)))
    noise = inverse.diagonal()
    cohorts = np.einsum("ij,jk,ik->i", inverse, middle, inverse, optimize=True)
    sampled = shares * (1 - shares) / reports.sum()
    variances: Floats = noise + np.maximum(cohorts - sampled, 0.0)
    return variances, squares - float((inverse * middle).sum())


MAX_WORDS: Final = 4_096
"""Words of a list; the time grows with the cube of their number."""

NO_WORD: Final = "no word"


@dataclass(frozen=True, slots=True, kw_only=True)
class WordRow:
    """One word; the last row is that of devices without a word.

    ``estimate``: devices by non-negative least squares, the smaller error. ``unbiased``: by least
    squares, may be negative, for sums; ``error`` and ``low`` to ``high`` (95 %) are of it.
    ``present``: at the level of the table no word that no device has is called so, over all words
    together (Bonferroni).
    """

    word: str
    estimate: float
    unbiased: float
    error: float
    low: float
    high: float
    present: bool


def tabulate_words(
    campaign: str, folder: str, words: Sequence[str], *, level: float = 0.05
) -> list[WordRow]:
    """Estimates of the words of a list, from the parts of a campaign that asks for words.

    Guarantees
    ----------
    - It reads reports alone, so it costs no epsilon.
    - With probability ``1 - level``, about, no word is called present that no device has, if all
      words of the devices are in the list. Words that are not in it count for those with which
      they share bits; errors grow with what the list leaves unexplained.

    Parameters
    ----------
    campaign : str
        File of the campaign.
    folder : str
        Folder of its parts, which `psd.apps.local.collection` wrote.
    words : sequence of str
        Words that devices may have. Public, never derived from their answers.
    level : float
        Probability of calling a word present that is not, over all words.

    Raises
    ------
    ParameterError
        If the campaign does not ask for words, or the words or the level are not valid.
    InputDataError
        If parts are missing, damaged or of another campaign, or there is no report.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from psd.apps import local
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = Path(folder.name)
    >>> campaign = local.design_words(6, 2000, settings={"bits": 32})
    >>> local.write_campaign(campaign, path / "c.json")
    >>> import pandas as pd
    >>> pd.DataFrame({"value": ["seoul"] * 2000}).to_csv(path / "rows.csv", index=False)
    >>> local.randomize(f"{path}/c.json", f"{path}/rows.csv", f"{path}/lines")
    2000
    >>> collected = local.collect(f"{path}/c.json", [f"{path}/lines"], f"{path}/parts")
    >>> [row.word for row in tabulate_words(f"{path}/c.json", f"{path}/parts", ["seoul", "jeju"])]
    ['seoul', 'jeju', 'no word']
    >>> folder.cleanup()
    """
    loaded = load_campaign(campaign)
    if loaded.question != "words":
        raise ParameterError(f"campaign must ask for words, got {loaded.question}")
    if not 0 < level < 1:
        raise ParameterError(f"level must be above 0 and below 1, got {level}", name="level")
    if not 1 <= len(words) <= MAX_WORDS:
        raise ParameterError(f"words must be 1 to {MAX_WORDS:,}, got {len(words):,}", name="words")
    if not all(words) or len(set(words)) < len(words):
        raise ParameterError(
            "words must be stated once each, got an empty one or one that comes twice",
            name="words",
        )
    listed = [*words, ""]
    [counts] = count_support(loaded, Path(folder)).groups
    if not counts.reports:
        raise InputDataError("campaign must have reports; collect more lines")
    assert isinstance(counts.protocol, Rappor)
    decoded = decode_words(counts.protocol, counts.support, listed)
    # Bonferroni: the probability that any absent word is called present is at most `level`.
    least = float(norm.isf(level / len(listed)))
    columns = (decoded.shares, decoded.unbiased, decoded.errors)
    values = ((column * counts.reports).tolist() for column in columns)
    return [
        WordRow(
            word=word or NO_WORD,
            estimate=estimate,
            unbiased=unbiased,
            error=error,
            low=unbiased - QUANTILE * error,
            high=unbiased + QUANTILE * error,
            present=unbiased > least * error,
        )
        for word, estimate, unbiased, error in zip(listed, *values, strict=True)
    ]
