"""Options that say where a release reaches: public bounds, a boundary, or bounds that are paid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd.errors import ParameterError

from ..options.regions import read_polygons
from ..options.values import integer, number, rename_errors

if TYPE_CHECKING:
    import geopandas

    from psd.curator.private_bounds import PrivateBounds
    from psd.space.domain import Domain

__all__ = ["Place", "domain_options", "place_of"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """Where a release reaches: its domain, or how that is found, and a boundary in it."""

    domain: Domain | PrivateBounds
    boundary: geopandas.GeoDataFrame | None = None

    @property
    def public(self) -> Domain:
        """The domain, for what has to know it beforehand.

        Raises
        ------
        ParameterError
            If it is found privately.
        """
        from psd.space.domain import Domain

        if isinstance(self.domain, Domain):
            return self.domain
        raise ParameterError(
            "--private-bounds are known too late for --covariate and --workload; give public "
            "bounds (--bounds)"
        )


def domain_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--bounds`` and what can stand in its place."""
    options = (
        click.option(
            "--bounds",
            nargs=4,
            type=number,
            metavar="W S E N",
            help="West south east north of the domain, from public knowledge, never from the data.",
        ),
        click.option(
            "--area-of-use", is_flag=True, help="Take the public area that the CRS is made for."
        ),
        click.option(
            "--private-bounds",
            metavar="SHARE",
            help="Find the bounds for this share of epsilon, such as 0.1; reads the input twice.",
        ),
        click.option(
            "--bounds-beyond",
            type=integer,
            help="With --private-bounds: one row in so many lies beyond each side; 50 by default.",
        ),
        click.option(
            "--boundary",
            type=click.Path(),
            help="Public polygons: rows outside are dropped, and nobody is there. Bounds are the "
            "box around them where none are given.",
        ),
        click.option(
            "--crs", default="EPSG:4326", show_default=True, help="CRS of bounds and columns."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def place_of(
    *,
    bounds: tuple[float, float, float, float] | None,
    area_of_use: bool,
    private_bounds: str | None,
    bounds_beyond: int | None,
    boundary: str | None,
    crs: str,
) -> Place:
    """Domain and boundary of the options.

    Raises
    ------
    UsageError
        If not exactly one way to the bounds is given.
    ParameterError
        If a share is none, or the boundary holds no polygons.
    InputDataError
        If the boundary cannot be read.
    DomainError
        If the bounds are none, or a CRS is missing.
    """
    from psd.curator.private_bounds import PrivateBounds
    from psd.space.boundary import bounds_of
    from psd.space.domain import Domain

    ways = {
        "--bounds": bounds is not None,
        "--area-of-use": area_of_use,
        "--private-bounds": private_bounds is not None,
    }
    given = [name for name, there in ways.items() if there]
    if len(given) > 1 or not (given or boundary):
        said = f"not {' and '.join(given)}" if given else "so that the release has bounds"
        raise click.UsageError(f"give one of {', '.join(ways)} or a --boundary, {said}")
    if private_bounds is not None:
        if boundary is not None:
            raise click.UsageError(
                "--boundary is public and has bounds; leave out --private-bounds"
            )
        beyond = {} if bounds_beyond is None else {"beyond": bounds_beyond}
        with rename_errors({"share": "--private-bounds", "beyond": "--bounds-beyond"}):
            return Place(domain=PrivateBounds(crs=crs, share=private_bounds, **beyond))  # type: ignore[arg-type]
    if bounds_beyond is not None:
        raise click.UsageError("--bounds-beyond goes with --private-bounds")
    polygons = None if boundary is None else read_polygons(Path(boundary), "boundary")
    if area_of_use:
        return Place(domain=Domain.area_of_use(crs), boundary=polygons)
    if bounds is None and polygons is not None:
        bounds = bounds_of(polygons, crs)
    assert bounds is not None
    return Place(domain=Domain(bounds=bounds, crs=crs), boundary=polygons)
