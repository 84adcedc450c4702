"""One private choice among public candidates, charged to a ledger. Private side."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from psd._util.instances import check_instance
from psd.apps.choosing.objectives import Objective, Pick, as_objective
from psd.curator.curator import Curator
from psd.errors import ParameterError
from psd.ingest.sources import files_of
from psd.ledger.account import Account
from psd.mechanisms.choice_laws import Layout
from psd.privacy.loss import NANO, epsilon_decimal
from psd.publish.counting import RecordInput
from psd.publish.observer import SILENT, Observer
from psd.publish.pipeline import run_build
from psd.publish.request_values import ReadArguments, request_from_values
from psd.regions.files import refuse_record_files

if TYPE_CHECKING:
    from decimal import Decimal

    from psd.mechanisms.base import Sampler
    from psd.privacy.budget import Budget
    from psd.publish.counting import CountedRows
    from psd.publish.public_inputs import PublicInputs
    from psd.publish.request import BuildRequest
    from psd.space.box_tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Chosen candidates, and what public numbers say about them. Public.

    Guarantees
    ----------
    - Nothing but the picks depends on a record: no score, revenue or count is in it.

    Parameters
    ----------
    draws : int
        Number of draws.
    picks : tuple of dict
        Rows about the chosen candidates, by names of columns; a geometry is in the CRS of the
        domain.
    candidates : int
        Number of candidates of the first draw.
    epsilon, draw_epsilon : Decimal
        Cost of all draws together, and of each of them.
    guarantee : str
        What epsilon protects, in a few words.
    score_resolution : float
        A coin of probability 1 / e separates scores that differ by it; less is hardly told apart.
    mean_shortfall, likely_shortfall : float
        Bounds of how far the score of a pick lies below the best of its draw: of the mean, and with
        probability 0.95 at least.

    Examples
    --------
    >>> from decimal import Decimal
    >>> choice = Choice(draws=1, picks=({"id": "a"},), candidates=2, epsilon=Decimal("0.1"),
    ...     draw_epsilon=Decimal("0.1"), guarantee="per record", score_resolution=10.0,
    ...     mean_shortfall=7.0, likely_shortfall=37.0)
    >>> choice.picks[0]["id"]
    'a'
    """

    draws: int
    picks: tuple[Pick, ...]
    candidates: int
    epsilon: Decimal
    draw_epsilon: Decimal
    guarantee: str
    score_resolution: float
    mean_shortfall: float
    likely_shortfall: float

    def liar_gain(self, liars: int = 1) -> float:
        """Bound of what units gain together who state a falsehood about themselves.

        As a share of the largest utility that a unit has of any outcome: exp(liars epsilon) - 1.

        Parameters
        ----------
        liars : int
            Number of units who act together.

        Examples
        --------
        >>> from decimal import Decimal
        >>> choice = Choice(draws=1, picks=(), candidates=2, epsilon=Decimal("0.1"),
        ...     draw_epsilon=Decimal("0.1"), guarantee="per record", score_resolution=10.0,
        ...     mean_shortfall=7.0, likely_shortfall=37.0)
        >>> round(choice.liar_gain(), 4), round(choice.liar_gain(3), 4)
        (0.1052, 0.3499)

        References
        ----------
        McSherry, Talwar. "Mechanism Design via Differential Privacy." FOCS 2007, section 2.2.
        """
        return liar_gain(float(self.epsilon), liars=liars)


@dataclass(init=False, eq=False, repr=False)
class _Chooser:
    """The method of a choice: it asks the curator and keeps the picks."""

    name: ClassVar[str] = "choice"
    paper: ClassVar[str] = "McSherry, Talwar, FOCS 2007; McKenna, Sheldon, NeurIPS 2020"

    def __init__(self, objective: Objective) -> None:
        self.objective = objective
        self.charge_text = f"choose {objective.name}"

    def step(self, lattice: tuple[int, int]) -> tuple[int, int]:
        """Count every lattice cell."""
        return (1, 1)

    def ask(self, curator: Curator) -> tuple[Pick, ...]:
        """Choose by draws of equal epsilon, each after the answers of those before."""
        objective, picks = self.objective, list[Pick]()
        each, cells = curator.loss // objective.draws, curator.root()
        for _ in range(objective.draws):
            answer = curator.choose(cells, objective, objective.mechanism, each)
            rows, objective = objective.pick(answer)
            picks += rows
        return tuple(picks)

    def build(self, curator: Any) -> Tree:
        """Ask all questions, as before a reading; a choice has no tree of counts."""
        self.ask(curator)
        tree: Tree = curator.tree()
        return tree


