"""Find the columns of an input by their names: without case, and the usual pairs. Private side.

What is found depends on the names alone, never on a record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Literal

from psd._util.csv_header import match_name
from psd.errors import InputDataError
from psd.ingest.columns import USUAL_PAIRS, Columns
from psd.ingest.where import named_as

__all__ = [
    "check_roles",
    "closest_text",
    "coordinate_names",
    "may_be_values",
    "refuse_two_pairs",
    "resolve_columns",
    "unit_of_names",
]

_LISTED = 20

# Names of coordinates that are degrees, and those that are lengths, in small letters.
_OF_DEGREES = ("lon", "lat", "longitude", "latitude", "long", "lng", "latitud", "longitud")
_OF_LENGTHS = ("easting", "northing", "eastings", "northings", "east", "north")

# A first line with such a field may be a record: a number, a time or a point, a date with a month
# in letters, an address of e-mail, or text that is too long for a name. A comment may quote one.
_VALUES = re.compile(
    r"#|.*@|[+-]?[.,]?\d|.*\(\s*[+-]?[.,]?\d|[^\W\d]{3,9}\.? \d{1,2},? \d{4}", re.DOTALL
)
_LONGEST_NAME = 64


def resolve_columns(columns: Columns, names: Sequence[str]) -> Columns:
    """Replace names by those that an input has; a name that it lacks stays.

    Parameters
    ----------
    columns : Columns
        Public.
    names : sequence of str
        Of all columns of the input.

    Examples
    --------
    >>> list(resolve_columns(Columns(user="ID"), ["id", "Longitude", "Latitude"]))
    ['Longitude', 'Latitude', 'id']
    """
    x, y = (columns.x, columns.y) if columns.wkt is not None else _find_pair(columns, names)
    user, time, wkt, bid = (
        name if name is None else match_name(name, names) or name
        for name in (columns.user, columns.time, columns.wkt, columns.bid)
    )
    where = columns.where
    if columns.filter is not None:
        spelled = {name: match_name(name, names) or name for name in columns.filtered}
        where = str(named_as(columns.filter, spelled))
    return replace(columns, x=x, y=y, user=user, time=time, wkt=wkt, bid=bid, where=where)


def check_roles(what: str, columns: Columns) -> None:
    """Refuse a column with two roles, such as the user ``ID`` and the time ``id``.

    Raises
    ------
    InputDataError
    """
    if len(set(columns)) < len(list(columns)):
        raise InputDataError(
            f"x, y, user, time and bid must be different columns of {what}, got "
            f"{', '.join(columns)}"
        )


def _find_pair(columns: Columns, names: Sequence[str]) -> tuple[str, str]:
    """Coordinate columns: the named ones, else the only usual pair if the names are the default."""
    pair = _match_pair((columns.x, columns.y), names)
    if (columns.x, columns.y) == USUAL_PAIRS[0] and not set(pair) <= set(names):
        present = _other_pairs(names)
        if len(present) == 1:
            return present[0]
    return pair


def _other_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Usual pairs that an input has, without the default."""
    pairs = [_match_pair(other, names) for other in USUAL_PAIRS[1:]]
    return [other for other in pairs if set(other) <= set(names)]


def refuse_two_pairs(what: str, columns: Columns, names: Sequence[str]) -> None:
    """Refuse an input with two usual pairs of coordinates, if neither the default nor a choice.

    Raises
    ------
    InputDataError
    """
    is_open = columns.wkt is None and (columns.x, columns.y) == USUAL_PAIRS[0]
    if not is_open or set(USUAL_PAIRS[0]) <= set(names) or may_be_values(names):
        return
    pairs = [" and ".join(pair) for pair in _other_pairs(names)]
    if len(pairs) > 1:
        raise InputDataError(
            f"{what} has {len(pairs)} pairs of columns of coordinates: {', '.join(pairs)}; choose "
            "one with x=NAME and y=NAME"
        )


def _match_pair(pair: tuple[str, str], names: Sequence[str]) -> tuple[str, str]:
    """Both names as an input spells them."""
    x, y = (match_name(name, names) or name for name in pair)
    return x, y


def coordinate_names(columns: Columns, names: Sequence[str]) -> tuple[str, str] | None:
    """Columns of coordinates that would be read, as an input spells them; None if it lacks one."""
    if columns.wkt is not None or columns.geometry is not None:
        return None
    pair = _find_pair(columns, names)
    return pair if set(pair) <= set(names) else None


def unit_of_names(pair: tuple[str, str]) -> Literal["degrees", "metres"] | None:
    """Unit that two columns of coordinates are named for; None where both are possible.

    Examples
    --------
    >>> unit_of_names(("Longitude", "Latitude")), unit_of_names(("easting", "northing"))
    ('degrees', 'metres')
    >>> unit_of_names(("x", "y"))
    """
    plain = {name.strip().casefold() for name in pair}
    if plain <= {*_OF_DEGREES}:
        return "degrees"
    return "metres" if plain <= {*_OF_LENGTHS} else None


def may_be_values(names: Sequence[str]) -> bool:
    """Whether a first line may be a record, so that no message may show it.

    Examples
    --------
    >>> may_be_values(["lon", "lat"]), may_be_values(["u173", "2015-12-21", "1.5"])
    (False, True)
    """
    return any(_VALUES.match(name) or len(name) > _LONGEST_NAME for name in names) or "" in names


def closest_text(name: str, names: Sequence[str]) -> str:
    """List the columns that there are, and the closest one.

    Examples
    --------
    >>> closest_text("lat", ["lon", "latt"])
    "its columns are lon, latt; did you mean 'latt'?"
    """
    names = [name for name in names if name]
    listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    close = get_close_matches(
        name.casefold(), [other.casefold() for other in names], n=1, cutoff=0.5
    )
    spelled = [other for other in names if [other.casefold()] == close]
    return f"its columns are {listed}" + (f"; did you mean {spelled[0]!r}?" if spelled else "")
