"""Regions that are map tiles of EPSG:3857, by their quadkeys or by zoom, column and row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Self

from psd._util.instances import check_choice
from psd.errors import DomainError, ParameterError, ReleaseFormatError
from psd.regions.hierarchy import MAX_NODES, RegionHierarchy, RegionLevel
from psd.regions.kinds._aligned import (
    AlignedCells,
    AlignedGrid,
    NumberedLevels,
    has_room,
    kept_cells,
    read_cells,
)
from psd.space.domain import Domain

if TYPE_CHECKING:
    import pyarrow as pa

    from psd.space.boundary import Boundary


MAX_ZOOM = 24
"""The finest zoom: tiles of 2.4 metres at the equator."""

# Half the side of the world in EPSG:3857: pi times the radius of the sphere.
_HALF = Fraction(20037508.342789244)

_CRS = "EPSG:3857"

_LEVELS = NumberedLevels(
    argument="tiles", noun="zooms", example="8..14 or 8,11,14", largest=MAX_ZOOM
)

_CODES = ("quadkey", "xyz")


@dataclass(frozen=True, kw_only=True, eq=False)
class Tiles(AlignedCells):
    """Tiles of several zooms; each is divided into four at the next."""

    kind: ClassVar[str] = "tiles"
    zooms: tuple[int, ...]  # of each level, top first
    codes: str  # ids such as ``132110321`` or ``9/436/198``

    def parameters(self) -> dict[str, Any]:
        """See `RegionGeometry.parameters`."""
        return {"zooms": list(self.zooms), "codes": self.codes}

    @classmethod
    def read(
        cls,
        domain: Domain,
        names: tuple[str, ...],
        parameters: Mapping[str, Any],
        table: pa.Table | None,
    ) -> tuple[tuple[RegionLevel, ...], Self]:
        """See `RegionGeometry.read`."""
        if set(parameters) != {"zooms", "codes"} or parameters["codes"] not in _CODES:
            raise ReleaseFormatError("tiles must have zooms and codes")
        zooms = parameters["zooms"]
        if not isinstance(zooms, list) or not all(type(zoom) is int for zoom in zooms):
            raise ReleaseFormatError("tiles must have zooms that are integers")
        if tuple(_level_name(zoom) for zoom in zooms) != names:
            raise ReleaseFormatError("levels of tiles must be named by their zooms")
        _LEVELS.check(zooms)
        _check_crs(domain)
        cells = read_cells(_grid(domain, zooms[-1]), table)
        codes = parameters["codes"]
        return cls.from_zooms(domain, tuple(zooms), codes, cells, restricted=table is not None)

    @classmethod
    def from_zooms(
        cls, domain: Domain, zooms: tuple[int, ...], codes: str, cells: Any, *, restricted: bool
    ) -> tuple[tuple[RegionLevel, ...], Self]:
        """Levels and tiles of zooms."""
        return cls.in_levels(
            _grid(domain, zooms[-1]),
            cells,
            [2 ** (zooms[-1] - zoom) for zoom in zooms],
            [_level_name(zoom) for zoom in zooms],
            [_code(zoom, codes) for zoom in zooms],
            restricted=restricted,
            zooms=zooms,
            codes=codes,
        )


kind = Tiles


def hierarchy_from_tiles(
    zooms: str | tuple[int, ...],
    domain: Domain,
    *,
    codes: str = "quadkey",
    boundary: Boundary | None = None,
) -> RegionHierarchy:
    """Make map tiles of zooms ``"8..14"`` or ``"8,11"``: those of the bounds or of a boundary."""
    values = _LEVELS.parse(zooms) if isinstance(zooms, str) else tuple(zooms)
    _LEVELS.check(values)
    _check_crs(domain)
    check_choice("codes", codes, _CODES)
    cells = kept_cells(_grid(domain, values[-1]), boundary)
    # Of a boundary, tiles of the levels above are counted once they are laid out.
    counts = [_grid(domain, zoom).counts for zoom in values[:-1]] if boundary is None else []
    above = sum(across * up for across, up in counts)
    if cells is None or len(cells[0]) + above > MAX_NODES:
        coarser = range(values[-1] - 1, 0, -1)
        finest = next((z for z in coarser if has_room(_grid(domain, z), boundary)), 0)
        raise ParameterError(
            f"tiles must be at most {MAX_NODES:,} in all levels, got more of zoom {values[-1]}; "
            f"the finest zoom that fits is {finest}"
        )
    levels, geometry = Tiles.from_zooms(
        domain, values, codes, cells, restricted=boundary is not None
    )
    return RegionHierarchy(domain=domain, levels=levels, geometry=geometry)


hierarchy = hierarchy_from_tiles


def _check_crs(domain: Domain) -> None:
    """Refuse bounds that tiles do not cover."""
    if domain.crs != _CRS:
        raise DomainError(f"tiles need bounds in {_CRS}, got {domain.crs[:80]}")
    limit = float(_HALF)
    if not all(-limit <= value <= limit for value in domain.bounds):
        raise DomainError(f"bounds must lie within {limit:.2f} of 0 for tiles")


def _grid(domain: Domain, zoom: int) -> AlignedGrid:
    """Lines of the tiles of a zoom; rows are counted from the south."""
    return AlignedGrid(domain=domain, origin=(-_HALF, -_HALF), size=2 * _HALF / 2**zoom)


def _level_name(zoom: int) -> str:
    """Name of a level."""
    return f"zoom {zoom}"


def _code(zoom: int, codes: str) -> Callable[[int, int], str]:
    """Codes of tiles, whose rows are counted from the north."""

    def xyz(column: int, row: int) -> str:
        return f"{zoom}/{column}/{2**zoom - 1 - row}"

    def quadkey(column: int, row: int) -> str:
        north = 2**zoom - 1 - row
        digits = ((column >> bit & 1) + 2 * (north >> bit & 1) for bit in range(zoom - 1, -1, -1))
        return "".join(map(str, digits)) or "0"

    return xyz if codes == "xyz" else quadkey
