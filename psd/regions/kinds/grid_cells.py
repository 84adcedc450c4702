"""Regions that are squares of a national or statistical grid, such as 1 km in EPSG:3035."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from psd.errors import ParameterError, ReleaseFormatError
from psd.regions.hierarchy import MAX_NODES, RegionHierarchy, RegionLevel
from psd.regions.kinds._aligned import (
    AlignedCells,
    AlignedGrid,
    has_room,
    kept_cells,
    read_cells,
)
from psd.space.crs import parse_crs
from psd.space.domain import Domain

if TYPE_CHECKING:
    import pyarrow as pa

    from psd.space.boundary import Boundary


_SIZE = re.compile(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(km|m|)\s*", re.ASCII)

_METRES = {"km": 1000, "m": 1}

_MAX_LEVELS = 20

# Sizes that are proposed where a grid has too many cells, times powers of ten.
_ROUND = (Fraction(1), Fraction(2), Fraction(5, 2), Fraction(5))


@dataclass(frozen=True, kw_only=True, eq=False)
class GridCells(AlignedCells):
    """Squares whose edges are multiples of their size in the CRS of the release."""

    kind: ClassVar[str] = "grid-cells"
    sizes: tuple[Fraction, ...]  # of each level in units of the CRS, top first

    def parameters(self) -> dict[str, Any]:
        """See `RegionGeometry.parameters`."""
        return {"sizes": [_text(size) for size in self.sizes]}

    @classmethod
    def read(
        cls,
        domain: Domain,
        names: tuple[str, ...],
        parameters: Mapping[str, Any],
        table: pa.Table | None,
    ) -> tuple[tuple[RegionLevel, ...], Self]:
        """See `RegionGeometry.read`."""
        texts = parameters.get("sizes")
        if set(parameters) != {"sizes"} or not isinstance(texts, list) or len(texts) != len(names):
            raise ReleaseFormatError("grid cells must have the size of each level")
        sizes = tuple(_parse_size(text, domain) for text in texts)
        if tuple(_label(size, domain) for size in sizes) != names:
            raise ReleaseFormatError("levels of grid cells must be named by their sizes")
        _check_nested(sizes)
        cells = read_cells(_grid(domain, sizes[-1]), table)
        return cls.from_sizes(domain, sizes, cells, restricted=table is not None)

    @classmethod
    def from_sizes(
        cls, domain: Domain, sizes: tuple[Fraction, ...], cells: Any, *, restricted: bool
    ) -> tuple[tuple[RegionLevel, ...], Self]:
        """Levels and cells of sizes."""
        return cls.in_levels(
            _grid(domain, sizes[-1]),
            cells,
            [int(size / sizes[-1]) for size in sizes],
            [_label(size, domain) for size in sizes],
            [_code(size, domain) for size in sizes],
            restricted=restricted,
            sizes=sizes,
        )


kind = GridCells


def hierarchy_from_grid(
    sizes: str | Sequence[str], domain: Domain, *, boundary: Boundary | None = None
) -> RegionHierarchy:
    """Make squares of sizes such as ``"1km,10km,100km"``: those of the bounds or of a boundary."""
    values = parse_sizes(sizes, domain)
    cells = kept_cells(_grid(domain, values[-1]), boundary)
    if boundary is None and len(values) > 1:  # the levels above have all cells of the bounds
        counts = [_grid(domain, size).counts for size in values]
        cells = cells if sum(across * up for across, up in counts) <= MAX_NODES else None
    if cells is None:
        sizes_above = _coarser(values[-1])
        finest = next((s for s in sizes_above if has_room(_grid(domain, s), boundary)), 0)
        raise ParameterError(
            f"grid-cells must be at most {MAX_NODES:,} cells in all levels, got more of "
            f"{_label(values[-1], domain)}; the finest that fits is "
            f"{_label(Fraction(finest), domain)}"
        )
    levels, geometry = GridCells.from_sizes(domain, values, cells, restricted=boundary is not None)
    return RegionHierarchy(domain=domain, levels=levels, geometry=geometry)


hierarchy = hierarchy_from_grid


def parse_sizes(sizes: str | Sequence[str], domain: Domain) -> tuple[Fraction, ...]:
    """Sizes of levels in units of the CRS, the largest first."""
    texts = sizes.split(",") if isinstance(sizes, str) else list(sizes)
    if not 1 <= len(texts) <= _MAX_LEVELS:
        raise ParameterError(f"grid-cells must be 1 to {_MAX_LEVELS} sizes, got {len(texts):,}")
    values = tuple(sorted((_parse_size(text, domain) for text in texts), reverse=True))
    _check_nested(values)
    return values


def _check_nested(sizes: tuple[Fraction, ...]) -> None:
    """Refuse sizes that do not divide the next larger ones."""
    for larger, smaller in itertools.pairwise(sizes):
        if larger == smaller or (larger / smaller).denominator != 1:
            raise ParameterError(
                f"sizes of grid-cells must divide the next larger one, got {_text(smaller)} and "
                f"{_text(larger)}"
            )


def _parse_size(text: object, domain: Domain) -> Fraction:
    """Size in units of the CRS."""
    match = _SIZE.fullmatch(str(text))
    if match is None or not Fraction(match[1]):
        raise ParameterError(
            f"grid-cells must be lengths such as 1km or 250m, got {str(text)[:80]!r}"
        )
    size, metres = Fraction(match[1]), _metres_per_unit(domain)
    if not match[2]:
        return size
    if metres is None:
        raise ParameterError(
            f"grid-cells must be in units of {domain.crs[:40]}, which are not metres, got "
            f"{str(text)[:80]!r}; leave the unit out, or take bounds in a CRS in metres"
        )
    return size * _METRES[match[2]] / metres


def _metres_per_unit(domain: Domain) -> Fraction | None:
    """Length of the unit of a projected CRS; None for degrees and for units that are not exact."""
    axes = parse_crs(domain.crs).axis_info
    factor = axes[0].unit_conversion_factor if axes and not domain.geographic else 0
    return Fraction(int(factor)) if factor in (1, 1000) else None


def _grid(domain: Domain, size: Fraction) -> AlignedGrid:
    """Lines of a size, one of them through 0 of the CRS along each axis."""
    return AlignedGrid(domain=domain, origin=(Fraction(0), Fraction(0)), size=size)


def _coarser(size: Fraction) -> Iterator[Fraction]:
    """Round sizes above a size."""
    power = Fraction(10) ** (len(str(int(size))) - 1 if size >= 1 else -9)
    for _ in range(30):
        for step in _ROUND:
            if step * power > size:
                yield step * power
        power *= 10


def _text(size: Fraction) -> str:
    """Decimal text of a size."""
    decimal = Decimal(size.numerator) / Decimal(size.denominator)
    return f"{decimal.normalize():f}"


def _label(size: Fraction, domain: Domain) -> str:
    """Size with its unit, such as ``1km``: the name of a level."""
    metres = _metres_per_unit(domain)
    if metres is None:
        return _text(size)
    length = size * metres
    return f"{_text(length / 1000)}km" if length >= 1000 else f"{_text(length)}m"


def _code(size: Fraction, domain: Domain) -> Callable[[int, int], str]:
    """Codes of cells by their south-west corners."""
    # As INSPIRE has them: Geographical Grid Systems, D2.8.I.2, 4.2.1.
    name = domain.crs.rpartition(":")[2] if len(domain.crs) < 20 else "local"
    metres = _metres_per_unit(domain)
    length = f"{_text(size)}" if metres is None else f"{_text(size * metres)}m"

    def code(column: int, row: int) -> str:
        return f"CRS{name}RES{length}N{_text(row * size)}E{_text(column * size)}"

    return code
