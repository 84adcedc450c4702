"""Audits: attack builds of synthetic data, and compare the success with the claimed epsilon.

A coin decides whether a canary, a unit at a point of its own, is present; an attack guesses it. One
build has thousands, so it tests the entire pipeline, from file to release, as often.

.. [1] Steinke, Nasr, Jagielski. "Privacy Auditing with One (1) Training Run." NeurIPS 2023,
   arXiv:2305.08846, theorem 5.2: the number of right guesses of r fair bits from an epsilon-private
   release is at most that of r coins of probability exp(epsilon) / (1 + exp(epsilon)).
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from psd._util.declared_parameters import integer_between
from psd._util.instances import check_instance
from psd.accounting import PICO
from psd.api.release import Release
from psd.apps.auditing.pairs import (
    Pair,
    Samples,
    Threshold,
    accuracy_under_delta,
    draw_samples,
    epsilon_from_accuracy,
    event_loss,
    largest_rho,
    learn_event,
    log_ratio_limits,
    lower_limit,
    record_losses,
    upper_limit,
)
from psd.decompositions import as_method
from psd.errors import ParameterError
from psd.mechanisms.random_words import random_bits
from psd.privacy.loss import NANO, RHO, Loss, delta_text, epsilon_text, parse_delta, parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.build import build
from psd.space.domain import Domain
from psd.testing.transcripts import LeakError

if TYPE_CHECKING:
    from psd.decompositions import Decomposition
    from psd.privacy.loss import Loss
    from psd.privacy.unit import PrivacyUnit


Build = Callable[[Path, Path], None]

# Expected count at a point, in units of the noise scale. Methods that size cells by noisy counts
# require about this count in a cell, so points are in separate cells. Chosen by hand.
_SIGNAL = 20
_MAX_ROWS = 1_000_000
_MIN_SIDE = 4
# Metres of the south-west corner on both axes: numbers that no degrees have.
_CORNER = 1_000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Points of canaries: a square of side x side points, with other units at each."""

    side: int  # points per side, which are 1 m apart
    others: int  # units at each point that are always present
    unit: PrivacyUnit  # a record, or a user with k records at one point

    @staticmethod
    def of(side: int, loss: Loss, unit: PrivacyUnit) -> Plot:
        """Return points whose counts exceed the noise as far as the limit of records allows."""
        limit = _MAX_ROWS // (side * side * unit.contributions)
        epsilon = loss.epsilon
        if not loss.is_pure:  # that of pure mechanisms of this rho: their noise is about as large
            epsilon = max(int(RHO.of_pure(np.array([loss.rho]))[0]), 1)
        return Plot(side=side, others=min(-(-_SIGNAL * NANO // epsilon), max(limit, 1)), unit=unit)

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Bounds of the domain."""
        return (_CORNER, _CORNER, _CORNER + self.side, _CORNER + self.side)

    def write(self, path: Path, present: NDArray[np.bool_]) -> None:
        """Write a CSV with the columns lon, lat and, if users are the unit, user."""
        k, user = self.unit.contributions, self.unit.has_user
        with path.open("w", encoding="ascii") as file:
            file.write("lon,lat,user\n" if user else "lon,lat\n")
            for point, extra in enumerate(present.tolist()):
                y, x = divmod(point, self.side)
                for number in range(self.others + extra):
                    name = f",u{point}-{number}" if user else ""
                    file.write(f"{x + _CORNER + 0.5},{y + _CORNER + 0.5}{name}\n" * k)

    def log_odds(self, release: Release) -> NDArray[np.float64]:
        """Log-odds of each canary from the cells that contain its point and no other."""
        tree, k = release.tree, self.unit.contributions
        # Points from `low` to below `high`, (2, cells) by axis, are those that a cell contains.
        middles = np.outer(release.domain.lattice, 2 * np.arange(self.side) + 1) // (2 * self.side)
        low, high = (
            np.stack([np.searchsorted(middles[axis], tree.boxes[:, axis + end]) for axis in (0, 1)])
            for end in (0, 2)
        )
        # Cells with several points, and the information in cuts, are not used.
        is_single = ((high - low).prod(axis=0) == 1) & (tree.loss > 0)
        off = tree.count[is_single] - self.others * k
        # A cell with noisy count c adds ln P(c - b - k) - ln P(c - b). Here b is the count of the
        # units that are always present, and P the law of the noise of the cell in the release.
        loss, noise = tree.loss[is_single], tree.noise
        nearer = noise.log_density(off - k, loss) - noise.log_density(off, loss)
        point = low[1][is_single] * self.side + low[0][is_single]
        odds = np.zeros(self.side**2)
        np.add.at(odds, point, nearer)
        return odds


@dataclass(frozen=True, slots=True, kw_only=True)
class Guesses:
    """Number of guesses and of right guesses."""

    number: int  # of canaries that were guessed
    right: int  # of those that were guessed right
    expected: float  # share of right guesses, from the epsilons in the releases


def run_canaries(build: Build, plot: Plot) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Draw canaries, build, load the release; return the log-odds and presence of each canary."""
    present = random_bits(plot.side**2)
    with tempfile.TemporaryDirectory(prefix="psd-audit-") as folder:
        rows, release = Path(folder) / "canaries.csv", Path(folder) / "canaries.psd.parquet"
        plot.write(rows, present)
        build(rows, release)
        return plot.log_odds(Release.load(release)), present


def choose_plot(
    build: Callable[[Plot], Build],
    number: int,
    runs: int,
    loss: Loss,
    unit: PrivacyUnit,
    beta: float,
) -> Plot:
    """Choose the plot with the best expected bound, by one build of each size."""
    sides, scores = [], []
    # More points give more guesses; with fewer points, more cells contain a single point. The
    # choice depends on the epsilons in the releases only, and these builds are not used again.
    side = math.isqrt(number)
    while side >= _MIN_SIDE:
        plot = Plot.of(side, loss, unit)
        odds, present = run_canaries(build(plot), plot)
        attempt = guess_canaries(np.tile(odds, runs), np.tile(present, runs), beta)
        sides.append(side)
        scores.append(
            (_bound(attempt.expected, attempt.number, beta), attempt.number * attempt.expected)
        )
        side //= 2
    return Plot.of(sides[scores.index(max(scores))], loss, unit)


def _bound(share: float, number: int, beta: float) -> float:
    """Bound on epsilon from a share of right guesses."""
    return epsilon_from_accuracy(lower_limit(int(share * number), number, beta)) if number else 0.0


def guess_canaries(odds: NDArray[np.float64], present: NDArray[np.bool_], beta: float) -> Guesses:
    """Guess the canaries with the largest log-odds, as many as give the best expected bound."""
    # The choice depends on the releases only, as theorem 5.2 of [1] requires.
    clarity = np.sort(np.abs(odds[odds != 0]))[::-1]
    if not len(clarity):
        return Guesses(number=0, right=0, expected=0.5)
    # Expected share of right guesses among the first 1, 2, ... of the clearest canaries.
    mean = np.cumsum(1 / (1 + np.exp(-clarity))) / np.arange(1, len(clarity) + 1)
    # Canaries that are equally clear are guessed together.
    ends = np.flatnonzero(np.append(clarity[1:] < clarity[:-1] - 1e-12, True))
    ends = ends[np.unique(np.linspace(0, len(ends) - 1, 100).astype(int))]
    bounds = [_bound(float(mean[end]), int(end + 1), beta) for end in ends]
    if max(bounds) == 0:  # no number of guesses bounds epsilon: use the largest total signal
        bounds = list((mean[ends] - 0.5) ** 2 * (ends + 1))
    end = ends[int(np.argmax(bounds))]
    is_guessed = np.abs(odds) >= clarity[end]
    right = int(((odds > 0) == present)[is_guessed].sum())
    return Guesses(number=int(is_guessed.sum()), right=right, expected=float(mean[end]))


Verdict = Literal["above the claim", "tells too much", "tells too little", "as expected"]

# The share of builds that are recorded to compute the expected loss of an event, the least number
# of recorded builds, and the number of standard errors that its verdict allows. Chosen by hand.
_RECORDED = Fraction(1, 10)
_MIN_RECORDED = 200
_ERRORS = 5

# Builds of each data set whose rho is added up, and what sums of floats may exceed a claim by.
_SUMMED = 20
_ROUNDING = 1e-6

# Number of attacks that share the probability of error: canaries, and pairs in two directions.
_ATTACKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """Result of one attack on ``samples`` guesses or releases.

    ``seen`` is the smallest epsilon that allows its success, ``expected`` the value if all noise
    follows its law (``slack``: its tolerance, if recorded builds estimated it), and ``lower`` and
    ``upper`` its limits, each wrong with probability at most (1 - confidence) / 3. ``proved``
    bounds epsilon from below at the delta of the releases, whose epsilon is ``claim``.
    """

    attack: str
    samples: int
    seen: float
    lower: float
    upper: float
    expected: float
    claim: float
    proved: float
    slack: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """Verdict that follows from the limits."""
        if self.proved > self.claim:
            return "above the claim"
        if self.lower > self.expected + self.slack:
            return "tells too much"
        if self.upper < self.expected - self.slack:
            return "tells too little"
        return "as expected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Results of all attacks on one method, which hold together with probability ``confidence``.

    ``reach`` and ``rho`` are the largest losses of a recorded build of the small trees, 0 without
    recorded builds; ``rho`` is by the scales that it asked for, 0 of pure epsilon and NaN if the
    rho of a draw is not known. ``steered``: whether a build asked different questions of the two
    data sets after the same answers.
    """

    method: str
    loss: Loss
    unit: PrivacyUnit
    confidence: float
    results: tuple[AttackResult, ...]
    reach: float = 0.0
    rho: float = 0.0
    steered: bool = False

    @property
    def epsilon(self) -> int:
        """Nano-epsilon that each release claims."""
        return self.loss.epsilon

    @property
    def lower(self) -> float:
        """Lower bound on the epsilon of the builds, at the delta that they claim."""
        return max((result.proved for result in self.results), default=0.0)

    @property
    def expected(self) -> float:
        """Largest expected result of an attack on a sound build."""
        return max((result.expected for result in self.results), default=0.0)

    @property
    def overspent(self) -> bool:
        """Whether a recorded build spends more than the claim, by the scales that it asked for."""
        # No statistics are needed: of pure epsilon no transcript may tell more than the claim, and
        # the rhos of draws add up.
        if self.loss.is_pure:
            return self.reach > self.loss.epsilon / NANO + _ROUNDING
        return self.rho > self.loss.rho / PICO * (1 + _ROUNDING)

    @property
    def failed(self) -> bool:
        """Whether the audit shows that builds are less private than claimed."""
        bad = ("above the claim", "tells too much")
        is_bad = self.steered or self.overspent
        return is_bad or any(result.verdict in bad for result in self.results)

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        verdicts, claim = {f.verdict for f in self.results}, epsilon_text(self.loss.epsilon)
        if self.loss.delta is not None:
            claim += f" at delta {delta_text(self.loss.delta)}"
        if self.steered:
            return "not private: after the same answers, a build asks other questions of other data"
        if "above the claim" in verdicts:
            return f"not private as claimed: epsilon is over {self.lower:.3g}, the claim is {claim}"
        if self.overspent:
            spent = f"rho {self.rho:.3g} of {self.loss.rho / PICO:.3g}"
            if self.loss.is_pure:
                spent = f"epsilon {self.reach:.3g} of {epsilon_text(self.loss.epsilon)}"
            return f"not private as claimed: a build of a small tree spends {spent}"
        if "tells too much" in verdicts:
            return "not private as charged: an attack succeeds more often than its epsilons allow"
        if not any(result.samples for result in self.results):
            return "no result: no attack made a guess; give more canaries, runs or pairs"
        share = f"the lower bound is {self.lower:.3g} of {claim}, expected {self.expected:.3g}"
        if "tells too little" in verdicts:
            return f"no fault, but {share}: the noise is larger than needed, or the audit is weak"
        return f"no fault: {share}"


def audit(
    method: Decomposition | str,
    epsilon: str | float | Decimal,
    *,
    delta: str | float | Decimal | None = None,
    unit: PrivacyUnit | None = None,
    canaries: int = 1024,
    runs: int = 32,
    pairs: int = 5_000,
    confidence: float = 0.999,
    jobs: int = 1,
    make: Callable[[Plot], Callable[[Path, Path], None]] | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Audit:
    """Attack builds of synthetic data, and compare the results with the claimed epsilon.

    Guarantees
    ----------
    - If the builds are epsilon-private as claimed, or (epsilon, delta)-private, and each draw has
      the law that it was charged for, the audit fails with a probability of at most 1 - confidence.
    - No data is read and no epsilon is spent: records are synthetic, and the operating system's
      randomness decides which canaries are present.

    Parameters
    ----------
    method : Decomposition or str
        Method to audit, with its public parameters.
    epsilon : str, int, float or Decimal
        Epsilon of each build. Values from 1 to 2 reveal faults best.
    delta : str, float or Decimal, optional
        Delta of each build, which then has Gaussian noise. Lower bounds are those of epsilon at
        this delta: of an event with the probabilities p and q, ln((p - delta) / q).
    unit : PrivacyUnit, optional
        A record, or a user with at most k records.
    canaries : int
        Canaries in each build, 16 to 65,536, rounded down to a square.
    runs : int
        Builds with canaries, 1 to 1,000, each from a CSV to a release file.
    pairs : int
        Builds of a small tree from a tally on each of two data sets, 0 or 100 to 10,000,000.
    confidence : float
        Confidence of all results together, in (0.5, 1).
    jobs : int
        Processes for the small trees.
    make : callable, optional
        Replaces `psd.build`: takes a `psd.apps.auditing.attacks.Plot` and returns a function of
        the path of a CSV and of the path of the release file to write.
    progress : callable
        Called with the name of each stage.

    Returns
    -------
    Audit

    Raises
    ------
    ParameterError
        If a parameter is out of range, or the release counts users.

    References
    ----------
    .. [1] Steinke, Nasr, Jagielski, NeurIPS 2023, https://arxiv.org/abs/2305.08846.

    Examples
    --------
    >>> import psd
    >>> from psd.decompositions import Quadtree
    >>> how = {"canaries": 256, "runs": 1, "pairs": 0, "confidence": 1 - 1e-6}
    >>> report = psd.apps.auditing.audit(Quadtree(height=2), 1, **how)
    >>> report.failed, [result.attack for result in report.results]
    (False, ['canaries'])
    """
    nano, unit = parse_epsilon(epsilon), unit or PrivacyUnit()
    loss = Loss.pure(nano) if delta is None else Loss.gaussian(nano, parse_delta(delta))
    check_instance("unit", unit, PrivacyUnit, 'psd.PrivacyUnit(kind="user", max_contributions=4)')
    method = as_method(method)
    integer_between(16, 65_536)("canaries", canaries)
    integer_between(1, 1_000)("runs", runs)
    integer_between(0 if pairs == 0 else 100, 10_000_000)("pairs", pairs)
    if not 0.5 < confidence < 1:
        raise ParameterError(f"confidence must be between 0.5 and 1, got {confidence}")
    if unit.kind not in ("record", "user") or unit.weight:
        raise ParameterError(
            "unit must be a record, or a user with max_contributions=; days, slices and counts of "
            "users have the same draws"
        )
    jobs = integer_between(1, 65_536)("jobs", jobs)
    beta = (1 - confidence) / _ATTACKS
    progress("canaries")
    maker = make or partial(_build_by_library, loss=loss, method=method)
    plot = choose_plot(maker, canaries, runs, loss, unit, beta)
    audited = Audit(
        method=method.name,
        loss=loss,
        unit=unit,
        confidence=confidence,
        results=(_attack_canaries(maker(plot), plot, runs, loss, beta),),
    )
    if pairs == 0:
        return audited
    progress("pairs of small trees")
    pair, rho = Pair.of(method, loss, unit), 0.0
    try:
        repeats = max(int(pairs * _RECORDED), _MIN_RECORDED)
        recorded = [record_losses(pair, repeats, more=more) for more in (True, False)]
        if not loss.is_pure:
            rho = max(largest_rho(pair, _SUMMED, more=more) for more in (True, False))
    except LeakError:
        return replace(audited, steered=True)
    without, having = draw_samples(pair, pairs, jobs=jobs)
    # The first half of the builds teaches an event, and the other half tests it.
    first, rest = slice(None, pairs // 2), slice(pairs // 2, None)
    attacks = []
    for more, of_data_set in zip((True, False), recorded, strict=True):
        event = learn_event(without[first], having[first], more=more, beta=beta, delta=pair.delta)
        attacks.append(_event_result(event, without[rest], having[rest], of_data_set, pair, beta))
    reach = max(float(np.abs(losses).max()) for _, losses in recorded)
    return replace(audited, results=(*audited.results, *attacks), reach=reach, rho=rho)


def _build_by_library(
    plot: Plot, *, loss: Loss, method: Decomposition
) -> Callable[[Path, Path], None]:
    """Return a function that builds by `psd.build` and saves by `Release.save`."""
    k = plot.unit.max_contributions
    crs = "EPSG:3857"
    more: dict[str, Any] = {"user": "user", "max_contributions": k} if plot.unit.has_user else {}
    if loss.delta is not None:
        more |= {"delta": delta_text(loss.delta), "noise": "gaussian"}

    def make(rows: Path, release: Path) -> None:
        domain, text = Domain(bounds=plot.bounds, crs=crs), epsilon_text(loss.epsilon)
        # The columns are named as degrees, which is warned of unless their CRS is stated.
        built = build(rows, domain=domain, input_crs=crs, epsilon=text, method=method, **more)
        built.save(release)

    return make


def _attack_canaries(
    build_file: Callable[[Path, Path], None], plot: Plot, runs: int, loss: Loss, beta: float
) -> AttackResult:
    """Build with canaries and guess them."""
    delta = float(loss.delta or 0)
    beta = beta / 2 if delta else beta  # the expected share, and the claim with its delta
    trials = [run_canaries(build_file, plot) for _ in range(runs)]
    odds, present = (np.concatenate(parts) for parts in zip(*trials, strict=True))
    attempt = guess_canaries(odds, present, beta)
    low, high = (limit(attempt.right, attempt.number, beta) for limit in (lower_limit, upper_limit))
    share = attempt.right / attempt.number if attempt.number else 0.5
    return AttackResult(
        attack="canaries",
        samples=attempt.number,
        seen=epsilon_from_accuracy(share),
        lower=epsilon_from_accuracy(low),
        upper=epsilon_from_accuracy(high),
        expected=epsilon_from_accuracy(attempt.expected),
        claim=loss.epsilon / NANO,
        proved=epsilon_from_accuracy(
            accuracy_under_delta(attempt.right, attempt.number, len(odds), beta, delta)
        ),
    )


def _event_result(
    event: Threshold,
    without: Samples,
    having: Samples,
    recorded: tuple[Samples, NDArray[np.float64]],
    pair: Pair,
    beta: float,
) -> AttackResult:
    """Test an event on builds from which it was not learned."""
    low, high = ((int(hits.sum()), len(hits)) for hits in map(event.holds, (without, having)))
    likely, unlikely = (high, low) if event.more else (low, high)
    lower, upper = log_ratio_limits(likely, unlikely, beta, pair.delta)
    expected, error = event_loss(event, *recorded, pair.delta)
    return AttackResult(
        attack="one unit more" if event.more else "one unit less",
        samples=len(without.log_odds),
        seen=float(np.log((likely[0] + 0.5) / (unlikely[0] + 0.5))),
        lower=lower,
        upper=upper,
        expected=expected,
        slack=_ERRORS * error,
        claim=pair.loss.epsilon / NANO,
        proved=lower,
    )
