"""Options of a public covariate, and its file: a raster or polygons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd.errors import ParameterError
from psd.space.raster_files import RASTERS, read_raster

from ..options.regions import read_polygons
from ..options.values import integer

if TYPE_CHECKING:
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain

__all__ = ["covariate_options", "read_covariate"]


def covariate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--covariate`` and what goes with it."""
    options = (
        click.option(
            "--covariate",
            type=click.Path(),
            help="Public raster or polygons: where people can be. Never made from the data.",
        ),
        click.option(
            "--covariate-column",
            help="Weights of the polygons per unit of area; without it they are a mask.",
        ),
        click.option(
            "--covariate-size",
            type=integer,
            help="Columns and rows that the covariate is resampled to; 1024 by default.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def read_covariate(
    path: str | None, domain: Domain | None, *, column: str | None, size: int | None
) -> Covariate | None:
    """Covariate from a file, or none.

    Raises
    ------
    ParameterError
        If an option goes without the file, or a value is no density.
    InputDataError
        If the file is missing or cannot be read.
    DomainError
        If its CRS is missing or another one, or it lies elsewhere.
    """
    from psd.space.covariate import MAX_SIDE, Covariate

    if path is None:
        if column is not None or size is not None:
            raise ParameterError("--covariate-column and --covariate-size go with --covariate")
        return None
    assert domain is not None
    size = MAX_SIDE if size is None else size
    if Path(path).suffix.lower() in RASTERS:
        if column is not None:
            raise ParameterError("--covariate-column goes with polygons; a raster has no columns")
        values, bounds = read_raster(Path(path), domain)
        return Covariate.from_raster(values, domain, bounds=bounds, size=size)
    polygons = read_polygons(Path(path), "covariate")
    return Covariate.from_polygons(polygons, domain, column=column, size=size)
