"""One counting question, answered once and charged to a ledger. Private side.

A release answers any number of questions for one epsilon; a single count answers one. It suits few
boxes that cells must not cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

import numpy as np

from psd._util.instances import check_instance
from psd.api.release import Release
from psd.errors import ParameterError
from psd.ledger.account import Account
from psd.publish.count_inputs import RecordInput
from psd.publish.observer import SILENT, Observer
from psd.publish.pipeline import publish
from psd.publish.request_values import ReadArguments, request_from_values
from psd.space.domain import Domain

if TYPE_CHECKING:
    from decimal import Decimal

    from psd.decompositions import Curator
    from psd.mechanisms.base import Sampler
    from psd.space.box_tree import Tree

__all__ = ["Answer", "SingleCount", "ask"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A noisy count with its error. Public.

    Parameters
    ----------
    estimate : float
        True count plus exact discrete Laplace noise; may be negative.
    error : float
        Standard deviation of the noise.
    lower, upper : float
        Interval that contains the true count with at least the requested probability.
    """

    estimate: float
    error: float
    lower: float
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleCount:
    """The method of a single count: the domain is the only cell."""

    name: ClassVar[str] = "single-count"
    paper: ClassVar[str] = "Dwork, McSherry, Nissim, Smith, TCC 2006"
    charge_text: ClassVar[str] = "ask"

    def build(self, curator: Curator) -> Tree:
        """Count the domain with all of epsilon."""
        curator.count(curator.root(), curator.loss)
        return curator.tree()


def ask(
    data: Any,
    *,
    box: tuple[float, float, float, float],
    epsilon: str | float | Decimal,
    account: Account,
    crs: str = "EPSG:4326",
    coordinate_resolution: str | float | Decimal | None = None,
    confidence: float = 0.95,
    memory: str | int | None = None,
    sampler: Sampler | None = None,
    observer: Observer | Mapping[str, Callable[[Any], None]] = SILENT,
    **arguments: Unpack[ReadArguments],
) -> Answer:
    """Count the records, or users, in one box, with noise of the whole epsilon.

    Guarantees
    ----------
    - The answer is epsilon-differentially private for adding or removing one unit of
      `psd.build`, and epsilon is charged to the account before it is drawn.
    - A box without a record is answered like any other; only what cannot be read is refused.

    Parameters
    ----------
    data : object or list of objects
        As in `psd.build`. Private.
    box : tuple of float
        West, south, east, north; points on its edges are in it. It is the domain of the question, a
        lattice of one cell, so that no edge is moved. Never derived from the points. Public.
    epsilon : str, int, float or Decimal
        Cost of the answer. Public.
    account : Account
        Dataset of a ledger that is charged.
    crs : str
        Of the box and the columns. Public.
    coordinate_resolution : str, int, float or Decimal, optional
        Step to which the coordinates are rounded, as in `psd.Domain`. It does not change the answer
        of a box; state the one that the dataset registers, so that charges for disjoint boxes do
        not add up. Public.
    confidence : float
        Of the interval, in (0, 1). Public.
    memory, sampler, observer
        As in `psd.build`.
    **arguments
        Columns and unit of privacy as in `psd.publish.request_values.ReadArguments`. Records of
        a user are bounded among those in the box. Public.

    Returns
    -------
    Answer

    Raises
    ------
    ParameterError, DomainError
        If a public parameter is wrong.
    InputDataError
        If the input cannot be read. The sentence is fixed: the reason goes to the observer. It
        costs nothing, unless memory or disk gave out.
    BudgetError, LedgerError
        If the account cannot be charged.

    Examples
    --------
    >>> import tempfile, pandas as pd, psd
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = psd.Ledger.create(folder.name + "/city.ledger")
    >>> ledger.register("visits", budget=1)
    >>> account = psd.ledger.Account(ledger, "visits")
    >>> points = pd.DataFrame({"lon": [126.98, 127.03], "lat": [37.57, 37.50]})
    >>> answer = psd.ask(points, box=(126.9, 37.5, 127, 37.6), epsilon="0.5", account=account)
    >>> account.finish()
    >>> round(answer.error, 2), account.left
    (2.8, 500000000)
    >>> folder.cleanup()

    Notes
    -----
    The question is `psd.curator.curator.Curator.count` of one cell, which has the proof. The
    error and the interval follow from the noise of the count, `psd.privacy.count_noise`.
    """
    check_instance("account", account, Account, 'psd.ledger.Account("city.ledger", "visits")')
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must be between 0 and 1, got {confidence}")
    request = request_from_values(
        {
            "domain": _box_domain(box, crs, coordinate_resolution),
            "epsilon": epsilon,
            "method": SingleCount(),
            **arguments,
        }
    )
    source = RecordInput(data=data, memory=memory)
    release = publish(
        request, source, account=account, sampler=sampler, observer=Observer.of(observer)
    )
    assert isinstance(release, Release)
    return _answer(release, confidence)


def _box_domain(
    box: tuple[float, float, float, float], crs: str, resolution: str | float | Decimal | None
) -> Domain:
    """Domain of one box: a lattice of one cell, or of the values in the box."""
    if resolution is None:
        return Domain(bounds=box, crs=crs, lattice=(1, 1))
    return Domain(bounds=box, crs=crs, coordinate_resolution=str(resolution), min_cell=None)


def _answer(release: Release, confidence: float) -> Answer:
    """Noisy count with its error, in records or users."""
    count, epsilon = int(release.tree.count[0]), int(release.tree.loss[0])
    unit, noise = release.unit, release.tree.noise
    reach = noise.tail_bound(epsilon, 1 - confidence)
    variance = noise.variance(np.array([epsilon]))[0]
    return Answer(
        estimate=count / unit.scale,
        error=math.sqrt(variance) / unit.scale,
        lower=(count - reach) / unit.scale,
        upper=(count + reach) / unit.scale,
    )
