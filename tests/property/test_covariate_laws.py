"""Laws of masses and of densities by a covariate."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from psd.estimation.density import parent_shares
from psd.release.post_processing import PostProcessing
from psd.space.covariate import Covariate
from support.releases import changed
from support.trees import domain_of, random_queries, random_tree, release_of

pytestmark = pytest.mark.deep

law = settings(derandomize=True, max_examples=100, deadline=None)

# Rasters that fit the lattice, that do not, and that are finer; some of them mostly empty.
SHAPES = [(1, 1), (8, 8), (16, 16), (64, 64), (5, 3), (7, 20)]


def known(seed, lattice=(16, 16), empty=0.5):
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % len(SHAPES)]
    raster = rng.integers(1, 2**16, shape) * (rng.random(shape) >= empty)
    raster[0, 0] = 1
    return Covariate(domain=domain_of(lattice), raster=raster.astype(np.uint16))


def release(seed, **options):
    made = release_of(random_tree(np.random.default_rng(seed), lattice=(16, 16), **options))
    return with_density(made, known(seed))


def with_density(made, covariate):
    density = PostProcessing(density="covariate")
    return changed(made, covariate=covariate, post_processing=density)


@law
@given(seed=st.integers(0, 50), cuts=st.lists(st.floats(0, 16), min_size=1, max_size=6))
def test_mass_is_additive(seed, cuts):
    lines = np.array([0.0, *sorted(cuts), 16.0])
    x, y = (axis.ravel() for axis in np.meshgrid(*[np.arange(len(lines) - 1)] * 2))
    parts = np.stack([lines[x], lines[y], lines[x + 1], lines[y + 1]], axis=1)
    whole = known(seed).mass(np.array([[0, 0, 16, 16]]))[0]
    assert known(seed).mass(parts).sum() == pytest.approx(whole, rel=1e-12)
    assert whole == known(seed).raster.sum(dtype=np.int64)


@law
@given(seed=st.integers(0, 50), corners=st.lists(st.floats(0, 16), min_size=4, max_size=4))
def test_mass_grows_with_the_box(seed, corners):
    (x0, x1), (y0, y1) = sorted(corners[:2]), sorted(corners[2:])
    boxes = [[x0, y0, x1, y1], [x0 / 2, y0 / 2, (x1 + 16) / 2, (y1 + 16) / 2]]
    small, large = known(seed).mass(np.array(boxes))
    assert 0 <= small <= large * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_parts_of_a_cell_and_of_the_domain_add_up(seed):
    made, domain = release(seed, height=4), shapely.box(0, 0, 16, 16)
    share = parent_shares(made.tree, made.record.covariate)
    sums = np.bincount(made.tree.parent[1:], share[1:], len(made.tree))
    assert sums[~made.tree.is_leaf] == pytest.approx(1, rel=1e-12)
    assert (share >= 0).all()
    places = shapely.MultiPoint(np.random.default_rng(seed).random((9, 2)) * 16)
    cells = shapely.get_parts(shapely.voronoi_polygons(places, extend_to=domain))
    tiles = [cell.intersection(domain) for cell in cells]
    total = made.query(tiles, crs=made.domain.crs)["estimate"].sum()
    assert total == pytest.approx(made.total, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_boxes_are_answered_by_shares_of_mass(seed):
    made = release(seed, height=3)
    boxes = random_queries(np.random.default_rng(seed), (16, 16), 40)
    leaf = made.tree.boxes[made.tree.is_leaf].astype(float)
    count = made.index.fit.estimates.count[made.tree.is_leaf]
    mass = made.record.covariate.mass(leaf)
    for box, answer in zip(boxes, made.query(boxes)["estimate"], strict=True):
        low, high = np.maximum(leaf[:, :2], box[:2]), np.minimum(leaf[:, 2:], box[2:])
        met = (low < high).all(axis=1)
        inside = np.concatenate([low, high], axis=1)[met]
        area = (inside[:, 2:] - inside[:, :2]).prod(axis=1)
        even = area / (leaf[met, 2:] - leaf[met, :2]).prod(axis=1)
        part = made.record.covariate.mass(inside)
        share = np.where(mass[met] > 0, part / np.maximum(mass[met], 1e-300), even)
        assert answer == pytest.approx((share * count[met]).sum(), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_polygons_are_answered_as_the_boxes_that_they_are(seed):
    made = release(seed, height=seed % 4)
    boxes = random_queries(np.random.default_rng(seed), (16, 16), 30)
    by_box, by_polygon = (
        made.query(boxes).table,
        made.query(shapely.box(*boxes.T), crs=made.domain.crs).table,
    )
    for name in ("estimate", "error", "lower", "upper"):
        difference = (by_box[name] - by_polygon[name]).abs()
        assert (difference <= 1e-9 * (1 + by_box[name].abs())).all()


def test_nobody_is_where_the_covariate_is_zero():
    made = release(1, height=0)
    zero = np.argwhere(made.record.covariate.raster == 0)
    wide, high = 16 / made.record.covariate.columns, 16 / made.record.covariate.rows
    boxes = [(c * wide, r * high, (c + 1) * wide, (r + 1) * high) for r, c in zero]
    assert (made.query(boxes)["estimate"] == 0).all()
    assert made.query([(0, 0, 16, 16)])["estimate"][0] == made.total
    made = release_of(random_tree(np.random.default_rng(2), lattice=(16, 16), height=1))
    raster = np.zeros((16, 16), np.uint16)
    raster[0, 0] = 1
    by = with_density(made, Covariate(domain=made.domain, raster=raster))
    boxes = made.tree.boxes[1:].astype(float)
    boxes[:, 2] = (boxes[:, 0] + boxes[:, 2]) / 2
    far = boxes[(boxes[:, :2] > 0).any(axis=1)]
    assert by.query(far)["estimate"].tolist() == pytest.approx(made.query(far)["estimate"].tolist())
    assert by.total == made.total
