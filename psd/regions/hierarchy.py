"""Hierarchies of public regions: levels of names, each with a parent; see `psd.regions.kinds`."""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._util.arrays import Floats, Integers, from_arrow
from psd._util.plugins import load_member
from psd.errors import ParameterError, ReleaseFormatError
from psd.space.domain import Domain
from psd.space.even_odd import CertainCells
from psd.space.regions import check_kinds, check_sizes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["RegionHierarchy", "RegionLevel", "id_texts"]


KINDS = "psd.regions.kinds"
"""Family of the kinds of regions, see `psd._util.plugins`."""

MAX_NODES = 2**22
"""Limit of the regions of all levels together."""

NO_REGION = -1
"""Index of the region of a point that is in none."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionLevel:
    """Regions of one level. P1. Parents never decrease: the children of a region are neighbours."""

    name: str  # such as ``"ward"``
    ids: Sequence[str]  # unique within the level
    # (n,) int32; index of the parent in the level above; 0 in the first level.
    parent: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.parent)

    def __repr__(self) -> str:
        return f"<RegionLevel {self.name}: {len(self):,} regions>"


class RegionGeometry(ABC):
    """Where the lowest regions of a hierarchy are: the base of all kinds.

    P2. It is made of public input alone, and so is every answer but that of `assign`.
    P3. `assign` decides each record by its own coordinates, and `meets` is true for each box in
    which a record of the region can lie.
    """

    kind: ClassVar[str]  # name in the family `KINDS`
    domain: Domain  # of the release

    @abstractmethod
    def __len__(self) -> int:
        """Number of regions."""

    @abstractmethod
    def assign(self, x: Floats, y: Floats) -> NDArray[np.int32]:
        """See `RegionHierarchy.assign`."""

    def certain_cells(self) -> CertainCells | None:
        """See `RegionHierarchy.certain_cells`."""
        return None

    @abstractmethod
    def boxes(self) -> Integers:
        """See `RegionHierarchy.boxes`."""

    @abstractmethod
    def meets(self, region: Integers, boxes: Integers) -> NDArray[np.bool_]:
        """See `RegionHierarchy.meets`."""

    @abstractmethod
    def clipped_area(self, region: Integers, boxes: Integers) -> Floats:
        """See `RegionHierarchy.clipped_area`."""

    @abstractmethod
    def shapes(self, region: Integers) -> NDArray[np.object_]:
        """Polygons of regions, in the CRS of the domain, clipped to its bounds."""

    @abstractmethod
    def part_outside(self) -> Floats:
        """See `RegionHierarchy.part_outside`."""

    def gap(self) -> Any:
        """See `RegionHierarchy.gap`; cells of grids leave none."""
        return None

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """Values for JSON, from which `read` makes the same regions with the table."""

    @abstractmethod
    def to_table(self, levels: tuple[RegionLevel, ...]) -> pa.Table | None:
        """Rows of a release for levels and regions; None if the parameters are enough."""

    @classmethod
    @abstractmethod
    def read(
        cls,
        domain: Domain,
        names: tuple[str, ...],
        parameters: Mapping[str, Any],
        table: pa.Table | None,
    ) -> tuple[tuple[RegionLevel, ...], Self]:
        """Read levels and regions of a release; whatever cannot be one is refused."""


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionHierarchy:
    """Regions in levels over a domain.

    Guarantees
    ----------
    - A record is in at most one lowest region, and in the regions above it: `assign` is a public
      function of this record's own coordinates. So a record is on one path from the root, and no
      other record decides which.

    Parameters
    ----------
    domain : Domain
        Of the release. Public.
    levels : tuple of RegionLevel
        Top first, lowest last. Public.
    geometry : RegionGeometry
        Where the lowest regions are. Public.

    Raises
    ------
    ParameterError
        If there is no level, there are more than 2^22 regions, or a level does not fit the one
        above.

    Examples
    --------
    >>> import geopandas, shapely
    >>> from psd.regions.polygon_hierarchy import hierarchy_from_polygons
    >>> shapes = [shapely.box(0, 0, 1, 2), shapely.box(1, 0, 2, 2)]
    >>> table = geopandas.GeoDataFrame({"ward": ["a", "b"]}, geometry=shapes, crs=4326)
    >>> wards = hierarchy_from_polygons(table, Domain(bounds=(0, 0, 2, 2)), ids="ward")
    >>> wards.assign(np.array([0.5, 1.5]), np.array([1.0, 1.0])).tolist()
    [0, 1]
    """

    domain: Domain
    levels: tuple[RegionLevel, ...]
    geometry: RegionGeometry

    def __post_init__(self) -> None:
        """Check the levels."""
        if not self.levels:
            raise ParameterError("regions must have at least one level")
        if sum(map(len, self.levels)) > MAX_NODES:
            raise ParameterError(f"regions of all levels must be at most {MAX_NODES:,}")
        # The root is the one node above the first level.
        above = 1
        for level in self.levels:
            # Parents never decrease, and each region above has a child.
            steps = np.diff(level.parent, prepend=-1, append=above)
            if len(level.ids) != len(level) or not np.isin(steps, (0, 1)).all():
                raise ParameterError(f"level {level.name} does not fit the level above it")
            above = len(level)
        if len(self.geometry) != above:
            raise ParameterError(f"regions must be {above:,}, as in the lowest level")

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(level):,} {level.name}" for level in self.levels)
        return f"<RegionHierarchy of {self.kind}: {sizes}>"

    @property
    def kind(self) -> str:
        """Name of the kind of regions."""
        return self.geometry.kind

    @property
    def size(self) -> int:
        """Number of lowest regions."""
        return len(self.geometry)

    @cached_property
    def boxes(self) -> Integers:
        """Bounding box of each lowest region in lattice cells, half-open; shape (size, 4)."""
        return self.geometry.boxes()

    def assign(self, x: Floats, y: Floats, value: Floats | None = None, /) -> NDArray[np.int32]:
        """Index of the lowest region of each point, -1 for none.

        Parameters
        ----------
        x, y : ndarray, shape (n,), float64
            In the CRS of the domain, inside its bounds. Private. With a coordinate resolution the
            rounded coordinates decide, as in `psd.space.boundary`.
        value : ndarray, optional
            Not read; regions are strata, see `psd.ingest.tally`.
        """
        return self.geometry.assign(x, y)

    def certain_cells(self) -> CertainCells | None:
        """Cells of a raster that decide for most points; None if a kind has no raster. Public."""
        return self.geometry.certain_cells()

    def meets(self, region: ArrayLike, boxes: Integers) -> NDArray[np.bool_]:
        """Whether each box may hold a record of its region.

        Guarantees
        ----------
        - It is false only if no record that `assign` gives to the region lies in the box.

        Parameters
        ----------
        region : array_like of int, shape (n,) or a single number
            Lowest region of each box.
        boxes : ndarray, shape (n, 4), int
            Lattice boxes, half-open, each with a cell.
        """
        return self.geometry.meets(*_pairs(region, boxes))

    def clipped_area(self, region: ArrayLike, boxes: Integers | Floats) -> Floats:
        """Area of each box inside its region, in lattice cells; see `meets`.

        Sides of these boxes may lie between lattice lines.
        """
        return self.geometry.clipped_area(*_pairs(region, boxes, np.asarray(boxes).dtype))

    def shapes(self, level: int = -1) -> NDArray[np.object_]:
        """Polygons of a level, in the CRS of the domain, clipped to its bounds.

        Parameters
        ----------
        level : int
            Index of the level. Above the lowest one, polygons are unions.
        """
        import shapely

        # Those of higher levels are unions of the lowest, which are the only ones that are kept.
        shapes = self.geometry.shapes(np.arange(self.size))
        ancestor = self.ancestors(level)
        if len(self.levels[level]) == len(shapes):
            return shapes
        # Parents never decrease, so the parts of a region follow each other.
        ends = np.flatnonzero(np.diff(ancestor)) + 1
        unions = [shapely.union_all(part) for part in np.split(shapes, ends)]
        return np.array(unions, dtype=object)

    def ancestors(self, level: int) -> Integers:
        """Index of the region of a level in which each lowest region is."""
        ancestor = np.arange(self.size)
        for lower in reversed(self.levels[level:][1:]):
            ancestor = lower.parent[ancestor].astype(np.int64)
        return ancestor

    @cached_property
    def part_outside(self) -> Floats:
        """Share of the area of each lowest region beyond the bounds, where no record is."""
        return self.geometry.part_outside()

    @cached_property
    def gap(self) -> Any:
        """Part of the bounds in no region, where nothing was counted; None without one."""
        return self.geometry.gap()

    def parameters(self) -> dict[str, Any]:
        """Values for JSON, from which `from_table` makes the same hierarchy with the table."""
        names = [level.name for level in self.levels]
        return {"kind": self.kind, "levels": names, **self.geometry.parameters()}

    def to_table(self) -> pa.Table | None:
        """Rows of a release; None if the parameters are enough."""
        return self.geometry.to_table(self.levels)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that decides where a record belongs, as hexadecimal text."""
        bounds = [value.hex() for value in self.domain.bounds]
        space = [bounds, self.domain.crs, self.domain.lattice, self.domain.coordinate_resolution]
        head = json.dumps([space, self.parameters()], sort_keys=True)
        content = hashlib.sha256(head.encode())
        table = self.to_table()
        # Each value with its length before it, so that no two tables have the same bytes.
        for column in () if table is None else table.columns:
            for value in column.to_pylist():
                raw = value if isinstance(value, bytes) else str(value).encode()
                content.update(len(raw).to_bytes(8, "little") + raw)
        return content.hexdigest()

    @classmethod
    def from_table(
        cls, domain: Domain, parameters: Mapping[str, Any], table: pa.Table | None
    ) -> Self:
        """Read a hierarchy from a release, which is untrusted.

        Parameters
        ----------
        domain : Domain
            Of the release.
        parameters : mapping
            From `parameters`.
        table : pyarrow.Table or None
            From `to_table`.

        Raises
        ------
        ReleaseFormatError
            If they are not what a release has.
        """
        rest = dict(parameters)
        kind, names = rest.pop("kind", None), rest.pop("levels", None)
        are_names = isinstance(names, list) and all(
            isinstance(name, str) and 0 < len(name) <= 100 and name.isprintable() for name in names
        )
        if not (isinstance(kind, str) and are_names):
            raise ReleaseFormatError("its regions have no kind or no names of levels")
        try:
            geometry = load_member(KINDS, "kind of regions", kind, "kind")
            levels, regions = geometry.read(domain, tuple(names or ()), rest, table)
            return cls(domain=domain, levels=levels, geometry=regions)
        except ValueError as error:  # parameters and domains that are refused, too
            raise ReleaseFormatError(f"its regions cannot be read: {error}") from None


