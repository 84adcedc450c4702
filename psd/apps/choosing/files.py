"""Public files of a choice: candidates, tariffs, regions, and prices as multiples of one step."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd.apps.choosing.candidate_areas import CandidateAreas
from psd.errors import DomainError, InputDataError, ParameterError
from psd.publish.area import bounds_from_file
from psd.regions.files import RegionFiles, read_polygons, read_table
from psd.regions.hierarchy import RegionHierarchy
from psd.space.domain import Domain
from psd.space.regions import regions_table
from psd.space.shape_transforms import transform_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas


_PAIRS = (("lon", "lat"), ("longitude", "latitude"), ("x", "y"), ("easting", "northing"))

_WHAT = "candidates"


def read_catchments(
    path: Path, *, radius: float | None = None, crs: str = "EPSG:4326"
) -> CandidateAreas:
    """Read candidates from a public file: points with a radius in metres, or polygons."""
    table = read_table(path, _WHAT)
    if "id" not in table.columns:
        raise InputDataError(f"{_WHAT} {path} has no column id, which names each candidate")
    if table["id"].isna().any():
        raise ParameterError(f"{_WHAT} must have an id each, got an empty one")
    names = [str(name).strip() for name in table["id"]]
    # A CSV has two columns of coordinates or a column wkt, in the CRS. A vector format states its
    # own CRS and is transformed.
    points = None if hasattr(table, "geometry") else _coordinates(path, table)
    if points is None:
        import shapely

        shapes = _shapes(path, table, crs)
        if not len(shapes) or (shapely.get_type_id(shapes) != shapely.GeometryType.POINT).any():
            if radius is not None:
                raise ParameterError("radius must be left out for candidates that are polygons")
            return CandidateAreas(ids=tuple(names), crs=crs, polygons=shapes)
        points = np.stack([shapely.get_x(shapes), shapely.get_y(shapes)], axis=1)
    if radius is None:
        raise ParameterError(
            "radius must be given for candidates that are points; it is in metres, such as 2000"
        )
    return CandidateAreas.around(names, points, radius, crs)


def _coordinates(path: Path, table: pandas.DataFrame) -> Any:
    """Numbers in the columns of coordinates; None for a table with WKT."""
    import pandas as pd

    spelled = {str(name).strip().lower(): name for name in table.columns}
    if "wkt" in spelled:
        return None
    pair = next((pair for pair in _PAIRS if set(pair) <= set(spelled)), None)
    if pair is None:
        raise InputDataError(
            f"{_WHAT} {path} has no columns lon and lat, nor a column wkt; name its columns so"
        )
    columns = [
        pd.to_numeric(table[spelled[name]].astype(str).str.strip(), errors="coerce")
        for name in pair
    ]
    points = np.stack([column.to_numpy(np.float64) for column in columns], axis=1)
    is_finite = np.isfinite(points).all(axis=1)
    if not is_finite.all():
        line = int((~is_finite).argmax()) + 2
        raise InputDataError(f"{_WHAT} {path} line {line}: a coordinate is not a number")
    return points


def _shapes(path: Path, table: Any, crs: str) -> Any:
    if not hasattr(table, "geometry"):
        column = next(name for name in table.columns if str(name).strip().lower() == "wkt")
        texts = list(table[column])
        try:
            shapes = regions_table(texts, crs).array
        except ParameterError:
            shapes = []
        # Only a file with a fault is read text by text, up to the first that has it.
        for line, text in enumerate(texts if len(shapes) != len(texts) else [], 2):
            try:
                fault = "" if len(regions_table([text], crs)) == 1 else "it has several"
            except ParameterError as error:
                fault = str(error).removeprefix("region 1 ")
            if fault:
                raise InputDataError(
                    f"{_WHAT} {path} line {line}: its wkt cannot be read as one geometry ({fault})"
                )
        return np.asarray(shapes)
    if table.crs is None:
        raise DomainError(
            f"{_WHAT} {path} has no CRS; write it into the file, since it is never guessed"
        )
    return np.asarray(transform_table(table, crs, f"{_WHAT} {path}").geometry.array)


_ID = "tariff"
_PRICE = "price"


def read_tariffs(
    path: Path, regions: Sequence[str] | None = None
) -> tuple[tuple[str, ...], tuple[tuple[Decimal, ...], ...]]:
    """Read the names of tariffs, and their prices in the order of the regions, if there are any."""
    table = read_table(path, "tariffs")
    if _ID not in table.columns:
        raise InputDataError(f"tariffs {path} has no column {_ID}, which names each of them")
    columns = [_PRICE] if regions is None else [*regions]
    others = [str(name) for name in table.columns if name != _ID]
    missing = [name for name in columns if name not in others]
    surplus = [name for name in others if name not in columns]
    if missing or surplus:
        kind = "one column price" if regions is None else "one column for each region"
        other = "is another column" if regions is None else "is not a region"
        what = f"none for {missing[0][:80]!r}" if missing else f"{surplus[0][:80]!r}, which {other}"
        raise ParameterError(f"tariffs must have {kind}, got {what}; the list must cover all")
    ids = tuple(str(name).strip() for name in table[_ID])
    texts = zip(*(table[name] for name in columns), strict=True)
    rows = []
    for line, row in enumerate(texts, 2):
        try:
            prices = tuple(parse_price(str(text)) for text in row)
        except ParameterError:
            prices = (Decimal(0),)
        if 0 in prices:
            raise InputDataError(
                f"tariffs {path} line {line}: a price must be a number above 0, of at most 12 "
                "decimals"
            )
        rows.append(prices)
    return ids, tuple(rows)


def read_public_regions(
    path: str,
    *,
    crs: str = "EPSG:4326",
    bounds: tuple[float, float, float, float] | None = None,
    ids: str = "id",
) -> RegionHierarchy:
    """Read polygons of one level; records in none of them, or beyond the bounds, do not count."""
    if bounds is None:
        bounds = bounds_from_file(path, crs)
    domain = Domain(bounds=bounds, crs=crs, min_cell=None)
    return RegionFiles(paths=(path,), ids=(ids,), gaps="outside").read(domain)


def read_order(path: str, column: str, regions: RegionHierarchy) -> tuple[int, ...]:
    """Numbers of the regions in ascending order of a column of numbers, such as a distance."""
    table = read_polygons(Path(path), "regions")
    if column not in table.columns:
        raise InputDataError(f"regions {path} has no column {column}; name one with order=")
    number_of = {str(name): value for name, value in zip(table["id"], table[column], strict=True)}
    numbers = []
    for name in regions.levels[-1].ids:
        try:
            numbers.append(float(str(number_of.get(name))))
        except ValueError:
            numbers.append(np.nan)
        if not np.isfinite(numbers[-1]):
            raise ParameterError(
                f"order must be a column with a number for each region, got none for {name[:80]!r}"
            )
    values = np.array(numbers)
    ascending = np.argsort(values, kind="stable")
    if (np.diff(values[ascending]) == 0).any():
        raise ParameterError(
            f"order must be a column without ties, got two regions with one number in {column!r}"
        )
    return tuple(ascending.tolist())


MAX_PRICES = 1_000_000
"""Largest number of prices of a list."""

# Multiples of the step stay exact in scores of 2^32 bids.
_MAX_STEPS = 2**30

_MAX_DIGITS = 12

# Above all lists whose prices are multiples of a step of so many digits.
_LARGEST = Decimal(10) ** 30

_RULE = (
    "prices must be a range such as 0.5..100/0.5, or decimal numbers above 0 in ascending order "
    "such as 1,2.5,10"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Prices in ascending order, as multiples of their largest common step.

    Guarantees
    ----------
    - `levels` decides each bid by itself.

    Parameters
    ----------
    multiples : tuple of int
        Multiples of the step, ascending, above 0. Public.
    step : Decimal
        Largest number of which all prices are multiples. Public.

    Raises
    ------
    ParameterError
        If there is no price, or a multiple is not above the one before, or too large.

    Examples
    --------
    >>> prices = PriceList.parse("1,2.5,10")
    >>> prices.multiples, prices.step
    ((2, 5, 20), Decimal('0.5'))
    >>> prices.levels(np.array([0.0, 1.0, 3.0, 99.0, np.nan])).tolist()
    [0, 1, 2, 3, -1]
    """

    multiples: tuple[int, ...]
    step: Decimal

    def __post_init__(self) -> None:
        if not 1 <= len(self.multiples) <= MAX_PRICES:
            raise ParameterError(
                f"prices must be 1 to {MAX_PRICES:,}, got {len(self.multiples):,}; take a coarser "
                "step"
            )
        steps = np.array(self.multiples, np.float64)
        if steps[0] < 1 or (np.diff(steps) <= 0).any():
            raise ParameterError(f"{_RULE}; is one of them 0, given twice, or out of order?")
        if steps[-1] > _MAX_STEPS:
            raise ParameterError(
                f"prices must be at most {_MAX_STEPS:,} times their common step, {self.step:f}; "
                "round them"
            )

    @classmethod
    def parse(cls, text: str) -> PriceList:
        """Read ``FIRST..LAST/STEP``, or numbers with commas.

        Raises
        ------
        ParameterError
            If the text is neither, or a price is 0, given twice or out of order.
        """
        if ".." not in text:
            return cls.of(parse_price(part) for part in text.split(","))
        ends, _, step_text = text.partition("/")
        if not step_text:
            raise ParameterError(f"{_RULE}, got {text[:80]!r}; a range needs a step")
        first, last = (parse_price(part) for part in ends.split("..", 1))
        step = parse_price(step_text)
        if step == 0 or last < first:
            raise ParameterError(
                f"{_RULE}, got {text[:80]!r}; a range begins with its lowest price"
            )
        if (last - first) / step >= MAX_PRICES:
            raise ParameterError(
                f"prices must be at most {MAX_PRICES:,}, got {text[:80]!r}; take a coarser step"
            )
        return cls.of(first + step * i for i in range(int((last - first) / step) + 1))

    @classmethod
    def of(cls, prices: Iterable[Any]) -> PriceList:
        """List of decimal numbers, in ascending order.

        Raises
        ------
        ParameterError
            If a price is not a number, 0, given twice or out of order.
        """
        numbers = [
            price if isinstance(price, Decimal) else parse_price(str(price)) for price in prices
        ]
        scale = max((_decimals(number) for number in numbers), default=0)
        multiples = [int(number.scaleb(scale)) for number in numbers]
        common = math.gcd(*multiples) or 1
        step = Decimal(common).scaleb(-scale).normalize()
        if step == step.to_integral_value():  # without an exponent
            step = step.quantize(Decimal(1))
        return cls(multiples=tuple(n // common for n in multiples), step=step)

    def __len__(self) -> int:
        return len(self.multiples)

    @property
    def largest(self) -> int:
        """Largest price in steps."""
        return self.multiples[-1]

    def price(self, index: int) -> Decimal:
        """Price with a number, 0 for the lowest."""
        return self.multiples[index] * self.step

    def levels(self, bids: NDArray[np.float64]) -> NDArray[np.int32]:
        """Number of prices that each bid reaches; -1 for a bid that is not a finite number.

        A bid above all prices reaches all of them; a negative one reaches none.
        """
        step = Fraction(self.step)
        prices = np.array([float(multiple * step) for multiple in self.multiples])
        levels = np.searchsorted(prices, bids, side="right").astype(np.int32)
        levels[~np.isfinite(bids)] = -1
        return levels


def parse_price(text: str) -> Decimal:
    """Price in a text: a decimal number of at least 0."""
    try:
        number = Decimal(text.strip()) if text.isascii() and "_" not in text else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    is_price = number.is_finite() and 0 <= number <= _LARGEST
    if not (is_price and _decimals(number) <= _MAX_DIGITS):
        raise ParameterError(f"{_RULE}, got {text.strip()[:80]!r}")
    return number


def _decimals(number: Decimal) -> int:
    """Digits after the point."""
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0
