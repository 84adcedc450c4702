"""Models of suggestions: regions of equal size, shared weights, and regions with factors. Public.

By shared weights, the score of a region is a weighted sum of six features: how near it is to the
regions of a person's own records on four scales, whether it is one of them, and its density in a
release. Factors [1]_ know no distance and no density; those of a person are solved from these
regions, inside the question for the sums or on the device, and never published.

.. [1] Chien et al. "Private Alternating Least Squares." ICML 2021. arXiv:2107.09802.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats, Integers
from psd._util.atomic_write import write_file
from psd._util.declared_parameters import integer_between
from psd._util.json_toml import strict_json
from psd.errors import DomainError, ParameterError, ReleaseFormatError
from psd.privacy.count_noise import NoisySums, Statistic, deviation, fill_symmetric, triangle
from psd.privacy.loss import parse_delta, parse_epsilon
from psd.space.crs import explain_proj_errors, offline, parse_crs
from psd.space.domain import Domain
from psd.statistics.raster import density_raster

if TYPE_CHECKING:
    from psd.api.release import Release


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

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(126.4, 37, 127.6, 38), lattice=(8, 8))
    >>> tree = psd.decompositions.grid_tree(domain, 8)
    >>> release = psd.Release.from_counts(tree, range(64), 1, domain=domain)
    >>> RegionGrid.of_release(release, 8).centres.shape
    (64, 3)
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
        # Rows of a raster run from the north, those of regions from the south.
        count = np.maximum(density_raster(release.index.fit, cells, cells).count[::-1].ravel(), 0)
        if not count.sum() > 0:
            raise ParameterError(
                "release must have a density, got one without records; build it with more epsilon"
            )
        boxes = _boxes(domain, cells)
        middles = (boxes[:, :2] + boxes[:, 2:]) / 2
        from pyproj import Transformer

        with offline(), explain_proj_errors("release", "EPSG:4326"):
            crs = parse_crs(domain.crs)
            transformer = Transformer.from_crs(crs, "EPSG:4326", always_xy=True)
            longitude, latitude = np.radians(transformer.transform(*middles.T))
        if not np.isfinite(longitude + latitude).all():
            raise DomainError("release must lie on the earth; its CRS has no longitudes there")
        # The middles on the unit sphere, (regions, 3).
        across = np.cos(latitude)
        centres = np.stack(
            [across * np.cos(longitude), across * np.sin(longitude), np.sin(latitude)], axis=1
        )
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
        # The same for all people, and public: no draw is needed. The middles of even shares of the
        # records, in the order of the regions.
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


_UNSEEN = 0.1  # weight of a region that the person has no record in
_RIDGE = 0.1  # of the factors of a person
_NOISE_RIDGE = 4.0  # of those of a region, in standard deviations of the noise, beside 1


@dataclass(frozen=True, kw_only=True, eq=False)
class FactorModel:
    """Factors of regions.

    Parameters
    ----------
    factors : ndarray, shape (n, d), float64
        Of each region. Public.

    Examples
    --------
    >>> FactorModel(factors=np.eye(3)).factors.shape
    (3, 3)
    """

    factors: Floats

    def person_factors(self, regions: Integers) -> Floats:
        """Factors of a person, of norm 1, shape (d,). Private to the person."""
        seen = self.factors[np.unique(regions)]
        matrix = self._gramian + seen.T @ seen
        # Least squares of 1 on regions with a record, and of 0 on all regions at a small weight.
        solved = np.linalg.solve(matrix + _RIDGE * np.eye(seen.shape[1]), seen.sum(0))
        return solved / max(float(np.linalg.norm(solved)), 1e-9)

    @cached_property
    def _gramian(self) -> Floats:
        """Gramian of all regions, at the weight of those without a record."""
        return _UNSEEN * self.factors.T @ self.factors

    def scores(self, regions: Integers) -> Floats:
        """Score of every region for a person, from the regions of the person's records.

        Examples
        --------
        >>> FactorModel(factors=np.eye(3)).scores(np.array([1])).round(6).tolist()
        [0.0, 1.0, 0.0]
        """
        return self.factors @ self.person_factors(regions)

    def person_part(self, regions: Integers) -> list[tuple[Integers, Floats]]:
        """What one person adds to the sums: to all regions, and to those of the person."""
        places, factors = np.unique(regions), self.person_factors(regions)
        outer = triangle(np.outer(factors, factors))[None]
        return [
            (np.zeros(1, np.int64), outer),
            (places, np.repeat(outer, len(places), 0)),
            (places, np.repeat(factors[None], len(places), 0)),
        ]


def learn_factors(
    people: NoisySums, regions: int, *, size: int = 12, steps: int = 4
) -> FactorModel:
    """Learn the factors of regions; each step asks for noisy sums with an equal part of rho.

    P1. It reads noisy sums and public numbers, so it costs what the sums cost.
    """
    start = np.random.default_rng(0).normal(size=(regions, size)) / np.sqrt(size)
    model, rho = FactorModel(factors=start), people.rho // steps
    # A Gramian is symmetric: its triangle has `wide` numbers.
    wide = size * (size + 1) // 2
    statistics = [
        Statistic(name="gramian", rows=1, width=wide, share=2),
        Statistic(name="region gramians", rows=regions, width=wide, share=8),
        Statistic(name="right sides", rows=regions, width=size, share=90),
    ]
    noise = deviation(statistics, 1, rho)
    for _ in range(steps):
        total, gramians, right = people.sums(model.person_part, statistics, rho)
        # Of each region, (size, size), and its right side, (size,).
        matrices = fill_symmetric(_UNSEEN * total + gramians, right.shape[1])
        # In the axes of each matrix, what noise may hide is damped by its standard deviation;
        # negative eigenvalues are noise.
        values, vectors = np.linalg.eigh(matrices)
        values = np.maximum(values, 0) + 1 + _NOISE_RIDGE * noise
        turned = np.einsum("rij,ri->rj", vectors, right) / values
        model = FactorModel(factors=np.einsum("rij,rj->ri", vectors, turned))
    return model


_SCALES_KM = (1.5, 3.0, 6.0, 12.0)

FEATURES = (*(f"nearness_{scale:g}_km" for scale in _SCALES_KM), "own_place", "log_density")
"""Names of the features, in their order."""

_SIZE = len(FEATURES)
_STATISTICS = (
    Statistic(name="gramian", rows=1, width=_SIZE * (_SIZE + 1) // 2),
    Statistic(name="right side", rows=1, width=_SIZE),
)

# Least eigenvalue in standard deviations of the noise, so that the noise of the right side moves
# the weights by at most a 16th in each direction. Noise alone gives the matrix eigenvalues up to
# about 2 sqrt(6) = 4.9.
_FLOOR = 16.0


def features(grid: RegionGrid, own_places: Integers, targets: Integers) -> Floats:
    """Features of regions (n,) for a person with own places (m,), shape (n, 6)."""
    places = np.unique(own_places)
    distances = grid.distances(places, targets)  # (targets, places)
    # Nearness on a scale l is log(1 + 4 sum over own places of exp(-d / l)), d in km.
    near = [np.log1p(4 * np.exp(distances / -scale).sum(1)) for scale in _SCALES_KM]
    return np.stack([*near, np.isin(targets, places), grid.log_density[targets]], axis=1)


def differences(grid: RegionGrid, regions: Integers) -> Floats:
    """Features of each seen region, (m,) int64, minus those of contrasts: (64 m, 6) float64."""
    contrasts = grid.contrasts
    rows = []
    # By the person's other records; a region may repeat.
    for index, region in enumerate(regions):
        described = features(grid, np.delete(regions, index), np.append(contrasts, region))
        rows.append(described[-1] - described[:-1])
    difference = np.concatenate(rows)
    # Of norm at most 1: longer ones are scaled.
    bounded: Floats = difference / np.maximum(np.linalg.norm(difference, axis=1), 1)[:, None]
    return bounded


def person_part(grid: RegionGrid, regions: Integers) -> list[tuple[Integers, Floats]]:
    """Gramian and right side of one person: least squares of 1 on the differences."""
    row = np.zeros(min(len(regions) // 2, 1), np.int64)  # nothing of a person with one record
    if not len(row):
        return [(row, np.empty((0, statistic.width))) for statistic in _STATISTICS]
    difference = differences(grid, regions)
    weight = 1 / len(grid.contrasts)
    gramian, right = difference.T @ difference * weight, difference.sum(0) * weight
    return [(row, triangle(gramian)[None]), (row, right[None])]


def solve_weights(gramian: Floats, right: Floats, noise: float) -> Floats:
    """Solve noisy least squares, (21,) and (6,); directions that noise may hide are damped."""
    values, vectors = np.linalg.eigh(fill_symmetric(gramian, _SIZE))
    # An eigenvalue is a divisor: noise may make a small one negative, or too small.
    values = np.maximum(values, max(_FLOOR * noise, 1e-6 * abs(values).max(), 1e-6))
    weights: Floats = vectors @ (vectors.T @ right / values)
    return weights


def learn_weights(people: NoisySums, grid: RegionGrid) -> Floats:
    """Learn the shared weights with all of rho.

    Guarantees
    ----------
    - It reads noisy sums and public numbers, so it costs what the sums cost.

    Parameters
    ----------
    people : NoisySums
        Answers one question, of two statistics with half of rho each.
    grid : RegionGrid
        Regions of a release.

    Returns
    -------
    ndarray, shape (6,), float64
        Weights in the order of `FEATURES`.

    Notes
    -----
    Each record is compared with regions drawn from the release. The weights are those with which
    the difference in score comes nearest to 1, by least squares over all people.
    Corrections of each person, in turn with the weights, are left out: they help by less than a
    point (`python lab/suggest.py`).

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(126.4, 37, 127.6, 38), lattice=(8, 8))
    >>> tree = psd.decompositions.grid_tree(domain, 8)
    >>> release = psd.Release.from_counts(tree, range(64), 1, domain=domain)
    >>> class Nobody:  # in place of people
    ...     rho = 10**12
    ...     def sums(self, part, statistics, rho):
    ...         return [np.zeros((each.rows, each.width)) for each in statistics]
    >>> learn_weights(Nobody(), RegionGrid.of_release(release, 8)).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    rho = people.rho
    gramian, right = people.sums(partial(person_part, grid), _STATISTICS, rho)
    return solve_weights(gramian[0], right[0], deviation(_STATISTICS, 0, rho))


