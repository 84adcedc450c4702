"""Public inputs of a build: covariate, boundary and post-processing, and their files."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.declared_parameters import integer_between
from psd._util.extras import install_text
from psd._util.instances import type_text
from psd.errors import DomainError, InputDataError, MissingExtraError, ParameterError, PsdError
from psd.regions.files import CellRegions, RegionFiles, RegionSource, read_polygons, refuse_pointers
from psd.regions.hierarchy import RegionHierarchy
from psd.release.post_processing import PostProcessing
from psd.space.boundary import Boundary
from psd.space.bounds import beyond_the_world
from psd.space.covariate import MAX_SIDE, Covariate, check_covariate
from psd.space.crs import parse_crs
from psd.space.domain import Domain
from psd.space.regions import repair_polygons

if TYPE_CHECKING:
    import geopandas

__all__ = ["PublicInputs", "resolve_post_processing", "resolve_public_inputs"]


RASTERS = (".npy", ".asc", ".tif", ".tiff")
"""Endings of raster files."""

Bounds = tuple[float, float, float, float]

_GRID = ("ncols", "nrows", "xllcorner", "yllcorner", "cellsize")


def read_raster(path: Path, domain: Domain) -> tuple[NDArray[Any], Bounds | None]:
    """Read a raster in the CRS of the domain: values, from the north, and bounds if stated."""
    if not os.path.isfile(path):
        raise InputDataError(f"covariate {path} does not exist or is not a file")
    # An array lies over the domain; an ESRI ASCII grid has its CRS in a .prj file beside it.
    suffix = path.suffix.lower()
    try:
        if suffix == ".npy":
            return np.load(path, allow_pickle=False), None
        return _read_grid(path, domain) if suffix == ".asc" else _read_image(path, domain)
    except PsdError:  # a refusal, most of which are ValueErrors too
        raise
    except (ValueError, OSError, EOFError):
        raise InputDataError(f"covariate {path} cannot be read as a raster") from None


def _read_grid(path: Path, domain: Domain) -> tuple[NDArray[Any], Bounds]:
    """Read an ESRI ASCII grid."""
    sidecar = path.with_suffix(".prj")
    _check_crs(path, sidecar.read_text(encoding="utf-8") if sidecar.is_file() else None, domain)
    with path.open(encoding="ascii") as file:
        lines = file.read().splitlines()
    # Five or six lines of a name and a number each, then numbers alone, the first row in the north.
    words = [line.split() for line in lines[:6]]
    head = {
        pair[0].lower(): float(pair[1]) for pair in words if len(pair) == 2 and pair[0][0] > "9"
    }
    if missing := [name for name in _GRID if name not in head]:
        raise InputDataError(f"covariate {path} has no {missing[0]} in its first lines")
    columns, rows, west, south, cell = (head[name] for name in _GRID)
    if not cell > 0:
        raise ValueError("cellsize")
    text = " ".join(lines[len(head) :])
    values = np.array(text.split(), float).reshape(int(rows), int(columns))
    if "nodata_value" in head:
        values = np.where(values == head["nodata_value"], 0.0, values)
    return values, (west, south, west + columns * cell, south + rows * cell)


def _read_image(path: Path, domain: Domain) -> tuple[NDArray[Any], Bounds]:
    """Read the first band of a GeoTIFF or another format of rasterio."""
    try:
        import rasterio
        from rasterio.errors import RasterioError
    except ImportError:
        raise MissingExtraError(
            f"covariate {path} needs rasterio; {install_text('raster')}, or give an "
            "array (.npy) or an ASCII grid (.asc)",
            extra="raster",
        ) from None
    refuse_pointers(Path(path), "covariate")
    try:
        with rasterio.open(path) as image:
            _check_crs(path, image.crs.to_wkt() if image.crs else None, domain)
            if image.transform.b or image.transform.d or image.transform.e >= 0:
                raise InputDataError(f"covariate {path} is rotated or upside down; warp it first")
            return image.read(1, masked=True).filled(0), tuple(image.bounds)
    except RasterioError:
        raise InputDataError(f"covariate {path} cannot be read as a raster") from None


def _check_crs(path: Path, text: str | None, domain: Domain) -> None:
    """Refuse a raster whose CRS is missing, or not that of the domain."""
    if text is None:
        raise DomainError(f"covariate {path} has no CRS; assign it, since it is never guessed")
    try:
        actual, expected = parse_crs(text), parse_crs(domain.crs)
    except DomainError as error:
        raise DomainError(f"covariate {path}: {error}") from None
    codes = actual.to_authority(min_confidence=70), expected.to_authority(min_confidence=70)
    if actual != expected and (codes[0] is None or codes[0] != codes[1]):
        raise DomainError(
            f"covariate {path} is in {actual.name}, the release in {domain.crs}; warp it first"
        )


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
    # Whether invalid polygons are repaired, see `psd.space.regions`; else they are refused.
    repair: bool = False

    def polygons(self) -> geopandas.GeoDataFrame:
        """Read the file."""
        table = read_polygons(Path(self.path), "boundary")
        return repair_polygons(table, "boundary") if self.repair else table

    def read(self, domain: Domain) -> Boundary:
        """Boundary of a domain."""
        return Boundary.from_polygons(self.polygons(), domain)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublicInputs:
    """Public inputs of a build."""

    post_processing: PostProcessing  # how estimates are made from the counts
    # Density of where people can be; the world, if the bounds reach beyond it and the density
    # follows a covariate that nobody gave.
    covariate: Covariate | None = None
    boundary: Boundary | None = None  # records outside are dropped

    @property
    def method_covariate(self) -> Covariate | None:
        """Covariate that the method reads."""
        return self.covariate if self.boundary is None else self.boundary.restrict(self.covariate)

    @property
    def mask(self) -> Covariate | None:
        """Mask of the boundary; the curator knows that cells outside are empty."""
        return None if self.boundary is None else self.boundary.mask

    @property
    def release_covariate(self) -> Covariate | None:
        """The covariate of the release."""
        return (
            self.covariate
            if self.boundary is None
            else self.boundary.release_covariate(self.covariate)
        )


def resolve_public_inputs(
    domain: object,
    post_processing: PostProcessing,
    *,
    covariate: Covariate | CovariateFile | None = None,
    boundary: Boundary | BoundaryFile | None = None,
) -> PublicInputs:
    """Read public files, and check that their content fits the domain and the density."""
    if not isinstance(domain, Domain):
        if post_processing.density == "covariate":
            raise ParameterError(
                "density must not be covariate with private bounds, which cannot have a covariate"
            )
        return PublicInputs(post_processing=post_processing)
    follows = post_processing.density == "covariate" and covariate is None and boundary is None
    if follows and beyond_the_world(domain.bounds, domain.crs):
        covariate = Covariate.of_world(domain)
    inputs = PublicInputs(
        post_processing=post_processing,
        covariate=None if covariate is None else covariate_of(covariate, domain),
        boundary=None if boundary is None else boundary_of(boundary, domain),
    )
    check_covariate(inputs.covariate, domain, "uniform")  # before it is cut at the boundary
    check_covariate(inputs.release_covariate, domain, post_processing.density)
    return inputs


def default_density(
    domain: object, *, covariate: object, boundary: object, regions: object
) -> str | None:
    """Density that takes the place of a method's own; None where no public input states one."""
    if covariate is not None or boundary is not None:
        return "covariate"
    if regions is not None:
        return "uniform"
    # Cells at the rim of the world hold records in a part of them: the world is a covariate.
    is_beyond = isinstance(domain, Domain) and beyond_the_world(domain.bounds, domain.crs)
    return "covariate" if is_beyond else None


