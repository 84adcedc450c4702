"""Public inputs of a build: covariate, boundary and post-processing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from psd._util.instances import type_text
from psd.errors import ParameterError
from psd.publish.public_files import BoundaryFile, CovariateFile
from psd.regions.hierarchy import RegionHierarchy
from psd.regions.inputs import CellRegions, RegionFiles, RegionSource
from psd.release.post_processing import PostProcessing
from psd.space.boundary import Boundary
from psd.space.covariate import Covariate, check_covariate
from psd.space.domain import Domain
from psd.space.world import beyond_the_world

__all__ = [
    "PublicInputs",
    "boundary_of",
    "check_regions",
    "covariate_of",
    "default_density",
    "default_post_processing",
    "polygons_of",
    "regions_of",
    "resolve_post_processing",
    "resolve_public_inputs",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicInputs:
    """Public inputs of a build."""

    post_processing: PostProcessing  # how estimates are made from the counts
    # Density of where people can be; the world, if the bounds reach beyond it and the density
    # follows a covariate that nobody gave.
    covariate: Covariate | None = None
    boundary: Boundary | None = None  # records outside are dropped

    @property
    def method_covariate(self) -> Covariate | None:
        """Covariate that the method reads."""
        return self.covariate if self.boundary is None else self.boundary.restrict(self.covariate)

    @property
    def mask(self) -> Covariate | None:
        """Mask of the boundary; the curator knows that cells outside are empty."""
        return None if self.boundary is None else self.boundary.mask

    @property
    def release_covariate(self) -> Covariate | None:
        """The covariate of the release."""
        return (
            self.covariate
            if self.boundary is None
            else self.boundary.release_covariate(self.covariate)
        )


def resolve_public_inputs(
    domain: object,
    post_processing: PostProcessing,
    *,
    covariate: Covariate | CovariateFile | None = None,
    boundary: Boundary | BoundaryFile | None = None,
) -> PublicInputs:
    """Read public files, and check that their content fits the domain and the density."""
    if not isinstance(domain, Domain):
        if post_processing.density == "covariate":
            raise ParameterError(
                "density must not be covariate with private bounds, which cannot have a covariate"
            )
        return PublicInputs(post_processing=post_processing)
    follows = post_processing.density == "covariate" and covariate is None and boundary is None
    if follows and beyond_the_world(domain.bounds, domain.crs):
        covariate = Covariate.of_world(domain)
    inputs = PublicInputs(
        post_processing=post_processing,
        covariate=None if covariate is None else covariate_of(covariate, domain),
        boundary=None if boundary is None else boundary_of(boundary, domain),
    )
    check_covariate(inputs.covariate, domain, "uniform")  # before it is cut at the boundary
    check_covariate(inputs.release_covariate, domain, post_processing.density)
    return inputs


def default_density(
    domain: object, *, covariate: object, boundary: object, regions: object
) -> str | None:
    """Density that takes the place of a method's own; None where no public input states one.

    Where bounds reach beyond the world of their CRS, the world is a covariate: cells at its rim
    hold records in a part of them alone. Regions end there by themselves.
    """
    if covariate is not None or boundary is not None:
        return "covariate"
    if regions is None and isinstance(domain, Domain):
        return "covariate" if beyond_the_world(domain.bounds, domain.crs) else None
    return None


def default_post_processing(method: object) -> PostProcessing:
    """Post-processing that a method declares; least squares and uniform density by default."""
    default: PostProcessing = getattr(method, "post_processing", PostProcessing())
    return default


def resolve_post_processing(
    method: object, *, estimate: str | None, density: str | None
) -> PostProcessing:
    """Default post-processing of a method, with the choices of the caller."""
    choices: dict[str, Any] = {"estimate": estimate, "density": density}
    stated = {name: choice for name, choice in choices.items() if choice is not None}
    return replace(default_post_processing(method), **stated)


def covariate_of(value: Any, domain: Domain) -> Covariate:
    """Return a covariate, or make it of a file or of polygons."""
    if isinstance(value, Covariate):
        return value
    if isinstance(value, CovariateFile):
        return value.read(domain)
    _check_polygons("covariate", value, "a psd.Covariate, a CovariateFile or ")
    return Covariate.from_polygons(value, domain)


def boundary_of(value: Any, domain: Domain) -> Boundary:
    """Return a boundary, or make it of a file or of polygons."""
    if isinstance(value, Boundary):
        return value
    if isinstance(value, BoundaryFile):
        return value.read(domain)
    return Boundary.from_polygons(polygons_of(value, domain.crs), domain)


def polygons_of(value: Any, crs: str) -> Any:
    """Polygons of a boundary: of its file, of a table, or a geometry in the CRS of the release."""
    if isinstance(value, BoundaryFile):
        return value.polygons()
    if hasattr(value, "geom_type") and not hasattr(value, "geometry"):
        import geopandas

        return geopandas.GeoSeries([value], crs=crs)
    _check_polygons("boundary", value)
    return value


def check_regions(value: Any) -> RegionSource:
    """Return what regions are made of; another type is refused."""
    if isinstance(value, RegionHierarchy | RegionFiles | CellRegions):
        return value
    raise ParameterError(
        "regions must be paths, a GeoDataFrame, cells such as h3=5..9, or a "
        f"psd.regions.RegionHierarchy, got {type_text(value)}",
        name="regions",
    )


def regions_of(
    value: Any, domain: object, boundary: Boundary | BoundaryFile | None = None
) -> RegionHierarchy:
    """Return a hierarchy of regions, or make it of files or of the name of cells."""
    if isinstance(value, RegionHierarchy):
        return value
    source = check_regions(value)
    if not isinstance(domain, Domain):
        raise ParameterError("bounds must be public with regions, got none or private ones")
    assert not isinstance(source, RegionHierarchy)
    return source.read(domain, None if boundary is None else boundary_of(boundary, domain))


def _check_polygons(name: str, value: Any, others: str = "") -> None:
    """Refuse a value that is not a table with geometries."""
    if not hasattr(value, "geometry"):
        raise ParameterError(
            f"{name} must be {others}a GeoDataFrame of polygons, got {type_text(value)}"
        )