def _pairs(
    region: ArrayLike, boxes: Integers | Floats, dtype: Any = np.int64
) -> tuple[Integers, Any]:
    """A region for each box."""
    corners = np.asarray(boxes, np.float64 if dtype == np.float64 else np.int64).reshape(-1, 4)
    # One region for all boxes, or one for each.
    numbers = np.broadcast_to(np.asarray(region, np.int64), (len(corners),))
    return numbers, corners


MAX_ID = 200
"""Limit of the characters of an id."""


def id_texts(values: Iterable[Any], column: str) -> list[str]:
    """Texts of a column of ids; numbers without a fraction become integers."""
    from pandas import isna

    texts = []
    for number, value in enumerate(values, 1):
        if isna(value):
            raise ParameterError(
                f"region {number} must have an id in column {column}, got a missing value"
            )
        # A column of numbers with a missing one is float: 11.0 was written as 11.
        is_integer = isinstance(value, float | np.floating) and float(value).is_integer()
        texts.append(str(int(value)) if is_integer else str(value))
    return texts


def check_ids(ids: Sequence[str], level: str) -> None:
    """Refuse ids of a level that are empty, long, not printable, or used twice."""
    for number, text in enumerate(ids, 1):
        if not text.strip():
            raise ParameterError(f"region {number} of level {level} must have an id, got blanks")
        if len(text) > MAX_ID:
            raise ParameterError(
                f"ids of level {level} must have at most {MAX_ID} characters, got {len(text):,} "
                f"in region {number}"
            )
        if not text.isprintable():
            raise ParameterError(
                f"ids of level {level} must be printable, got {text[:80]!r} in region {number}"
            )
    if len(set(ids)) < len(ids):
        seen: set[str] = set()
        twice = next(text for text in ids if text in seen or seen.add(text))  # type: ignore[func-returns-value]
        raise ParameterError(
            f"ids of level {level} must be unique, got {twice[:80]!r} twice; merge its polygons "
            "into one region, or name another column"
        )


