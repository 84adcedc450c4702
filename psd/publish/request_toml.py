"""A `BuildRequest` as the table ``[release]`` of a recipe, and back.

The keys are the names of the options of ``psd build``, and the values the texts of these options.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from psd._util.suggestions import check_names
from psd._util.toml_text import toml_text
from psd._util.toml_values import read_toml, texts_of, values_of
from psd.curator.contribution_choice import ContributionChoice
from psd.curator.private_bounds import PrivateBounds
from psd.decompositions import Decomposition, region_method
from psd.decompositions import method as method_by_name
from psd.decompositions._workload_shares import CLASSES, weights_for_boxes
from psd.decompositions.quadtree import Quadtree
from psd.errors import ParameterError
from psd.publish.about_text import about_files, about_from_table
from psd.publish.bounds_text import bounds_file, bounds_from_text
from psd.publish.option_text import (
    flag_from_text,
    path_within,
    slices_from_text,
    split_settings,
)
from psd.publish.public_files import BoundaryFile, CovariateFile
from psd.publish.region_text import region_files, regions_from_table
from psd.publish.request import BuildRequest
from psd.publish.request_arguments import DEFAULT_METHOD, request_from_arguments
from psd.publish.request_table import (
    AUTO,
    CHOICE_KEYS,
    COLUMN_KEYS,
    POST_PROCESSING,
    PRIVATE,
    table_from_request,
)
from psd.regions.files import read_boxes
from psd.space.boundary import bounds_of
from psd.space.domain import DEFAULT_LATTICE, USUAL_MIN_CELL, Domain

__all__ = [
    "KEYS",
    "boundary_from_text",
    "covariate_from_text",
    "from_toml",
    "public_files",
    "request_from_table",
    "to_toml",
]

KEYS = (
    "epsilon", "delta", "noise", "bounds", "crs", "lattice", "coordinate_resolution", "min_cell",
    "boundary", "regions", "method", "set", "user", "max_contributions", "per", "max_per_slice",
    "count", "slices", "read", "covariate", "about",
)  # fmt: skip
"""Keys of a request."""

_ABOUT_ROWS = (
    "bounds", "crs", "lattice", "coordinate_resolution", "boundary", "user",
    "max_contributions", "per", "max_per_slice", "count", "slices", "read",
)  # fmt: skip

_AREA_OF_USE = "area-of-use"
_BOUNDS_KEYS = ("share", "beyond")
_WEIGHTS = re.compile(r"\d+( \d+)*", re.ASCII)


def from_toml(text: str, *, folder: Path | None = None) -> BuildRequest:
    """Request of a TOML text with the keys of ``[release]``.

    Raises
    ------
    ParameterError
        If the text is not TOML, or as `request_from_table`.

    Examples
    --------
    >>> request = from_toml("epsilon = 0.5; bounds = [126.4, 37, 127.6, 38]".replace("; ", chr(10)))
    >>> from_toml(to_toml(request)) == request
    True
    """
    return request_from_table(read_toml("request", text), folder=folder)


def to_toml(request: BuildRequest, *, folder: Path | None = None) -> str:
    """TOML text of a request; `from_toml` reads it back.

    Raises
    ------
    ParameterError
        If the covariate or the boundary is an object in memory and not a file.
    """
    return toml_text(table_from_request(request, folder=folder))


def request_from_table(
    table: Mapping[str, Any], *, folder: Path | None = None, domain: Domain | None = None
) -> BuildRequest:
    """Request of a table with the keys of ``[release]``.

    Parameters
    ----------
    table : mapping
        Keys are those of `KEYS`; a value of None counts as left out. Public.
    folder : Path, optional
        Where relative paths begin.
    domain : Domain, optional
        Of the tallies that are built from; keys about rows are then refused.

    Raises
    ------
    ParameterError
        If a key does not exist, or a value is wrong.
    """
    table = {key: value for key, value in table.items() if value is not None}
    check_names("key", table, KEYS)
    if domain is not None:
        for key in _ABOUT_ROWS:
            if key in table:
                raise ParameterError(
                    f"{key} must be left out for tallies; it is about rows, and the tallies were "
                    "counted with their own"
                )
    if "epsilon" not in table:
        raise ParameterError("epsilon must be given, a decimal such as 0.5")
    read = _inner_table(table, "read", COLUMN_KEYS)
    boundary = boundary_from_text(table.get("boundary"), folder)
    area = (
        _domain_from_table(table, boundary, folder) if domain is None else _divided(domain, table)
    )
    regions = regions_from_table(table["regions"], folder) if "regions" in table else None
    settings = {name: str(value) for name, value in _inner_table(table, "set").items()}
    arguments: dict[str, Any] = {
        name: table[name] for name in ("user", "per", "max_per_slice", "count") if name in table
    }
    arguments |= {name: str(value) for name, value in read.items()}
    arguments |= _noise_arguments(table)
    arguments |= {name: settings.pop(name) for name in POST_PROCESSING if name in settings}
    if "max_contributions" in table:
        arguments["max_contributions"] = _contribution_bound(table["max_contributions"])
    slices = table.get("slices")
    if slices is not None:
        text = ",".join(texts_of("slices", slices))
        slices = slices_from_text(text, arguments.get("time_zone", "UTC"))
    return request_from_arguments(
        domain=area,
        epsilon=table["epsilon"],
        method=_method_from_table(table.get("method"), settings, area, folder)
        if regions is None
        else region_method(table.get("method", DEFAULT_METHOD), settings),
        slices=slices,
        covariate=covariate_from_text(table.get("covariate"), folder),
        boundary=boundary,
        regions=regions,
        about=about_from_table(table.get("about"), folder),
        **arguments,
    )


def _noise_arguments(table: Mapping[str, Any]) -> dict[str, Any]:
    """Delta and the law of the noise."""
    names = {"delta": "delta", "noise": "noise_law"}
    return {name: str(table[key]) for key, name in names.items() if key in table}


def _divided(domain: Domain, table: Mapping[str, Any]) -> Domain:
    """Domain of tallies with the smallest cell of the table, which is about no record."""
    return replace(domain, min_cell=table["min_cell"]) if "min_cell" in table else domain


def _inner_table(
    table: Mapping[str, Any], key: str, keys: tuple[str, ...] | None = None
) -> dict[str, Any]:
    """A table within the table."""
    inner = table.get(key, {})
    if not isinstance(inner, Mapping):
        raise ParameterError(f"{key} must be a table of KEY = VALUE, got {type(inner).__name__}")
    if keys is not None:
        check_names(f"key of {key}", inner, keys)
    return {name: value for name, value in inner.items() if value is not None}


def _domain_from_table(
    table: Mapping[str, Any], boundary: BoundaryFile | None, folder: Path | None
) -> Domain | PrivateBounds | None:
    """Domain of the table, or how its bounds are estimated."""
    bounds, crs = table.get("bounds"), str(table.get("crs", "EPSG:4326"))
    lattice = values_of("lattice", table.get("lattice", DEFAULT_LATTICE))
    resolution, min_cell = table.get("coordinate_resolution"), table.get("min_cell", USUAL_MIN_CELL)
    if bounds is None and boundary is None:
        return None
    if bounds is None:
        assert boundary is not None
        bounds = bounds_of(boundary.polygons(), crs)
    if isinstance(bounds, str):
        bounds = bounds_from_text(_bounds_within(folder, bounds), crs) or bounds
    if isinstance(bounds, str):
        word, settings = split_settings("bounds", bounds, _BOUNDS_KEYS)
        if word == _AREA_OF_USE:
            return Domain.area_of_use(
                crs, lattice=lattice, coordinate_resolution=resolution, min_cell=min_cell
            )
        if word == PRIVATE:
            with _name_key("bounds"):
                return PrivateBounds(
                    crs=crs,
                    lattice=lattice,
                    coordinate_resolution=resolution,
                    min_cell=min_cell,
                    **settings,  # type: ignore[arg-type]
                )
        raise ParameterError(
            f"bounds must be four numbers, {_AREA_OF_USE} or {PRIVATE}:share=0.1, or of:FILE, got "
            f"{bounds[:80]!r}"
        )
    return Domain(
        bounds=values_of("bounds", bounds),
        crs=crs,
        lattice=lattice,
        coordinate_resolution=resolution,
        min_cell=min_cell,
    )


def _bounds_within(folder: Path | None, text: str) -> str:
    """Text of bounds whose file is relative to the folder of a recipe."""
    path = bounds_file(text)
    return text if path is None else f"of:{path_within(folder, path)}"


@contextmanager
def _name_key(key: str) -> Iterator[None]:
    """Add the name of the key to the errors of its settings."""
    try:
        yield
    except ParameterError as error:
        raise ParameterError(f"{key}: {error}") from None


def _contribution_bound(value: object) -> int | ContributionChoice:
    """Largest number of records of a user, or how it is chosen."""
    word, settings = split_settings("max_contributions", str(value), CHOICE_KEYS)
    if word == AUTO:
        with _name_key("max_contributions"):
            return ContributionChoice(**settings)  # type: ignore[arg-type]
    if settings or not re.fullmatch(r"-?\d{1,20}", str(value), re.ASCII):
        raise ParameterError(
            f"max_contributions must be a whole number or {AUTO}:KEY=VALUE,... with the keys "
            f"{', '.join(CHOICE_KEYS)}, got {str(value)[:80]!r}"
        )
    return int(str(value))


def boundary_from_text(text: object, folder: Path | None = None) -> BoundaryFile | None:
    """Boundary of a text ``FILE`` or ``FILE:repair=yes``; None for None.

    Raises
    ------
    ParameterError
        If a key does not exist or a value is wrong.

    Examples
    --------
    >>> boundary_from_text("seoul.gpkg:repair=yes").repair
    True
    """
    if text is None:
        return None
    path, settings = split_settings("boundary", str(text), ("repair", "layer"))
    repair = flag_from_text("boundary repair", settings.get("repair", False))
    return BoundaryFile(path=path_within(folder, path), repair=repair)


def covariate_from_text(text: object, folder: Path | None = None) -> CovariateFile | None:
    """Covariate of a text FILE:column=NAME,size=N; None for None.

    Raises
    ------
    ParameterError
        If a key does not exist, or a value is wrong.
    """
    if text is None:
        return None
    path, settings = split_settings("covariate", str(text), ("column", "size", "layer"))
    return CovariateFile(path=path_within(folder, path), **settings)  # type: ignore[arg-type]


def _method_from_table(
    name: object, settings: dict[str, str], area: Domain | PrivateBounds | None, folder: Path | None
) -> Decomposition:
    """Method by its name and settings; a workload changes the default method."""
    workload = settings.get("workload")
    if workload is None:
        return method_by_name(str(name or DEFAULT_METHOD), settings)
    chosen = str(name or ("grid" if workload == "tiny" else Quadtree.name))
    if chosen != Quadtree.name:
        return method_by_name(chosen, settings)
    if _is_file(workload):
        settings = {
            **settings,
            "workload": _level_weights(path_within(folder, workload), settings, area),
        }
    return method_by_name(chosen, {"budget": "workload", **settings})


def public_files(table: Mapping[str, Any], folder: Path | None = None) -> list[str]:
    """Files that a table with the keys of ``[release]`` names: its public inputs."""
    covariate = covariate_from_text(table.get("covariate"), folder)
    boundary = boundary_from_text(table.get("boundary"), folder)
    workload = table.get("set", {}).get("workload")
    files = [] if covariate is None else [covariate.path]
    bounds = bounds_file(str(table.get("bounds", "")))
    files += [] if bounds is None else [path_within(folder, bounds)]
    files += [] if boundary is None else [boundary.path]
    files += region_files(table.get("regions"), folder)
    files += about_files(table.get("about"), folder)
    return files + ([path_within(folder, workload)] if _is_file(workload) else [])


def _is_file(workload: object) -> bool:
    """Whether a workload is a file, and not a size of boxes or the weights of levels."""
    return isinstance(workload, str) and not (workload in CLASSES or _WEIGHTS.fullmatch(workload))


def _level_weights(path: str, settings: dict[str, str], area: Domain | PrivateBounds | None) -> str:
    """Weights of the levels of a quadtree for the boxes in a file."""
    if not isinstance(area, Domain):
        raise ParameterError("bounds must be public with a workload file, whose boxes lie in them")
    boxes = read_boxes(Path(path))[["west", "south", "east", "north"]].to_numpy()
    height = Quadtree(**{name: text for name, text in settings.items() if name == "height"}).height  # type: ignore[arg-type]
    return " ".join(map(str, weights_for_boxes(boxes, area, height)))
