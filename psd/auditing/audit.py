"""Audits: what can be told from real builds of synthetic data, against the epsilon claimed.

References
----------
.. [1] Steinke, Nasr, Jagielski. NeurIPS 2023: canaries; see `psd.auditing.canaries`.
.. [2] Jagielski, Ullman, Oprea. NeurIPS 2020: pairs of data sets; see `psd.auditing.pairs`.
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

from psd._util.fields import integer_between
from psd._util.instances import check_instance
from psd.auditing.binomial_bounds import epsilon_of, log_ratio_limits, lower_limit, upper_limit
from psd.auditing.canaries import Guesses, Plot, best_plot, guesses, one_run
from psd.auditing.pairs import (
    Pair,
    Samples,
    Threshold,
    draw_samples,
    event_loss,
    learn_event,
    losses,
)
from psd.auditing.transcripts import LeakError
from psd.decompositions import as_method
from psd.errors import ParameterError
from psd.privacy.epsilon import NANO, epsilon_text, parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.build import build
from psd.space.domain import Domain

if TYPE_CHECKING:
    from psd.decompositions import Decomposition

__all__ = ["AttackResult", "Audit", "audit"]

Verdict = Literal["above the claim", "tells too much", "tells too little", "as expected"]

# Recorded builds, which say what an event is worth, for each build, and how many of their errors
# are allowed for.
_RECORDED = Fraction(1, 10)
_MIN_RECORDED = 200
_ERRORS = 5

# How many limits share the chance of error: one attack with canaries, two directions of pairs.
_ATTACKS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """What one attack got out of the releases.

    Parameters
    ----------
    attack : str
        Its name.
    samples : int
        Guesses or releases that it was tested on.
    seen : float
        Epsilon at which its success is the most that is possible.
    lower, upper : float
        Limits of that, each wrong with a chance of at most (1 - confidence) / 3.
    expected : float
        The same if all noise is as it should be.
    claim : float
        Epsilon of the releases.
    slack : float
        How far ``expected`` may be off, where it is from recorded builds.
    """

    attack: str
    samples: int
    seen: float
    lower: float
    upper: float
    expected: float
    claim: float
    slack: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """What that means."""
        if self.lower > self.claim:
            return "above the claim"
        if self.lower > self.expected + self.slack:
            return "tells too much"
        if self.upper < self.expected - self.slack:
            return "tells too little"
        return "as expected"


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The findings of all attacks on one method.

    Parameters
    ----------
    method : str
        Its name.
    epsilon : int
        Nano-epsilon of each release.
    unit : PrivacyUnit
        Of privacy.
    confidence : float
        With which all findings hold together.
    findings : tuple of Finding
        One for each attack.
    reach : float
        The largest loss of a recorded build: what a pair of small trees tells at most, as far
        as was seen. 0 where there were none.
    steered : bool
        Whether a build asked something else of the other data set after the same answers.
    """

    method: str
    epsilon: int
    unit: PrivacyUnit
    confidence: float
    results: tuple[AttackResult, ...]
    reach: float = 0.0
    steered: bool = False

    @property
    def lower(self) -> float:
        """Lower bound on the epsilon of the builds."""
        return max((result.lower for result in self.results), default=0.0)

    @property
    def expected(self) -> float:
        """What the best attack sees of a sound build."""
        return max((result.expected for result in self.results), default=0.0)

    @property
    def failed(self) -> bool:
        """Whether the builds are shown to be less private than claimed."""
        bad = ("above the claim", "tells too much")
        return self.steered or any(result.verdict in bad for result in self.results)

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        verdicts, claim = {f.verdict for f in self.results}, epsilon_text(self.epsilon)
        if self.steered:
            return "not private: after the same answers, other data are asked something else"
        if "above the claim" in verdicts:
            return f"not private as claimed: epsilon is over {self.lower:.3g}, the claim is {claim}"
        if "tells too much" in verdicts:
            return "not private as charged: an attack sees more than its epsilons let it see"
        share = f"{self.lower:.3g} of {claim} is seen, {self.expected:.3g} was to be expected"
        if "tells too little" in verdicts:
            return f"no fault, but {share}: noise is larger than needed, or the audit weak"
        return f"no fault: {share}"


