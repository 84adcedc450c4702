"""Smooth density: shares of leaves, the surface that windows are added up on, and answers."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import psd
from psd.estimation import density as module
from psd.estimation.density import PARTS, smooth_density
from psd.release.post_processing import PostProcessing
from psd.space.box_tree import Tree
from support.releases import changed
from support.trees import METRES, domain_of, random_queries, random_tree, release_of

EVEN = 1 / PARTS**2
SIDE = module.DENSITY_RASTER

law = settings(derandomize=True, max_examples=80, deadline=None)


def grid(lattice, size):
    return psd.decompositions.grid_tree(domain_of(lattice), size)


def shares(tree, leaf_counts):
    """Shares of the leaves, in the order of the tree."""
    count = np.zeros(len(tree))
    count[tree.is_leaf] = leaf_counts
    return smooth_density(tree, count, tuple(int(n) for n in tree.boxes[0, 2:])).share


def by_place(tree, values):
    """Values of the leaves by row and column, from the south-west."""
    boxes = tree.boxes[tree.is_leaf]
    order = np.lexsort((boxes[:, 0], boxes[:, 1]))
    side = int(np.sqrt(len(boxes)))
    return values[order].reshape(side, side, *values.shape[1:])


# --- shares -------------------------------------------------------------------------------


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(10))
def test_shares_are_of_one_whole_and_not_negative(seed):
    rng = np.random.default_rng(seed)
    lattice = [(64, 64), (64, 3), (1, 40), (2**20, 2**20), (5000, 7)][seed % 5]
    tree = random_tree(rng, lattice=lattice, height=5)
    counts = rng.integers(0, [3, 10**6][seed % 2], int(tree.is_leaf.sum())).astype(float)
    found = shares(tree, counts)
    assert found.shape == (tree.is_leaf.sum(), PARTS, PARTS)
    assert (found >= 0).all()
    assert found.sum(axis=(1, 2)) == pytest.approx(np.ones(len(found)))


@pytest.mark.deep
@pytest.mark.parametrize("lattice", [(1, 1), (64, 64), (64, 16), (7, 5), (3, 2**20)])
@pytest.mark.parametrize(("size", "count"), [(1, 1.0), (4, 1e-3), (4, 1e9)])
def test_even_counts_give_even_shares_also_at_the_edge(lattice, size, count):
    tree = grid(lattice, size)
    area = tree.area[tree.is_leaf] / tree.area[0]
    assert shares(tree, count * area) == pytest.approx(np.full((len(area), PARTS, PARTS), EVEN))


@pytest.mark.deep
def test_leaves_of_different_sizes_but_one_density_are_even():
    tree = random_tree(np.random.default_rng(7), lattice=(64, 64), height=4)
    area = tree.area[tree.is_leaf].astype(float)
    assert shares(tree, area) == pytest.approx(np.full((len(area), PARTS, PARTS), EVEN), rel=1e-6)


def test_no_records_are_even():
    assert (shares(grid((16, 16), 4), np.zeros(16)) == EVEN).all()


def test_empty_leaves_among_empty_ones_are_even():
    tree = grid((16, 16), 4)
    counts = np.zeros(16)
    counts[0] = 100  # the south-west corner
    far = np.flatnonzero((tree.boxes[tree.is_leaf, :2] == 12).all(axis=1))
    assert shares(tree, counts)[far] == pytest.approx(np.full((1, PARTS, PARTS), EVEN))


@pytest.mark.deep
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("counts", [(0, 100), (30, 70)])
def test_a_step_between_two_leaves_is_smoothed_alike_on_both_sides(axis, counts):
    """Mirroring the counts mirrors the shares; next to the edge the density lies in between."""
    size = (2, 1) if axis == 0 else (1, 2)
    tree = psd.decompositions.grid_tree(domain_of((16, 16)), size)
    there, back = shares(tree, np.array(counts, float)), shares(tree, np.array(counts[::-1], float))
    mirror = back[::-1, :, ::-1] if axis == 0 else back[::-1, ::-1, :]
    assert there == pytest.approx(mirror, abs=1e-12)
    along = there.sum(axis=1 if axis == 0 else 2) * np.array(counts)[:, None]
    assert (np.diff(along[1]) > 0).all()
    if counts[0]:
        assert (np.diff(along[0]) > 0).all()
        assert along[0, -1] < along[1, 0]
        assert along[1, 0] - along[0, -1] < (counts[1] - counts[0]) / PARTS
    across = there.sum(axis=2 if axis == 0 else 1)
    assert across == pytest.approx(np.full((2, PARTS), 1 / PARTS))


@pytest.mark.deep
def test_turned_and_mirrored_counts_turn_and_mirror_the_shares():
    tree, rng = grid((32, 32), 4), np.random.default_rng(3)
    boxes = tree.boxes[tree.is_leaf]
    column, row = boxes[:, 0] // 8, boxes[:, 1] // 8
    values = rng.integers(0, 50, (4, 4)).astype(float)
    plain = by_place(tree, shares(tree, values[row, column]))
    turned = by_place(tree, shares(tree, values.T[row, column]))
    assert turned == pytest.approx(plain.transpose(1, 0, 3, 2), abs=1e-12)
    west = by_place(tree, shares(tree, values[:, ::-1][row, column]))
    assert west == pytest.approx(plain[:, ::-1, :, ::-1], abs=1e-12)


# --- the surface --------------------------------------------------------------------------


ALL_LINES = module.RasterMesh(lines=(np.arange(SIDE + 1), np.arange(SIDE + 1)))


def surface_of(boxes, mass):
    """The surface of boxes that come in two batches, on all lines of the raster."""
    half = len(boxes) // 2
    mass = mass[:, None, None]
    parts = [(boxes[:half], mass[:half]), (boxes[half:], mass[half:])]
    return module._summed_mass(parts, ALL_LINES)


def surface_by_hand(boxes, mass):
    """Mass south and west of every raster line, box by box."""
    lines, surface = np.arange(SIDE + 1.0), np.zeros((SIDE + 1, SIDE + 1))
    for (x0, y0, x1, y1), weight in zip(boxes, mass, strict=True):
        east = np.clip((lines - x0) / (x1 - x0), 0, 1)
        north = np.clip((lines - y0) / (y1 - y0), 0, 1)
        surface += weight * north[:, None] * east
    return surface


@pytest.mark.deep
def test_the_surface_is_the_sum_over_boxes_on_raster_lines():
    between = np.array([[100.25, 50.5, 200.75, 300.125], [0.0, 0.0, 100.25, 50.5]])
    cases = [(between, np.array([30.0, 5.0]))]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, lattice=(512, 512), height=3)
        boxes = tree.boxes[tree.is_leaf] * (SIDE / 512)
        cases.append((boxes, rng.integers(0, 1000, len(boxes)).astype(float)))
    for boxes, mass in cases:
        found = surface_of(boxes, mass)
        assert np.allclose(found, surface_by_hand(boxes, mass), rtol=1e-9, atol=1e-6)
        assert found[-1, -1] == pytest.approx(mass.sum())


@pytest.mark.deep
def test_leaves_thinner_than_a_raster_cell_keep_their_mass():
    tree = grid((2**20, 2**20), 1)
    boxes = np.array([[0.0, 0.0, 1e-3, 1e-3], [SIDE - 1e-3, SIDE - 1e-3, SIDE, SIDE]])
    found = surface_of(boxes, np.array([3.0, 4.0]))
    assert found[1, 1] == pytest.approx(3)
    assert found[-2, -2] == pytest.approx(3)
    assert found[-1, -1] == pytest.approx(7)
    assert shares(tree, [5.0]) == pytest.approx(np.full((1, PARTS, PARTS), EVEN))


@pytest.mark.deep
def test_thin_leaves_side_by_side_have_sound_shares():
    lattice = (2**16, 2**16)
    line = 5
    tree = Tree(
        boxes=[(0, 0, *lattice), (0, 0, line, lattice[1]), (line, 0, *lattice)],
        parent=[-1, 0, 0],
        level=[0, 1, 1],
        count=[0, 1, 1],
        loss=[0, 10**9, 10**9],
    )
    found = shares(tree, np.array([50.0, 50.0]))
    assert np.isfinite(found).all()
    assert found.sum(axis=(1, 2)) == pytest.approx([1, 1])


@pytest.mark.deep
def test_shares_that_are_not_kept_are_the_same_to_the_last_bit(monkeypatch):
    tree = random_tree(np.random.default_rng(5), lattice=(64, 64), height=4)
    count = np.random.default_rng(1).integers(0, 99, len(tree)).astype(float)
    kept = smooth_density(tree, count, (64, 64))
    monkeypatch.setattr(module, "_MOST_KEPT", 3)
    computed = smooth_density(tree, count, (64, 64))
    leaves = np.flatnonzero(tree.is_leaf)
    for chosen in (leaves, leaves[:0], leaves[3:4], leaves[::-1][:7]):
        assert np.array_equal(computed.shares(chosen), kept.share[kept.rank[chosen]])
    assert "share" not in vars(computed)


@pytest.mark.deep
def test_chunks_change_nothing(monkeypatch):
    tree = grid((64, 64), 16)
    counts = np.random.default_rng(1).integers(0, 99, 256).astype(float)
    found = shares(tree, counts)
    monkeypatch.setattr(module, "_LEAVES_PER_BATCH", 7)
    assert np.array_equal(shares(tree, counts), found)


CASES = {
    "quadtree": (random_tree(np.random.default_rng(8), lattice=(64, 64), height=5), (64, 64)),
    "uneven": (random_tree(np.random.default_rng(9), lattice=(1000, 77), height=5), (1000, 77)),
    "thin": (random_tree(np.random.default_rng(3), lattice=(2**20, 5000), height=8), (2**20, 5000)),
    "grid": (grid((2**20, 2**20), 39), (2**20, 2**20)),
}


@pytest.mark.parametrize("name", CASES)
def test_lines_that_no_part_begins_at_change_no_answer(name, monkeypatch):
    """The shares of records are those of the whole raster, to 1e-11 of the total."""
    tree, lattice = CASES[name]
    rng = np.random.default_rng(4)
    count = np.where(tree.is_leaf, rng.poisson(rng.gamma(0.3, 30, len(tree))), 0).astype(float)
    count[0] = count.sum()
    few = smooth_density(tree, count, lattice)
    monkeypatch.setattr(module, "raster_mesh", lambda *_: ALL_LINES)
    every = smooth_density(tree, count, lattice)
    assert few.surface.size < every.surface.size
    x, y = few.mesh.lines
    assert few.surface == pytest.approx(every.surface[np.ix_(y, x)], abs=1e-11 * count[0])
    records = count[tree.is_leaf][:, None, None]
    assert few.share * records == pytest.approx(every.share * records, abs=1e-11 * count[0])


def test_a_surface_of_few_leaves_has_the_lines_of_their_parts():
    tree = grid((64, 64), 16)
    leaves = np.flatnonzero(tree.is_leaf)
    mesh = module.raster_mesh(tree, leaves, (64, 64))
    assert mesh.lines[0].tolist() == (np.arange(65) * (SIDE // 64)).tolist()
    assert mesh.shape == (65, 65)
    part = module.raster_mesh(tree, leaves[:1], (64, 64), 1, (10, 10, 200, 200))
    assert part.window == (10, 10, 200, 200)
    assert set(part.lines[0].tolist()) <= {10, 128, 200}


def test_shares_without_the_surface_are_the_same():
    kept = smooth().without_surface()
    assert kept.surface.size == 0
    for chosen in (LEAVES, LEAVES[:1]):
        assert np.array_equal(kept.shares(chosen), smooth().shares(chosen))


# --- parts of leaves ----------------------------------------------------------------------

DENSE = random_tree(np.random.default_rng(11), lattice=(32, 32), height=3)
COUNTS = np.where(DENSE.is_leaf, np.random.default_rng(2).integers(0, 90, len(DENSE)), 0)
LEAVES = np.flatnonzero(DENSE.is_leaf)


@cache
def smooth():
    return smooth_density(DENSE, COUNTS.astype(float), (32, 32))


lines = st.lists(st.floats(0, 1), min_size=3, max_size=3).map(sorted)


def part(leaf, x0, y0, x1, y1):
    return float(
        smooth().part(DENSE, np.array([leaf]), np.array([[x0, y0]]), np.array([[x1, y1]]))[0]
    )


def test_a_whole_leaf_is_one():
    ones = np.ones((len(LEAVES), 2))
    assert smooth().part(DENSE, LEAVES, 0 * ones, ones) == pytest.approx(ones[:, 0])


@pytest.mark.deep
@law
@given(st.sampled_from(LEAVES.tolist()), lines, lines)
def test_disjoint_boxes_in_a_leaf_add_up(leaf, x, y):
    whole = part(leaf, x[0], y[0], x[2], y[2])
    parts = [part(leaf, x[i], y[j], x[i + 1], y[j + 1]) for i in range(2) for j in range(2)]
    assert min(parts) >= 0
    assert whole <= 1
    assert sum(parts) == pytest.approx(whole, abs=1e-12)


@law
@given(st.sampled_from(LEAVES.tolist()), lines, lines)
def test_a_box_in_a_leaf_holds_its_share_of_each_part(leaf, x, y):
    """Against the covered area of the parts, one by one."""
    edges = np.arange(PARTS + 1) / PARTS
    covered = [
        np.maximum(np.minimum(edges[1:], z[2]) - np.maximum(edges[:-1], z[0]), 0) * PARTS
        for z in (x, y)
    ]
    share = smooth().share[smooth().rank[leaf]]
    by_hand = (share * covered[1][:, None] * covered[0]).sum()
    assert part(leaf, x[0], y[0], x[2], y[2]) == pytest.approx(by_hand, abs=1e-12)


# --- answers ------------------------------------------------------------------------------


def releases(seed, density):
    lattice = (48, 20)
    made = release_of(random_tree(np.random.default_rng(seed), lattice=lattice, height=4, top=50))
    return changed(made, post_processing=PostProcessing(density=density)), lattice


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("density", ["uniform", "smooth"])
def test_rectangles_as_boxes_and_as_polygons_have_one_answer(seed, density):
    release, lattice = releases(seed, density)
    boxes = random_queries(np.random.default_rng(seed), lattice, 60)
    shapes = [shapely.box(*box) for box in boxes]
    first, second = (
        release.query(boxes).table.estimate,
        release.query(shapes, crs=METRES).table.estimate,
    )
    assert second.to_numpy() == pytest.approx(first.to_numpy(), rel=1e-9, abs=1e-9)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("density", ["uniform", "smooth"])
@pytest.mark.parametrize("estimate", ["least-squares", "posterior"])
def test_a_tiling_of_the_domain_has_the_total(seed, density, estimate):
    release, lattice = releases(seed, density)
    release = changed(
        release, post_processing=replace(release.record.post_processing, estimate=estimate)
    )
    rng = np.random.default_rng(seed)
    x, y = (np.sort([0, *rng.uniform(0, side, 6), side]) for side in lattice)
    tiles = [(x[i], y[j], x[i + 1], y[j + 1]) for i in range(7) for j in range(7)]
    answers = release.query(tiles).table.estimate
    assert answers.min() >= -1e-9
    assert answers.sum() == pytest.approx(release.total, rel=1e-9)


@pytest.mark.deep
def test_cells_of_the_release_keep_their_counts_under_a_smooth_density():
    release, _ = releases(1, "smooth")
    leaves = release.tree.is_leaf
    answers = release.query(release.tree.boxes[leaves].astype(float)).table.estimate
    assert answers.to_numpy() == pytest.approx(release.index.fit.estimates.count[leaves], abs=1e-9)


@pytest.mark.deep
def test_density_is_higher_towards_a_full_neighbour():
    domain = domain_of((8, 4))
    tree = psd.decompositions.grid_tree(domain, (2, 1))
    release = psd.Release.from_counts(tree, [10, 1000], 1.0, domain=domain)
    near, far = (3, 0, 4, 4), (0, 0, 1, 4)
    even = release.query([near, far]).table.estimate
    release = changed(release, post_processing=PostProcessing(density="smooth"))
    smooth = release.query([near, far]).table.estimate
    assert even[0] == pytest.approx(even[1])
    assert smooth[0] > 2 * smooth[1]


@pytest.mark.deep
def test_the_plain_lattice_cell():
    domain = domain_of((1, 1))
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 1), [8], 1.0, domain=domain
    )
    release = changed(release, post_processing=PostProcessing(density="smooth"))
    answers = release.query([(0, 0, 0.5, 1), (0.25, 0.25, 0.5, 0.5)]).table.estimate
    assert answers.to_numpy() == pytest.approx([4, 0.5])