def choose(
    data: Any,
    objective: Objective,
    *,
    epsilon: str | float | Decimal,
    account: Account,
    memory: str | int | None = None,
    sampler: Sampler | None = None,
    observer: Observer = SILENT,
    **arguments: Unpack[ReadArguments],
) -> Choice:
    """Choose the public candidate that serves the records best, with noise of the whole epsilon.

    Guarantees
    ----------
    - The choice is epsilon-differentially private for adding or removing one unit of `psd.build`,
      and epsilon is charged to the account before it is drawn, once for all draws.
    - Candidates are public and checked before the data are read. Data without a record are answered
      like any other; only what cannot be read is refused.

    Parameters
    ----------
    data : object or list of objects
        As in `psd.build`. Private.
    objective : Objective
        Candidates and their scores, such as `psd.apps.choosing.Sites`. Public.
    epsilon : str, int, float or Decimal
        Cost of the choice. Public.
    account : Account
        Dataset of a ledger that is charged.
    memory, sampler, observer
        As in `psd.build`.
    **arguments
        Columns and unit of privacy as in `psd.publish.request_values.ReadArguments`. Records of
        a user are bounded among those in the domain of the objective. Public.

    Returns
    -------
    Choice

    Raises
    ------
    ParameterError, DomainError
        If a public parameter is wrong.
    InputDataError
        If the input cannot be read. The sentence is fixed: the reason goes to the observer.
    BudgetError, LedgerError
        If the account cannot be charged.

    References
    ----------
    McSherry, Talwar. "Mechanism Design via Differential Privacy." FOCS 2007.

    Examples
    --------
    >>> import tempfile, pandas as pd, psd
    >>> from psd.apps.choosing import CandidateAreas, Sites
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = psd.Ledger.create(folder.name + "/city.ledger")
    >>> ledger.register("visits", budget=20)
    >>> account = psd.ledger.Account(ledger, "visits")
    >>> points = pd.DataFrame({"lon": [126.98] * 9, "lat": [37.57] * 9})
    >>> places = [[126.98, 37.57], [127.03, 37.50]]
    >>> sites = Sites(catchments=CandidateAreas.around(["north", "south"], places, radius=2000))
    >>> choice = choose(points, sites, epsilon=10, account=account)
    >>> choice.picks, round(choice.mean_shortfall, 2)
    (({'rank': 1, 'id': 'north'},), 0.07)
    >>> folder.cleanup()

    Notes
    -----
    The question is `psd.curator.curator.Curator.choose`, which has the proof. The bounds follow
    from public numbers: a draw among m candidates with weights exp(score / a) falls short of the
    best score by at most a ln m on average, and by more than a (ln m + t) with probability exp(-t)
    at most; permute-and-flip is never worse.
    """
    objective = as_objective(objective)
    check_instance("account", account, Account, 'psd.ledger.Account("city.ledger", "visits")')
    files = tuple(getattr(objective, "files", ()))
    account.refuse_records(files)
    refuse_record_files(files, files_of(data if isinstance(data, list) else [data]))
    chooser = _Chooser(objective)
    request = request_from_values(
        {
            "domain": objective.domain,
            "epsilon": epsilon,
            "method": chooser,
            **arguments,
        }
    )
    if request.contribution_choice is not None:
        raise ParameterError(
            "max_contributions must be a number for a choice, got auto; it takes a share of epsilon"
        )
    if request.unit.weight and not objective.is_monotone:
        raise ParameterError(
            "count must be records where scores are distances to a target, got users"
        )
    if request.nano_epsilon < objective.draws:
        raise ParameterError("epsilon must be at least 1e-9 for each draw")
    levels = None
    if objective.bids is not None:
        column, levels = objective.bids
        request = replace(request, columns=replace(request.columns, bid=column))
    picks = run_build(
        request,
        RecordInput(data=data, memory=memory, strata=levels),
        _draw,
        account=account,
        sampler=sampler,
        observer=observer,
    )
    unit, each = request.unit, request.nano_epsilon // objective.draws
    # Scores that differ by this are drawn with probabilities that differ by a factor of e.
    rounds = 1 if objective.is_monotone else 2
    spread = rounds * objective.sensitivity(unit.contributions) * NANO / each / unit.scale
    spread, many = objective.step * spread, math.log(objective.candidates)
    return Choice(
        draws=objective.draws,
        picks=picks,
        candidates=objective.candidates,
        epsilon=request.epsilon,
        draw_epsilon=epsilon_decimal(each),
        guarantee=request.guarantee_text,
        score_resolution=spread,
        mean_shortfall=shortfall(spread, many),
        likely_shortfall=shortfall(spread, many, LIKELY),
    )