def audit(
    method: Decomposition | str,
    epsilon: str | float | Decimal,
    *,
    unit: PrivacyUnit | None = None,
    canaries: int = 1024,
    runs: int = 32,
    pairs: int = 5_000,
    confidence: float = 0.999,
    jobs: int = 1,
    make: Callable[[Plot], Callable[[Path, Path], None]] | None = None,
    progress: Callable[[str], None] = lambda stage: None,
) -> Audit:
    """Attack builds of synthetic data, and hold what is seen against what is claimed.

    Guarantees
    ----------
    - If the builds are epsilon-private as claimed, and each draw has the law that it was charged
      for, the audit fails with a chance of at most 1 - confidence.
    - No data are read: rows are made up, and canaries come from the operating system's
      randomness, so nothing is spent.

    Parameters
    ----------
    method : Decomposition or str
        What is audited, with its public parameters.
    epsilon : str, int, float or Decimal
        Of each build. Mistakes are factors, and large ones show best at 1 to 2.
    unit : PrivacyUnit, optional
        A record, or a user with at most k rows.
    canaries : int
        In each build, 16 to 65,536, rounded down to a square.
    runs : int
        Builds with canaries, 1 to 1,000; all the way from a CSV to a release file.
    pairs : int
        Builds of a small tree on each of two data sets, 0 or 100 to 10,000,000; from a tally on.
    confidence : float
        In (0.5, 1), of all findings together.
    jobs : int
        Processes for the small trees.
    make : callable, optional
        Where another way than `psd.build` is to be audited: given the `psd.auditing.canaries.Plot`,
        gives a function of the path of a CSV and that of the release to make of it.
    progress : callable
        Told the name of each stage.

    Returns
    -------
    Audit

    Raises
    ------
    ParameterError
        If a parameter is out of range, or counts are users.

    References
    ----------
    .. [1] Steinke, Nasr, Jagielski, NeurIPS 2023, https://arxiv.org/abs/2305.08846.

    Examples
    --------
    >>> import psd
    >>> from psd.decompositions import Quadtree
    >>> report = psd.audit(Quadtree(height=2), 1, canaries=256, runs=1, pairs=0)
    >>> report.failed, [result.attack for result in report.results]
    (False, ['canaries'])
    """
    nano, unit = parse_epsilon(epsilon), unit or PrivacyUnit()
    check_instance("unit", unit, PrivacyUnit, 'psd.PrivacyUnit(kind="user", max_contributions=4)')
    method = as_method(method)
    _check(unit, confidence, canaries=canaries, runs=runs, pairs=pairs)
    jobs = integer_between(1, 65_536)("jobs", jobs)
    beta = (1 - confidence) / _ATTACKS
    progress("canaries")
    maker = make or partial(_made_of, epsilon=nano, method=method)
    plot = best_plot(maker, canaries, runs, nano, unit, beta)
    tossed = [one_run(maker(plot), plot) for _ in range(runs)]
    odds, present = (np.concatenate(parts) for parts in zip(*tossed, strict=True))
    audited = Audit(
        method=method.name,
        epsilon=nano,
        unit=unit,
        confidence=confidence,
        results=(_of_guesses(guesses(odds, present, beta), nano, beta),),
    )
    if pairs == 0:
        return audited
    progress("pairs of small trees")
    return _with_pairs(audited, Pair.of(method, nano, unit), pairs, beta, jobs)


def _check(unit: PrivacyUnit, confidence: float, *, canaries: int, runs: int, pairs: int) -> None:
    """Refuse what is out of range."""
    integer_between(16, 65_536)("canaries", canaries)
    integer_between(1, 1_000)("runs", runs)
    integer_between(0 if pairs == 0 else 100, 10_000_000)("pairs", pairs)
    if not 0.5 < confidence < 1:
        raise ParameterError(f"confidence {confidence} is not between 0.5 and 1")
    if unit.kind not in ("record", "user") or unit.weight:
        raise ParameterError(
            "an audit has records or users with a bound as unit; days, slices and shared counts "
            "draw from the same questions"
        )


def _made_of(plot: Plot, *, epsilon: int, method: Decomposition) -> Callable[[Path, Path], None]:
    """The way of the library: `psd.build` and `Release.save`."""
    k = plot.unit.max_contributions
    who: dict[str, Any] = {"user": "user", "max_contributions": k} if plot.unit.has_user else {}

    def make(rows: Path, release: Path) -> None:
        domain = Domain(bounds=plot.bounds, crs="EPSG:3857")
        built = build(rows, domain=domain, epsilon=epsilon_text(epsilon), method=method, **who)
        built.save(release)

    return make


def _of_guesses(attempt: Guesses, epsilon: int, beta: float) -> AttackResult:
    """Finding of the attack with canaries."""
    low, high = (limit(attempt.right, attempt.number, beta) for limit in (lower_limit, upper_limit))
    share = attempt.right / attempt.number if attempt.number else 0.5
    return AttackResult(
        attack="canaries",
        samples=attempt.number,
        seen=epsilon_of(share),
        lower=epsilon_of(low),
        upper=epsilon_of(high),
        expected=epsilon_of(attempt.expected),
        claim=epsilon / NANO,
    )


def _with_pairs(audited: Audit, pair: Pair, number: int, beta: float, jobs: int) -> Audit:
    """The audit with the findings of the attacks on small trees."""
    try:
        often = max(int(number * _RECORDED), _MIN_RECORDED)
        recorded = [losses(pair, often, more=more) for more in (True, False)]
    except LeakError:
        return replace(audited, steered=True)
    without, having = draw_samples(pair, number, jobs=jobs)
    first, rest = slice(None, number // 2), slice(number // 2, None)
    attacks = []
    for more, of_data_set in zip((True, False), recorded, strict=True):
        event = learn_event(without[first], having[first], more=more, beta=beta)
        attacks.append(_of_event(event, without[rest], having[rest], of_data_set, pair, beta))
    reach = max(float(np.abs(loss).max()) for _, loss in recorded)
    return replace(audited, results=(*audited.results, *attacks), reach=reach)


def _of_event(
    event: Threshold,
    without: Samples,
    having: Samples,
    recorded: tuple[Samples, NDArray[np.float64]],
    pair: Pair,
    beta: float,
) -> AttackResult:
    """Finding of one event on builds that it was not learned from."""
    low, high = ((int(hits.sum()), len(hits)) for hits in map(event.holds, (without, having)))
    likely, unlikely = (high, low) if event.more else (low, high)
    lower, upper = log_ratio_limits(likely, unlikely, beta)
    expected, error = event_loss(event, *recorded)
    return AttackResult(
        attack="one unit more" if event.more else "one unit less",
        samples=len(without.log_odds),
        seen=float(np.log((likely[0] + 0.5) / (unlikely[0] + 0.5))),
        lower=lower,
        upper=upper,
        expected=expected,
        slack=_ERRORS * error,
        claim=pair.epsilon / NANO,
    )
