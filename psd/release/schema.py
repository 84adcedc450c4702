"""The schema of a release file: one table of fields, from which reader, writer and docs follow.

A file has every field. The format may change with the library until version 1.0.0. Writers refuse a
value that has not exactly a public type, or has another attribute: parameters are public by a type
that only declared fields, picks and statements can fill.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from types import NoneType
from typing import Any, Final, get_args

import numpy as np

from psd._util.declared_parameters import DeclaredParameters, parameters_from_file
from psd._util.wall_clock import is_zone_name
from psd.errors import DomainError, ParameterError, ReleaseFormatError
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import epsilon_text, parse_epsilon
from psd.privacy.unit import MAX_CONTRIBUTIONS, Kind, PrivacyUnit
from psd.privacy.values import Value
from psd.regions.hierarchy import KINDS, RegionHierarchy, RegionLevel
from psd.release.about import ABOUT_KEYS, About, is_about
from psd.release.codecs import (
    covariate_header,
    is_covariate,
    is_noise,
    is_regions,
    is_values,
    noise_fields,
    noise_header,
    parse_values,
    regions_header,
)
from psd.release.cube import CubeRecord, WindowRecord
from psd.release.post_processing import DENSITIES, REGION_ESTIMATES, PostProcessing
from psd.release.record import (
    METHOD_NAME,
    LocalReports,
    ReleaseRecord,
    is_local_header,
    local_header,
    parse_local,
)
from psd.release.series import SeriesRecord
from psd.space.axes import TimeAxis
from psd.space.box_tree import Tree
from psd.space.categories import CategoryAxis
from psd.space.covariate import Covariate
from psd.space.cube_tree import CubeTree, SliceCap
from psd.space.domain import Domain, parse_min_cell
from psd.space.lattice_axis import parse_resolution
from psd.space.region_axis import RegionAxis
from psd.space.region_tree import RegionTree
from psd.space.time_slices import TimeSlices
from psd.version import old_format

FORMAT: Final = 1
"""The format that is written, and the only one that is read."""

MARK: Final = "psd_release"
"""Key of the format in the header. The key tells a file of this format from the older ones, which
had their numbers, 1 to 11, under ``format``; readers of those find no format here."""

_OLD: Final = ("format", 11)

_MAX_CRS = 2**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of the header of a release file."""

    name: str  # key in the JSON header
    json: str  # JSON type and range, for the documentation; "null or ..." where null is valid
    doc: str  # meaning, one line
    is_valid: Callable[[Any], bool]  # whether another JSON value of the file is valid
    value_of: Callable[[ReleaseRecord], Any]  # JSON value of a record
    is_optional: bool = False  # whether a header leaves it out where its value is None


def _is_integer(value: object, low: int, high: int) -> bool:
    """Whether a JSON value is an integer between two limits, both included."""
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_text(value: object) -> bool:
    """Whether a JSON value is a printable text of 1 to 100 characters."""
    return isinstance(value, str) and 0 < len(value) <= 100 and value.isprintable()


def _is_canonical(parse: Callable[[str], str | None], value: object) -> bool:
    """Whether a JSON value is the text that a parser gives for it."""
    try:
        return _is_text(value) and parse(str(value)) == value
    except DomainError:
        return False


def is_parameters(value: object) -> bool:
    """Whether a JSON value is a flat object of at most 100 integers, short texts and nulls."""
    return (
        isinstance(value, dict)
        and len(value) <= 100
        and all(_is_text(key) for key in value)
        and all(v is None or _is_text(v) or _is_integer(v, -(2**62), 2**62) for v in value.values())
    )


def _is_post_processing(value: object) -> bool:
    """Whether a JSON value is a post-processing with all of its choices."""
    return (
        isinstance(value, dict)
        and value.keys() == {"estimate", "density", "prune"}
        and value["estimate"] in REGION_ESTIMATES
        and value["density"] in DENSITIES
        and _is_integer(value["prune"], 0, 2**53 - 1)
    )


def _is_domain(value: object) -> bool:
    """Whether a JSON value has the form of a domain; `Domain` checks the numbers."""
    if not isinstance(value, dict) or value.keys() != {"bounds", "crs", "lattice"}:
        return False
    bounds, crs, lattice = value["bounds"], value["crs"], value["lattice"]
    return (
        isinstance(bounds, list)
        and all(type(edge) in (int, float) for edge in bounds)
        and isinstance(lattice, list)
        and all(_is_integer(size, 1, 2**30) for size in lattice)
        and isinstance(crs, str)
        and len(crs) <= _MAX_CRS
        and crs.isprintable()
    )


