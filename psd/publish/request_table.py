"""The table ``[release]`` of a `BuildRequest`: the inverse of `psd.publish.request_toml`."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from psd.curator.contribution_choice import ContributionChoice
from psd.curator.private_bounds import PrivateBounds
from psd.errors import ParameterError
from psd.ingest.sources import Columns
from psd.privacy.delta import delta_text
from psd.privacy.statements import method_parameters
from psd.publish.option_text import path_beside, settings_text, slices_text
from psd.publish.public_files import BoundaryFile, CovariateFile
from psd.publish.region_text import table_from_regions
from psd.publish.request import BuildRequest
from psd.release.about import about_header
from psd.space.covariate import Covariate
from psd.space.domain import DEFAULT_LATTICE, USUAL_MIN_CELL, Domain

__all__ = ["AUTO", "CHOICE_KEYS", "COLUMN_KEYS", "POST_PROCESSING", "PRIVATE", "table_from_request"]

COLUMN_KEYS = (
    "x", "y", "time", "time_zone", "geometry", "layer", "wkt", "delimiter", "decimal", "encoding",
    "skip_rows", "input_crs",
)  # fmt: skip
"""Keys of ``read`` in a request."""

CHOICE_KEYS = tuple(field.name for field in fields(ContributionChoice))
"""Keys of a contribution bound that is chosen privately."""

POST_PROCESSING = ("estimate", "density")
"""Keys of ``set`` that are not parameters of the method."""

PRIVATE, AUTO = "private", "auto"
"""Words for private bounds, and for a contribution bound that is chosen privately."""


def table_from_request(request: BuildRequest, *, folder: Path | None = None) -> dict[str, Any]:
    """Table with the keys of ``[release]``, from which `request_from_table` makes the request.

    Raises
    ------
    ParameterError
        If the covariate, the boundary or the regions are an object in memory and not a file.
    """
    unit, columns = request.unit, request.columns
    per = {"user-day": "day", "user-slice": "user-slice"}.get(
        unit.kind, "slice" * (request.contribution_scope == "slice")
    )
    return {
        "epsilon": request.epsilon,
        "delta": None if request.delta is None else delta_text(request.delta),
        "noise": None if request.noise_law == "auto" else request.noise_law,
        **_area_keys(request),
        "boundary": None if request.boundary is None else _file_text(request.boundary, folder),
        "regions": _regions_table(request, folder),
        "method": request.method.name,
        "set": _method_settings(request),
        "user": None if columns is None else columns.user,
        "max_contributions": _bound_text(request),
        "per": per or None,
        "max_per_slice": unit.max_per_slice,
        "count": "users" if unit.weight else None,
        "slices": None if request.slices is None else slices_text(request.slices),
        "read": None if columns is None else _column_names(columns),
        "covariate": None if request.covariate is None else _file_text(request.covariate, folder),
        "about": about_header(request.about),
    }


def _column_names(columns: Columns) -> dict[str, Any] | None:
    """Names of columns that are not the default ones."""
    default = Columns()
    stated = {name: getattr(columns, name) for name in COLUMN_KEYS}
    differing = {name for name in COLUMN_KEYS if stated[name] != getattr(default, name)}
    if not differing:
        return None
    return {name: value for name, value in stated.items() if name in differing}


def _area_keys(request: BuildRequest) -> dict[str, Any]:
    """Bounds, CRS, and lattice or coordinate resolution."""
    area = request.domain
    if area is None:
        return {}
    bounds: Any = (
        settings_text(PRIVATE, {"share": area.share, "beyond": area.beyond})
        if isinstance(area, PrivateBounds)
        else list(area.bounds)
    )
    resolution = area.coordinate_resolution
    is_plain = area.lattice == DEFAULT_LATTICE or resolution is not None
    return {
        "bounds": bounds,
        "crs": area.crs,
        "lattice": None if is_plain else list(area.lattice),
        "coordinate_resolution": resolution,
        "min_cell": _min_cell_text(area),
    }


def _min_cell_text(area: Domain | PrivateBounds) -> str | None:
    """Smallest cell of an area; 0 where there is none and the default would set one."""
    if isinstance(area, PrivateBounds):
        return None if area.min_cell == USUAL_MIN_CELL else area.min_cell or "0"
    usual = replace(area, min_cell=USUAL_MIN_CELL).min_cell
    return area.min_cell or (None if usual is None else "0")


def _method_settings(request: BuildRequest) -> dict[str, Any]:
    """Parameters of the method, and what post-processing differs in from its default."""
    settings: dict[str, Any] = {
        name: value
        for name, value in method_parameters(request.method).items()
        if value is not None
    }
    for name in POST_PROCESSING:
        value = getattr(request.post_processing, name)
        if value != getattr(request.default_post_processing, name):
            settings[name] = value
    return settings


def _bound_text(request: BuildRequest) -> int | str | None:
    """The bound of a user, or how it is chosen."""
    choice = request.contribution_choice
    if choice is not None:
        return settings_text(AUTO, {name: getattr(choice, name) for name in CHOICE_KEYS})
    unit = request.unit
    return unit.max_contributions if unit.has_user and not unit.weight else None


def _regions_table(request: BuildRequest, folder: Path | None) -> dict[str, Any] | None:
    """Table of the regions."""
    if request.regions is None:
        return None
    if request.region_source is None:
        raise ParameterError(
            "regions must be files or cells to be written to a recipe, got an object in memory"
        )
    return table_from_regions(request.region_source, folder)


def _file_text(value: object, folder: Path | None) -> str:
    """A covariate or a boundary by its file."""
    if isinstance(value, BoundaryFile):
        repair = "yes" if value.repair else None
        return settings_text(path_beside(folder, value.path), {"repair": repair})
    if isinstance(value, CovariateFile):
        size = None if value.size == CovariateFile(path="").size else value.size
        return settings_text(
            path_beside(folder, value.path), {"column": value.column, "size": size}
        )
    what = "covariate" if isinstance(value, Covariate) else "boundary"
    raise ParameterError(
        f"{what} must be a file to be written to a recipe, got an object in memory"
    )