_FORMAT = 1
_LONGEST = 2**16
_DIGEST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWeights:
    """Shared weights, with the promise under which they were learnt. Public.

    Guarantees
    ----------
    - The fields are noisy answers and public parameters, and there are no others.

    Parameters
    ----------
    weights : dict of float
        Weight of each of `psd.apps.suggest.FEATURES`.
    release : str
        Digest of the release whose density and area they belong to.
    cells : int
        Regions in a row and in a column of its area.
    epsilon, delta : str
        What they cost, for adding or removing one user.
    max_contributions : int
        Largest number of records of a user that were read.
    ledger, charge : str, optional
        Random ids of the ledger and of the charge that paid.

    Raises
    ------
    ParameterError
        If a field is malformed.

    Examples
    --------
    >>> weights = SharedWeights(weights=dict.fromkeys(FEATURES, 0.5), release="0" * 64, cells=8,
    ...     epsilon="1", delta="1e-6", max_contributions=4)
    >>> weights.cells, len(weights.weights)
    (8, 6)
    """

    weights: dict[str, float]
    release: str
    cells: int
    epsilon: str
    delta: str
    max_contributions: int
    ledger: str | None = None
    charge: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.weights, dict) or tuple(self.weights) != FEATURES:
            raise ParameterError(f"weights must be those of {', '.join(FEATURES)}, in this order")
        if not all(isinstance(weight, float) for weight in self.weights.values()):
            raise ParameterError("weights must be numbers with a decimal point")
        if not all(math.isfinite(weight) for weight in self.weights.values()):
            raise ParameterError("weights must be finite")
        if not _is_text(self.release, _DIGEST) or len(self.release) != _DIGEST:
            raise ParameterError("release must be a digest of 64 hexadecimal digits")
        for name in ("ledger", "charge"):
            if getattr(self, name) is not None and not _is_text(getattr(self, name), _DIGEST):
                raise ParameterError(f"{name} must be the random id of a ledger")
        CELLS("cells", self.cells)
        if not isinstance(self.epsilon, str) or not isinstance(self.delta, str):
            raise ParameterError("epsilon and delta must be texts")
        parse_epsilon(self.epsilon)
        parse_delta(self.delta)
        if type(self.max_contributions) is not int or self.max_contributions < 1:
            raise ParameterError("max_contributions must be an integer of at least 1")

    def check_grid(self, grid: RegionGrid) -> None:
        """Refuse a release that the weights were not learnt with.

        Raises
        ------
        ParameterError
            If its digest is another one.
        """
        if grid.digest != self.release:
            raise ParameterError(
                f"release must be the one that the weights were learnt with, of digest "
                f"{self.release[:16]}..., got {grid.digest[:16]}...; is it of another area or date?"
            )


