"""Columns to read: their names, how text is read, and what a ledger registers of it. Private side.

`Columns` is public: columns are found by name, never by a record. A ledger registers a reading, and
a tally states it for each part: `Columns`, and the step to which coordinates are rounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from typing import Literal, TypeAlias

from psd._util.column_kinds import DELIMITERS, match_name
from psd._util.declared_parameters import choice, integer_between
from psd._util.instances import shown
from psd.errors import InputDataError, ParameterError
from psd.ingest.user_ids import ID_RULES
from psd.ingest.where import Predicate, columns_of, named_as, parse_where
from psd.space.crs import check_plane_crs

__all__ = ["Columns", "check_roles", "resolve_columns"]

USUAL_PAIRS = (("lon", "lat"), ("longitude", "latitude"), ("x", "y"), ("easting", "northing"))
"""Names of coordinate columns; the first pair is the default."""

# Other names of the encodings, as programs and Python call them.
_ENCODINGS = {
    **dict.fromkeys(("cp1252", "cp-1252", "windows1252", "win-1252", "ansi"), "windows-1252"),
    # Web browsers read these names so, too: what is called Latin-1 has mostly the euro sign, or
    # quotation marks, where Latin-1 itself has control characters.
    **dict.fromkeys(("latin-1", "latin1", "l1", "iso-8859-1", "iso8859-1"), "windows-1252"),
    **dict.fromkeys(("utf8", "utf-8-sig", "ascii", "us-ascii"), "utf-8"),
    "utf16": "utf-16",
    **{name: name for name in ("utf-8", "utf-16", "windows-1252")},
}

_MAX_SKIPPED = 1_000_000

_CHECKS = {
    "delimiter": choice("auto", *DELIMITERS),
    "decimal": choice(".", ","),
    "encoding": choice("auto", "utf-8", "utf-16", "windows-1252"),
    "skip_rows": integer_between(0, _MAX_SKIPPED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Names of the columns to read, and how text files are read.

    Parameters
    ----------
    x, y : str
        Coordinates in the CRS of the domain; not used if the input has geometries. If an input has
        not both columns of the default, lon and lat, the only one of the pairs longitude and
        latitude, x and y, easting and northing that it has is read. The case of letters matters
        only where names differ in nothing else.
    user : str, optional
        Opaque id of the person or device.
    time : str, optional
        Time of the record.
    bid : str, optional
        Number that the record bids or is willing to pay, by which strata may count it, see
        `psd.ingest.tally`. A value that is not a finite number is missing; it never stops a
        reading.
    category : str, optional
        Label of the record, a text or a whole number, see `psd.space.categories`. A missing one is
        a label that is not listed.
    values : tuple of str
        Numbers of the records whose sums and means a release has, see `psd.privacy.values`.
    time_zone : str
        Zone to whose local time all times are converted; times without a zone are local.
    geometry : str, optional
        Points, instead of x and y; needed if an input has several such columns.
    layer : str, optional
        Layer of a file, or sheet of a workbook; needed if there are several.
    wkt : str, optional
        Column of text with points such as ``POINT (127.01 37.5)``, instead of x and y, in WKT,
        EWKT or hexadecimal WKB.
    delimiter : {"auto", ",", ";", "tab", "|"}
        What separates the fields of CSV. With "auto", the first of comma, semicolon and tab with
        which the header line has the named columns; no other line is looked at.
    decimal : {".", ","}
        Decimal sign of coordinates in text.
    encoding : {"auto", "utf-8", "utf-16", "windows-1252"}
        Encoding of CSV. "auto" is UTF-16 where the file begins with its byte order mark, else
        UTF-8. Other names of these, such as cp1252, are accepted, and latin-1 and iso-8859-1 mean
        windows-1252.
    input_crs : str, optional
        CRS of x and y, or of points in WKT, if it is not that of the domain; also of geometries
        that state none. Kept in its canonical text. A record that the transformation does not
        reach is outside.
    skip_rows : int
        Lines of CSV, or rows of a sheet, above the header.
    where : str, optional
        Filter of the records by their own columns, such as ``diagnosis = 'asthma'``, see
        `psd.ingest.where`; kept in its canonical text. Records for which it is not true are left
        out before anything is bounded or counted.
    memory : int, optional
        Limit of the memory of the reader in bytes.

    Raises
    ------
    ParameterError
        If a value is not one of those listed, or points are named in two ways.
    DomainError
        If the CRS is unknown.

    Examples
    --------
    >>> from psd import Columns
    >>> Columns(x="east", y="north", user="card", input_crs="EPSG:5179").user
    'card'
    """

    x: str = "lon"
    y: str = "lat"
    user: str | None = None
    time: str | None = None
    bid: str | None = None
    category: str | None = None
    values: tuple[str, ...] = ()
    time_zone: str = "UTC"
    geometry: str | None = None
    layer: str | None = None
    wkt: str | None = None
    delimiter: str = "auto"
    decimal: str = "."
    encoding: str = "auto"
    skip_rows: int = 0
    input_crs: str | None = None
    where: str | None = None
    memory: int | None = None

    def __post_init__(self) -> None:
        """Check how text is read."""
        names: object = self.values
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            raise ParameterError(
                f"values must be names of columns, such as ('fare',), got {shown(names)}"
            )
        object.__setattr__(self, "values", tuple(names))
        encoding = _ENCODINGS.get(str(self.encoding).lower().replace("_", "-"), self.encoding)
        object.__setattr__(self, "encoding", encoding)
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        if self.input_crs is not None:
            crs, _ = check_plane_crs(str(self.input_crs), "input_crs")
            object.__setattr__(self, "input_crs", crs)
        if self.where is not None:
            object.__setattr__(self, "where", str(parse_where(self.where)))
        if self.wkt is not None and (self.x, self.y) != USUAL_PAIRS[0]:
            raise ParameterError(
                f"x and y must be left out with wkt, got {self.x[:80]!r} and {self.y[:80]!r}; the "
                "points are in one column, or in two"
            )
        if self.wkt is not None and self.geometry is not None:
            raise ParameterError(
                "wkt must be left out with geometry=; a column of points is either text or "
                "geometries"
            )

    def __iter__(self) -> Iterator[str]:
        points = (self.x, self.y) if self.wkt is None else (self.wkt,)
        yield from points
        yield from self.others

    @property
    def others(self) -> list[str]:
        """Columns beside those of the points, and of the filter."""
        return [name for name in (self.user, self.time, self.bid) if name is not None]

    @property
    def roles(self) -> list[str]:
        """Columns that must be different ones, values aside."""
        return [*self, *([] if self.category is None else [self.category])]

    @property
    def filter(self) -> Predicate | None:
        """The filter of the records."""
        return None if self.where is None else parse_where(self.where)

    @property
    def filtered(self) -> list[str]:
        """Columns that are read as they are: of the filter, of any role, category and values."""
        compared = [] if self.filter is None else [*columns_of(self.filter)]
        labels = [] if self.category is None else [self.category]
        return list(dict.fromkeys([*compared, *labels, *self.values]))

    @property
    def needed(self) -> list[str]:
        """All columns that an input must have, each once, if its points are in columns."""
        return list(dict.fromkeys([*self, *self.filtered]))


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
    """Replace names by those that an input has, in any case; a name that it lacks stays."""
    x, y = (columns.x, columns.y) if columns.wkt is not None else _find_pair(columns, names)
    user, time, wkt, bid, category = (
        name if name is None else match_name(name, names) or name
        for name in (columns.user, columns.time, columns.wkt, columns.bid, columns.category)
    )
    where = columns.where
    if columns.filter is not None:
        compared = columns_of(columns.filter)
        spelled = {name: match_name(name, names) or name for name in compared}
        where = str(named_as(columns.filter, spelled))
    values = tuple(match_name(name, names) or name for name in columns.values)
    columns = replace(columns, user=user, time=time, wkt=wkt, bid=bid, category=category)
    return replace(columns, x=x, y=y, where=where, values=values)


