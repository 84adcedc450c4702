"""Made-up populations: where people might be, drawn from public assumptions alone.

For planning, when no data may be looked at. An assumed density says how the records of a square
cell are shared out among its quarters, from the whole domain down to the lattice.

References
----------
.. [1] Mandelbrot. "Intermittent turbulence in self-similar cascades." J. Fluid Mech. 62, 1974:
   random multiplicative cascades. https://doi.org/10.1017/S0022112074000711
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.errors import ParameterError
from psd.ingest.tally import Tally
from psd.space.covariate import Covariate
from psd.space.domain import DEFAULT_LATTICE, Domain

__all__ = ["DENSITIES", "AssumedDensity", "group_size", "population"]

# Fitted to public data, see docs/guide/planning.md. Shares of the quarters of a cell are Dirichlet
# distributed with these parameters, level by level from the whole domain down, the last of them on
# all further levels; 1 makes all shares equally likely, less makes them more unequal.
CLUSTERING: dict[str, tuple[float, ...]] = {
    "clustered": (1.0,),
    "coastal": (0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 0.8, 1.0),
    "places": (2.0, 2.0, 2.0, 1.5, 1.0, 0.7, 0.4, 0.2, 0.1, 0.05),
}

DENSITIES = ("uniform", *CLUSTERING)

# Halvings of each side down to a lattice cell.
_LEVELS = 20

# Above about so many places, records stand together in groups; bounds time and memory.
_PLACES = 1_000_000

# Further levels on which cells that lie across lines of a raster are divided by it.
_BETWEEN = 6

_TINY = 1e-250

_EAST, _NORTH = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedDensity:
    """How the records of a cell are shared out among its quarters. Public.

    Parameters
    ----------
    kind : {"uniform", "clustered", "coastal", "places"}
        Evenly, or by a random multiplicative cascade, in which the shares of the four quarters
        of a cell are drawn from a Dirichlet distribution: as unequal on every level; most
        unequal on the first ones, as where sea and mountains are empty; or most unequal on the
        last ones, as where records share addresses or masts.
    covariate : Covariate, optional
        Known density. It rules as far down as its raster reaches; the kind, below, by the
        parameters of the same levels.
    """

    kind: str
    covariate: Covariate | None = None

    def __post_init__(self) -> None:
        """Check the kind."""
        if self.kind not in DENSITIES:
            raise ParameterError(f"density {self.kind!r} is none of {', '.join(DENSITIES)}")

    @property
    def coarse_levels(self) -> int:
        """Levels of cells that are larger than those of the covariate's raster."""
        if self.covariate is None:
            return 0
        return int(np.ceil(np.log2(max(self.covariate.columns, self.covariate.rows))))

    @property
    def known_levels(self) -> int:
        """Levels whose shares follow the covariate; some more where no line is one of its own."""
        if self.covariate is None:
            return 0
        halvings = 2**self.coarse_levels
        if halvings % self.covariate.columns == 0 == halvings % self.covariate.rows:
            return self.coarse_levels
        return self.coarse_levels + _BETWEEN

    def shares(
        self, columns: Integers, rows: Integers, level: int, random: np.random.Generator
    ) -> Floats:
        """Share of each quarter in the records of its cell, given that there are some.

        Parameters
        ----------
        columns, rows : ndarray, shape (n,), int64
            Quarters' cells, counted in cells of the level.
        level : int
            Of the cells; 0 is the whole domain.
        random : numpy.random.Generator
            Source of the shares of a cascade.

        Returns
        -------
        ndarray, shape (n, 4), float64
            South-west, south-east, north-west, north-east; rows sum to 1.
        """
        weights = np.ones((len(columns), 4))
        if self.kind != "uniform" and level >= self.coarse_levels:
            profile = CLUSTERING[self.kind]
            parameter = profile[min(level, len(profile) - 1)]
            # Where the parameter is small, all four may be too small for a float.
            weights = random.standard_gamma(parameter, weights.shape) + _TINY
        if self.covariate is not None and level < self.known_levels:
            weights *= _masses(self.covariate, columns, rows, level)
        found: Floats = weights / weights.sum(axis=1, keepdims=True)
        return found


