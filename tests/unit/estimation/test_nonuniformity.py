"""Error of uniformity inside leaves, and its dispersion, learnt from noisy counts."""

import math

import numpy as np
import pytest

import psd
from psd.estimation.density import parent_shares
from psd.estimation.least_squares import infer_counts
from psd.estimation.nonuniformity import cell_ceiling, fit_dispersion, nonuniformity_variance
from psd.privacy.loss import NANO
from psd.space.box_tree import Tree
from support.trees import domain_of, grid_release, random_tree


@pytest.fixture
def release():
    return grid_release(np.arange(16).reshape(4, 4) * 10)


@pytest.mark.parametrize("lattice", [(9, 9), (2**20, 2**20)])
def test_a_query_along_own_edges_has_no_nonuniformity_error(lattice):
    domain = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0), lattice=lattice)
    tree = psd.decompositions.grid_tree(domain, 9)
    release = psd.Release.from_counts(tree, np.arange(81), 1.0, domain=domain)
    cells = release.to_geopandas("all").geometry.bounds.to_numpy()
    table = release.query(cells).table
    assert (table.nonuniformity_error == 0).all()
    assert list(table.estimate) == pytest.approx(release.index.fit.estimates.count)
    variance = release.index.fit.noise_covariance.variance
    assert list(table.perturbation_error) == pytest.approx(np.sqrt(variance))


def test_nonuniformity_error_of_a_cut_leaf_by_hand():
    # A lone root knows nothing about its inside: phi is 1, all or nothing.
    domain = domain_of((4, 4))
    tree = Tree(boxes=[[0, 0, 4, 4]], parent=[-1], level=[0], count=[0], loss=[0])
    release = psd.Release.from_counts(tree, [50], 2.0, domain=domain)
    row = release.query([(0, 0, 1, 4)]).table.loc[0]
    assert row["estimate"] == pytest.approx(12.5)
    assert row["nonuniformity_error"] == pytest.approx(math.sqrt(50 * 0.25 * 0.75 * (2 + 50)))
    q = math.exp(-2)
    assert row["perturbation_error"] == pytest.approx(0.25 * math.sqrt(2 * q) / (1 - q))


def test_negative_cells_have_no_nonuniformity():
    half = np.array([0.5, 0.5])
    variance = nonuniformity_variance(np.array([-5.0, 4.0]), half, half, np.array([1.0, 0.0]), 4.0)
    assert variance.tolist() == [0, 4]


def simulated(height, points, phi, rng):
    """Exact counts of a quadtree: each cell's points fall to its quarters by random shares.

    With Dirichlet shares of concentration a the over-dispersion is 1 / (1 + a).
    """
    domain = domain_of((2 ** (height + 1),) * 2)  # a cell of the lattice has phi 1
    tree = psd.decompositions.grid_tree(domain, 2**height)
    count = np.zeros(len(tree), np.int64)
    count[0] = points
    for node in np.flatnonzero(~tree.is_leaf):
        shares = rng.dirichlet(np.full(4, (1 / phi - 1) / 4)) if phi else np.full(4, 0.25)
        first = tree.first_child[node]
        count[first : first + 4] = rng.multinomial(count[node], shares)
    return tree, count


def noisy(tree, count, epsilon, rng):
    """Counts with discrete Laplace noise on every node: a difference of two geometrics."""
    p = -math.expm1(-epsilon)
    noise = rng.geometric(p, len(tree)) - rng.geometric(p, len(tree))
    return Tree(
        boxes=tree.boxes,
        parent=tree.parent,
        level=tree.level,
        count=count + noise,
        loss=np.full(len(tree), round(epsilon * NANO)),
    )


def by_level(tree):
    """Overdispersion inside the leaves of each level."""
    fitted = fit_dispersion(tree, infer_counts(tree), parent_shares(tree, None))
    return fitted.overdispersion[[level.start for level in tree.levels]]


@pytest.mark.deep
@pytest.mark.parametrize(
    ("phi", "points", "epsilon"),
    [
        pytest.param(0.02, 2_000_000, 1.0, id="nearly even, little noise"),
        pytest.param(0.3, 2_000_000, 1.0, id="clustered, little noise"),
        pytest.param(0.1, 2_000_000, 0.1, id="clustered, more noise"),
        pytest.param(0.02, 40_000, 1.0, id="few points: their own chance counts"),
        pytest.param(0.1, 60_000, 0.008, id="as much noise as points"),
    ],
)
def test_dispersion_is_recovered_from_noisy_counts(phi, points, epsilon):
    rng = np.random.default_rng(11)
    fitted = []
    for _ in range(30):
        tree = noisy(*simulated(5, points, phi, rng), epsilon, rng)
        fitted.append(by_level(tree)[4:])
    assert np.mean(fitted, axis=0) == pytest.approx([phi, phi], rel=0.25)


@pytest.mark.parametrize(
    ("points", "epsilon", "most"),
    [
        pytest.param(2_000_000, 1.0, 1e-4, id="many points"),
        # 80 points in a family: taken for clusters, their chance alone would give 1/80.
        pytest.param(20_000, 1.0, 4e-3, id="few points"),
        # Taken for clusters, this noise would give 0.05.
        pytest.param(200_000, 0.02, 1e-2, id="much noise"),
    ],
)
def test_points_thrown_at_random_have_no_dispersion(points, epsilon, most):
    rng = np.random.default_rng(12)
    tree = noisy(*simulated(5, points, 0, rng), epsilon, rng)
    phi = by_level(tree)
    assert phi[0] == 1
    assert (phi[4:] < most).all()


def test_a_few_huge_cells_do_not_decide_for_all_others():
    """An even density with three colonies, each in one leaf: other leaves are even inside."""
    domain = domain_of((128, 128))
    tree = psd.decompositions.grid_tree(domain, 64)
    random = np.random.default_rng(4)
    counts = random.poisson(40, np.count_nonzero(tree.is_leaf))
    counts[[300, 1700, 3100]] = 200_000
    release = psd.Release.from_counts(tree, counts, 3.0, domain=domain)
    fitted = fit_dispersion(tree, release.index.fit.estimates, parent_shares(tree, None))
    leaves = fitted.overdispersion[tree.is_leaf]
    assert leaves.max() < 0.35


def test_dispersion_is_a_share_even_where_nothing_can_be_learnt():
    for seed in range(30):
        tree = random_tree(np.random.default_rng(seed), unknown_leaf=0.5, top=3)
        phi = by_level(tree)
        assert len(phi) == len(tree.levels)
        assert ((phi >= 0) & (phi <= 1)).all()


def test_a_cell_hardly_holds_more_than_its_count_and_two_standard_deviations():
    count, variance = np.array([100.0, 0.0, -7.0]), np.array([25.0, 4.0, 9.0])
    assert cell_ceiling(count, variance).tolist() == [110.0, 4.0, 6.0]
