"""Regions that are read from public files, or given by sizes, zooms or resolutions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from psd._util.file_endings import file_of
from psd._util.plugins import load_member
from psd.errors import ParameterError
from psd.regions.files import count_features, read_polygons
from psd.regions.hierarchy import KINDS, RegionHierarchy
from psd.regions.polygon_hierarchy import MAX_POLYGONS, hierarchy_from_polygons
from psd.space.regions import repair_polygons

if TYPE_CHECKING:
    import geopandas

    from psd.space.boundary import Boundary
    from psd.space.domain import Domain

__all__ = ["CellRegions", "RegionFiles", "refuse_record_files"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionFiles:
    """Regions in files of polygons; their names are public, and so is their content.

    Parameters
    ----------
    paths : tuple of str
        The lowest regions; or a file of each level, top first. Any vector format;
        ``FILE:layer=NAME`` names a layer. Public.
    ids : tuple of str
        Column of the ids, one for all files or one for each. Public.
    parents : tuple of str
        Columns of the ids of levels above, the nearest first; only with one file. Public.
    tolerance, gaps
        As in `psd.regions.polygon_hierarchy.hierarchy_from_polygons`. Public.
    repair : bool
        Whether invalid polygons are repaired, see `psd.space.regions`; else they are refused.
        Public.

    Raises
    ------
    ParameterError
        If there is no path, or not one id column for all or for each.

    Examples
    --------
    >>> files = RegionFiles(paths=("wards.gpkg",), ids=("ward",), parents=("district",))
    >>> files.gaps
    'refuse'
    """

    paths: tuple[str, ...]
    ids: tuple[str, ...]
    parents: tuple[str, ...] = ()
    tolerance: float | None = None
    gaps: str = "refuse"
    repair: bool = False
    # Tables that were read for the bounds, until the regions are made of them.
    _tables: list[geopandas.GeoDataFrame] = field(
        init=False, repr=False, compare=False, default_factory=list
    )

    def __post_init__(self) -> None:
        """Check the number of columns."""
        if not self.paths or len(self.ids) not in (1, len(self.paths)):
            raise ParameterError(
                f"region_id must be one column, or one for each of {len(self.paths)} files, got "
                f"{len(self.ids)}",
                name="region_id",
            )

    def read(self, domain: Domain, boundary: Boundary | None = None) -> RegionHierarchy:
        """Read the files.

        Parameters
        ----------
        domain : Domain
            Of the release.
        boundary : Boundary, optional
            Of the release, which regions must cover in place of the bounds.

        Raises
        ------
        InputDataError
            If a file is missing or cannot be read.
        ParameterError, DomainError
            As `psd.regions.polygon_hierarchy.hierarchy_from_polygons`.
        """
        tables = self.tables()
        self._tables.clear()
        return hierarchy_from_polygons(
            tables[0] if len(tables) == 1 else tables,
            domain,
            ids=self.ids[0] if len(self.ids) == 1 else self.ids,
            parents=self.parents,
            boundary=boundary,
            tolerance=self.tolerance,
            gaps=self.gaps,
        )

    def tables(self) -> list[geopandas.GeoDataFrame]:
        """Tables of the files, which are read once for their bounds and the regions.

        Raises
        ------
        ParameterError, InputDataError
            As `read`.
        """
        for path in map(Path, self.paths[len(self._tables) :]):
            number = count_features(path, "regions")  # before they are read
            if number > MAX_POLYGONS:
                raise ParameterError(
                    f"regions {path} must be at most {MAX_POLYGONS:,} polygons, got {number:,}"
                )
            table = read_polygons(path, "regions")
            self._tables.append(repair_polygons(table, "regions") if self.repair else table)
        return list(self._tables)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellRegions:
    """Regions that are cells of a public system: a grid, map tiles, H3, or that of a package.

    Parameters
    ----------
    kind : str
        Such as ``"grid-cells"``, ``"tiles"`` or ``"h3"``; a kind of `psd.regions.kinds` that
        has a member ``hierarchy``. Public.
    cells : str
        Levels: sizes such as ``"1km,10km"``, zooms or resolutions such as ``"8..14"``. Public.

    Examples
    --------
    >>> CellRegions(kind="grid-cells", cells="1km,10km")
    CellRegions(kind='grid-cells', cells='1km,10km')
    """

    kind: str
    cells: str

    def read(self, domain: Domain, boundary: Boundary | None = None) -> RegionHierarchy:
        """Make the hierarchy of a domain.

        Raises
        ------
        ParameterError
            If there is no such kind, or it refuses the levels.
        DomainError
            If the kind needs another CRS.
        """
        make = load_member(KINDS, "kind of regions", self.kind, "hierarchy")
        hierarchy: RegionHierarchy = make(self.cells, domain, boundary=boundary)
        return hierarchy


RegionSource: TypeAlias = "RegionHierarchy | RegionFiles | CellRegions"
"""What regions are made of."""


def refuse_record_files(paths: Iterable[str], inputs: Iterable[object]) -> None:
    """Refuse public files that are inputs of records: what is in public files is published."""
    records = [Path(item) for item in inputs if isinstance(item, str | os.PathLike)]
    # os.path.exists, since Path.exists raises where a name is too long.
    records = [path for path in records if os.path.exists(path)]
    for path in map(file_of, paths):
        if os.path.exists(path) and any(path.samefile(record) for record in records):
            raise ParameterError(
                f"public file {path} must not be an input of records, since bounds, boundaries and "
                "regions are published; take a file that has nothing else"
            )
