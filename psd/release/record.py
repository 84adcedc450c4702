"""The release: noisy counts on a tree of cells, and what was promised about them.

Everything here is public. A release is immutable; estimates and their variances are worked out
from the noisy integers by the inference version named in the file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._version import __version__
from psd.errors import InternalError, ParameterError, ReleaseFormatError
from psd.estimation.covariate_density import CovariateDensity, shares_of_parents
from psd.estimation.least_squares import VERSION, Estimates, infer, pruned
from psd.privacy.epsilon import MAX_EPSILON, NANO, epsilon_text, parse_epsilon
from psd.privacy.unit import Kind, PrivacyUnit
from psd.release.post_processing import View
from psd.space.box_tree import Tree, check_tree
from psd.space.covariate import Covariate, check_covariate
from psd.space.domain import Domain

if TYPE_CHECKING:
    import geopandas
    import pandas

    from psd.estimation.density import Density
    from psd.query.explain import Explanation
    from psd.query.flat_tree import Packed
    from psd.query.joint import Joint
    from psd.query.summed_area import Mesh
    from psd.statistics.raster import Raster

__all__ = ["Release", "Source"]

Source = Literal["curator", "given", "replay", "insecure"]
"""Where counts are from."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """A differentially private release, ready to be saved, queried and exported.

    Guarantees
    ----------
    - Holds what the curator answered, public parameters, and nothing else.
    - Every method is post-processing: it reads the release alone and costs no epsilon.

    Parameters
    ----------
    tree : Tree
        Cells and noisy counts.
    domain : Domain
        Bounds, CRS and lattice.
    epsilon : int
        Nano-epsilon that was enforced before the first draw.
    method : str
        Name of the decomposition.
    parameters : mapping
        Its public parameters.
    unit : {"record", "user", "user-day", "user-slice"}
        What one unit of privacy is; see `psd.privacy.unit.PrivacyUnit`.
    max_contributions : int
        Most records of one unit, k; 1 where the unit is a record.
    weight : int
        M, where users are counted: a count of M is one user, and answers are in users. 0 where
        records are counted.
    time_zone : str, optional
        Where the unit has days, on whose wall clocks they begin.
    view : View
        What is made of the counts; `dataclasses.replace` gives the same release another view.
    covariate : Covariate, optional
        Public density that the release was built with.
    boundary : bool
        Whether the covariate is that of a public boundary: where it is 0, nobody is.
    library, inference : str, int
        Versions that made the file and that read it.
    source : {"curator", "given", "replay", "insecure"}
        Where the counts are from; a release from replayed answers, or from noise that a seed
        repeats, cannot be saved.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.grid_tree(domain, 2)
    >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
    >>> release.query([(0, 0, 2, 1)])["estimate"].round(1).tolist()
    [6.0]
    """

    tree: Tree
    domain: Domain
    epsilon: int
    method: str
    parameters: Mapping[str, int | str | None] = field(default_factory=dict)
    unit: Kind = "record"
    max_contributions: int = 1
    weight: int = 0
    time_zone: str | None = None
    view: View = field(default_factory=View)
    covariate: Covariate | None = None
    boundary: bool = False
    library: str = __version__
    inference: int = VERSION
    source: Source = "given"

    def __post_init__(self) -> None:
        """Check that tree, domain, covariate, unit and epsilon belong together."""
        _ = self.unit_of_privacy  # refuses fields that do not go together
        if self.boundary and self.covariate is None:
            raise ParameterError("a release with a boundary has its raster as covariate")
        if self.outside is not None and self.tree.epsilon[self.outside].any():
            raise ReleaseFormatError("a cell outside the boundary was counted")
        check_tree(self.tree, self.domain.lattice)
        check_covariate(self.covariate, self.domain, self.view.density)
        if self.inference != VERSION:
            raise ReleaseFormatError(
                f"inference version {self.inference} is not known to this library; it has {VERSION}"
            )
        if not 0 < self.epsilon <= MAX_EPSILON * NANO:
            raise ReleaseFormatError(
                f"epsilon {epsilon_text(self.epsilon)} is not above 0 and at most {MAX_EPSILON:,}"
            )
        if self.tree.max_path_epsilon > self.epsilon:
            raise ReleaseFormatError(
                f"a path spends more than epsilon {epsilon_text(self.epsilon)}; the file is damaged"
            )

    def __repr__(self) -> str:
        return (
            f"<Release: {self.method}, {len(self.tree):,} cells, "
            f"epsilon {epsilon_text(self.epsilon)} per {self.unit}>"
        )

    @property
    def unit_of_privacy(self) -> PrivacyUnit:
        """Whose presence is hidden, and what is counted."""
        return PrivacyUnit(
            kind=self.unit,
            max_contributions=self.max_contributions,
            weight=self.weight,
            time_zone=self.time_zone,
        )

    @cached_property
    def outside(self) -> NDArray[np.bool_] | None:
        """Which cells lie wholly outside the boundary, where nobody is; none without one."""
        if not self.boundary or self.covariate is None:
            return None
        empty: NDArray[np.bool_] = self.covariate.mass(self.tree.boxes) == 0
        return empty

    @cached_property
    def estimates(self) -> Estimates:
        """Consistent estimates of every cell, with variances; the counts as the view says."""
        unit = self.unit_of_privacy
        empty = None if self.outside is None else self.outside & self.tree.is_leaf
        estimates = infer(self.tree, unit.contributions, unit.scale, empty)
        if self.view.estimate == "posterior":
            from psd.estimation.posterior import posterior_count

            counts = posterior_count(self.tree, estimates, unit.contributions, unit.scale, empty)
            estimates = replace(estimates, count=counts)
        if self.view.estimate == "signed":
            estimates = replace(estimates, count=estimates.signed)
        if self.view.prune:
            counts = pruned(self.tree, estimates, self.view.prune, self.shares)
            estimates = replace(estimates, count=counts)
        return estimates

    @cached_property
    def density(self) -> Density | None:
        """Where in the leaves their counts lie; none where that is evenly."""
        if self.view.density == "uniform":
            return None
        if self.covariate is not None and self.view.density == "covariate":
            return CovariateDensity(covariate=self.covariate)
        from psd.estimation.density import smooth_density

        counts = np.maximum(self.estimates.count, 0.0)
        return smooth_density(self.tree, counts, self.domain.lattice)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """Share of its parent's points that each cell has where nothing else is known."""
        known = self.covariate if self.view.density == "covariate" or self.boundary else None
        return shares_of_parents(self.tree, known)

    @cached_property
    def dispersion(self) -> NDArray[np.float64]:
        """How unevenly points lie inside the leaves of each level."""
        from psd.estimation.nonuniformity import dispersion

        return dispersion(self.tree, self.estimates, self.shares)

    @cached_property
    def published(self) -> Estimates:
        """Estimates with the covariance of the published counts."""
        if self.view.estimate == "signed":
            return self.estimates
        from psd.estimation.published_covariance import published_covariance

        return published_covariance(self.tree, self.estimates)

    @cached_property
    def spread(self) -> NDArray[np.float64]:
        """How unevenly points lie inside each cell, shape (nodes,)."""
        return self.dispersion[self.tree.level]

    @cached_property
    def mesh(self) -> Mesh | None:
        """The leaves as a table, where that is what they are; see `psd.query.summed_area`."""
        from psd.query.summed_area import mesh_of

        return mesh_of(self.tree, self.density)

    @cached_property
    def mesh_table(self) -> NDArray[np.float64]:
        """Summed-area table of the estimates; only where there is a mesh."""
        if self.mesh is None:
            raise InternalError("the leaves are no mesh")
        return self.mesh.table(self.estimates.count)

    @cached_property
    def packed(self) -> Packed:
        """Arrays for the compiled walk; see `psd.query.flat_tree`."""
        from psd.query.flat_tree import pack

        return pack(self)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: that of the file it was read from, or will have when saved."""
        from psd.release.file import digest_of
        from psd.release.public import Public

        return digest_of(Public.of(self))

    @property
    def total(self) -> float:
        """Estimated number of (kept) records, or of users, in the whole domain."""
        return max(float(self.estimates.count[0]), 0.0)

    @classmethod
    def from_counts(
        cls,
        tree: Tree,
        counts: ArrayLike,
        epsilons: ArrayLike | str | float,
        *,
        domain: Domain,
        max_contributions: int = 1,
        unit: Kind = "record",
    ) -> Release:
        """Release from given noisy counts: tests, and other people's releases.

        Parameters
        ----------
        tree : Tree
            Cells; its own counts are replaced.
        counts : array_like of int, shape (leaves,), (nodes,) or (rows, columns)
            Noisy counts of the leaves in the order of the tree, of every node, or of a grid, its
            rows from the south and its columns from the west.
        epsilons : decimal, or array_like of decimals of the same shape
            Epsilon of each count; 0 where a node is not measured.
        domain : Domain
            Domain of the tree.
        max_contributions : int
            k of the given counts.
        unit : {"record", "user"}
            Unit of privacy of the given counts.

        Raises
        ------
        ParameterError
            If the shapes do not fit.
        """
        values = _in_tree_order(tree, np.asarray(counts))
        if values.ndim != 1 or values.dtype.kind not in "iu":
            raise ParameterError("counts are not a list of whole numbers; noisy counts are")
        where = np.arange(len(tree)) if len(values) == len(tree) else np.flatnonzero(tree.is_leaf)
        if values.shape != where.shape:
            raise ParameterError(
                f"counts have shape {values.shape}; the tree has {int(tree.is_leaf.sum())} leaves "
                f"and {len(tree)} nodes"
            )
        count, nano = np.zeros(len(tree), np.int64), np.zeros(len(tree), np.int64)
        count[where], nano[where] = values, _nanos(epsilons, where.shape)
        made = Tree(
            boxes=tree.boxes, parent=tree.parent, level=tree.level, count=count, epsilon=nano
        )
        return cls(
            tree=made,
            domain=domain,
            epsilon=max(made.max_path_epsilon, 1),
            method="given",
            unit=unit,
            max_contributions=max_contributions,
        )

    def query(
        self,
        regions: Any,
        *,
        crs: Any = None,
        confidence: float = 0.95,
        threshold: float = 0.3,
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Estimated counts of regions, and how far each may be off and why.

        Parameters
        ----------
        regions : polygons or boxes
            Polygons: a GeoDataFrame or GeoSeries; or one or several shapely geometries, objects
            with ``__geo_interface__``, texts of WKT or EWKT, or GeoJSON as text or mapping.
            They are brought to the CRS of the release by their vertices, after lines are divided
            at 1/1000 of the domain. Boxes: one ``(west, south, east, north)``, an array of
            shape (n, 4), or a DataFrame with these columns, in the CRS of the release.
        crs : any CRS that pyproj understands, optional
            Of polygons that carry none; tables and EWKT do, and GeoJSON is in EPSG:4326 unless
            it says another. ``release.domain.crs`` is that of the release. Never guessed.
        confidence : float
            Probability that ``lower`` to ``upper`` is meant to cover, in (0, 1).
        threshold : float
            Largest relative error that counts as ``reliable``.

        Returns
        -------
        DataFrame or GeoDataFrame
            For a GeoDataFrame, the caller's columns and index and then the answer's columns;
            else the answer's columns in the order of the regions: ``id, estimate,
            perturbation_error, nonuniformity_error, error, lower, upper,
            relative_perturbation_error, relative_nonuniformity_error, relative_error,
            reliable``. Errors are predicted standard deviations in records; where users are
            counted, all of these are in users.

        Raises
        ------
        ParameterError
            If a region is malformed, not valid, too large, or lies outside the domain.
        DomainError
            If a CRS is missing or unknown.
        """
        from psd.query import answer

        return answer(self, regions, crs=crs, confidence=confidence, threshold=threshold)

    def estimate(self, boxes: Any) -> NDArray[np.float64]:
        """Estimated counts of boxes, and nothing else: for very many of them.

        Guarantees
        ----------
        - The numbers of ``query(boxes)["estimate"]``, to rounding of the release's total.

        Parameters
        ----------
        boxes : boxes or DataFrame of boxes
            As in `query`: one ``(west, south, east, north)``, an array of shape (n, 4), or a
            DataFrame with these columns, in the CRS of the release.

        Returns
        -------
        ndarray, shape (n,), float64
            Records; not negative.

        Raises
        ------
        ParameterError
            If a box is malformed, or lies outside the domain.

        Notes
        -----
        Where the leaves are a table of rows and columns, an answer is four look-ups in a
        summed-area table [1]_; elsewhere the tree is walked as for `query`.

        References
        ----------
        .. [1] Crow. "Summed-Area Tables for Texture Mapping." SIGGRAPH 1984.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
        >>> tree = psd.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [5, 1, 0, 2], 1.0, domain=domain)
        >>> release.estimate([(0, 0, 2, 1), (0.5, 0, 1, 2)]).round(1).tolist()
        [6.0, 2.5]
        """
        from psd.query.boxes import box_estimates

        return box_estimates(self, boxes)

    def joint(
        self,
        regions: Any,
        *,
        crs: Any = None,
        confidence: float = 0.95,
        threshold: float = 0.3,
    ) -> Joint:
        """Answers together with their covariance, for totals, differences and ratios.

        Parameters
        ----------
        regions : GeoDataFrame, GeoSeries, geometries, boxes or DataFrame of boxes
            As in `query`, at most 5,000.
        crs : any CRS that pyproj understands, optional
            As in `query`.
        confidence : float
            Of each interval ``lower`` to ``upper``, and of all ``joint_lower`` to
            ``joint_upper`` together, in (0, 1).
        threshold : float
            As in `query`.

        Returns
        -------
        Joint
            See `psd.query.joint.Joint`.

        Raises
        ------
        ParameterError
            If a region is malformed or lies outside the domain, or there are too many.
        DomainError
            If a CRS is missing.
        """
        from psd.query.joint import joint
        from psd.space.regions import with_crs

        regions = with_crs(regions, crs, self.domain)
        return joint(self, regions, confidence=confidence, threshold=threshold)

    def explain(self, regions: Any, *, crs: Any = None) -> list[Explanation]:
        """Where the error of each answer comes from, and what would make it smaller.

        Parameters
        ----------
        regions : GeoDataFrame, GeoSeries, geometries, boxes or DataFrame of boxes
            As in `query`; each takes as long as some thousand answers.
        crs : any CRS that pyproj understands, optional
            As in `query`.

        Returns
        -------
        list of Explanation
            In the order of the regions; see `psd.query.explain.Explanation`.

        Raises
        ------
        ParameterError
            If a region is malformed or lies outside the domain.
        DomainError
            If a CRS is missing.

        Examples
        --------
        >>> import psd
        >>> domain = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
        >>> tree = psd.grid_tree(domain, 2)
        >>> release = psd.Release.from_counts(tree, [500, 100, 0, 200], 1.0, domain=domain)
        >>> [found] = release.explain([(0, 0, 1, 2)])
        >>> found.noise_share < 0.01
        True
        >>> found.remedies[["change", "error"]].round(1).values.tolist()[-1]
        ['cells half as wide at its edge', 1.9]
        """
        from psd.query.explain import explanations
        from psd.space.regions import with_crs

        regions = with_crs(regions, crs, self.domain)
        self.query(regions)  # refuses what cannot be asked
        return explanations(self, regions)

    def nested(
        self,
        regions: Any,
        *,
        parents: ArrayLike | None = None,
        crs: Any = None,
        confidence: float = 0.95,
        threshold: float = 0.3,
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """Counts of regions inside regions, which add up, and of the rings between them.

        Parameters
        ----------
        regions : GeoDataFrame, GeoSeries, geometries, boxes or DataFrame of boxes
            As in `query`, each inside the next; or a table with columns ``id`` and ``parent``,
            the id of the region that each lies in.
        parents : array_like of int, optional
            Number of the region that each lies in, from 0; -1 for those in none.
        crs : any CRS that pyproj understands, optional
            As in `query`.
        confidence, threshold : float
            As in `query`.

        Returns
        -------
        DataFrame or GeoDataFrame
            As from `query`, and ``ring, ring_error, ring_lower, ring_upper``: what is in a
            region and in none of those directly inside it. A region's estimate is the sum of
            its ring and of the regions inside it, and no ring is negative.

        Raises
        ------
        ParameterError
            If a region does not lie inside its parent, or regions of one parent overlap.
        """
        from psd.space.regions import with_crs
        from psd.statistics.nested import nested

        regions = with_crs(regions, crs, self.domain)
        return nested(self, regions, parents=parents, confidence=confidence, threshold=threshold)

    def raster(self, columns: int, rows: int) -> Raster:
        """Counts, densities and errors of equal cells over the domain.

        Parameters
        ----------
        columns, rows : int
            Size of the raster, at most 16,777,216 cells in all.

        Returns
        -------
        Raster
            Arrays of shape (rows, columns), the first row in the north; the counts sum to
            `total`. See `psd.statistics.raster.Raster`.

        Raises
        ------
        ParameterError
            If the size is out of range.
        """
        from psd.statistics.raster import raster

        return raster(self, columns, rows)

    def top(
        self,
        k: int,
        *,
        size: tuple[int, int] | None = None,
        regions: Any = None,
        crs: Any = None,
        by: Literal["count", "density"] = "count",
        draws: int = 2000,
        seed: int = 0,
    ) -> pandas.DataFrame | geopandas.GeoDataFrame:
        """The k cells with most records, and how likely each truly is one of them.

        Parameters
        ----------
        k : int
            How many, at most as many as there are cells.
        size : tuple of int, optional
            Columns and rows of a raster to rank; without it the leaves are ranked.
        regions : GeoDataFrame, GeoSeries, geometries, boxes or DataFrame of boxes, optional
            Regions to rank instead, at most 5,000.
        crs : any CRS that pyproj understands, optional
            As in `query`.
        by : {"count", "density"}
            What cells are ranked by; leaves differ in size.
        draws : int
            Plausible true counts drawn: a probability p is off by about sqrt(p (1 - p) / draws).
        seed : int
            Of these draws; they protect nobody, and the same seed gives the same table.

        Returns
        -------
        DataFrame or GeoDataFrame
            k rows by falling estimate: ``rank``, the sides of the cell or the caller's columns,
            ``estimate, error, density`` (of cells, per square kilometre or unit of the CRS) and
            ``probability``. Errors are taken to be jointly normal, with the covariance that
            `joint` has, and all true counts to be alike beforehand.

        Raises
        ------
        ParameterError
            If an argument is out of range.
        """
        from psd.space.regions import with_crs
        from psd.statistics.top_cells import top

        if regions is not None:
            regions = with_crs(regions, crs, self.domain)
        return top(self, k, size=size, regions=regions, by=by, draws=draws, seed=seed)

    def quantiles(
        self,
        classes: int = 5,
        *,
        size: tuple[int, int] = (64, 64),
        weight: Literal["area", "people"] = "area",
        confidence: float = 0.95,
        draws: int = 100,
        seed: int = 0,
    ) -> pandas.DataFrame:
        """Breaks between the classes of a heat map, with their errors.

        Parameters
        ----------
        classes : int
            How many classes of equal weight, 2 to 100.
        size : tuple of int
            Columns and rows of the raster whose cells are classed.
        weight : {"area", "people"}
            Whether a class is to hold the same area as every other one, or the same records.
        confidence : float
            Probability that ``lower`` to ``upper`` is meant to cover, in (0, 1).
        draws, seed : int
            How often the release is drawn again, as if its counts were the truth.

        Returns
        -------
        DataFrame
            One row for each of the classes - 1 breaks: ``share`` of the weight at or below it,
            ``density`` (per square kilometre, or square unit of a CRS of unknown scale),
            ``error, lower, upper``. The error is the root mean square distance of the breaks
            drawn again; what a break below the noise of one cell is off by beyond that, no
            draw knows.

        Raises
        ------
        ParameterError
            If an argument is out of range.
        """
        from psd.statistics.quantiles import quantiles

        return quantiles(
            self,
            classes,
            size=size,
            weight=weight,
            confidence=confidence,
            draws=draws,
            seed=seed,
        )

    def to_geopandas(self, cells: Literal["leaves", "all"] = "leaves") -> geopandas.GeoDataFrame:
        """Cells as polygons with estimates, in the CRS of the release.

        Parameters
        ----------
        cells : {"leaves", "all"}
            The finest cells, or the nodes of every level.

        Returns
        -------
        GeoDataFrame
            ``cell, level, estimate, perturbation_error, density`` and the box as geometry;
            density is records per unit of area of the CRS.
        """
        from psd.export._cells import cells_table

        return cells_table(self, cells)

    def export(
        self,
        path: str | os.PathLike[str],
        *,
        cells: Literal["leaves", "all"] = "leaves",
        size: tuple[int, int] | None = None,
        table: str | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write the cells for a GIS program; the format follows from the name's ending.

        Parameters
        ----------
        path : path-like
            Ends in ``.gpkg``, ``.parquet``, ``.geojson`` or ``.csv``, or for a raster in
            ``.tif`` or ``.npy``; or the address ``postgresql://...`` of a PostGIS database.
        cells : {"leaves", "all"}
            As in `to_geopandas`; rasters are made of the leaves.
        size : tuple of int, optional
            Columns and rows of a raster; 256 each way where not given.
        table : str, optional
            Table of the database that is written, with its schema before a dot.
        overwrite : bool
            Whether an existing file or table is replaced.

        Raises
        ------
        ParameterError
            If the ending is of no known format, or a size is given for a table.
        WriteError
            If the file or table exists or cannot be written.
        MissingExtraError
            If a GeoTIFF is asked for and rasterio is not installed, or a database and its driver
            is not.
        """
        from psd.export import export
        from psd.release.public import Public

        public = Public.of(self)
        export(public, path, cells=cells, size=size, table=table, overwrite=overwrite)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the release file; it appears whole or not at all.

        Raises
        ------
        ParameterError
            If the counts were replayed and not drawn, or something in it is not known to be
            public, see `psd.release.public`.
        WriteError
            If the file exists or cannot be written.
        """
        from psd.release.file import write
        from psd.release.public import Public

        write(Public.of(self), path, overwrite=overwrite)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Release:
        """Read a release file.

        Raises
        ------
        ReleaseFormatError
            If the file is missing, malformed, damaged or of an unknown version.
        """
        from psd.release.file import read

        return read(path)


def _in_tree_order(tree: Tree, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Values of a grid, a row per line of cells from the south, in the order of the leaves."""
    if values.ndim != 2:
        return values
    leaves = tree.boxes[tree.is_leaf]
    columns, rows = (np.unique(leaves[:, side], return_inverse=True) for side in (0, 1))
    if values.shape != (len(rows[0]), len(columns[0])) or values.size != len(leaves):
        raise ParameterError(
            f"counts of shape {values.shape} are no grid of this tree, which has "
            f"{len(leaves)} leaves in {len(rows[0])} rows and {len(columns[0])} columns"
        )
    ordered: np.ndarray[Any, Any] = values[rows[1], columns[1]]
    return ordered


def _nanos(epsilons: ArrayLike | str | float, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Nano-epsilon of decimals, 0 allowed."""
    given = np.asarray(epsilons, dtype=object)
    if given.shape not in ((), shape):
        raise ParameterError(f"epsilons have shape {given.shape}, the counts {shape}")
    flat = np.broadcast_to(given, shape)
    return np.array([0 if value == 0 else parse_epsilon(value) for value in flat], np.int64)