def check_roles(what: str, columns: Columns) -> None:
    """Refuse a column with two roles, such as the user ``ID`` and the time ``id``."""
    named = [*columns.roles, *columns.values]
    if twice := [name for name in dict.fromkeys(named) if named.count(name) > 1]:
        raise InputDataError(
            f"x, y, user, time, bid, category and values must be different columns of {what}, got "
            f"{', '.join(named)}; {' and '.join(twice)} is named twice"
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
    """Refuse an input with two usual pairs of coordinates, if neither the default nor a choice."""
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
    """Unit that two columns of coordinates are named for; None where both are possible: x, y."""
    plain = {name.strip().casefold() for name in pair}
    if plain <= {*_OF_DEGREES}:
        return "degrees"
    return "metres" if plain <= {*_OF_LENGTHS} else None


def may_be_values(names: Sequence[str]) -> bool:
    """Whether a first line may be a record, so that no message may show it."""
    return any(_VALUES.match(name) or len(name) > _LONGEST_NAME for name in names) or "" in names


def closest_text(name: str, names: Sequence[str]) -> str:
    """List the columns that there are, and the closest one, as "did you mean 'latt'?"."""
    names = [name for name in names if name]
    listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    close = get_close_matches(
        name.casefold(), [other.casefold() for other in names], n=1, cutoff=0.5
    )
    spelled = [other for other in names if [other.casefold()] == close]
    return f"its columns are {listed}" + (f"; did you mean {spelled[0]!r}?" if spelled else "")


Reading: TypeAlias = Mapping[str, str]
"""Keys are fields of `Columns`, ``ids``, the rules by which ids are normalised, and
``coordinate_resolution``. Public."""

# Fields that decide neither the position, nor the time, nor the user of a record. No bid stops a
# reading, so which column has them tells nothing of a record.
_UNSTATED = ("memory", "bid")

# Fields that are stated even with their default.
_STATED = ("x", "y")

_ORDER = (*_STATED, "user", "ids", "time", "time_zone")

_LONGEST = 1000


def reading_of(columns: Columns, coordinate_resolution: str | None = None) -> dict[str, str]:
    """Describe how columns are read, and to which step their coordinates are rounded."""
    # Without defaults, but of x and y: so a description that is older than a field equals one with
    # its default. "fare, tip" must not pass for the columns fare and tip: a build would not pay for
    # the bit that it can be read.
    reading = {
        field.name: (
            ", ".join(name.replace("\\", "\\\\").replace(",", "\\,") for name in value)
            if isinstance(value, tuple)
            else str(value)
        )
        for field in fields(columns)
        for value in [getattr(columns, field.name)]
        if field.name not in _UNSTATED and (field.name in _STATED or value != field.default)
    }
    # A filter may read times too.
    if columns.time is None and columns.where is None:
        reading.pop("time_zone", None)
    if columns.user is not None:
        reading["ids"] = ID_RULES
    if coordinate_resolution is not None:
        reading["coordinate_resolution"] = coordinate_resolution
    return reading


def is_reading(value: object) -> bool:
    """Whether a value of JSON describes a reading: texts by keys, with x and y."""
    return (
        isinstance(value, dict)
        and all(isinstance(text, str) for item in value.items() for text in item)
        and all(0 < len(text) <= _LONGEST for item in value.items() for text in item)
        and all(key in value for key in _STATED)
    )


def reading_text(reading: Reading) -> str:
    """Describe a reading in one line."""
    first = [key for key in _ORDER if key in reading]
    keys = [*first, *sorted(reading.keys() - set(first))]
    return " ".join(f"{key}={reading[key]}" for key in keys)
