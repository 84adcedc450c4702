"""Options of the area of a release: bounds, boundary, covariate, regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from ..options.command import BoundsOption, chain_options, options_of
from ..options.named_regions import regions_option

if TYPE_CHECKING:
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain

__all__ = [
    "area_options",
    "boundary_option",
    "bounds_option",
    "chosen_bounds",
    "covariate_option",
    "crs_option",
    "min_cell_option",
    "read_covariate",
    "resolution_option",
]

_option = options_of("Area")

bounds_option = click.option(
    "--bounds",
    cls=BoundsOption,
    group="Area",
    help="West south east north of the domain, from public knowledge, never from the data; also "
    "W,S,E,N, and W,S,E,N:crs=EPSG:4326 in another CRS than --crs. of:FILE: those of public "
    "polygons; records between these are counted. of:FILE:layer=NAME: those of a layer. "
    "area-of-use: the bounds in which the CRS is valid. private:share=0.1,beyond=50: estimated "
    "privately for this share of epsilon, so that about one record in 50 lies beyond each side; "
    "the input is read twice.",
)

crs_option = _option(
    "--crs",
    help="CRS of the release, and of coordinate columns without --read input_crs=; by default "
    "EPSG:4326.",
)

resolution_option = _option(
    "--coordinate-resolution",
    metavar="STEP",
    help="Step to which the coordinates are rounded in the input, such as 0.0001, in units of "
    "--crs. Public: a fact about the source, never found in the data. Cells are no smaller, and "
    "edges of queries move to the middle between two values.",
)

min_cell_option = _option(
    "--min-cell",
    metavar="METRES",
    help="Smallest side on the ground of a cell of a method that adapts to the data; 0 for no "
    "limit. Public. By default 5, but 0 for a local CRS and for bounds that are narrower. Sizes "
    "that are given, such as height=12 of a quadtree, are not limited.",
)

covariate_option = _option(
    "--covariate",
    metavar="FILE",
    help="Public raster or polygons that say where people can be; never made from the data. "
    "FILE:column=NAME takes weights of polygons per unit of area on the ground from a column. "
    "FILE:size=512 resamples to 512 columns and rows (1024 by default). FILE:layer=NAME reads a "
    "layer.",
)

boundary_option = _option(
    "--boundary",
    metavar="FILE",
    help="Public polygons; records outside them are dropped. Without --bounds, the bounds are the "
    "bounding box of the polygons. FILE:repair=yes repairs invalid polygons, which are refused "
    "otherwise, since a repair may change their area. FILE:layer=NAME reads a layer.",
)


def chosen_bounds(value: Any, crs: str | None) -> tuple[float, float, float, float]:
    """Bounds of an option that takes public ones alone.

    Raises
    ------
    DomainError, InputDataError, ParameterError
        As `psd.publish.bounds_text.bounds_from_text`.
    """
    from psd.errors import ParameterError
    from psd.publish.bounds_text import bounds_from_text

    if not isinstance(value, str):
        return (*value,)
    bounds = bounds_from_text(value, crs or "EPSG:4326")
    if bounds is None:
        raise ParameterError(f"bounds must be four numbers or of:FILE, got {value[:80]!r}")
    return bounds


def area_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--bounds``, ``--crs``, and those of public files."""
    return chain_options(
        bounds_option,
        crs_option,
        boundary_option,
        covariate_option,
        regions_option(
            "--method is then what is inside the lowest regions: auto, cascade or none."
        ),
    )(command)


def read_covariate(text: str | None, domain: Domain) -> Covariate | None:
    """Covariate of the option; None without one.

    Raises
    ------
    ParameterError
        If a key does not exist, or a value is not a density.
    InputDataError
        If the file is missing or cannot be read.
    DomainError
        If its CRS is missing or differs, or it does not overlap the domain.
    """
    from psd.publish.request_toml import covariate_from_text

    covariate = covariate_from_text(text)
    return None if covariate is None else covariate.read(domain)