def _masses(covariate: Covariate, columns: Integers, rows: Integers, level: int) -> Floats:
    """Mass of the quarters of cells."""
    side = 2 ** (_LEVELS - level - 1)
    west = (2 * columns[:, None] + _EAST).ravel() * side
    south = (2 * rows[:, None] + _NORTH).ravel() * side
    boxes = np.stack([west, south, west + side, south + side], axis=1)
    return covariate.mass(boxes).reshape(-1, 4)


def group_size(count: int) -> int:
    """Most records that are placed together in a population of so many; 1 up to a million."""
    return -(-count // _PLACES)


def population(
    count: int,
    domain: Domain,
    density: AssumedDensity,
    random: np.random.Generator,
    *,
    contributions: int = 1,
) -> Tally:
    """Draw a population: exactly so many records, on the lattice.

    Guarantees
    ----------
    - Reads no data; the same generator state gives the same population.
    - Up to a million records each has a place of its own; of more, groups of at most
      `group_size` have one together, so that memory stays bounded.

    Parameters
    ----------
    count : int
        Records. Public.
    domain : Domain
        With the default lattice. Public.
    density : AssumedDensity
        Where they might be. Public.
    random : numpy.random.Generator
        Source of all choices.
    contributions : int
        Most records of one user. Public.

    Returns
    -------
    Tally
        Of nobody.

    Notes
    -----
    The records of a cell are shared out among its quarters by one multinomial draw, cells of a
    level together, until a cell has a group at most, which is placed at random in it. For single
    records that is their exact distribution: where nobody else is, all places are alike.
    """
    if domain.lattice != DEFAULT_LATTICE:
        raise ParameterError("populations are drawn on the default lattice")
    group = group_size(count)
    cells = np.zeros((2, 1), np.int64)
    records = np.array([count], np.int64)
    placed: list[Integers] = []
    for level in range(_LEVELS + 1):
        done = (records <= group) & (level >= density.known_levels) | (level == _LEVELS)
        placed.append(_placed(cells[:, done], records[done], level, random))
        cells, records = _quartered(cells[:, ~done], records[~done], level, density, random)
    return _tally(np.concatenate(placed, axis=1), contributions)


def _placed(
    cells: Integers, records: Integers, level: int, random: np.random.Generator
) -> Integers:
    """Columns and rows on the lattice, and records, of groups somewhere in their cells."""
    side = 2 ** (_LEVELS - level)
    where = cells * side + random.integers(0, side, cells.shape)
    return np.concatenate([where, records[None, :]])


def _quartered(
    cells: Integers,
    records: Integers,
    level: int,
    density: AssumedDensity,
    random: np.random.Generator,
) -> tuple[Integers, Integers]:
    """Quarters that hold records, and how many."""
    if not len(records):
        return cells, records
    shares = density.shares(cells[0], cells[1], level, random)
    parts = random.multinomial(records, shares).ravel()
    columns, rows = 2 * cells[0][:, None] + _EAST, 2 * cells[1][:, None] + _NORTH
    quarters = np.stack([columns.ravel(), rows.ravel()])
    return quarters[:, parts > 0], parts[parts > 0]


def _tally(placed: Integers, contributions: int) -> Tally:
    """Records of each occupied lattice cell, in order."""
    columns, rows, records = placed
    codes, inverse = np.unique(rows * DEFAULT_LATTICE[0] + columns, return_inverse=True)
    counts = np.zeros(len(codes), np.int64)
    np.add.at(counts, inverse, records)
    return Tally(
        columns=(codes % DEFAULT_LATTICE[0]).astype(np.int32),
        rows=(codes // DEFAULT_LATTICE[0]).astype(np.int32),
        counts=counts,
        contributions=contributions,
    )