FIELDS: Final = (
    Field(
        name="library",
        json="string",
        doc="version of the library that wrote the file",
        is_valid=_is_text,
        value_of=lambda record: record.library,
    ),
    Field(
        name="inference",
        json="integer, 1 to 1,000,000",
        doc="version of the estimates that the library computes from the counts: 1 to 3",
        is_valid=lambda value: _is_integer(value, 1, 10**6),
        value_of=lambda record: record.inference,
    ),
    Field(
        name="method",
        json="string",
        doc="name of the method: 1 to 40 small letters, digits and hyphens",
        is_valid=lambda value: isinstance(value, str) and METHOD_NAME.fullmatch(value) is not None,
        value_of=lambda record: record.method,
    ),
    Field(
        name="parameters",
        json="object of integers, strings and nulls",
        doc="public parameters of the method, and those that the build adds",
        is_valid=is_parameters,
        value_of=lambda record: dict(record.parameters),
    ),
    Field(
        name="domain",
        json="object: bounds (4 numbers), crs (string), lattice (2 integers)",
        doc="west, south, east, north; CRS; columns and rows of the lattice",
        is_valid=_is_domain,
        value_of=lambda record: {
            "bounds": list(record.domain.bounds),
            "crs": record.domain.crs,
            "lattice": list(record.domain.lattice),
        },
    ),
    Field(
        name="unit",
        json="one of " + ", ".join(get_args(Kind)),
        doc="unit of privacy",
        is_valid=lambda value: value in get_args(Kind),
        value_of=lambda record: record.unit.kind,
    ),
    Field(
        name="max_contributions",
        json="integer, 1 to 1,000,000,000",
        doc="k, the largest number of records of one unit that are counted",
        is_valid=lambda value: _is_integer(value, 1, MAX_CONTRIBUTIONS),
        value_of=lambda record: record.unit.max_contributions,
    ),
    Field(
        name="epsilon",
        json="string, a decimal",
        doc="epsilon of the release, enforced by the curator or stated by the caller",
        is_valid=_is_text,
        value_of=lambda record: epsilon_text(record.epsilon),
    ),
    Field(
        name="view",
        json="object: estimate, density (strings), prune (integer)",
        doc="post-processing of the counts",
        is_valid=_is_post_processing,
        value_of=lambda record: asdict(record.post_processing),
    ),
    Field(
        name="covariate",
        json="null, or object: columns, rows, sha256",
        doc="size and digest of the public covariate, whose raster is in the footer",
        is_valid=is_covariate,
        value_of=lambda record: record.covariate and covariate_header(record.covariate),
    ),
    Field(
        name="weight",
        json="integer, 0 to 1,000,000,000",
        doc="count of one user if users are counted; 0 if records are counted",
        is_valid=lambda value: _is_integer(value, 0, MAX_CONTRIBUTIONS),
        value_of=lambda record: record.unit.weight,
    ),
    Field(
        name="time_zone",
        json="null or string",
        doc="time zone in which the days of a unit user-day begin",
        is_valid=is_zone_name,
        value_of=lambda record: record.unit.time_zone,
    ),
    Field(
        name="boundary",
        json="true or false",
        doc="whether the covariate is the raster of a public boundary",
        is_valid=lambda value: isinstance(value, bool),
        value_of=lambda record: record.boundary,
    ),
    Field(
        name="source",
        json="one of curator, given, local",
        doc="whether the curator of this library drew the counts, they were given to it, or "
        "devices randomised their own answers",
        is_valid=lambda value: value in ("curator", "given", "local"),
        value_of=lambda record: record.source,
    ),
    Field(
        name="coordinate_resolution",
        json="null or string, a decimal",
        doc="step to which the coordinates are rounded; the lattice follows from it",
        is_valid=lambda value: _is_canonical(parse_resolution, value),
        value_of=lambda record: record.domain.coordinate_resolution,
    ),
    Field(
        name="min_cell",
        json="null or string, a decimal",
        doc="metres on the ground that no side of a cell is below; null if there is no limit",
        is_valid=lambda value: _is_canonical(parse_min_cell, value),
        value_of=lambda record: record.domain.min_cell,
    ),
    Field(
        name="regions",
        json="null, or object: parameters (object), bytes (integer), sha256",
        doc="public regions of the upper nodes: kind and parameters, and size and digest of their "
        "table, which is in the footer",
        is_valid=is_regions,
        value_of=regions_header,
    ),
    Field(
        name="local",
        json="null, or object: campaign, levels (list of objects)",
        doc="of a local release, the digest of its campaign, and the reports of each level",
        is_valid=is_local_header,
        value_of=lambda record: local_header(record.local),
    ),
    Field(
        name="about",
        json="null, or object of strings: " + ", ".join(ABOUT_KEYS),
        doc="what the publisher states about the release; keys without a text are left out",
        is_valid=is_about,
        value_of=lambda record: record.about_texts or None,
    ),
    Field(
        name="max_per_slice",
        json="null, or integer, 1 to 1,000,000,000",
        doc="largest number of records of one user that are counted in one time slice of a series",
        is_valid=lambda value: _is_integer(value, 1, MAX_CONTRIBUTIONS),
        value_of=lambda record: record.unit.max_per_slice,
    ),
    Field(
        name="noise",
        json="null, or object: law (string), squared_sensitivity (integer), factor, rho, delta "
        "(strings or null)",
        doc="noise of the counts: null for discrete Laplace noise of scale k / epsilon. Rho and "
        "delta are null unless the losses are counted in rho",
        is_valid=is_noise,
        value_of=noise_header,
    ),
    Field(
        name="values",
        json="list of objects: name (string), lower, upper (numbers)",
        doc="numbers of records whose sums of weights the nodes have; left out where there are "
        "none; names have 1 to 100 printable characters, and no two give one column of answers, as "
        "fare and fare_error would",
        is_valid=is_values,
        value_of=lambda record: [asdict(value) for value in record.values] or None,
        is_optional=True,
    ),
)
"""Every field of the header but `MARK`."""