def default_post_processing(method: object) -> PostProcessing:
    """Post-processing that a method declares; least squares and uniform density by default."""
    return getattr(method, "post_processing", PostProcessing())


def resolve_post_processing(
    method: object, *, estimate: str | None, density: str | None
) -> PostProcessing:
    """Default post-processing of a method, with the choices of the caller."""
    choices: dict[str, Any] = {"estimate": estimate, "density": density}
    stated = {name: choice for name, choice in choices.items() if choice is not None}
    return replace(default_post_processing(method), **stated)


def covariate_of(value: Any, domain: Domain) -> Covariate:
    """Return a covariate, or make it of a file or of polygons."""
    if isinstance(value, Covariate):
        return value
    if isinstance(value, CovariateFile):
        return value.read(domain)
    _check_polygons("covariate", value, "a psd.Covariate, a CovariateFile or ")
    return Covariate.from_polygons(value, domain)


def boundary_of(value: Any, domain: Domain) -> Boundary:
    """Return a boundary, or make it of a file or of polygons."""
    if isinstance(value, Boundary):
        return value
    if isinstance(value, BoundaryFile):
        return value.read(domain)
    return Boundary.from_polygons(polygons_of(value, domain.crs), domain)


def polygons_of(value: Any, crs: str) -> Any:
    """Polygons of a boundary: of its file, of a table, or a geometry in the CRS of the release."""
    if isinstance(value, BoundaryFile):
        return value.polygons()
    if hasattr(value, "geom_type") and not hasattr(value, "geometry"):
        import geopandas

        return geopandas.GeoSeries([value], crs=crs)
    _check_polygons("boundary", value)
    return value


def check_regions(value: Any) -> RegionSource:
    """Return what regions are made of; another type is refused."""
    if isinstance(value, RegionHierarchy | RegionFiles | CellRegions):
        return value
    raise ParameterError(
        "regions must be paths, a GeoDataFrame, cells such as h3=5..9, or a "
        f"psd.regions.RegionHierarchy, got {type_text(value)}",
        name="regions",
    )


def regions_of(
    value: Any, domain: object, boundary: Boundary | BoundaryFile | None = None
) -> RegionHierarchy:
    """Return a hierarchy of regions, or make it of files or of the name of cells."""
    if isinstance(value, RegionHierarchy):
        return value
    source = check_regions(value)
    if not isinstance(domain, Domain):
        raise ParameterError("bounds must be public with regions, got none or private ones")
    assert not isinstance(source, RegionHierarchy)
    return source.read(domain, None if boundary is None else boundary_of(boundary, domain))


def _check_polygons(name: str, value: Any, others: str = "") -> None:
    """Refuse a value that is not a table with geometries."""
    if not hasattr(value, "geometry"):
        raise ParameterError(
            f"{name} must be {others}a GeoDataFrame of polygons, got {type_text(value)}"
        )