def write_weights(
    weights: SharedWeights, path: str | os.PathLike[str], *, overwrite: bool = False
) -> None:
    """Write a file of weights, whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> weights = SharedWeights(weights=dict.fromkeys(FEATURES, 0.5), release="0" * 64, cells=8,
    ...     epsilon="1", delta="1e-6", max_contributions=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_weights(weights, folder + "/weights.json")
    ...     print(read_weights(folder + "/weights.json") == weights)
    True
    """
    stated = {name: value for name, value in asdict(weights).items() if value is not None}
    text = json.dumps({"psd_weights": _FORMAT, **stated}, indent=1, allow_nan=False) + "\n"
    write_file(path, text.encode(), overwrite=overwrite)


def read_weights(path: str | os.PathLike[str]) -> SharedWeights:
    """Read a file of weights, and check every field.

    Raises
    ------
    ReleaseFormatError
        If the file is missing, is not strict JSON, or has other fields or values than it may.

    Examples
    --------
    >>> import tempfile
    >>> weights = SharedWeights(weights=dict.fromkeys(FEATURES, 0.5), release="0" * 64, cells=8,
    ...     epsilon="1", delta="1e-6", max_contributions=4)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_weights(weights, folder + "/weights.json")
    ...     print(read_weights(folder + "/weights.json").epsilon)
    1
    """
    try:
        with open(path, "rb") as file:
            fields = strict_json(file.read(_LONGEST + 1), _LONGEST)
        if not isinstance(fields, dict) or fields.pop("psd_weights", None) != _FORMAT:
            raise ReleaseFormatError("psd_weights must be 1")
        optional = {"ledger", "charge"}
        required = set(SharedWeights.__dataclass_fields__) - optional
        if not required <= fields.keys() <= required | optional:
            raise ReleaseFormatError("it must have exactly the fields of format 1")
        return SharedWeights(**fields)
    except FileNotFoundError:
        raise ReleaseFormatError(
            f"{path} does not exist; `psd suggest train` writes a file of weights", path=path
        ) from None
    except OSError as error:
        reason = error.strerror or "cannot be read"
    except (ParameterError, ReleaseFormatError) as error:
        reason = str(error)
    raise ReleaseFormatError(f"{path} is not a file of weights: {reason}", path=path)


def _is_text(value: object, longest: int) -> bool:
    """Whether a value is a short text of hexadecimal digits."""
    return (
        isinstance(value, str) and 0 < len(value) <= longest and not value.strip("0123456789abcdef")
    )