def record_header(record: ReleaseRecord) -> dict[str, Any]:
    """Header of a record."""
    values = {field.name: field.value_of(record) for field in FIELDS}
    optional = {field.name for field in FIELDS if field.is_optional}
    stated = {k: v for k, v in values.items() if not (v is None and k in optional)}
    return {MARK: FORMAT, **stated}


def record_fields(header: Any) -> dict[str, Any]:
    """Fields of a `ReleaseRecord` but its tree, from a header with checked values."""
    check_format(header, MARK, _OLD, "release")
    optional = {field.name for field in FIELDS if field.is_optional}
    if header.keys() | optional != {MARK, *(field.name for field in FIELDS)}:
        raise ReleaseFormatError("its header has other fields than its format")
    values: Mapping[str, Any] = header
    for field in (field for field in FIELDS if field.name in values):
        may_be_null = values[field.name] is None and field.json.startswith("null")
        if not (may_be_null or field.is_valid(values[field.name])):
            raise ReleaseFormatError(f"header field {field.name} is not valid")
    unit = ("max_contributions", "weight", "time_zone", "max_per_slice")
    # Domain of a header, whose lattice must be the one that a coordinate resolution gives.
    value = values["domain"]
    bounds, lattice = tuple(value["bounds"]), tuple(value["lattice"])
    domain = Domain(
        bounds=bounds,
        crs=value["crs"],
        lattice=lattice,
        coordinate_resolution=values["coordinate_resolution"],
        min_cell=values["min_cell"],
    )
    if domain.lattice != lattice:
        raise ReleaseFormatError("header field lattice does not follow from coordinate_resolution")
    return {
        **{name: values[name] for name in ("library", "inference", "method")},
        **{name: values[name] for name in ("covariate", "boundary", "source", "regions")},
        **noise_fields(values["noise"]),
        "parameters": parameters_from_file(values["parameters"]),
        "epsilon": parse_epsilon(values["epsilon"]),
        "domain": domain,
        "local": parse_local(values["local"]),
        "values": parse_values(values.get("values")),
        "about": None if values["about"] is None else About(**values["about"]),
        "unit": PrivacyUnit(kind=values["unit"], **{name: values[name] for name in unit}),
        "post_processing": PostProcessing(**values["view"]),
    }


def check_format(header: Any, mark: str, old: tuple[str, int], family: str) -> None:
    """Refuse a header of another format; old: key and largest number of older ones."""
    if not isinstance(header, dict):
        raise ReleaseFormatError("its header is not a JSON object")
    key, largest = old
    if mark not in header and _is_integer(header.get(key), 1, largest):
        raise ReleaseFormatError(f"it {old_format(family, header[key])}")
    if not _is_integer(header.get(mark), FORMAT, FORMAT):
        raise ReleaseFormatError(
            f"its {mark} {header.get(mark)!r} is not known; this library reads {FORMAT}"
        )


_ARRAYS = {
    "boxes": "int32",
    "parent": "int32",
    "level": "int16",
    "count": "int64",
    "loss": "int64",
}

_TYPES: dict[str, tuple[type, ...]] = {
    "tree": (Tree, RegionTree),
    "domain": (Domain,),
    "epsilon": (int,),
    "method": (str,),
    "parameters": (DeclaredParameters,),
    "unit": (PrivacyUnit,),
    "post_processing": (PostProcessing,),
    "covariate": (Covariate, NoneType),
    "boundary": (bool,),
    "library": (str,),
    "inference": (int,),
    "source": (str,),
    "local": (LocalReports, NoneType),
    "about": (About, NoneType),
    "rho": (int, NoneType),
    "delta": (Fraction, NoneType),
    "values": (tuple,),
    "part_weight": (int,),
}