def _draw(
    request: BuildRequest,
    counted: CountedRows,
    inputs: PublicInputs,
    budget: Budget,
    sampler: Sampler,
) -> tuple[Pick, ...]:
    chooser = request.method
    assert isinstance(chooser, _Chooser)
    return chooser.ask(Curator(counted.tally, counted.domain, budget=budget, sampler=sampler))


LIKELY = 3.0
"""A shortfall exceeds that of the mean by this much with probability exp(-3), below 0.05."""


def shortfall(scale: float, log_candidates: float, beyond: float = 0.0) -> float:
    """Bound of how far the score of a choice lies below the best score, in the unit of scores.

    P1. It follows from public numbers alone: `scale` is 1 / rate, and `log_candidates` the log of
    their number, or -log of the base weight of one. With `beyond` 0 it bounds the mean; with a
    positive t, the choice falls short by the result or more with probability exp(-t) at most.
    Let mu be the base measure, w(o) = mu(o) exp(rate score(o)), and o* a candidate. By Gibbs'
    inequality the log of the sum of all w is rate E[score] plus an entropy relative to mu (never
    above 0), and is at least log w(o*). So E[score] >= score(o*) - log(1 / mu(o*)) / rate. The ones
    whose scores lie (log(1 / mu(o*)) + t) / rate below that of o* have together at most exp(-t) of
    its weight, since mu adds up to 1. Permute-and-flip is never worse than the exponential
    mechanism. (McSherry, Talwar, FOCS 2007, theorem 8; McKenna, Sheldon, NeurIPS 2020, theorem 2.)
    """
    return scale * (log_candidates + beyond)


def base_weight(layout: Layout, zones: int, numbers: int, prices: int) -> float:
    """Log of 1 / base measure of a map: numbers of zones share it, and so do the maps of each."""
    return math.log(numbers) + math.log(layout.count(zones)) + zones * math.log(prices)


def map_shortfall(
    scale: float, layout: Layout, zones: int, numbers: int, prices: int, beyond: float = 0.0
) -> float:
    """Bound of how far the score of a map lies below the best map of one number of zones."""
    # It holds for each number of zones that is allowed, so more of them cost a log only.
    return shortfall(scale, base_weight(layout, zones, numbers, prices), beyond)


def liar_gain(epsilon: float, *, liars: int = 1, rounds: int = 1) -> float:
    """Bound of what units gain together who state a falsehood about themselves, as a share.

    P2. It is exp(liars rounds epsilon) - 1 of the largest utility that they have of any outcome. A
    lie is a change that costs epsilon once, such as another bid in the same place; one that changes
    the place, or several records, counts as two liars. A change of cost c multiplies no probability
    by more than e^c, so an expected utility rises by at most e^c - 1 of itself. Where no utility is
    below 0, it also rises by at most the largest one times the total variation, which is at most
    tanh(c / 2). At c = 2 x for x = liars rounds epsilon this is tanh(x), below e^x - 1: the bound
    holds for lies that count as two as well. By McSherry, Talwar, FOCS 2007, section 2.2.
    """
    if liars < 1 or rounds < 1:
        raise ParameterError(f"liars and rounds must be at least 1, got {liars} and {rounds}")
    exponent = liars * rounds * epsilon
    return math.expm1(exponent) if exponent < _LARGEST else math.inf


_LARGEST = 700.0