# Limits of what a file may fill memory with: 2^24 vertices of 16 bytes.
_MAX_GEOMETRY = 2**28


def write_levels(levels: tuple[RegionLevel, ...], polygons: NDArray[np.object_]) -> pa.Table:
    """Write levels, top first, and polygons of the lowest one, (n,)."""
    import pyarrow as pa
    import shapely

    level = np.repeat(np.arange(len(levels)), [len(each) for each in levels]).astype(np.int16)
    # Levels above the lowest have no geometry: theirs are unions.
    wkb = [None] * (len(level) - len(polygons))
    wkb += shapely.to_wkb(shapely.force_2d(polygons), byte_order=1).tolist()
    return pa.table(
        {
            "level": level,
            "id": pa.array([text for each in levels for text in each.ids], pa.string()),
            "parent": np.concatenate([each.parent for each in levels]).astype(np.int32),
            "geometry": pa.array(wkb, pa.binary()),
        }
    )


def read_levels(
    names: tuple[str, ...], table: pa.Table, domain: Domain
) -> tuple[tuple[RegionLevel, ...], NDArray[np.object_]]:
    """Read levels and polygons, which are untrusted."""
    import pyarrow as pa

    types = {"level": pa.int16(), "id": pa.string(), "parent": pa.int32(), "geometry": pa.binary()}
    if dict(zip(table.schema.names, table.schema.types, strict=True)) != types:
        raise ReleaseFormatError("regions must have columns level, id, parent and geometry")
    if not 0 < table.num_rows <= MAX_NODES or table.column("geometry").nbytes > _MAX_GEOMETRY:
        raise ReleaseFormatError("regions are too many, or none")
    if any(table.column(name).null_count for name in ("level", "id", "parent")):
        raise ReleaseFormatError("regions must have levels, ids and parents")
    # Nothing of the table is trusted: sizes, nulls and types were checked above.
    level, parent = (from_arrow(table.column(name)) for name in ("level", "parent"))
    # Rows of a level follow each other, the top level first.
    if not np.isin(np.diff(level, prepend=0, append=len(names) - 1), (0, 1)).all():
        raise ReleaseFormatError("levels of regions must be in their order")
    ids, sizes = table.column("id").to_pylist(), np.bincount(level, minlength=len(names))
    ends = np.cumsum(sizes)
    levels = []
    for number, name in enumerate(names):
        rows = slice(int(ends[number] - sizes[number]), int(ends[number]))
        check_ids(ids[rows], name)
        levels.append(RegionLevel(name=name, ids=tuple(ids[rows]), parent=parent[rows].copy()))
    lowest = table.column("geometry").slice(len(ids) - sizes[-1])
    return tuple(levels), _read_polygons(lowest.to_pylist(), domain)


def _read_polygons(wkb: list[bytes | None], domain: Domain) -> NDArray[np.object_]:
    """Read polygons, after their sizes are checked."""
    import shapely

    try:
        with np.errstate(all="ignore"):  # vertices that are not finite are refused below
            polygons = np.asarray(shapely.from_wkb(np.array(wkb, dtype=object)), dtype=object)
    except (shapely.errors.ShapelyError, TypeError, ValueError):
        raise ReleaseFormatError("a region has no readable geometry") from None
    check_kinds(polygons)
    check_sizes(polygons)
    if not shapely.is_valid(polygons).all():
        raise ReleaseFormatError("a region is not a valid polygon")
    if not shapely.intersects(polygons, shapely.box(*domain.bounds)).all():
        raise ReleaseFormatError("a region lies outside the bounds")
    return polygons
