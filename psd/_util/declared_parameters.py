"""Parameters that a release states: public because they were declared as public in code.

A field made by `public_field` carries its check and its one-line description, so that the
constructor, ``--set KEY=VALUE``, ``psd methods`` and the release file all read one place.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NoReturn, Self, final

from psd._util.instances import check_choice, shown
from psd.errors import ParameterError

__all__ = ["NO_PARAMETERS", "integer_between"]

Check = Callable[[str, Any], Any]

_INTEGER = re.compile(r"-?\d{1,20}", re.ASCII)


def public_field(default: Any, check: Check, doc: str) -> Any:
    """Field of a method's dataclass.

    Parameters
    ----------
    default : object
        Value if the field is left out; ``None`` is accepted only if it is the default.
    check : callable
        Takes the name and a value or its text, returns the value or raises `ParameterError`.
    doc : str
        One line for ``psd methods``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Method:
    ...     height: int = public_field(2, integer_between(1, 8), "levels")
    >>> Method().height
    2
    """
    return dataclasses.field(default=default, metadata={"check": check, "doc": doc})


def integer_between(low: int, high: int) -> Check:
    """Check for an integer between two limits, both included.

    Examples
    --------
    >>> integer_between(1, 8)("height", "3")
    3
    """

    def check(name: str, value: object) -> int:
        text = str(value)
        if isinstance(value, bool) or not _INTEGER.fullmatch(text):
            raise ParameterError(
                f"{name} must be an integer, got {shown(value)}", name=name, value=str(value)[:80]
            )
        if not low <= int(text) <= high:
            raise ParameterError(
                f"{name} must be between {low} and {high}, got {text}", name=name, value=int(text)
            )
        return int(text)

    return check


def choice(*options: str) -> Check:
    """Check for one of several words.

    Examples
    --------
    >>> choice("uniform", "leaf")("budget", "leaf")
    'leaf'
    """

    def check(name: str, value: object) -> str:
        check_choice(name, value, options)
        return str(value)

    return check


def check_parameters(method: Any) -> None:
    """Check and normalise every field; called by ``__post_init__``.

    Raises
    ------
    ParameterError
        With the first field that is wrong.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from psd.decompositions import check_parameters, integer_between, public_field
    >>> @dataclass(frozen=True)
    ... class Method:
    ...     height: int = public_field(2, integer_between(1, 8), "levels")
    ...     __post_init__ = check_parameters
    >>> Method(height="3").height
    3
    """
    for field in dataclasses.fields(method):
        check_declared(method, field)
        value = getattr(method, field.name)
        if not (value is None and field.default is None):
            object.__setattr__(method, field.name, field.metadata["check"](field.name, value))


def from_settings(kind: type[Any], settings: Mapping[str, str]) -> Any:
    """Build a method from the texts of its parameters."""
    names = [field.name for field in dataclasses.fields(kind)]
    for name in settings:
        if name not in names:
            raise ParameterError(
                f"{kind.name} has no parameter {name[:80]!r}; "
                f"it takes {', '.join(names) or 'none'}",
                name=name[:80],
            )
    return kind(**settings)


def check_declared(method: Any, field: dataclasses.Field[Any]) -> None:
    """Refuse a field that was not made by `public_field`."""
    if "check" not in field.metadata:
        raise ParameterError(
            f"{field.name} of {method.name} is not a declared public parameter; make the field "
            "with public_field",
            name=field.name,
        )


Value = int | str | None
"""Value of a parameter in a release file."""

_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}", re.ASCII)

# Limits of a release file, which its reader checks as well.
_MAX_TEXT = 100
_MAX_INTEGER = 2**62
_MAX_PARAMETERS = 100

# The constructor of `DeclaredParameters` requires it, so that only this module calls it.
_SEAL = object()


@final
class DeclaredParameters(Mapping[str, Value]):
    """Parameters that a release may state: each of them was declared public in code.

    An immutable mapping. `declared` makes one of a method's public fields, `with_picks` and
    `with_statement` add to it, and `parameters_from_file` is for what was published before.

    P1. Every name was declared before a record was read: by `public_field`, in ``picks`` of a
    method, or among the names of a statement.

    P2. Every value is exactly an int, a str or None, and fits the release file.

    P3. Nothing is replaced or removed, and nothing else can be added.
    """

    __slots__ = ("_picks", "_values")

    _picks: frozenset[str]
    _values: Mapping[str, Value]

    def __init__(self, seal: object, values: Mapping[str, Value], picks: Iterable[str]) -> None:
        if seal is not _SEAL:
            raise ParameterError(
                "parameters of a release are those that its method declares; take them from "
                "declared(method)"
            )
        # Refuse names and values that the reader of a release file would refuse.
        if len(values) > _MAX_PARAMETERS:
            raise ParameterError(f"a release states at most {_MAX_PARAMETERS} parameters")
        for name, value in values.items():
            if type(name) is not str or not _is_text(name):
                raise ParameterError("a name of a parameter must be a short printable text")
            if type(value) is str and not _is_text(value):
                raise ParameterError(
                    f"parameter {name} must be a printable text of 1 to {_MAX_TEXT} characters"
                )
            if type(value) is int and abs(value) > _MAX_INTEGER:
                raise ParameterError(f"parameter {name} must be between -2^62 and 2^62")
            if type(value) not in (int, str, type(None)):
                raise ParameterError(
                    f"parameter {name} must be an int, a str, a Decimal or None, got a "
                    f"{type(value).__name__}"
                )
        object.__setattr__(self, "_values", MappingProxyType(dict(values)))
        object.__setattr__(self, "_picks", frozenset(picks))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("declared parameters do not change")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("declared parameters do not change")

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<DeclaredParameters: {dict(self._values)}>"

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[dict[str, Value]]]:
        return parameters_from_file, (dict(self._values),)

    @property
    def picks(self) -> frozenset[str]:
        """Names under which the method may state what it picked."""
        return self._picks

    def with_picks(self, picked: Mapping[str, int | str]) -> Self:
        """Add what the method picked by answers that it paid for; names must be in its `picks`."""
        for name in picked:
            if name not in self._picks:
                raise ParameterError(
                    f"pick {str(name)[:100]!r} is not declared public; list it in picks of the "
                    "class of the method"
                )
        return self._with(picked)

    def with_statement(self, names: frozenset[str], values: Mapping[str, int | str]) -> Self:
        """Add what another part of the library states, under new `names` that it has declared."""
        for name in values:
            if name not in names:
                raise ParameterError(f"statement {str(name)[:100]!r} is not declared public")
            _check_name(name)
        return self._with(values)

    def _with(self, values: Mapping[str, int | str]) -> Self:
        """Add values under new names."""
        for name in values:
            if name in self._values:
                raise ParameterError(f"parameter {name} is stated twice; rename it in the method")
        return type(self)(_SEAL, {**self._values, **values}, self._picks)


def declared(method: Any) -> DeclaredParameters:
    """Public parameters of a method, of `public_field` only; shares as decimal text."""
    values = {}
    for field in dataclasses.fields(method):
        check_declared(method, field)
        _check_name(field.name)
        value = getattr(method, field.name)
        values[field.name] = str(value) if isinstance(value, Decimal) else value
    picks = tuple(getattr(type(method), "picks", ()))
    for name in picks:
        _check_name(name)
    return DeclaredParameters(_SEAL, values, picks)


def parameters_from_file(values: Mapping[str, Value]) -> DeclaredParameters:
    """Parameters read from a file, so published before; their method need not be installed."""
    return DeclaredParameters(_SEAL, values, ())


def _is_text(value: str) -> bool:
    """Whether a text fits a release file."""
    return 0 < len(value) <= _MAX_TEXT and value.isprintable()


def _check_name(name: object) -> None:
    """Refuse a name of a parameter that is not a short identifier in small ASCII letters."""
    if type(name) is not str or not _NAME.fullmatch(name):
        raise ParameterError(
            f"parameter name {str(name)[:100]!r} must be small letters, digits and underscores, at "
            "most 40, with a letter first"
        )


NO_PARAMETERS = parameters_from_file({})
"""Parameters of a release from given counts, which has no method."""
