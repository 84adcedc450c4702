"""`psd.build`: from records to a release in one call."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from psd.ingest.partial_tally import PartialTally
from psd.publish.area import with_stated_crs
from psd.publish.charging import own_account
from psd.publish.counting import check_public_files, count_input, inputs_and_engine, points_of
from psd.publish.drawing import draw_counts
from psd.publish.fields import FIELDS, answer_guesses
from psd.publish.observer import SILENT, Observer
from psd.publish.pipeline import run_build
from psd.publish.request_values import terms_from_values
from psd.publish.request_warnings import warn_of_columns, warn_of_request
from psd.publish.tallies import tallies_in

if TYPE_CHECKING:
    from decimal import Decimal

    from psd.api.release import Release
    from psd.curator.private_bounds import ContributionChoice, PrivateBounds
    from psd.decompositions import Decomposition
    from psd.ingest.engine import Engine
    from psd.ledger.account import Account
    from psd.ledger.ledger import Ledger
    from psd.mechanisms.base import Sampler
    from psd.privacy.loss import Loss
    from psd.publish.request import BuildTerms
    from psd.release.about import About
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = ["build"]

_PUBLIC = tuple(field.name for field in FIELDS if not field.private)
_AREA = (*(field.name for field in FIELDS if field.group == "Area"), "domain")


# What else of a run is guessed as an argument, and where it is.
_ELSEWHERE = {
    name: f"argument {name!r} does not exist; save the release: "
    'psd.build(...).save("FILE.psd.parquet")'
    for name in ("output", "out", "path", "file", "filename")
}


@answer_guesses(_ELSEWHERE)
def build(
    data: Any,
    *,
    epsilon: str | float | Decimal,
    bounds: Any = None,
    crs: str | None = None,
    method: Decomposition | str | None = None,
    set: Mapping[str, Any] | None = None,
    x: str | None = None,
    y: str | None = None,
    wkt: str | None = None,
    geometry: str | None = None,
    layer: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    skip_rows: int | None = None,
    input_crs: str | None = None,
    where: str | None = None,
    table: str | None = None,
    query: str | None = None,
    memory: str | int | None = None,
    engine: Engine | str | None = None,
    bounds_crs: str | None = None,
    bounds_share: str | float | Decimal | None = None,
    bounds_beyond: int | None = None,
    lattice: Sequence[int] | None = None,
    coordinate_resolution: str | float | Decimal | None = None,
    min_cell: str | float | Decimal | None = None,
    boundary: Any = None,
    covariate: Any = None,
    covariate_column: str | None = None,
    covariate_size: int | None = None,
    regions: Any = None,
    region_id: str | Sequence[str] | None = None,
    region_parent: str | Sequence[str] | None = None,
    gaps: Literal["refuse", "elsewhere", "outside"] | None = None,
    tolerance: float | None = None,
    repair: bool = False,
    delta: str | float | Decimal | None = None,
    noise: Literal["auto", "laplace", "gaussian"] = "auto",
    estimate: str | None = None,
    density: str | None = None,
    about: Mapping[str, str] | About | str | os.PathLike[str] | None = None,
    user: str | None = None,
    max_contributions: int | Literal["auto"] | ContributionChoice | None = None,
    choice_share: str | float | Decimal | None = None,
    choice_over: int | None = None,
    choice_limit: int | None = None,
    per: Literal["day", "user-slice", "slice", "record"] | None = None,
    count: Literal["records", "users"] = "records",
    time: str | None = None,
    time_zone: str | None = None,
    slices: TimeSlices | str | Sequence[str] | None = None,
    max_per_slice: int | None = None,
    separate_slices: bool = False,
    category: str | None = None,
    labels: str | Sequence[str] | Mapping[str, str] | os.PathLike[str] | None = None,
    other_labels: Literal["count", "drop"] = "count",
    values: Mapping[str, Sequence[float]] | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    dataset: str | None = None,
    analyst: str | None = None,
    domain: Domain | PrivateBounds | tuple[float, float, float, float] | None = None,
    account: Account | None = None,
    sampler: Sampler | None = None,
    observer: Observer | Mapping[str, Callable[..., None]] = SILENT,
) -> Release:
    """Build a differentially private release of the numbers of records, or users, by location.

    Arguments have the names of the options of ``psd build`` and of the keys of a recipe.

    Guarantees
    ----------
    - The release is epsilon-differentially private for adding or removing one record, or, with
      ``user``, all records of one user, or, with ``per="day"``, those of one of a user's days;
      twice epsilon for replacing one.
    - It holds the noisy answers, public parameters and nothing else.
    - Reading comes first: an input whose form is refused costs no epsilon. Whether it is refused
      does not depend on where records lie; with a ledger the reason is not stated.
    - With a ledger, epsilon is charged to it before anything is drawn, or nothing is drawn.
    - Every time slice of the list is in the result, with its own noise, even if it has no record.

    Parameters
    ----------
    data : object or list of objects
        Points: paths of files (CSV, Parquet, GeoPackage, Shapefile, FlatGeobuf, GeoJSON), folders
        and patterns, addresses ``s3://``, ``gs://`` and ``postgresql://``, a DataFrame,
        GeoDataFrame or GeoSeries, an array of NumPy, an Arrow stream, a LazyFrame of Polars, a
        relation of DuckDB, a `psd.sources.DuckDB`, a `psd.sources.PostGIS`. The items of a list are
        one input. Or tallies of parts, or their files, which state area, unit and slices
        themselves. Private.
    epsilon : str, int, float or Decimal
        Epsilon of the release, or of the whole series; see
        `psd.privacy.loss.parse_epsilon`. Public, as are all arguments that are not said to be
        private.
    bounds : four numbers, str, path-like, GeoDataFrame, GeoSeries or polygon, optional
        West, south, east, north, such as ``table.total_bounds`` of public polygons, never of the
        points; public polygons, or a file of them; ``"area-of-use"`` of the CRS; or ``"private"``,
        estimated for a share of epsilon. By default those of the boundary, or else of the regions.
    crs : str, optional
        CRS of the release, its bounds, and coordinate columns. By default what the tables state,
        see `psd.publish.area`: that of a GeoDataFrame of points; "EPSG:4326" where none does.
    method : Decomposition or str
        How space is divided, such as ``"grid"`` or ``psd.decompositions.Quadtree(height=8)``. With
        regions, what is inside the lowest ones: "auto", "cascade" or "none". By default "auto", and
        "cube" for more than 8 slices, if there are no regions and no values.
    set : mapping, optional
        Parameters of a method that is named by text, such as ``{"height": 8}``.
    x, y : str, optional
        Coordinate columns; not used if the input has geometries.
    wkt, geometry, layer : str, optional
        Column of points as text; column of points, and layer of a file, if there are several.
    delimiter, decimal, encoding, skip_rows
        How text files are read, see `psd.Columns`.
    input_crs : str, optional
        CRS of the coordinates, if it is not ``crs``.
    where : str, optional
        Filter of the records by their own columns, such as ``"diagnosis = 'asthma'"``, see
        `psd.ingest.where`. Records for which it is not true are left out before any bound. Never
        chosen by the data; the release does not state it.
    table, query : str, optional
        Table, or SELECT statement, of an address of a database. Private.
    memory : str or int, optional
        Limit on the memory that reading takes, such as ``"2GB"``; see `psd.ingest.memory_limit`.
    engine : Engine or str, optional
        Where records are read and counted, such as ``"spark"``, or ``Spark(url=...)`` of that app,
        which takes paths as the cluster sees them and its tables; this process by default. The
        counts are the same, and the release does not state the engine.
    bounds_crs : str, optional
        CRS of the four numbers of ``bounds``, if it is not ``crs``.
    bounds_share, bounds_beyond
        Share of epsilon that private bounds cost, and one record in how many may lie beyond each
        side; see `psd.curator.private_bounds`.
    lattice : two ints, optional
        Columns and rows of the lattice that all cells are made of.
    coordinate_resolution : str, float or Decimal, optional
        Step to which the coordinates are rounded in the input; see `psd.Domain`.
    min_cell : str, float or Decimal, optional
        Smallest side of a cell in metres on the ground; see `psd.Domain`.
    boundary : path-like, GeoDataFrame, GeoSeries, geometry or Boundary, optional
        Polygons; records outside are dropped, see `psd.space.boundary`. Never derived from the
        points.
    covariate : path-like, GeoDataFrame, GeoSeries or Covariate, optional
        Density of where people can be, see `psd.space.covariate`; polygons are a mask. Points are
        assumed to follow it inside the cells, unless ``density`` states otherwise. Never derived
        from the points.
    covariate_column, covariate_size
        Column of weights of the polygons of a file, and columns and rows of the covariate.
    regions : path-like, GeoDataFrame, str, list of these or RegionHierarchy, optional
        Public regions that are counted by name; records in none of them are dropped. Files or
        tables of polygons, the lowest regions or one for each level, top first; or cells, such as
        ``"h3=5..9"``, ``"tiles=8..14"`` or ``"grid-cells=1km,10km"``. Never derived from the
        points.
    region_id, region_parent : str or sequence of str, optional
        Columns of the ids of regions, and of those of the levels above, the nearest first.
    gaps : {"refuse", "elsewhere", "outside"}, optional
        What an area in no region is: an error, one more region, or left out. By default an error,
        and left out where the regions are all that states the area.
    tolerance : float, optional
        Width of gaps and overlaps of regions that are accepted, in units of the CRS.
    repair : bool
        Whether invalid polygons of regions and boundary are repaired; else they are refused.
    delta : str, float or Decimal, optional
        Probability, such as "1e-6", with which the release may reveal more than epsilon allows:
        far below one over the number of users. Spent by Gaussian noise alone.
    noise : {"auto", "laplace", "gaussian"}
        Law of the noise of the counts. With "auto" and a delta, a series has the law with less
        noise, see `psd.publish.noise_choice.chosen_law`; else it is Laplace, and no delta is spent.
    estimate, density : str, optional
        How estimates are made, see `psd.release.post_processing.PostProcessing`; by default as the
        method defines it.
    about : mapping of texts or path-like, optional
        What the publisher states about the release, with keys of `psd.release.about.About`, such as
        ``{"title": "Visits", "licence": "CC-BY-4.0", "reference_date": "2024-06"}``, or a TOML file
        of them. Never derived from the points.
    user : str, optional
        Column of user ids; makes the user the unit of privacy.
    max_contributions : int or "auto", optional
        k, the largest number of records kept of each user, or of each day of a user; requires
        ``user``. "auto" spends a share of epsilon to choose it, see
        `psd.curator.private_bounds`.
    choice_share, choice_over, choice_limit
        Share of epsilon of that choice, the number of users with more records that it aims at, and
        the largest number that it may choose.
    per : {"day", "user-slice", "slice", "record"}, optional
        With "day", each day of a user is protected separately: a user with T days has T epsilon.
        With "user-slice", each time slice of a user is. With "slice", k holds in each time slice,
        and the slices share epsilon. "record" states the unit without ``user``, so that no warning
        asks for it.
    count : {"records", "users"}
        With "users", all records of a user share one count, and answers are in users.
    time : str, optional
        Column of times.
    time_zone : str, optional
        Zone of the wall clock that times are converted to; UTC by default.
    slices : str, sequence of str, DatetimeIndex, PeriodIndex or TimeSlices, optional
        Hours, days, weeks or months that are counted separately, such as
        ``"2026-03-01..2026-03-07"`` or ``pandas.date_range("2026-03-01", periods=7)``; requires
        ``time``. Never derived from the data.
    max_per_slice : int, optional
        M, the largest number of records kept of each user in one time slice, of the
        ``max_contributions`` in all slices together; requires ``slices``. It changes no noise of
        discrete Laplace law, which is made for all slices together.
    separate_slices : bool
        Whether more than 8 slices are counted one by one too, as those of a named method are, and
        not together in a cube.
    category : str, optional
        Column of labels, texts or whole numbers, by which records are counted too, in one release
        with the slices, see `psd.space.categories`; requires ``labels``, and method "cube", which
        is then the default. A record has one category, and the records of a unit in all of them
        share epsilon.
    labels : str, sequence of str, mapping of str to str, or path-like, optional
        Labels of ``category``: a list, parents by label, or a CSV file with columns ``label`` and
        ``parent``. Records have the labels without labels below them. Never derived from the data.
    other_labels : {"count", "drop"}
        Whether records of other labels, or none, are counted as the category *other*, or left out
        before any bound, wherever they lie.
    ledger : path-like or Ledger, optional
        Ledger that is charged; requires ``dataset``. Saving the release notes it there.
    dataset, analyst : str, optional
        Dataset of the ledger, and the analyst who is charged.
    domain : Domain or PrivateBounds, optional
        Bounds, CRS, lattice, resolution and smallest cell as one value, in place of their
        arguments; four numbers are bounds in degrees.
    account : Account, optional
        Open account, in place of ``ledger``, ``dataset`` and ``analyst``; its `finish` notes that
        the release was saved.
    sampler : Sampler, optional
        Source of random draws: `psd.testing.SeededSampler` for demonstrations, which no account is
        charged for, or another one for tests. A release of another sampler than `SecureSampler`
        cannot be saved or exported.
    observer : mapping of callables, optional
        Functions that are called with what a build reports. ``progress``: with the name of each
        stage, which depends on no data; by default stages are logged as INFO under the name
        ``psd``. ``private_report``: with the PRIVATE numbers of records read, outside and dropped.
        ``private_fault``: with the PRIVATE reason why an input could not be read, where a ledger is
        used. ``private_copy``: with a PRIVATE message that names two files of equal content; by
        default the build is refused. ``private_tally``: with the PRIVATE exact tally. What is
        private must be shown as such, and kept secret.

    Returns
    -------
    Release
        A series or a cube if there are slices.

    Raises
    ------
    ParameterError
        If a public parameter is wrong.
    InputDataError
        If the input cannot be read.
    BudgetError, LedgerError
        If the ledger cannot be charged.

    Warns
    -----
    PsdWarning
        If parameters, or names of columns, say that something else may be meant; see
        `psd.publish.request_warnings`.

    Examples
    --------
    >>> import pandas as pd, psd
    >>> points = pd.DataFrame({"lon": [126.98, 127.03], "lat": [37.57, 37.50]})
    >>> bounds = (126.40, 37.00, 127.60, 38.00)
    >>> psd.build(points, bounds=bounds, epsilon="0.5", method="quadtree", set={"height": 2})
    <Release: quadtree, 21 cells, epsilon 0.5 per record>
    """
    stated = locals()
    observer = Observer.of(observer)
    data = points_of(data)
    values = with_stated_crs({name: stated[name] for name in (*_PUBLIC, "domain")}, data)
    inputs, found = inputs_and_engine(data, table, query, engine)
    check_public_files(values, inputs)
    own = own_account(ledger, dataset, analyst, account, values)
    account = own or account

    def terms_of(tally: PartialTally | None) -> BuildTerms:
        """The terms; tallies state their area, unless it is given again."""
        if tally is None or any(values[name] is not None for name in _AREA):
            return terms_from_values(values)
        return terms_from_values({**values, "domain": tally.rules.domain})

    def losses_of(tally: PartialTally) -> list[Loss]:
        return [count_input(tally).complete(terms_of(tally)).loss]

    tallies = None if found else tallies_in(inputs, account, losses_of, observer)
    in_memory = next((item for item in inputs if isinstance(item, PartialTally)), None)
    terms = terms_of(in_memory if tallies is None else tallies)
    warn_of_request(terms)
    if tallies is None and found is None:
        warn_of_columns(inputs, terms, per=per, has_ledger=account is not None)
    built = run_build(
        terms,
        inputs if tallies is None else tallies,
        partial(draw_counts, on_slice=observer.slices_done),
        engine=found,
        memory=memory,
        account=account,
        sampler=sampler,
        observer=observer,
    )
    return built if own is None else replace(built, _note_saved=own.finish)
