"""One counting question, answered once and paid from a ledger. Private side.

A release answers every question for one price; this answers one. It is for the few numbers that
are wanted once and exactly where they are wanted: no cell is cut by the box.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.curator.curator import Curator
from psd.errors import ParameterError
from psd.ingest.memory_limit import memory_for_rows, parse_memory
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import TallyBuilder
from psd.mechanisms.base import Sampler
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.noise_laws import noise_law
from psd.privacy.noise_variance import noise_variance
from psd.privacy.unit import Count, Per, PrivacyUnit
from psd.publish.charging import PendingCharge, charge_request
from psd.publish.count_rows import wanted
from psd.publish.insecure import refuse_paid
from psd.space.domain import Domain

if TYPE_CHECKING:
    from psd.ledger.account import Account

__all__ = ["Answer", "ask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A noisy count and how far it may be off. Public.

    Parameters
    ----------
    estimate : float
        True count plus exact discrete Laplace noise; may be negative.
    error : float
        Standard deviation of the noise.
    lower, upper : float
        The noise leaves the count in this interval with at least the probability asked for.
    """

    estimate: float
    error: float
    lower: float
    upper: float


def ask(
    data: Any,
    *,
    box: tuple[float, float, float, float],
    epsilon: str | float | Decimal,
    account: Account,
    crs: str = "EPSG:4326",
    confidence: float = 0.95,
    x: str = "lon",
    y: str = "lat",
    user: str | None = None,
    max_contributions: int | None = None,
    per: Per | None = None,
    count: Count = "rows",
    geometry: str | None = None,
    layer: str | None = None,
    time: str | None = None,
    time_zone: str = "UTC",
    memory: str | int | None = None,
    sampler: Sampler | None = None,
) -> Answer:
    """Count the rows, or users, in one box, with noise of the whole epsilon.

    Guarantees
    ----------
    - The answer is epsilon-differentially private for adding or removing one unit of
      `psd.build`, and epsilon is charged to the account before it is drawn.
    - A box without a row is answered like any other; only what cannot be read is refused.

    Parameters
    ----------
    data : object or list of objects
        As in `psd.build`. Private.
    box : tuple of float
        West, south, east, north; points on its edges are in it. It is the domain of the question,
        a lattice of one cell, so that no edge is moved. Public: never taken from the points.
    epsilon : str, int, float or Decimal
        Price of the answer. Public.
    account : Account
        Who pays.
    crs : str
        Of the box and the columns. Public.
    confidence : float
        Of the interval, in (0, 1). Public.
    x, y, user, max_contributions, per, count, geometry, layer, time, time_zone, memory, sampler
        As in `psd.build`. Rows of a user are bounded among those in the box.

    Returns
    -------
    Answer

    Raises
    ------
    ParameterError, DomainError
        If a public parameter is wrong.
    InputDataError
        If the input cannot be read; it costs nothing.
    BudgetError, LedgerError
        If the account cannot pay.

    Notes
    -----
    The question is `psd.curator.curator.Curator.count` of one cell, which has the proof. The
    error and the interval follow from the law of the noise, `psd.privacy.noise_laws`.
    """
    nano = parse_epsilon(epsilon)
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence {confidence} is not between 0 and 1")
    domain = Domain(bounds=box, crs=crs, lattice=(1, 1))
    columns = Columns(
        x=x, y=y, user=user, geometry=geometry, layer=layer, time=time, time_zone=time_zone
    )
    asked = wanted(columns, max_contributions=max_contributions, per=per, count=count)
    refuse_paid(sampler, account)
    pending = PendingCharge(account, charge_request("ask", nano, asked, domain, data))
    budget = Budget(nano, on_first_spend=pending.charge)
    left = memory_for_rows(None if memory is None else parse_memory(memory))
    # A question about nobody must be answered: a refusal would tell, for nothing, that there is
    # nobody.
    builder = TallyBuilder(domain, unit=asked.unit, memory=left, anywhere=True)
    for batch in read(data, columns, domain):
        builder.add_batch(batch)
    tally = builder.build()
    curator = Curator(tally, domain, budget=budget, sampler=sampler or SecureSampler())
    found = int(curator.count(curator.root(), nano)[0])
    return _answer(found, nano, asked.unit, confidence, curator.noise_law)


def _answer(found: int, nano: int, unit: PrivacyUnit, confidence: float, law: str) -> Answer:
    """A noisy number with its error, in the things that are counted."""
    reach = noise_law(law).reach(nano, unit.contributions, 1 - confidence)
    variance = noise_variance(np.array([nano]), unit.contributions, law)[0]
    return Answer(
        estimate=found / unit.scale,
        error=math.sqrt(variance) / unit.scale,
        lower=(found - reach) / unit.scale,
        upper=(found + reach) / unit.scale,
    )
