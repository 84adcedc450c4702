"""Covariates and boundaries that are read from public files: a raster, or polygons."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from psd._util.declared_parameters import integer_between
from psd.errors import ParameterError
from psd.publish.raster_files import RASTERS, read_raster
from psd.regions.files import read_polygons
from psd.space.covariate import MAX_SIDE, Covariate
from psd.space.region_repair import repair_polygons

if TYPE_CHECKING:
    import geopandas

    from psd.space.boundary import Boundary
    from psd.space.domain import Domain

__all__ = ["BoundaryFile", "CovariateFile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CovariateFile:
    """A covariate in a file; its name is public, and so is its content."""

    # GeoTIFF, NumPy array, or polygons in any vector format; ``FILE:layer=NAME`` names a layer.
    path: str
    # Weights of the polygons per unit of area on the ground; without it they are a mask.
    column: str | None = None
    size: int = MAX_SIDE  # columns and rows of the covariate, at most 1,024

    def __post_init__(self) -> None:
        """Check the fields."""
        size = integer_between(1, MAX_SIDE)("covariate_size", self.size)
        object.__setattr__(self, "size", size)
        if self.column is not None and self._is_raster:
            raise ParameterError(
                f"covariate_column must be left out for a raster, got {self.column!r}; only "
                "polygons have columns",
                name="covariate_column",
            )

    @property
    def _is_raster(self) -> bool:
        """Whether the name ends as that of a raster."""
        return Path(self.path).suffix.lower() in RASTERS

    def read(self, domain: Domain) -> Covariate:
        """Read the file."""
        path = Path(self.path)
        if self._is_raster:
            values, bounds = read_raster(path, domain)
            return Covariate.from_raster(values, domain, bounds=bounds, size=self.size)
        polygons = read_polygons(path, "covariate")
        return Covariate.from_polygons(polygons, domain, column=self.column, size=self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryFile:
    """A boundary in a file of polygons; its name is public, and so is its content."""

    path: str  # polygons in any vector format; ``FILE:layer=NAME`` names a layer
    # Whether invalid polygons are repaired, see `psd.space.region_repair`; else they are refused.
    repair: bool = False

    def polygons(self) -> geopandas.GeoDataFrame:
        """Read the file."""
        table = read_polygons(Path(self.path), "boundary")
        return repair_polygons(table, "boundary") if self.repair else table

    def read(self, domain: Domain) -> Boundary:
        """Boundary of a domain."""
        from psd.space.boundary import Boundary

        return Boundary.from_polygons(self.polygons(), domain)
