"""What is known of a domain without its points, and the view that is made of the counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from psd.errors import ParameterError
from psd.release.post_processing import View
from psd.space.boundary import Boundary
from psd.space.covariate import Covariate, check_covariate
from psd.space.public_files import BoundaryFile, CovariateFile

if TYPE_CHECKING:
    from psd.space.domain import Domain

__all__ = ["Known", "boundary_of", "covariate_of", "known", "view_of", "view_with"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Known:
    """Public knowledge that a build is given.

    Parameters
    ----------
    view : View
        What is made of the counts.
    covariate : Covariate, optional
        Where people can be.
    boundary : Boundary, optional
        Outside of which nobody is.
    """

    view: View
    covariate: Covariate | None = None
    boundary: Boundary | None = None

    @property
    def steering(self) -> Covariate | None:
        """What a method is told of where people can be."""
        return self.covariate if self.boundary is None else self.boundary.steered(self.covariate)

    @property
    def mask(self) -> Covariate | None:
        """Where the curator knows that nobody is."""
        return None if self.boundary is None else self.boundary.mask

    @property
    def published(self) -> Covariate | None:
        """The covariate of the release."""
        return self.covariate if self.boundary is None else self.boundary.published(self.covariate)


def known(
    method: object,
    domain: Domain | None,
    *,
    estimate: str | None = None,
    density: str | None = None,
    covariate: Any = None,
    boundary: Any = None,
) -> Known:
    """Knowledge from the arguments of `psd.build`.

    Parameters
    ----------
    method : Decomposition
        Whose view is taken where none is given.
    domain : Domain, optional
        Of the release; none if it is not known yet.
    estimate, density, covariate, boundary
        As in `psd.build`.

    Raises
    ------
    ParameterError
        If something is given that does not fit.
    """
    if domain is None and (covariate is not None or boundary is not None):
        raise ParameterError(
            "private bounds are known too late for a covariate or a boundary; give public bounds"
        )
    if density is None and not (covariate is None and boundary is None):
        density = "covariate"
    found = Known(
        view=view_with(method, estimate=estimate, density=density),
        covariate=None if covariate is None or domain is None else covariate_of(covariate, domain),
        boundary=None if boundary is None or domain is None else boundary_of(boundary, domain),
    )
    if domain is not None:
        check_covariate(found.covariate, domain, "uniform")  # before it is cut at the boundary
        check_covariate(found.published, domain, found.view.density)
    elif found.view.density == "covariate":
        raise ParameterError("density covariate goes with public bounds, and these are private")
    return found


def view_of(method: object) -> View:
    """What a method wants made of its counts: its ``view``, least squares where it has none."""
    view: View = getattr(method, "view", View())
    return view


def view_with(method: object, *, estimate: str | None, density: str | None) -> View:
    """The view that a method wants, with the caller's choices in place of its own."""
    given = {"estimate": estimate, "density": density}
    return replace(view_of(method), **{k: v for k, v in given.items() if v is not None})  # type: ignore[arg-type]


def covariate_of(given: Any, domain: Domain) -> Covariate:
    """Covariate as it is, of a file, or of polygons."""
    if isinstance(given, Covariate):
        return given
    if isinstance(given, CovariateFile):
        return given.read(domain)
    if not hasattr(given, "geometry"):
        raise ParameterError(
            "covariate must be a psd.Covariate, a CovariateFile or a GeoDataFrame of polygons, got "
            f"a value of type {type(given).__name__}"
        )
    return Covariate.from_polygons(given, domain)


def boundary_of(given: Any, domain: Domain) -> Boundary:
    """Boundary as it is, of a file, or of polygons."""
    if isinstance(given, Boundary):
        return given
    if isinstance(given, BoundaryFile):
        return given.read(domain)
    if not hasattr(given, "geometry"):
        raise ParameterError(
            "boundary must be a GeoDataFrame of polygons, got a value of type "
            f"{type(given).__name__}"
        )
    return Boundary.from_polygons(given, domain)
