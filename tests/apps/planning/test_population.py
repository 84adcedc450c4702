"""Made-up populations: exact sizes, even ones even, clustered ones as uneven as they say."""

import numpy as np
import pytest

import psd
from psd.apps.planning._constants import CLUSTERING
from psd.apps.planning.population import (
    DENSITIES,
    AssumedDensity,
    draw_population,
    group_size,
    square_domain,
)
from psd.errors import ParameterError

DOMAIN = square_domain(100.0)
SIDE = 2**20


def people(count, kind="uniform", seed=3, covariate=None, domain=DOMAIN):
    density = AssumedDensity(kind=kind, covariate=covariate)
    return draw_population(count, domain, density, np.random.default_rng(seed))


def quarters(tally, level):
    found = np.zeros((2**level, 2**level), np.int64)
    shift = 20 - level
    np.add.at(found, (tally.rows >> shift, tally.columns >> shift), tally.counts)
    return found


@pytest.mark.parametrize("kind", DENSITIES)
def test_exactly_so_many_records_in_order_of_their_cells(kind):
    for count in (1, 2, 997, 50_000):
        found = people(count, kind)
        assert found.counts.sum() == count
        assert found.counts.min() > 0
        assert (np.diff(found.rows.astype(np.int64) * SIDE + found.columns) > 0).all()
        assert min(found.rows.min(), found.columns.min()) >= 0
        assert max(found.rows.max(), found.columns.max()) < SIDE
    first, again, other = (people(5_000, kind, seed) for seed in (1, 1, 2))
    for name in ("columns", "rows", "counts"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    assert not np.array_equal(first.columns, other.columns)


def test_uniform_records_are_uniform_and_clustered_ones_what_they_say():
    """Chi-square over 256 cells: within five of its standard deviations, sqrt(2 x 255).

    Below the cells that they stopped at they are uniform too.
    """
    found = quarters(people(100_000), 4)
    expected = 100_000 / 256
    statistic = ((found - expected) ** 2 / expected).sum()
    assert abs(statistic - 255) < 5 * np.sqrt(2 * 255)
    found = people(1_000)
    for values in (found.columns, found.rows):
        assert abs((values % 2**8).mean() / 2**8 - 0.5) < 5 * np.sqrt(1 / 12 / 1_000)
    # Far more of the records in the fullest cells than where they are uniform.
    fullest = {
        kind: np.sort(quarters(people(20_000, kind), 5).ravel())[-32:].sum() for kind in DENSITIES
    }
    assert min(fullest[kind] for kind in CLUSTERING) > 2 * fullest["uniform"]


@pytest.mark.parametrize("kind", CLUSTERING)
def test_shares_of_quarters_have_the_moment_of_their_dirichlet_distribution(kind):
    """Sum of squared shares: (a + 1) / (4 a + 1) on the mean."""
    density, cells = AssumedDensity(kind=kind), np.zeros(20_000, np.int64)
    for level in (0, 3, 19):
        profile = CLUSTERING[kind]
        a = profile[min(level, len(profile) - 1)]
        shares = density.draw_shares(cells, cells, level, np.random.default_rng(5))
        squares = (shares**2).sum(axis=1)
        error = 5 * squares.std() / np.sqrt(len(cells))
        assert abs(squares.mean() - (a + 1) / (4 * a + 1)) < error
        assert np.allclose(shares.mean(axis=0), 0.25, atol=0.02)


@pytest.mark.parametrize("kind", DENSITIES)
def test_a_covariate_rules_as_far_down_as_its_raster_reaches(kind):
    domain = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857")
    raster = np.array([[1, 0, 3], [0, 0, 0], [0, 0, 4]], np.uint16)
    covariate = psd.Covariate(domain=domain, raster=raster)
    found = people(40_000, kind, covariate=covariate, domain=domain)
    x, y = (np.minimum(v * 3 // SIDE, 2) for v in (found.columns.astype(int), found.rows))
    held = np.zeros((3, 3))
    np.add.at(held, (y, x), found.counts)
    assert held[raster == 0].sum() < 0.02 * 40_000  # lines of thirds are no lattice lines
    expected = 40_000 * raster[raster > 0].astype(float) / 8
    assert np.allclose(held[raster > 0], expected, rtol=0.12)


def test_up_to_a_million_records_have_places_of_their_own():
    assert [group_size(count) for count in (1, 10**6, 10**6 + 1, 10**9)] == [1, 1, 2, 1000]
    found = people(10**10, "uniform")
    assert found.counts.sum() == 10**10
    assert found.counts.max() <= 2 * group_size(10**10)
    assert len(found.counts) < 4.1e6
    words = "must be one of uniform, clustered, coastal, places, got 'even'"
    with pytest.raises(ParameterError, match=words):
        AssumedDensity(kind="even")
    with pytest.raises(ParameterError, match="must have the default lattice"):
        people(10, domain=psd.Domain(bounds=(0, 0, 1, 1), crs="EPSG:3857", lattice=(4, 4)))
