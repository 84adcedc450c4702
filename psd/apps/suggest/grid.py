"""Regions of equal size over the area of a release, with their density and distances. Public."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd._util.declared_parameters import integer_between
from psd.errors import DomainError, ParameterError
from psd.space.crs import explain_proj_errors, offline, parse_crs
from psd.space.domain import Domain
from psd.statistics.raster import density_raster

if TYPE_CHECKING:
    from psd.api.release import Release

__all__ = ["CELLS", "RegionGrid"]

CELLS = integer_between(5, 100)
"""Regions in a row and in a column."""

_EARTH_KM = 6371.0088
_CONTRASTS = 64


@dataclass(frozen=True, kw_only=True, eq=False)
class RegionGrid:
    """Regions of a release: cells x cells boxes, row by row from the south-west corner.

    Guarantees
    ----------
    - It is a function of the release alone.

    Parameters
    ----------
    digest : str
        Digest of the release.
    domain : Domain
        Of the release.
    cells : int
        Regions in a row and in a column, 5 to 100.
    count : ndarray, shape (n,), float64
        Estimated records in each region.
    centres : ndarray, shape (n, 3), float64
        Middles of the regions on the unit sphere.
    """

    digest: str
    domain: Domain
    cells: int
    count: Floats
    centres: Floats

    @classmethod
    def of_release(cls, release: Release, cells: int = 40) -> RegionGrid:
        """Divide the area of a release.

        Raises
        ------
        ParameterError
            If the release has no density, or its lattice is too coarse.
        DomainError
            If its CRS has no place on the earth.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(126.4, 37, 127.6, 38), lattice=(8, 8))
        >>> tree = psd.decompositions.grid_tree(domain, 8)
        >>> release = psd.Release.from_counts(tree, range(64), 1, domain=domain)
        >>> RegionGrid.of_release(release, 8).count.sum().round().item()
        2016.0
        """
        cells, domain = CELLS("cells", cells), release.domain
        if cells > min(domain.lattice):
            raise ParameterError(
                f"cells must be at most the columns and rows of the release's lattice, "
                f"{min(domain.lattice)}, got {cells}",
                name="cells",
                value=cells,
            )
        count = np.maximum(density_raster(release.index.fit, cells, cells).count[::-1].ravel(), 0)
        if not count.sum() > 0:
            raise ParameterError(
                "release must have a density, got one without records; build it with more epsilon"
            )
        boxes = _boxes(domain, cells)
        centres = _on_sphere(domain, (boxes[:, :2] + boxes[:, 2:]) / 2)
        return cls(digest=release.digest, domain=domain, cells=cells, count=count, centres=centres)

    @property
    def boxes(self) -> Floats:
        """West, south, east, north of the regions."""
        return _boxes(self.domain, self.cells)

    @cached_property
    def log_density(self) -> Floats:
        """Logarithm of the records in each region, plus one."""
        return np.log1p(self.count)

    @cached_property
    def contrasts(self) -> Integers:
        """Regions drawn evenly by density: the quantiles of the records, region by region."""
        # The same for all people, and public: no draw is needed.
        middles = (np.arange(_CONTRASTS) + 0.5) / _CONTRASTS
        return np.searchsorted(np.cumsum(self.count) / self.count.sum(), middles)

    def regions_of(self, columns: NDArray[np.integer], rows: NDArray[np.integer]) -> Integers:
        """Region of each cell of the lattice of the domain."""
        column, row = (
            np.asarray(lines, np.int64) * self.cells // size
            for lines, size in zip((columns, rows), self.domain.lattice, strict=True)
        )
        return row * self.cells + column

    def locate(self, x: Floats, y: Floats) -> Integers:
        """Regions of the points inside the area, in their order."""
        columns, rows, _ = self.domain.quantise(x, y)
        return self.regions_of(columns, rows)

    def distances(self, origins: Integers, targets: Integers) -> Floats:
        """Kilometres between the middles of regions, shape (targets, origins)."""
        difference = self.centres[targets][:, None] - self.centres[origins][None]
        # From the chord, which is exact for near points; a cosine is not.
        chord = np.sqrt((difference**2).sum(2))
        kilometres: Floats = 2 * _EARTH_KM * np.arcsin(np.minimum(chord / 2, 1))
        return kilometres


def _boxes(domain: Domain, cells: int) -> Floats:
    """Boxes of equal size; their edges are those of the regions to a line of the lattice."""
    x, y = (np.linspace(domain.bounds[axis], domain.bounds[axis + 2], cells + 1) for axis in (0, 1))
    west, south = (grid.ravel() for grid in np.meshgrid(x[:-1], y[:-1]))
    east, north = (grid.ravel() for grid in np.meshgrid(x[1:], y[1:]))
    return np.stack([west, south, east, north], axis=1)


def _on_sphere(domain: Domain, points: Floats) -> Floats:
    """Points of the domain on the unit sphere."""
    from pyproj import Transformer

    with offline(), explain_proj_errors("release", "EPSG:4326"):
        crs = parse_crs(domain.crs)
        transformer = Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
        longitude, latitude = np.radians(transformer.transform(*points.T))
    if not np.isfinite(longitude + latitude).all():
        raise DomainError("release must lie on the earth; its CRS has no longitudes there")
    across = np.cos(latitude)
    return np.stack(
        [across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude)], axis=1
    )
