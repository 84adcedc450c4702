"""The last check before a record is written: every value has exactly a public type.

Writers of releases, series and exports call it first. It is an allow-list: a value of another
type, or an attribute that its type does not have, is refused. Parameters are public by their type,
which only declared fields, picks and statements can fill.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from functools import cached_property
from types import NoneType
from typing import Any

import numpy as np

from psd._util.declared_parameters import DeclaredParameters
from psd.errors import ParameterError
from psd.privacy.count_noise import CountNoise
from psd.privacy.unit import PrivacyUnit
from psd.privacy.values import Value
from psd.regions.hierarchy import KINDS, RegionHierarchy, RegionLevel
from psd.release.about import About
from psd.release.cube import CubeRecord, WindowRecord
from psd.release.post_processing import PostProcessing
from psd.release.record import LocalReports, ReleaseRecord, is_method_name
from psd.release.series import SeriesRecord
from psd.space.axes import TimeAxis
from psd.space.box_tree import Tree
from psd.space.categories import CategoryAxis
from psd.space.covariate import Covariate
from psd.space.cube_tree import CubeTree, SliceCap
from psd.space.domain import Domain
from psd.space.region_axis import RegionAxis
from psd.space.region_tree import RegionTree
from psd.space.time_slices import TimeSlices

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
    type; no field can hold a tally, a table, a path or a curator. Parameters are declared, and the
    counts neither were replayed nor come from a seed. The layer of a cube over space and time is
    no release by itself, since its cells overlap; so its `trees` are those of cubes alone.
    """
    _check_exact("the record", record, (ReleaseRecord,))
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
    if not is_method_name(record.method):
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
    _check_exact("slices", record.slices, (TimeSlices, NoneType))
    _check_exact("category", record.category, (CategoryAxis, NoneType))
    check_release(record.plane)
    for layer in (record.joint, record.labels):
        if layer is None:
            continue
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
