"""Make a `BuildRequest` of the arguments of `psd.build`."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

from psd._util.instances import check_instance
from psd._util.suggestions import check_names
from psd.curator.contribution_choice import ContributionChoice
from psd.curator.private_bounds import PrivateBounds
from psd.decompositions import as_method, as_region_method
from psd.errors import ParameterError
from psd.ingest.sources import Columns
from psd.privacy.unit import Count, PrivacyUnit, privacy_unit
from psd.publish.public_files import BoundaryFile, CovariateFile
from psd.publish.public_inputs import (
    boundary_of,
    covariate_of,
    regions_of,
    resolve_post_processing,
)
from psd.publish.request import SLICES_EXAMPLE, BuildRequest, NoiseChoice, as_domain
from psd.regions.hierarchy import RegionHierarchy
from psd.regions.inputs import CellRegions, RegionFiles
from psd.space.boundary import Boundary
from psd.space.covariate import Covariate
from psd.space.domain import Domain
from psd.space.time_slices import TimeSlices

if TYPE_CHECKING:
    import geopandas

    from psd.decompositions import Decomposition
    from psd.release.about import About

__all__ = [
    "DEFAULT_METHOD",
    "BuildArguments",
    "ColumnArguments",
    "DomainArgument",
    "PointArguments",
    "ReadArguments",
    "reading_fields",
    "request_from_arguments",
]

DEFAULT_METHOD = "auto"

DomainArgument: TypeAlias = Domain | PrivateBounds | tuple[float, float, float, float] | None
"""A domain, how its bounds are estimated, or west, south, east, north in degrees."""

# Names of columns, which `Columns` has too.
_COLUMNS = (
    "x", "y", "user", "time", "time_zone", "geometry", "layer", "wkt", "delimiter", "decimal",
    "encoding", "skip_rows", "input_crs",
)  # fmt: skip


class PointArguments(TypedDict, total=False):
    """Arguments that name the columns of positions, and state how text is read.

    Parameters
    ----------
    x, y : str
        Names of the coordinate columns; not used if the input has geometries.
    geometry, layer : str
        Column of points and layer of a file, needed if an input has several.
    wkt : str
        Column of points in WKT, such as ``POINT (127.01 37.5)``, instead of x and y.
    delimiter, decimal, encoding, skip_rows
        How text files are read, see `psd.Columns`.
    input_crs : str
        CRS of the coordinates, if it is not that of the domain.
    """

    x: str
    y: str
    geometry: str | None
    layer: str | None
    wkt: str | None
    delimiter: str
    decimal: str
    encoding: str
    skip_rows: int
    input_crs: str | None


class ColumnArguments(PointArguments, total=False):
    """Arguments that name the columns of positions and of users.

    Parameters
    ----------
    user : str
        Column of user ids; makes the user the unit of privacy.
    """

    user: str | None


class ReadArguments(ColumnArguments, total=False):
    """Arguments that state which records are read, and how many of each user are kept.

    Parameters
    ----------
    time : str
        Column of times.
    time_zone : str
        Zone of the wall clock that times are converted to; UTC by default.
    max_contributions : int, "auto" or ContributionChoice
        k, the largest number of records kept of each user, or of each day of a user; requires
        ``user``. "auto" spends a share of epsilon to choose it, see
        `psd.curator.contribution_choice`.
    per : {"day", "user-slice", "slice", "record"}
        With "day", each day of a user is protected separately: a user with T days has T epsilon.
        With "user-slice", each time slice of a user is. With "slice", k holds in each time slice,
        and the slices share epsilon. "record" states the unit without ``user``, so that no warning
        asks for it.
    max_per_slice : int
        M, the largest number of records kept of each user in one time slice, of the
        ``max_contributions`` in all slices together; requires ``slices``. It changes no noise of
        discrete Laplace law, which is made for all slices together.
    count : {"records", "users"}
        With "users", all records of a user share one count, and answers are in users.
    """

    time: str | None
    time_zone: str
    max_contributions: int | Literal["auto"] | ContributionChoice | None
    per: Literal["day", "user-slice", "slice", "record"] | None
    max_per_slice: int | None
    count: Count


class BuildArguments(ReadArguments, total=False):
    """Public arguments of a build beside domain, epsilon, method and slices.

    Parameters
    ----------
    estimate, density : str
        How estimates are made, see `psd.release.post_processing.PostProcessing`; by default as the
        method defines it.
    covariate : Covariate, CovariateFile, GeoDataFrame or GeoSeries
        Density of where people can be, see `psd.space.covariate`; polygons are a mask. Points are
        assumed to follow it inside the cells, unless ``density`` states otherwise, and a cascade
        does not divide cells where it is 0. Never derived from the points.
    boundary : Boundary, BoundaryFile, GeoDataFrame or GeoSeries
        Polygons; records outside are dropped, see `psd.space.boundary`. Never derived from the
        points.
    regions : RegionFiles, CellRegions or RegionHierarchy
        Public regions that are counted by name; records in none of them are dropped. ``method`` is
        then what is inside the lowest regions, "auto", "cascade" or "none", or a
        `psd.decompositions.Regions`. Never derived from the points.
    about : mapping of texts
        What the publisher states about the release, with keys of `psd.release.about.About`, such as
        ``{"title": "Visits", "licence": "CC-BY-4.0", "reference_date": "2024-06"}``. Never derived
        from the points.
    delta : str, float or Decimal
        Probability, such as "1e-6", with which the release may reveal more than epsilon allows:
        far below one over the number of users. Spent by Gaussian noise alone.
    noise_law : {"auto", "laplace", "gaussian"}
        Noise of the counts. By default "auto": with a delta, a series has the law with less noise,
        see `psd.publish.noise_choice.chosen_law`; otherwise it is Laplace, and no delta is spent.
    """

    estimate: str | None
    density: str | None
    covariate: Covariate | CovariateFile | geopandas.GeoDataFrame | geopandas.GeoSeries | None
    boundary: Boundary | BoundaryFile | geopandas.GeoDataFrame | geopandas.GeoSeries | None
    regions: RegionHierarchy | RegionFiles | CellRegions | None
    about: Mapping[str, str] | About | None
    delta: str | float | Decimal | None
    noise_law: NoiseChoice


def request_from_arguments(
    *,
    domain: DomainArgument,
    epsilon: str | float | Decimal,
    method: Decomposition | str = DEFAULT_METHOD,
    slices: TimeSlices | None = None,
    **arguments: Unpack[BuildArguments],
) -> BuildRequest:
    """Request from the arguments of `psd.build`.

    Parameters
    ----------
    domain, epsilon, method, slices
        As in `BuildRequest`.
    **arguments
        As in `BuildArguments`.

    Raises
    ------
    ParameterError
        If an argument does not exist, has the wrong type or value, or the arguments contradict
        each other.

    Examples
    --------
    >>> bounds = (126.4, 37.0, 127.6, 38.0)
    >>> request_from_arguments(
    ...     domain=bounds, epsilon=1, user="id", max_contributions=4
    ... ).guarantee_text
    'epsilon 1 per user, at most 4 records of each'
    """
    check_names("argument", arguments, BuildArguments.__annotations__)
    area, source = as_domain(domain), arguments.get("regions")
    regions = source
    decomposition = as_method(method) if regions is None else as_region_method(method)
    if area is None and isinstance(regions, RegionHierarchy):
        area = regions.domain
    covariate, boundary = arguments.get("covariate"), arguments.get("boundary")
    if isinstance(area, Domain):
        if not isinstance(covariate, Covariate | CovariateFile | None):
            covariate = covariate_of(covariate, area)
        if not isinstance(boundary, Boundary | BoundaryFile | None):
            boundary = boundary_of(boundary, area)
    if regions is not None:
        regions = regions_of(regions, area, boundary)
    density = arguments.get("density")
    if density is None and not (covariate is None and boundary is None):
        density = "covariate"
    return BuildRequest(
        domain=area,
        epsilon=epsilon,  # type: ignore[arg-type] # normalised there
        method=decomposition,
        covariate=covariate,
        boundary=boundary,
        regions=regions,
        region_source=source if isinstance(source, RegionFiles | CellRegions) else None,
        slices=slices,
        about=arguments.get("about"),  # type: ignore[arg-type] # normalised there
        delta=arguments.get("delta"),  # type: ignore[arg-type] # normalised there
        noise_law=arguments.get("noise_law", "auto"),
        post_processing=resolve_post_processing(
            decomposition, estimate=arguments.get("estimate"), density=density
        ),
        **reading_fields(arguments, slices),
    )


def reading_fields(arguments: Mapping[str, Any], slices: TimeSlices | None) -> dict[str, Any]:
    """Fields of a `psd.publish.request.ReadRequest` from its arguments."""
    names = {name: arguments[name] for name in _COLUMNS if name in arguments}
    if slices is not None:
        check_instance("slices", slices, TimeSlices, SLICES_EXAMPLE)
        names.setdefault("time_zone", slices.time_zone)
    columns = Columns(**names)
    bound = arguments.get("max_contributions")
    choice = (
        ContributionChoice()
        if bound == "auto"
        else bound
        if isinstance(bound, ContributionChoice)
        else None
    )
    per = arguments.get("per")
    if per == "record" and columns.user is not None:
        raise ParameterError(
            "per must not be record with user=, which makes the user the unit of privacy"
        )
    unit: PrivacyUnit = privacy_unit(
        columns.user,
        bound if choice is None else choice.limit,
        per=None if per in ("slice", "record") else per,
        time=columns.time,
        time_zone=columns.time_zone,
        count=arguments.get("count", "records"),
        max_per_slice=arguments.get("max_per_slice"),
    )
    return {
        "columns": columns,
        "unit": unit,
        "contribution_choice": choice,
        "contribution_scope": "slice" if per == "slice" else "series",
    }
