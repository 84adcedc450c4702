"""Make `BuildTerms` of arguments, texts of options, or values of a recipe, named as in `FIELDS`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, TypedDict

from psd._util.instances import check_choice, check_instance, type_text
from psd._util.json_toml import read_toml, toml_text, values_of
from psd.curator.private_bounds import ContributionChoice, PrivateBounds
from psd.decompositions import Decomposition, as_method, as_region_method, region_method
from psd.decompositions import method as method_by_name
from psd.decompositions._workload_shares import weights_for_boxes
from psd.decompositions.cube import Cube
from psd.decompositions.quadtree import Quadtree
from psd.errors import ParameterError
from psd.ingest.sources import Columns
from psd.privacy.unit import Count, PrivacyUnit, privacy_unit
from psd.publish.area import (
    bounds_from_file,
    bounds_from_polygons,
    bounds_from_text,
    transform_bounds,
)
from psd.publish.fields import (
    AREA_OF_USE,
    AUTO,
    FIELDS,
    PRIVATE,
    check_known,
    field_names,
    is_workload_file,
    values_of_request,
)
from psd.publish.public_inputs import (
    BoundaryFile,
    CovariateFile,
    boundary_of,
    check_regions,
    covariate_of,
    default_density,
    polygons_of,
    regions_of,
    resolve_post_processing,
)
from psd.publish.request import SLICES_EXAMPLE, BuildRequest, BuildTerms, NoiseChoice, as_domain
from psd.regions.files import CellRegions, RegionFiles, read_boxes
from psd.regions.hierarchy import RegionHierarchy
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.space.boundary import Boundary, bounds_of
from psd.space.bounds import four_numbers
from psd.space.categories import CategoryAxis, labels_from_file, labels_of
from psd.space.covariate import Covariate
from psd.space.domain import DEFAULT_LATTICE, USUAL_MIN_CELL, Domain
from psd.space.regions import repair_polygons
from psd.space.time_slices import TimeSlices, slices_from_text

__all__ = [
    "ColumnArguments",
    "PointArguments",
    "ReadArguments",
    "RequestArguments",
    "boundary_from_values",
    "covariate_from_values",
    "domain_from_values",
    "hierarchy_from_values",
    "parse_values",
    "public_domain_from_values",
    "reading_from_values",
    "regions_from_values",
    "request_from_toml",
    "request_from_values",
    "request_to_toml",
    "with_gaps",
]

DEFAULT_METHOD = "auto"

_DEFAULT_CRS = "EPSG:4326"
_COLUMNS = tuple(field.name for field in fields(Columns) if field.name not in ("bid", "memory"))
_CHOICE = tuple(field.name for field in fields(ContributionChoice))
_BOUNDS = ("bounds", "bounds_crs", "bounds_share", "bounds_beyond", "crs", "lattice",
           "coordinate_resolution", "min_cell")  # fmt: skip
_REGION_SETTINGS = ("region_id", "region_parent", "gaps", "tolerance")


class PointArguments(TypedDict, total=False):
    """Arguments that say where the points are, and how text is read; see `psd.build`."""

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
    where: str | None


class ColumnArguments(PointArguments, total=False):
    """Arguments that name the columns of positions and of users; see `psd.build`."""

    user: str | None


class ReadArguments(ColumnArguments, total=False):
    """Arguments that say which records are read, and how many of each user; see `psd.build`."""

    time: str | None
    time_zone: str
    max_contributions: int | Literal["auto"] | ContributionChoice | None
    choice_share: str | float | None
    choice_over: int | None
    choice_limit: int | None
    per: Literal["day", "user-slice", "slice", "record"] | None
    max_per_slice: int | None
    count: Count


class RequestArguments(ReadArguments, total=False):
    """All public arguments of a request; see `psd.build`."""

    epsilon: Any
    domain: Any
    bounds: Any
    bounds_crs: str | None
    bounds_share: str | float | None
    bounds_beyond: int | None
    crs: str | None
    lattice: Any
    coordinate_resolution: Any
    min_cell: Any
    boundary: Any
    covariate: Any
    covariate_column: str | None
    covariate_size: int | None
    regions: Any
    region_id: Any
    region_parent: Any
    gaps: str | None
    tolerance: float | None
    repair: bool
    delta: Any
    noise: NoiseChoice
    method: Any
    set: Mapping[str, Any] | None
    estimate: str | None
    density: str | None
    about: Any
    slices: Any
    separate_slices: bool
    category: str | None
    labels: Any
    other_labels: str | None
    values: Any


def request_from_toml(text: str, *, folder: Path | None = None) -> BuildRequest:
    """Request of a TOML text with the names of the public fields as keys."""
    values = read_toml("request", text)
    check_known("key", values, field_names(private=False))
    return request_from_values(values, folder=folder)


def request_to_toml(request: BuildTerms, *, folder: Path | None = None) -> str:
    """TOML text of a request; `request_from_toml` reads it back."""
    return toml_text(values_of_request(request, folder=folder))


def parse_values(values: Mapping[str, Any], folder: Path | None = None) -> dict[str, Any]:
    """Values as their fields read them; those that are None are left out."""
    parsed: dict[str, Any] = {}
    for field in FIELDS:
        value = values.get(field.name)
        if value is None or (isinstance(value, tuple) and not value and field.is_list):
            continue
        if field.choices and field.name != "method":
            check_choice(field.name, value, field.choices)
        parsed[field.name] = field.parse(field.name, value, folder)
    return parsed


def request_from_values(values: Mapping[str, Any], *, folder: Path | None = None) -> BuildRequest:
    """Request of a build from records, by the names of the public fields, and ``domain``."""
    return terms_from_values(values, folder=folder).of_records()


def terms_from_values(
    values: Mapping[str, Any], *, folder: Path | None = None, tallied: Domain | None = None
) -> BuildTerms:
    """Terms of values by names of public fields, or ``domain``; those with an area are a request.

    ``domain``: a `psd.Domain`, or west, south, east, north in degrees; `folder`: where relative
    paths begin; `tallied`: the domain of the tallies that are built from.
    """
    check_known("argument", values, (*field_names(private=False), "domain"))
    given = parse_values(values, folder)
    if tallied is not None:
        for field in FIELDS:
            if field.of_records and not field.private and field.name in given:
                raise ParameterError(
                    f"{field.name} must be left out for tallies; it is about rows, and the tallies "
                    "were counted with their own",
                    name=field.name,
                )
    if "epsilon" not in given:
        raise ParameterError("epsilon must be given, a decimal such as 0.5", name="epsilon")
    if tallied is None:
        given = with_gaps(given, values.get("domain"))
    boundary, covariate = boundary_from_values(given), covariate_from_values(given)
    source = regions_from_values(given)
    area: Domain | PrivateBounds | None
    if tallied is None:
        area = domain_from_values(given, values.get("domain"), boundary, source)
    else:
        area = replace(tallied, min_cell=given["min_cell"]) if "min_cell" in given else tallied
    if isinstance(area, Domain):
        if not isinstance(covariate, Covariate | CovariateFile | None):
            covariate = covariate_of(covariate, area)
        if not isinstance(boundary, Boundary | BoundaryFile | None):
            boundary = boundary_of(boundary, area)
    method = method_from_values(given, area, has_regions=source is not None)
    density = given.get("density") or default_density(
        area, covariate=covariate, boundary=boundary, regions=source
    )
    common: dict[str, Any] = dict(
        epsilon=given["epsilon"],
        method=method,
        is_default="method" not in given and not given.get("set"),
        separate_slices=given.get("separate_slices", False),
        covariate=covariate,
        boundary=boundary,
        regions=None if source is None else hierarchy_from_values(source, given, area, boundary),
        region_source=source if isinstance(source, RegionFiles | CellRegions) else None,
        about=given.get("about"),
        delta=given.get("delta"),
        noise=given.get("noise", "auto"),
        post_processing=resolve_post_processing(
            method, estimate=given.get("estimate"), density=density
        ),
        **reading_from_values(given),
    )
    return BuildTerms(**common) if area is None else BuildRequest(domain=area, **common)


def domain_from_values(
    given: Mapping[str, Any], domain: Any = None, boundary: Any = None, regions: Any = None
) -> Domain | PrivateBounds | None:
    """Domain, or how its bounds are estimated, of parsed values; None where none are given.

    `domain` takes the place of the fields of the area. Where no bounds are given, they are those of
    the boundary, else of the regions: of public polygons.
    """
    stated = [name for name in _BOUNDS if name in given]
    if domain is not None:
        if stated:
            raise ParameterError(
                f"{stated[0]} must be left out with domain, which has it", name=stated[0]
            )
        return as_domain(domain)
    bounds, crs = given.get("bounds"), str(given.get("crs", _DEFAULT_CRS))
    shape: dict[str, Any] = {
        "crs": crs,
        "lattice": _lattice(given.get("lattice", DEFAULT_LATTICE)),
        "coordinate_resolution": given.get("coordinate_resolution"),
        "min_cell": given.get("min_cell", USUAL_MIN_CELL),
    }
    word = bounds if isinstance(bounds, str) else None
    for name in ("bounds_share", "bounds_beyond"):
        if name in given and word != PRIVATE:
            raise ParameterError(f'{name} must be given with bounds="{PRIVATE}" alone', name=name)
    numbers = bounds if word is None else bounds_from_text(word)
    if "bounds_crs" in given and numbers is None:
        raise ParameterError(
            "bounds_crs must be given with bounds= of four numbers alone", name="bounds_crs"
        )
    if word == PRIVATE:
        private: PrivateBounds = _with_parts(
            PrivateBounds, "bounds", ("share", "beyond"), given, shape
        )
        return private
    if word == AREA_OF_USE:
        return Domain.area_of_use(**shape)
    if bounds is None:
        if isinstance(regions, RegionHierarchy):
            return regions.domain
        if boundary is None or isinstance(boundary, Boundary):
            numbers = _bounds_of_regions(regions, crs)
            if numbers is None:
                return None
        else:
            numbers = bounds_of(polygons_of(boundary, crs), crs)
    elif hasattr(bounds, "geometry"):
        numbers = bounds_from_polygons(bounds, crs)
    elif numbers is None:
        numbers = bounds_from_file(str(bounds), crs)
    numbers = values_of("bounds", numbers)
    if "bounds_crs" in given:
        numbers = transform_bounds(four_numbers(numbers), str(given["bounds_crs"]), crs)
    return Domain(bounds=numbers, **shape)


def _bounds_of_regions(regions: Any, crs: str) -> tuple[float, float, float, float] | None:
    """Bounds of all polygons of files or tables of regions; None of cells, which have none."""
    if isinstance(regions, RegionFiles):
        tables = regions.tables()
    elif _is_tables(regions):
        tables = list(regions) if isinstance(regions, list | tuple) else [regions]
    else:
        return None
    sides = [bounds_from_polygons(table, crs, "regions") for table in tables]
    west, south, east, north = zip(*sides, strict=True)
    return min(west), min(south), max(east), max(north)


def _with_parts(
    kind: type[Any], prefix: str, keys: tuple[str, ...], given: Mapping[str, Any],
    others: Mapping[str, Any],
) -> Any:  # fmt: skip
    """An object of the fields ``PREFIX_KEY``, whose errors name them so."""
    parts = {key: given[f"{prefix}_{key}"] for key in keys if f"{prefix}_{key}" in given}
    try:
        return kind(**parts, **others)
    except ParameterError as error:
        key = str(error).partition(" ")[0]
        if key not in parts:
            raise
        raise ParameterError(f"{prefix}_{error}", name=f"{prefix}_{key}") from None


def public_domain_from_values(
    given: Mapping[str, Any], domain: Any = None, boundary: Any = None, regions: Any = None
) -> Domain:
    """Domain of parsed values, which must be there and public."""
    area = domain_from_values(given, domain, boundary, regions)
    if not isinstance(area, Domain):
        raise ParameterError(
            f"bounds must be public here, got {'none' if area is None else 'private ones'}; give "
            "west, south, east and north",
            name="bounds",
        )
    return area


def _lattice(value: Any) -> tuple[Any, ...]:
    """Columns and rows of a list or a text."""
    if not isinstance(value, str):
        return values_of("lattice", value)
    try:
        return tuple(map(int, value.split(",")))
    except ValueError:
        raise ParameterError(
            f"lattice must be two whole numbers, got {str(value)[:80]!r}", name="lattice"
        ) from None


def boundary_from_values(given: Mapping[str, Any]) -> Any:
    """Boundary; a path as a file."""
    value = given.get("boundary")
    if isinstance(value, str):
        return BoundaryFile(path=value, repair=given.get("repair", False))
    if not given.get("repair") or isinstance(value, Boundary | BoundaryFile | None):
        return value
    return repair_polygons(polygons_of(value, str(given.get("crs", _DEFAULT_CRS))), "boundary")


def covariate_from_values(given: Mapping[str, Any]) -> Any:
    """Covariate; a path as a file."""
    value = given.get("covariate")
    parts = {
        key: given[f"covariate_{key}"] for key in ("column", "size") if f"covariate_{key}" in given
    }
    if isinstance(value, str):
        return CovariateFile(path=value, **parts)
    for key in parts:
        raise ParameterError(
            f"covariate_{key} must be given with a file as covariate= alone",
            name=f"covariate_{key}",
        )
    return value


def with_gaps(given: dict[str, Any], domain: Any = None) -> dict[str, Any]:
    """Parsed values, whose regions leave out what lies between them where they are the area."""
    value = given.get("regions")
    is_area = domain is None and not {"bounds", "boundary"} & {*given}
    is_area = is_area and value is not None and _are_polygons(value)
    return {"gaps": "outside", **given} if is_area else given


def regions_from_values(given: Mapping[str, Any]) -> Any:
    """Regions of parsed values: paths as files; None where there are none."""
    value: Any = given.get("regions")
    stated = [name for name in _REGION_SETTINGS if name in given]
    if value is None or not _are_polygons(value):
        if given.get("repair") and "boundary" not in given:
            raise ParameterError(
                "repair must be given with polygons as regions= or boundary= alone", name="repair"
            )
        if stated:
            what = "regions=" if value is None else "polygons as regions="
            raise ParameterError(f"{stated[0]} must be given with {what} alone", name=stated[0])
        return None if value is None else check_regions(value)
    ids, parents = given.get("region_id", ()), given.get("region_parent", ())
    if not ids and not _only_column(value):
        raise ParameterError(
            "region_id must be the column that names the regions, got none", name="region_id"
        )
    is_paths = not _is_tables(value)
    if parents and len(value) > 1 and is_paths:
        raise ParameterError(
            f"region_parent must be left out with a file of each level, got {len(value)} files",
            name="region_parent",
        )
    if not is_paths:
        return value
    return RegionFiles(
        paths=value,
        ids=ids,
        parents=parents,
        tolerance=given.get("tolerance"),
        gaps=given.get("gaps", "refuse"),
        repair=given.get("repair", False),
    )


def _only_column(value: Any) -> tuple[str, ...]:
    """The only column beside the geometries of a table of regions, which then names them."""
    if isinstance(value, list | tuple):
        return ()
    names = [str(name) for name in value.columns if name != value.geometry.name]
    return tuple(names) if len(names) == 1 else ()


def _are_polygons(value: Any) -> bool:
    """Whether a value is the paths of files of polygons, or tables of polygons."""
    is_paths = isinstance(value, tuple) and all(isinstance(item, str) for item in value)
    return is_paths or _is_tables(value)


def _is_tables(value: Any) -> bool:
    """Whether a value is a table of polygons, or one for each level."""
    if isinstance(value, RegionHierarchy):
        return False
    items = value if isinstance(value, list | tuple) else [value]
    return bool(items) and all(
        hasattr(item, "columns") and hasattr(item, "geometry") for item in items
    )


def hierarchy_from_values(
    source: Any, given: Mapping[str, Any], area: object, boundary: Any = None
) -> RegionHierarchy:
    """Hierarchy of the regions of `regions_from_values`: of files, cells or tables."""
    if not _is_tables(source):
        return regions_of(source, area, boundary)
    if not isinstance(area, Domain):
        raise ParameterError("bounds must be public with regions, got none or private ones")
    tables: Any = list(source) if isinstance(source, list | tuple) else [source]
    if given.get("repair"):
        tables = [repair_polygons(table, "regions") for table in tables]
    ids = given.get("region_id") or _only_column(source)
    return hierarchy_from_polygons(
        tables[0] if len(tables) == 1 else tables,
        area,
        ids=ids[0] if len(ids) == 1 else ids,
        parents=given.get("region_parent", ()),
        boundary=None if boundary is None else boundary_of(boundary, area),
        tolerance=given.get("tolerance"),
        gaps=given.get("gaps", "refuse"),
    )


def method_from_values(
    given: Mapping[str, Any], area: object, *, has_regions: bool
) -> Decomposition:
    """Method by its name and settings; a workload changes the default method."""
    name, settings = given.get("method", DEFAULT_METHOD), given.get("set", {})
    if name == DEFAULT_METHOD and "category" in given and not has_regions:
        name = Cube.name  # the method that counts categories
    if not isinstance(name, str):
        if settings:
            raise ParameterError(
                f"set must be left out with a method that is an object, got {type_text(name)}",
                name="set",
            )
        return as_region_method(name) if has_regions else as_method(name)
    texts = {
        key: value if isinstance(value, str) else str(value) for key, value in settings.items()
    }
    if has_regions:
        return region_method(name, texts)
    workload = texts.get("workload")
    if workload is None:
        return method_by_name(name, texts)
    chosen = name
    if name == DEFAULT_METHOD:
        chosen = "grid" if workload == "tiny" else Quadtree.name
    if chosen != Quadtree.name:
        return method_by_name(chosen, texts)
    if is_workload_file(workload):
        # Weights of the levels for the boxes in the file.
        if not isinstance(area, Domain):
            raise ParameterError(
                "bounds must be public with a workload file, whose boxes lie in them"
            )
        boxes = read_boxes(Path(workload))[["west", "south", "east", "north"]].to_numpy()
        sizes: dict[str, Any] = {"height": texts["height"]} if "height" in texts else {}
        weights = weights_for_boxes(boxes, area, Quadtree(**sizes).height)
        texts["workload"] = " ".join(map(str, weights))
    return method_by_name(chosen, {"budget": "workload", **texts})


def reading_from_values(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a `psd.publish.request.ReadRequest` of parsed values."""
    names = {name: given[name] for name in _COLUMNS if name in given}
    if "wkt" in names and ("x" in names or "y" in names):
        raise ParameterError("x= and y= must be left out with wkt=, which has both", name="wkt")
    slices = given.get("slices")
    if isinstance(slices, str):
        slices = slices_from_text(slices, names.get("time_zone", "UTC"))
    if slices is not None:
        check_instance("slices", slices, TimeSlices, SLICES_EXAMPLE)
        names.setdefault("time_zone", slices.time_zone)
    category = _category_from_values(given)
    named = tuple(value.name for value in names.pop("values", ()))
    columns = Columns(**names, values=named)
    bound = given.get("max_contributions")
    for name in (f"choice_{key}" for key in _CHOICE):
        if name in given and bound != AUTO:
            raise ParameterError(
                f'{name} must be given with max_contributions="{AUTO}" alone', name=name
            )
    choice = bound if isinstance(bound, ContributionChoice) else None
    if bound == AUTO:
        choice = _with_parts(ContributionChoice, "choice", _CHOICE, given, {})
    per = given.get("per")
    if per == "record" and columns.user is not None:
        raise ParameterError(
            "per must not be record with user=, which makes the user the unit of privacy",
            name="per",
        )
    unit: PrivacyUnit = privacy_unit(
        columns.user,
        bound if choice is None else choice.limit,
        per=None if per in ("slice", "record") else per,
        time=columns.time,
        time_zone=columns.time_zone,
        count=given.get("count", "records"),
        max_per_slice=given.get("max_per_slice"),
    )
    return {
        "columns": columns,
        "unit": unit,
        "contribution_choice": choice,
        "contribution_scope": "slice" if per == "slice" else "series",
        "slices": slices,
        "values": given.get("values", ()),
        "category": category,
    }


def _category_from_values(given: Mapping[str, Any]) -> CategoryAxis | None:
    """Axis of the category of parsed values; None without one."""
    column, labels = given.get("category"), given.get("labels")
    if column is None:
        for name in ("labels", "other_labels"):
            if given.get(name, "count") != "count":
                raise ParameterError(
                    f"{name} must be left out without category=, the column that has them",
                    name=name,
                )
        return None
    if labels is None:
        raise ParameterError(
            "labels must be given with category=, such as met,city or a file labels.csv; they are "
            "public, never those that the data have",
            name="labels",
        )
    found = labels_from_file(labels) if isinstance(labels, Path) else labels_of(labels)
    return CategoryAxis(column, *found, given.get("other_labels", "count") == "count")
