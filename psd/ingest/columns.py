"""Names of the columns to read, and how text is read. Public values, private side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from psd._util.csv_header import DELIMITERS
from psd._util.fields import choice, integer_between
from psd.errors import ParameterError
from psd.ingest.where import Predicate, columns_of, parse_where
from psd.space.crs import check_plane_crs

__all__ = ["USUAL_PAIRS", "Columns"]

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
        `psd.ingest.strata`. A value that is not a finite number is missing; it never stops a
        reading.
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
    """

    x: str = "lon"
    y: str = "lat"
    user: str | None = None
    time: str | None = None
    bid: str | None = None
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
    def filter(self) -> Predicate | None:
        """The filter of the records."""
        return None if self.where is None else parse_where(self.where)

    @property
    def filtered(self) -> list[str]:
        """Columns that the filter reads; they may have other roles too."""
        return [] if self.filter is None else [*columns_of(self.filter)]

    @property
    def needed(self) -> list[str]:
        """All columns that an input must have, each once, if its points are in columns."""
        return list(dict.fromkeys([*self, *self.filtered]))
