"""`psd.build`: from records to a release in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack, overload

from psd.publish.observer import SILENT, Observer
from psd.publish.pipeline import publish
from psd.publish.public_inputs import check_public_files
from psd.publish.request_arguments import (
    DEFAULT_METHOD,
    BuildArguments,
    DomainArgument,
    request_from_arguments,
)

if TYPE_CHECKING:
    from decimal import Decimal

    from psd.api.release import Release
    from psd.api.series import SeriesRelease
    from psd.decompositions import Decomposition
    from psd.ingest.engine import Engine
    from psd.ledger.account import Account
    from psd.mechanisms.base import Sampler
    from psd.space.time_slices import TimeSlices

__all__ = ["build"]


@overload
def build(
    data: Any,
    *,
    domain: DomainArgument = None,
    epsilon: str | float | Decimal,
    method: Decomposition | str = DEFAULT_METHOD,
    slices: None = None,
    engine: Engine | None = None,
    memory: str | int | None = None,
    account: Account | None = None,
    sampler: Sampler | None = None,
    observer: Observer = SILENT,
    **arguments: Unpack[BuildArguments],
) -> Release: ...


@overload
def build(
    data: Any,
    *,
    domain: DomainArgument = None,
    epsilon: str | float | Decimal,
    method: Decomposition | str = DEFAULT_METHOD,
    slices: TimeSlices,
    engine: Engine | None = None,
    memory: str | int | None = None,
    account: Account | None = None,
    sampler: Sampler | None = None,
    observer: Observer = SILENT,
    **arguments: Unpack[BuildArguments],
) -> SeriesRelease: ...


def build(
    data: Any,
    *,
    domain: DomainArgument = None,
    epsilon: str | float | Decimal,
    method: Decomposition | str = DEFAULT_METHOD,
    slices: TimeSlices | None = None,
    engine: Engine | None = None,
    memory: str | int | None = None,
    account: Account | None = None,
    sampler: Sampler | None = None,
    observer: Observer = SILENT,
    **arguments: Unpack[BuildArguments],
) -> Release | SeriesRelease:
    """Build a differentially private release of the numbers of records, or users, by location.

    Guarantees
    ----------
    - The release is epsilon-differentially private for adding or removing one record, or, with
      ``user``, all records of one user, or, with ``per="day"``, those of one of a user's days;
      twice epsilon for replacing one.
    - It holds the noisy answers, public parameters and nothing else.
    - Reading comes first: an input whose form is refused costs no epsilon. Whether it is refused
      does not depend on where records lie; with an account the reason is not stated.
    - With an account, epsilon is charged to it before anything is drawn, or nothing is drawn.
    - Every time slice of the list is in the result, with its own noise, even if it has no record.

    Parameters
    ----------
    data : object or list of objects
        Points: paths of files (CSV, Parquet, GeoPackage, Shapefile, FlatGeobuf, GeoJSON), folders
        and patterns, addresses ``s3://`` and ``gs://``, a DataFrame or GeoDataFrame, an array of
        NumPy, an Arrow stream, a LazyFrame of Polars, a relation of DuckDB, a `psd.DuckDB`, a
        `psd.PostGIS`. The items of a list are one input. Or tallies of parts, which state domain,
        unit and slices themselves. Private.
    domain : Domain, PrivateBounds or tuple of four numbers
        Bounds, CRS and lattice, never taken from the points; or how bounds are estimated for a
        share of epsilon, see `psd.curator.private_bounds`. Public.
    epsilon : str, int, float or Decimal
        Epsilon of the release, or of the whole series; see
        `psd.privacy.epsilon.parse_epsilon`. Public.
    method : Decomposition or str
        How space is divided, such as ``psd.decompositions.Quadtree(height=8)`` or ``"grid"``.
        Public.
    slices : TimeSlices, optional
        Hours, days, weeks or months that are counted separately; requires ``time``. Never derived
        from the data. Public.
    engine : Engine, optional
        Where records are read and counted, such as ``psd.Spark(url="spark://node1:7077")``, which
        takes paths as the cluster sees them and `psd.SparkTable`; this process by default. The
        counts are the same, and the release does not state the engine.
    memory : str or int, optional
        Limit on the memory that reading takes, such as ``"2GB"``; see `psd.ingest.memory_limit`.
    account : Account, optional
        Dataset of a ledger that is charged, see `psd.ledger.account.Account`; its `finish` notes
        that the release was saved.
    sampler : Sampler, optional
        Source of random draws: `psd.testing.SeededSampler` for demonstrations, which no account is
        charged for, or another one for tests. A release of another sampler than `SecureSampler`
        cannot be saved or exported.
    observer : Observer
        Functions that are called with stages and private counts.
    **arguments
        Columns, unit of privacy, post-processing, covariate and boundary, as in
        `psd.publish.request_arguments.BuildArguments`. Public.

    Returns
    -------
    Release or SeriesRelease
        A series if there are slices.

    Raises
    ------
    ParameterError
        If a public parameter is wrong.
    InputDataError
        If the input cannot be read.
    BudgetError, LedgerError
        If the account cannot be charged.

    Examples
    --------
    >>> import pandas as pd, psd
    >>> from psd.decompositions import Quadtree
    >>> points = pd.DataFrame({"lon": [126.98, 127.03], "lat": [37.57, 37.50]})
    >>> domain = psd.Domain(bounds=(126.40, 37.00, 127.60, 38.00))
    >>> psd.build(points, domain=domain, epsilon="0.5", method=Quadtree(height=2))
    <Release: quadtree, 21 cells, epsilon 0.5 per record>
    """
    check_public_files(arguments, data)
    request = request_from_arguments(
        domain=domain, epsilon=epsilon, method=method, slices=slices, **arguments
    )
    return publish(
        request,
        data,
        engine=engine,
        memory=memory,
        account=account,
        sampler=sampler,
        observer=observer,
    )