def check_release(record: ReleaseRecord, *, trees: tuple[type, ...] = _TYPES["tree"]) -> None:
    """Refuse a record that holds anything but the public values of a release.

    P1. Every field has exactly the type of the table above, and no attribute beside those of its
    type; no field can hold a tally, a table, a path or a curator. Parameters are declared, and
    counts are neither replayed nor from a seed.
    """
    _check_exact("the record", record, (ReleaseRecord,))
    # Cells of the layer of a cube over space and time overlap, so its `trees` are no release's.
    for name, types in (_TYPES | {"tree": trees}).items():
        _check_exact(name, getattr(record, name), types)
    if isinstance(record.tree, RegionTree):
        regions = record.tree.regions
        _check_exact("regions", regions, (RegionHierarchy,))
        assert isinstance(regions, RegionHierarchy)
        for level in regions.levels:
            _check_exact("level", level, (RegionLevel,))
        if not type(regions.geometry).__module__.startswith(f"{KINDS}."):
            raise ParameterError("regions must be of a kind of this library to be written")
    if record.source not in ("curator", "given", "local"):
        raise ParameterError(
            "a release from replayed answers, or from a seed, has no noise and is not saved or "
            "exported"
        )
    if record.part_weight:
        raise ParameterError("a part of a value is not saved or exported; save its release")
    if not METHOD_NAME.fullmatch(record.method):
        raise ParameterError(
            f"method must be 1 to 40 small letters, digits and hyphens, got {record.method[:100]!r}"
        )
    for name, dtype in _ARRAYS.items():
        array = getattr(record.tree, name)
        if type(array) is not np.ndarray or array.dtype != dtype:
            raise ParameterError(f"{name} of the tree must be an array of {dtype}")
    _check_exact("noise", record.tree.noise, (CountNoise,))
    for value in record.values:
        _check_exact("value", value, (Value,))
        if (type(value.name), type(value.lower), type(value.upper)) != (str, float, float):
            raise ParameterError("a value must have a name and two bounds that are floats")
    sums = record.tree.sums
    if sums is not None and (type(sums) is not np.ndarray or sums.dtype != "int64"):
        raise ParameterError("sums of the tree must be an array of int64")


def check_series(record: SeriesRecord) -> None:
    """Refuse a series that holds anything but public values; see `check_release`."""
    _check_exact("the record", record, (SeriesRecord,))
    for name, kind in (("slices", TimeSlices), ("releases", tuple), ("scope", str)):
        _check_exact(name, getattr(record, name), (kind,))
    for release in record.releases:
        check_release(release)


def check_cube_record(record: CubeRecord) -> None:
    """Refuse a cube that holds anything but public values; see `check_release`."""
    _check_exact("the record", record, (CubeRecord,))
    if record.is_part:
        raise ParameterError("a cube must be shown whole, got the part of one category")
    _check_exact("slices", record.slices, (TimeSlices, NoneType))
    _check_exact("category", record.category, (CategoryAxis, NoneType))
    check_release(record.plane)
    for layer in record.layers[1:]:
        check_release(layer, trees=(CubeTree,))
        tree = layer.tree
        assert isinstance(tree, CubeTree)  # `CubeRecord` checks it
        if type(tree.spans) is not np.ndarray or tree.spans.dtype != "int32":
            raise ParameterError("spans of the tree must be an array of int32")
        for axis in tree.axes:
            _check_exact("axis", axis, (TimeAxis, CategoryAxis, RegionAxis))
        _check_exact("cap", tree.cap, (SliceCap, NoneType))


def check_shown(record: ReleaseRecord | SeriesRecord | CubeRecord) -> None:
    """Refuse to export what holds anything but public values; see `check_release`."""
    if isinstance(record, WindowRecord):
        record = record.cube
    if isinstance(record, CubeRecord):
        check_cube_record(record)
    elif isinstance(record, SeriesRecord):
        check_series(record)
    else:
        check_release(record)


def _check_exact(name: str, value: object, types: tuple[type, ...]) -> None:
    """Refuse a value of another type, or one with attributes that its type does not have."""
    if type(value) not in types:
        expected = " or ".join(kind.__name__ for kind in types)
        raise ParameterError(
            f"{name} must be {expected}, got {type(value).__name__}; a writer takes public values "
            "alone"
        )
    if not hasattr(value, "__dict__"):
        return

    # Fields of a dataclass, and the names of its cached properties.
    kind: Any = type(value)
    members = [member for base in kind.__mro__ for member in vars(base).items()]
    known = {name for name, member in members if type(member) is cached_property}
    known |= {field.name for field in dataclasses.fields(kind)}
    for attribute in vars(value):
        if attribute not in known:
            raise ParameterError(
                f"{name} must be a plain {type(value).__name__}, got the further attribute "
                f"{attribute!r}; a writer takes public values alone"
            )
