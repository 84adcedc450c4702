"""From a source to a release: the one function that joins all parts of the private side."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

from psd.api.release import Release
from psd.curator.curator import Curator
from psd.curator.private_bounds import PrivateBounds
from psd.decompositions import Decomposition
from psd.decompositions import method as method_by_name
from psd.errors import ParameterError
from psd.ingest.memory_limit import memory_for_rows, parse_memory
from psd.ingest.sources import Columns
from psd.ingest.tally import Tally
from psd.ledger.account import Account
from psd.mechanisms.base import Sampler
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.statements import STATEMENTS, method_parameters
from psd.privacy.unit import Count, Per, PrivacyUnit
from psd.publish.charging import PendingCharge, charge_request
from psd.publish.count_rows import count_rows, wanted
from psd.publish.insecure import SeededSampler, refuse_paid
from psd.publish.public_inputs import Known, known, view_of, view_with
from psd.release.record import CountSource, ReleaseRecord

if TYPE_CHECKING:
    import geopandas

    from psd.curator.contribution_choice import BoundChoice
    from psd.ingest.engines import Engine
    from psd.release.post_processing import View
    from psd.space.boundary import Boundary
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain

__all__ = [
    "DEFAULT_METHOD",
    "build",
    "release_of",
    "source_of",
    "step_of",
    "view_of",
    "view_with",
]

DEFAULT_METHOD = "auto"


def build(
    data: Any,
    *,
    domain: Domain | PrivateBounds,
    epsilon: str | float | Decimal,
    method: Decomposition | str = DEFAULT_METHOD,
    x: str = "lon",
    y: str = "lat",
    user: str | None = None,
    max_contributions: int | Literal["auto"] | BoundChoice | None = None,
    per: Per | None = None,
    count: Count = "rows",
    geometry: str | None = None,
    layer: str | None = None,
    time: str | None = None,
    time_zone: str = "UTC",
    memory: str | int | None = None,
    estimate: str | None = None,
    density: str | None = None,
    covariate: Covariate | geopandas.GeoDataFrame | geopandas.GeoSeries | None = None,
    boundary: geopandas.GeoDataFrame | geopandas.GeoSeries | None = None,
    sampler: Sampler | None = None,
    progress: Callable[[str], None] = lambda stage: None,
    private_report: Callable[[dict[str, int]], None] = lambda report: None,
    private_tally: Callable[[Tally], None] | None = None,
    engine: Engine | None = None,
    account: Account | None = None,
) -> Release:
    """Build a differentially private release of how many rows, or users, are where.

    Guarantees
    ----------
    - The release is epsilon-differentially private for adding or removing one row, or, with
      ``user``, all rows of one user, or, with ``per``, those of one of a user's days; twice
      epsilon for replacing one.
    - It holds the noisy answers, public parameters and nothing else.
    - Reading comes first: an input that cannot be read costs no epsilon.
    - With an account, epsilon is charged to it before anything is drawn, or nothing is drawn.

    Parameters
    ----------
    data : object or list of objects
        Points: paths of files (CSV, Parquet, GeoPackage, Shapefile, FlatGeobuf, GeoJSON), folders
        and patterns, a DataFrame or GeoDataFrame, whatever hands over an Arrow stream, a relation
        of DuckDB, a `psd.PostGIS`. What a list holds is one input. Private.
    domain : Domain or PrivateBounds
        Bounds, CRS and lattice; never taken from the points. Public. Or how bounds are found
        for a share of epsilon, see `psd.curator.private_bounds`.
    epsilon : str, int, float or Decimal
        Privacy-loss budget of the release; see `psd.privacy.epsilon.parse_epsilon`. Public.
    method : Decomposition or str
        How to cut space, such as ``psd.Quadtree(height=8)`` or ``"grid"``. Public.
    x, y : str
        Names of the coordinate columns; not used where the input has geometries.
    user : str, optional
        Column of user ids; makes the user the unit of privacy.
    max_contributions : int, "auto" or BoundChoice, optional
        k, the most rows kept of each user, or of each day of a user; goes with ``user``.
        Public; "auto" pays a share of epsilon for a choice, see `psd.curator.contribution_choice`.
    per : {"day"}, optional
        Protects each day of a user by itself; goes with ``time``. A user of T days has T
        epsilon.
    count : {"rows", "users"}
        With "users", all rows of a user share one count, and answers are in users.
    geometry, layer : str, optional
        Column of points and layer of a file, needed where an input has several.
    time : str, optional
        Column of moments; text that is no time refuses the build.
    time_zone : str
        Zone of the wall clock that moments are brought to. Public.
    memory : str or int, optional
        Cap on the memory that reading takes, such as ``"2GB"``; see `psd.ingest.memory_limit`.
    estimate, density : str, optional
        View of the release, see `psd.release.post_processing.View`; what the method wants where
        not given. Public.
    covariate : Covariate, GeoDataFrame or GeoSeries, optional
        Where people can be, see `psd.space.covariate`; polygons are a mask. Points are then taken
        to lie by it inside the cells, unless ``density`` says otherwise, and a cascade divides
        no cell where it is 0. Public: never made from the points.
    boundary : GeoDataFrame or GeoSeries, optional
        Polygons outside of which rows are dropped, and nobody is, see `psd.space.boundary`. Public:
        never made from the points.
    sampler : Sampler, optional
        A release that was drawn by another sampler than `psd.mechanisms.sampler.SecureSampler`
        cannot be saved or exported: `psd.publish.insecure.SeededSampler` is for demonstrations,
        and no account pays for it; others are for tests.
    progress : callable
        Told the name of each stage; never a number.
    private_report : callable
        Given the private counts of rows read, outside and dropped. Whoever shows them marks
        them PRIVATE.
    private_tally : callable, optional
        Given the exact tally, for `psd.evaluation.evaluate` under a user bound. Whoever keeps it
        keeps it secret.
    engine : Engine, optional
        Where rows are read and counted, such as ``psd.Spark(url="spark://node1:7077")``, which
        takes paths as the cluster sees them and `psd.SparkTable`; this process where not given.
        The counts are the same, and the release does not say which.
    account : Account, optional
        Dataset of a ledger that pays, see `psd.ledger.account.Account`; its `finish` notes that the
        release was saved.

    Returns
    -------
    Release

    Raises
    ------
    ParameterError
        If a public parameter is wrong.
    InputDataError
        If the input cannot be read.
    DomainError
        If the points do not lie where the domain says.
    BudgetError, LedgerError
        If the account cannot pay.

    Examples
    --------
    >>> import pandas as pd, psd
    >>> points = pd.DataFrame({"lon": [126.98, 127.03], "lat": [37.57, 37.50]})
    >>> domain = psd.Domain(bounds=(126.40, 37.00, 127.60, 38.00))
    >>> psd.build(points, domain=domain, epsilon="0.5", method=psd.Quadtree(height=2))
    <Release: quadtree, 21 cells, epsilon 0.5 per record>
    """
    nano = parse_epsilon(epsilon)
    method = method_by_name(method) if isinstance(method, str) else method
    given = known(
        method,
        None if isinstance(domain, PrivateBounds) else domain,
        estimate=estimate,
        density=density,
        covariate=covariate,
        boundary=boundary,
    )
    method_parameters(
        method
    )  # a method with a field that nobody declared public is not shown the data
    columns = Columns(
        x=x, y=y, user=user, geometry=geometry, layer=layer, time=time, time_zone=time_zone
    )
    asked = wanted(columns, max_contributions=max_contributions, per=per, count=count)
    left = memory_for_rows(None if memory is None else parse_memory(memory))
    step = step_of(method, domain.lattice) if private_tally is None else (1, 1)
    sampler = SecureSampler() if sampler is None else sampler
    refuse_paid(sampler, account)
    claim = charge_request(f"build {method.name}", nano, asked, domain, data, engine=engine)
    budget = Budget(nano, on_first_spend=PendingCharge(account, claim).charge)
    progress("reading")
    counted = count_rows(
        data, domain, asked, budget=budget, sampler=sampler, step=step,
        area=given.boundary, memory=left, engine=engine,
    )  # fmt: skip
    private_report(counted.tally.report)
    if private_tally is not None:
        private_tally(counted.tally)
    budget.open()
    progress("counting with noise")
    return release_of(
        counted.tally,
        counted.domain,
        budget=budget,
        method=method,
        unit=counted.unit,
        view=given.view,
        covariate=given.covariate,
        boundary=given.boundary,
        sampler=sampler,
    )


def step_of(method: Decomposition, lattice: tuple[int, int]) -> tuple[int, int]:
    """Lattice columns and rows that a method never divides, so that they are counted together.

    Known before any row is read: from the parameters of methods whose cuts do not depend on
    data, ``method.step(lattice)``; one of each for all others.
    """
    named: Callable[[tuple[int, int]], tuple[int, int]] | None = getattr(method, "step", None)
    return (1, 1) if named is None else named(lattice)


def source_of(sampler: Sampler) -> CountSource:
    """What a release is to say of where its counts are from: only one sampler is secure."""
    if type(sampler) is SecureSampler:
        return "curator"
    return "insecure" if isinstance(sampler, SeededSampler) else "replay"


def release_of(
    counts: Tally,
    domain: Domain,
    *,
    budget: Budget,
    method: Decomposition,
    unit: PrivacyUnit,
    view: View | None = None,
    covariate: Covariate | None = None,
    boundary: Boundary | None = None,
    sampler: Sampler | None = None,
) -> Release:
    """Release of rows that have been tallied: the part of `build` after reading.

    Guarantees
    ----------
    - The release is epsilon-differentially private for adding or removing one unit of the
      tally; of several releases of one tally the epsilons add up.
    - It holds the noisy answers, public parameters and nothing else.

    Parameters
    ----------
    counts : Tally
        Exact counts, as `psd.ingest.tally.tally` made them. Private.
    domain : Domain
        Of the tally. Public.
    budget : Budget
        Of the release. The method gets what is left of it, and all of it is spent. Public.
    method : Decomposition
        How to cut space. Public.
    unit : PrivacyUnit
        Of the tally. Public.
    view : View, optional
        What is made of the counts; what the method wants where not given. Public.
    covariate : Covariate, optional
        Of the same domain. Public.
    boundary : Boundary, optional
        Outside of which the tally has no rows. Public.
    sampler : Sampler, optional
        For tests alone; a release of another sampler than `SecureSampler` cannot be saved.

    Returns
    -------
    Release

    Raises
    ------
    ParameterError
        If the tally was made for another unit, or if a parameter of the method was not declared.
    """
    if counts.contributions != unit.contributions:
        raise ParameterError("the tally was made for another unit, or with another bound per user")
    parameters = method_parameters(method)
    given = Known(
        view=view_of(method) if view is None else view, covariate=covariate, boundary=boundary
    )
    sampler = SecureSampler() if sampler is None else sampler
    curator = Curator(
        counts,
        domain,
        budget=budget,
        sampler=sampler,
        covariate=given.steering,
        boundary=given.mask,
    )
    tree = method.build(curator)
    record = ReleaseRecord(
        tree=tree,
        domain=domain,
        epsilon=budget.total,
        method=method.name,
        parameters=parameters.with_statement(STATEMENTS, budget.statement).with_picks(
            curator.declared
        ),
        unit=unit,
        view=given.view,
        covariate=given.published,
        boundary=boundary is not None,
        source=source_of(sampler),
    )
    return Release(record)
