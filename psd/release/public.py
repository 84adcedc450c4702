"""What may be published: the one type that writers of releases, series and exports take.

An allow-list. Whatever is not named here, of the type that stands here, is written by nobody: a
field that somebody adds to a release, a parameter that no method declares, an array of counts
hung onto a tree.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.errors import ParameterError
from psd.release.post_processing import View
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.space.domain import Domain
from psd.space.time_slices import TimeSlices

if TYPE_CHECKING:
    from psd.privacy.unit import ContributionScope
    from psd.release.record import Release
    from psd.release.series import Series

__all__ = ["PARAMETERS", "Public", "PublicSeries", "check_public"]

PARAMETERS = frozenset({
    # of methods
    "bins", "budget", "cells", "first_share", "height", "lines", "look_share", "order",
    "private_levels", "prune", "resolution", "signal", "size", "step_share", "structure_share",
    "total_share", "workload",
    # what a method picked by answers that it paid for, and what was paid before it was asked
    "look_epsilon", "look_total", "picked", "bound_epsilon", "bound_over", "bound_most",
    "bounds_epsilon", "bounds_beyond", "counting_epsilon",
    # which charge of which ledger paid
    "ledger", "charge",
})  # fmt: skip
"""Names of parameters that a release may state."""

_NAME = re.compile("[a-z0-9-]{1,40}")

_ARRAYS = {"boxes": "int32", "parent": "int32", "level": "int16", "count": "int64"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Public:
    """Everything that a file of a release says, and nothing else.

    Guarantees
    ----------
    - Every field is of exactly the type that is written beside it here, and has no attribute
      that this type does not have; parameters are named in `PARAMETERS`.
    - No field can hold a tally, a table, a path or a curator.

    Parameters
    ----------
    tree, domain, epsilon, method, parameters, unit, max_contributions, weight, time_zone, view
        As of `psd.release.record.Release`; so are covariate, boundary, library and inference.

    Raises
    ------
    ParameterError
        If a field is of another type, or has an attribute of its own.
    """

    tree: Tree
    domain: Domain
    epsilon: int
    method: str
    parameters: Mapping[str, int | str | None]
    unit: str
    max_contributions: int
    weight: int
    time_zone: str | None
    view: View
    covariate: Covariate | None
    boundary: bool
    library: str
    inference: int

    def __post_init__(self) -> None:
        """Check every field; the parameters are copied, since a caller could change theirs."""
        for name, kinds in _KINDS.items():
            _check_exact(name, getattr(self, name), kinds)
        if _NAME.fullmatch(self.method) is None:
            raise ParameterError(
                f"method {self.method[:100]!r} is no name of a method: small letters, digits and "
                "hyphens, at most 40"
            )
        for name, value in self.parameters.items():
            _check_exact("a name of a parameter", name, (str,))
            _check_exact(f"parameter {name}", value, (int, str, NoneType))
            if name not in PARAMETERS:
                raise ParameterError(
                    f"parameter {name[:100]!r} is none that a release may state; nothing is "
                    "written, since nobody has said that it is public"
                )
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        for name in (*_ARRAYS, "epsilon"):
            array, kind = getattr(self.tree, name), _ARRAYS.get(name, "int64")
            if type(array) is not np.ndarray or array.dtype != kind:
                raise ParameterError(f"{name} of a tree is no array of {kind}")

    @classmethod
    def of(cls, release: Release) -> Public:
        """What a release has to say.

        Raises
        ------
        ParameterError
            If it is no release, has an attribute that a release does not have, or its counts
            were replayed and not drawn.
        """
        from psd.release.record import Release

        _check_exact("what is to be written", release, (Release,))
        if release.source not in ("curator", "given"):
            raise ParameterError(
                "a release from replayed answers, or from a seed, has no noise and is not saved or "
                "exported"
            )
        return cls(**{field.name: getattr(release, field.name) for field in _fields(cls)})

    def release(self) -> Release:
        """Release that says this; its estimates are worked out anew."""
        from psd.release.record import Release

        known: dict[str, Any] = {field.name: getattr(self, field.name) for field in _fields(self)}
        return Release(**known, source="curator")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicSeries:
    """Everything that a file of a series says, and nothing else.

    Parameters
    ----------
    slices : TimeSlices
        Names of the slices.
    releases : tuple of Public
        What each says.
    bound : {"series", "slice"}
        As of `psd.release.series.Series`.

    Raises
    ------
    ParameterError
        As `Public`.
    """

    slices: TimeSlices
    releases: tuple[Public, ...]
    bound: ContributionScope

    def __post_init__(self) -> None:
        """Check every field."""
        for name, kind in (("slices", TimeSlices), ("releases", tuple), ("bound", str)):
            _check_exact(name, getattr(self, name), (kind,))
        for release in self.releases:
            _check_exact("a release of a series", release, (Public,))

    @classmethod
    def of(cls, series: Series) -> PublicSeries:
        """What a series has to say.

        Raises
        ------
        ParameterError
            As `Public.of`.
        """
        from psd.release.series import Series

        _check_exact("what is to be written", series, (Series,))
        releases = tuple(map(Public.of, series.releases))
        return cls(slices=series.slices, releases=releases, bound=series.bound)


_KINDS: dict[str, tuple[type, ...]] = {
    "tree": (Tree,),
    "domain": (Domain,),
    "epsilon": (int,),
    "method": (str,),
    "parameters": (dict, MappingProxyType),
    "unit": (str,),
    "max_contributions": (int,),
    "weight": (int,),
    "time_zone": (str, NoneType),
    "view": (View,),
    "covariate": (Covariate, NoneType),
    "boundary": (bool,),
    "library": (str,),
    "inference": (int,),
}


def check_public(content: object, kind: type) -> None:
    """Refuse whatever is not public: the first line of every writer.

    Parameters
    ----------
    content : object
        What a writer was given.
    kind : type
        `Public` or `PublicSeries`.

    Raises
    ------
    ParameterError
        If the content is of another type.
    """
    _check_exact("what is to be written", content, (kind,))


def _fields(kind: Any) -> tuple[dataclasses.Field[Any], ...]:
    """Fields of a dataclass."""
    return dataclasses.fields(kind)


def _check_exact(name: str, value: object, kinds: tuple[type, ...]) -> None:
    """Refuse a value of another type, or one with attributes that its type does not have."""
    if type(value) not in kinds:
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise ParameterError(
            f"{name} is no {wanted} but a {type(value).__name__}; nothing is written that is not "
            "known to be public"
        )
    for attribute in vars(value) if hasattr(value, "__dict__") else ():
        if attribute not in _attributes(type(value)):
            raise ParameterError(
                f"{name} has an attribute {attribute!r} that no {type(value).__name__} has; "
                "nothing is written that is not known to be public"
            )


def _attributes(kind: type) -> set[str]:
    """Fields of a dataclass, and what it works out from them once."""
    members = [member for base in kind.__mro__ for member in vars(base).items()]
    worked_out = {name for name, value in members if type(value) is cached_property}
    return worked_out | {field.name for field in _fields(kind)}
