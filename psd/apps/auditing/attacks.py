"""Audits: attack builds of synthetic data, and compare the success with the claimed epsilon.

Of builds with Gaussian noise the claim is (epsilon, delta).

References
----------
.. [1] Steinke, Nasr, Jagielski. NeurIPS 2023: canaries; see `psd.apps.auditing.canaries`.
.. [2] Jagielski, Ullman, Oprea. NeurIPS 2020: pairs of data sets; see `psd.apps.auditing.pairs`.
"""

from __future__ import annotations

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
from psd.apps.auditing.bounds import (
    accuracy_under_delta,
    epsilon_from_accuracy,
    log_ratio_limits,
    lower_limit,
    upper_limit,
)
from psd.apps.auditing.canaries import Plot, choose_plot, guess_canaries, run_canaries
from psd.apps.auditing.pairs import (
    Pair,
    Samples,
    Threshold,
    draw_samples,
    event_loss,
    largest_rho,
    learn_event,
    record_losses,
)
from psd.decompositions import as_method
from psd.errors import ParameterError
from psd.privacy.loss import NANO, Loss, delta_text, epsilon_text, parse_delta, parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.build import build
from psd.space.domain import Domain
from psd.testing.transcripts import LeakError

if TYPE_CHECKING:
    from psd.decompositions import Decomposition


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
    """Result of one attack.

    Parameters
    ----------
    attack : str
        Name of the attack.
    samples : int
        Number of guesses or releases that it was tested on.
    seen : float
        Smallest epsilon that allows the success of the attack.
    lower, upper : float
        Limits of ``seen``, each wrong with a probability of at most (1 - confidence) / 3.
    expected : float
        Value of ``seen`` if all noise follows its law.
    claim : float
        Epsilon of the releases.
    proved : float
        Lower bound on epsilon at the delta of the releases: ``lower``, where no delta is spent.
    slack : float
        Tolerance of ``expected`` if it was estimated from recorded builds.
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
    """Results of all attacks on one method.

    Parameters
    ----------
    method : str
        Name of the method.
    loss : Loss
        Epsilon of each release, or (epsilon, delta) and rho.
    unit : PrivacyUnit
        Unit of privacy.
    confidence : float
        Probability that all results hold together.
    results : tuple of AttackResult
        One for each attack.
    reach : float
        Largest loss of a recorded build of the small trees; 0 without recorded builds.
    rho : float
        Largest rho of a recorded build, by the scales that it asked for; 0 of pure epsilon, and
        without recorded builds. NaN if it has draws whose rho is not known.
    steered : bool
        Whether a build asked different questions of the two data sets after the same answers.
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
        Replaces `psd.build`: takes a `psd.apps.auditing.canaries.Plot` and returns a function of
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
