"""Learn the shared weights of suggestions from records, charged to a ledger. Private side."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from psd._util.arrays import Integers
from psd.apps.suggest.models import (
    FEATURES,
    FactorModel,
    RegionGrid,
    SharedWeights,
    learn_factors,
    learn_weights,
)
from psd.curator.person_sums import PersonSums
from psd.errors import ParameterError
from psd.ingest.memory_limit import memory_for_rows, split_memory
from psd.ingest.sources import read
from psd.ingest.tally_builder import TallyBuilder
from psd.privacy.budget import Budget
from psd.privacy.loss import Loss, delta_text, epsilon_text, parse_delta
from psd.publish.counting import CountedRows, RecordInput
from psd.publish.insecure import refuse_seed
from psd.publish.observer import SILENT, Observer
from psd.publish.pipeline import run_build
from psd.publish.request import BuildRequest, BuildTerms
from psd.publish.request_values import PointArguments, parse_values, reading_from_values
from psd.space.domain import Domain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from psd.api.release import Release
    from psd.decompositions import Curator
    from psd.ledger.account import Account
    from psd.ledger.charges import ChargeRequest
    from psd.mechanisms.base import Sampler
    from psd.publish.public_inputs import PublicInputs
    from psd.space.boundary import Boundary
    from psd.space.box_tree import Tree


def train_weights(
    data: Any,
    release: Release,
    *,
    user: str,
    epsilon: str | float | Decimal,
    delta: str | float | Decimal,
    max_contributions: int = 4,
    cells: int = 40,
    account: Account | None = None,
    memory: str | int | None = None,
    sampler: Sampler | None = None,
    observer: Observer = SILENT,
    **columns: Unpack[PointArguments],
) -> SharedWeights:
    """Learn shared weights, with which devices rank regions by their own places.

    Guarantees
    ----------
    - The weights are (epsilon, delta)-differentially private for adding or removing one user. They
      hold noisy sums and public parameters alone.
    - With an account, epsilon and delta are charged before anything is drawn.
    - Users with one record, and data without a record inside, are answered like any other.

    Parameters
    ----------
    data : object or list of objects
        As in `psd.build`. Private.
    release : Release
        Its area is divided into regions; its density is one of their features. Public.
    user : str
        Column of user ids. Public.
    epsilon, delta : str, int, float or Decimal
        Cost of the weights. Public.
    max_contributions : int
        Largest number of records of each user that are read. Public.
    cells : int
        Regions in a row and in a column, 5 to 100. Public.
    account : Account, optional
        Dataset of a ledger that is charged.
    memory, sampler, observer
        As in `psd.build`.
    **columns
        Names of the coordinate columns, as in `psd.publish.request_values.PointArguments`.

    Returns
    -------
    SharedWeights

    Raises
    ------
    ParameterError, DomainError
        If a public parameter is wrong, or the release has no density.
    InputDataError
        If the input cannot be read.
    BudgetError, LedgerError
        If the account cannot be charged.

    Examples
    --------
    >>> import pandas as pd, psd
    >>> domain = psd.Domain(bounds=(126.4, 37, 127.6, 38), lattice=(8, 8))
    >>> tree = psd.decompositions.grid_tree(domain, 8)
    >>> release = psd.Release.from_counts(tree, range(64), 1, domain=domain)
    >>> visits = pd.DataFrame({"lon": [126.9, 127.1], "lat": [37.5, 37.6], "id": ["a", "a"]})
    >>> how = {"user": "id", "epsilon": 1, "delta": "1e-6", "cells": 8}
    >>> weights = psd.apps.suggest.train_weights(visits, release, **how)
    >>> len(weights.weights), weights.delta
    (6, '1e-6')

    Notes
    -----
    The question to the records is `psd.curator.person_sums.PersonSums.sums`, which has the proof.
    The loss is Gaussian: all of the rho of (epsilon, delta) is spent on one question.
    """
    grid = RegionGrid.of_release(release, cells)
    request = _request(release.domain, epsilon, user, max_contributions, columns)
    refuse_seed(sampler)
    source = PersonInput(data=data, memory=memory, delta=parse_delta(delta))
    draw = partial(_draw_weights, grid, source.loss(request))
    return run_build(request, source, draw, account=account, sampler=sampler, observer=observer)


def train_factors(
    data: Any,
    release: Release,
    *,
    user: str,
    epsilon: str | float | Decimal,
    delta: str | float | Decimal,
    max_contributions: int = 40,
    cells: int = 40,
    account: Account | None = None,
    memory: str | int | None = None,
    sampler: Sampler | None = None,
    **columns: Unpack[PointArguments],
) -> FactorModel:
    """Learn factors of regions, the general model beside `train_weights`, for comparisons.

    Guarantees
    ----------
    - As `train_weights`; factors of persons are not returned.

    Parameters
    ----------
    data, release, user, epsilon, delta, max_contributions, cells, account, memory, sampler
        As in `train_weights`; of the release only the area is used.
    **columns
        Names of the coordinate columns.

    Returns
    -------
    FactorModel
        Factors of the regions, row by row from the south-west corner.

    Raises
    ------
    ParameterError, DomainError, InputDataError, BudgetError, LedgerError
        As `train_weights`.

    References
    ----------
    .. [1] Chien et al. "Private Alternating Least Squares." ICML 2021. arXiv:2107.09802.

    Examples
    --------
    >>> import pandas as pd, psd
    >>> domain = psd.Domain(bounds=(126.4, 37, 127.6, 38), lattice=(8, 8))
    >>> tree = psd.decompositions.grid_tree(domain, 8)
    >>> release = psd.Release.from_counts(tree, range(64), 1, domain=domain)
    >>> visits = pd.DataFrame({"lon": [126.9, 127.1], "lat": [37.5, 37.6], "id": ["a", "a"]})
    >>> how = {"user": "id", "epsilon": 1, "delta": "1e-6", "cells": 8}
    >>> model = psd.apps.suggest.train_factors(visits, release, **how)
    >>> model.factors.shape
    (64, 12)
    """
    grid = RegionGrid.of_release(release, cells)
    request = _request(release.domain, epsilon, user, max_contributions, columns)
    refuse_seed(sampler)
    source = PersonInput(data=data, memory=memory, delta=parse_delta(delta))
    draw = partial(_draw_factors, grid, source.loss(request))
    return run_build(request, source, draw, account=account, sampler=sampler)


def _request(
    domain: Domain,
    epsilon: str | float | Decimal,
    user: str,
    max_contributions: int,
    columns: Mapping[str, Any],
) -> BuildRequest:
    """Request for records of users."""
    if user is None:
        raise ParameterError("user must name the column of user ids; models protect users")
    arguments = {"user": user, "max_contributions": max_contributions, **columns}
    return BuildRequest(
        domain=domain,
        epsilon=epsilon,  # type: ignore[arg-type] # normalised there
        method=PersonQuestion(),
        **reading_from_values(parse_values(arguments)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonQuestion:
    """Method of the request: it asks the curator of counts for nothing."""

    name: ClassVar[str] = "person-sums"
    paper: ClassVar[str] = "Chien et al., ICML 2021"
    charge_text: ClassVar[str] = "suggest"

    def build(self, curator: Curator) -> Tree:
        """Build the tree of the domain alone, without a count."""
        curator.root()
        return curator.tree()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PersonRecords(CountedRows):
    """Records of each person in cells of the lattice. Private."""

    persons: Integers  # (n,) int64, private; ordered by person
    columns: Integers
    rows: Integers


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PersonInput(RecordInput):
    """Records that are read by person, and charged as Gaussian noise."""

    delta: Fraction

    def loss(self, request: BuildRequest) -> Loss:
        """Loss of the weights."""
        return Loss.gaussian(request.nano_epsilon, self.delta)

    def complete(self, terms: BuildTerms) -> BuildRequest:
        """Refuse a contribution bound that is chosen privately."""
        if terms.contribution_choice is not None:
            raise ParameterError("max_contributions must be a number, got auto")
        return RecordInput.complete(self, terms)

    def charge_request(self, request: BuildRequest) -> ChargeRequest:
        """Charge of the records, at the Gaussian loss."""
        return replace(RecordInput.charge_request(self, request), loss=self.loss(request))

    def count(
        self,
        request: BuildRequest,
        *,
        budget: Budget,
        sampler: Sampler,
        boundary: Boundary | None,
        observer: Observer,
    ) -> PersonRecords:
        """Read the records, at most k of each user."""
        domain = request.domain
        assert isinstance(domain, Domain)  # that of a release, by `_request`
        observer.progress("reading")
        memory = memory_for_rows(self.memory)
        for_rows, for_parser = split_memory(memory)
        builder = TallyBuilder(domain, unit=request.unit, memory=for_rows)
        columns = replace(request.columns, memory=for_parser)
        for batch in read(self.data, columns, domain, on_copy=observer.private_copy):
            builder.add_batch(batch)
        rows = builder.user_rows(secrets.token_bytes(16))
        return PersonRecords(
            tally=rows.tally(None),
            domain=domain,
            unit=request.unit,
            persons=rows.users,
            columns=rows.columns,
            rows=rows.rows,
        )


def _draw_weights(
    grid: RegionGrid,
    loss: Loss,
    request: BuildRequest,
    counted: CountedRows,
    inputs: PublicInputs,
    budget: Budget,
    sampler: Sampler,
) -> SharedWeights:
    weights = learn_weights(_charged_people(grid, loss, counted, budget, sampler), grid)
    assert loss.delta is not None  # weights are learned at a Gaussian loss
    ids = {name: str(text) for name, text in budget.statement.items()}
    return SharedWeights(
        weights=dict(zip(FEATURES, map(float, weights), strict=True)),
        release=grid.digest,
        cells=grid.cells,
        epsilon=epsilon_text(request.nano_epsilon),
        delta=delta_text(loss.delta),
        max_contributions=request.unit.max_contributions,
        **ids,
    )


def _draw_factors(
    grid: RegionGrid,
    loss: Loss,
    request: BuildRequest,
    counted: CountedRows,
    inputs: PublicInputs,
    budget: Budget,
    sampler: Sampler,
) -> FactorModel:
    people = _charged_people(grid, loss, counted, budget, sampler)
    return learn_factors(people, len(grid.count))


def _charged_people(
    grid: RegionGrid, loss: Loss, counted: CountedRows, budget: Budget, sampler: Sampler
) -> PersonSums:
    """Charge the whole loss; the question to the records, which may spend its rho."""
    assert isinstance(counted, PersonRecords)
    budget.spend(budget.left)
    regions = grid.regions_of(counted.columns, counted.rows)
    return PersonSums(counted.persons, regions, budget=Budget(loss.rho), sampler=sampler)
