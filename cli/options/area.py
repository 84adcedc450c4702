"""Options that say which area a release covers: bounds, a boundary, a covariate."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ..options.command import BoundsOption, chain_options, options_of

if TYPE_CHECKING:
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain

__all__ = ["area_options", "bounds_option", "covariate_option", "crs_option", "read_covariate"]

_option = options_of("Area")

bounds_option = click.option(
    "--bounds",
    cls=BoundsOption,
    group="Area",
    help="West south east north of the domain, from public knowledge and never from the data. Or "
    "area-of-use: that of the CRS. Or private:share=0.1,beyond=50: estimated privately for this "
    "share of epsilon, with one record in 50 beyond each side; the input is read twice.",
)

crs_option = _option(
    "--crs", show_default="EPSG:4326", help="Coordinate reference system of bounds and columns."
)

covariate_option = _option(
    "--covariate",
    metavar="FILE",
    help="Public raster or polygons: where people can be. Never made from the data. "
    "FILE:column=NAME takes the weights of polygons per unit of area, FILE:size=512 resamples to "
    "512 columns and rows (1024 by default).",
)

_boundary = _option(
    "--boundary",
    metavar="FILE",
    help="Public polygons outside of which records are dropped. Without --bounds, the bounds are "
    "the box around them.",
)


def area_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--bounds``, ``--crs``, ``--boundary`` and ``--covariate``."""
    return chain_options(bounds_option, crs_option, _boundary, covariate_option)(command)


def read_covariate(text: str | None, domain: Domain) -> Covariate | None:
    """Covariate of the option, or none.

    Raises
    ------
    ParameterError
        If a key does not exist, or a value is no density.
    InputDataError
        If the file is missing or cannot be read.
    DomainError
        If its CRS is missing or another one, or it lies elsewhere.
    """
    from psd.publish.request_toml import covariate_from_text

    covariate = covariate_from_text(text)
    return None if covariate is None else covariate.read(domain)
