"""Synthetic points: as many in each cell as its rounded estimate, by the density of queries."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from scipy import stats

import psd
from psd.estimation.fit import fit
from psd.estimation.least_squares import round_counts
from psd.query.region_nodes import clipped_share, is_clipped
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.release.post_processing import PostProcessing
from psd.space.box_tree import locate
from psd.space.covariate import Covariate
from psd.space.grids import decode, encode
from psd.statistics.points import draw_points, whole_counts
from psd.testing.data import release_from_counts
from support.goodness_of_fit import pooled_p_value
from support.releases import changed

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(256, 256))
STEPS = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", coordinate_resolution="0.125")
INSIDE = gpd.GeoSeries([shapely.Polygon([(0.3, 0.2), (7.7, 0.4), (3.6, 7.9)])], crs="EPSG:3857")
WEDGES = gpd.GeoDataFrame(  # about a middle, of which one is very thin
    {"wedge": list("abcd"), "half": list("mmnn")},
    geometry=[
        shapely.Polygon([(4, 4), *ends])
        for ends in (
            [(0, 0), (8, 0)],
            [(8, 0), (8, 8)],
            [(8, 8), (0, 8.0)],
            [(0, 8), (0, 7.95)],
        )
    ],
    crs="EPSG:3857",
)


def rows(size=900):
    x, y = np.random.default_rng(2).normal(4, 1.5, (2, size)).clip(0, 7.99)
    return pd.DataFrame({"x": x, "y": y})


def covariate():
    raster = np.random.default_rng(3).integers(0, 4, (128, 128)).astype(np.uint16)
    return Covariate(domain=PLANE, raster=raster)


def build(domain=PLANE, **more):
    more = {"method": "cascade", "epsilon": 2} | more
    return psd.build(rows(), domain=domain, x="x", y="y", **more)


def build_wedges(domain=PLANE, *, parents=(), **more):
    regions = hierarchy_from_polygons(WEDGES, domain, ids="wedge", parents=parents, gaps="outside")
    return psd.build(
        rows(), regions=regions, x="x", y="y", **{"method": "cascade", "epsilon": 2} | more
    )


KINDS = {
    "smooth": build,
    "uniform": lambda: build(density="uniform"),
    "least squares": lambda: build(estimate="least-squares"),
    "pruned": lambda: build().replace(
        post_processing=PostProcessing(estimate="posterior", density="smooth", prune=9)
    ),
    "grid": lambda: build(method="grid"),
    "covariate": lambda: build(covariate=covariate()),
    "boundary": lambda: build(boundary=INSIDE),
    "boundary, smooth": lambda: build(boundary=INSIDE, density="smooth"),
    "resolution": lambda: build(STEPS),
    "wedges": lambda: build_wedges(epsilon=9),
    "wedges, whole": lambda: build_wedges(estimate="integer"),
    "wedges, resolution": lambda: build_wedges(STEPS),
    "halves": lambda: build_wedges(parents=["half"]),
}


@pytest.fixture(scope="module", params=KINDS)
def release(request):
    return KINDS[request.param]()


def drawn(release, number=None, seed=1):
    """Leaf, x and y of the points of a release, with the numbers that they are drawn by."""
    random = np.random.default_rng(seed)
    whole = whole_counts(release.index.fit, number, random)
    batches = list(draw_points(release.index.fit, whole, random))
    return whole, *(np.concatenate([getattr(b, n) for b in batches]) for n in ("leaf", "x", "y"))


def box_counts(release, leaf, x, y):
    """Points in each node, of those that lie in their own leaf."""
    tree, domain = release.tree, release.domain
    columns, rows_, inside = domain.quantise(x, y)
    assert inside.all()
    cell, box = np.stack([columns, rows_], axis=1), tree.boxes[leaf]
    assert ((box[:, :2] <= cell) & (cell < box[:, 2:])).all()
    if not release.levels:
        np.testing.assert_array_equal(locate(tree, columns, rows_), leaf)
    count = np.bincount(leaf, minlength=len(tree))
    for level in reversed(tree.levels[1:]):
        np.add.at(count, tree.parent[level], count[level])
    return count


@pytest.mark.parametrize("number", [None, 1, 5_000])
def test_cells_of_all_levels_have_their_rounded_estimates(release, number):
    whole, *points = drawn(release, number)
    np.testing.assert_array_equal(box_counts(release, *points), whole)
    estimate = release.index.fit.estimates.count
    if number is None:
        assert (np.abs(whole - estimate) < 1 + 1e-9).all()
        assert (whole[estimate == 0] == 0).all()
    else:
        assert whole[0] == number
        assert (np.abs(whole - estimate * (number / estimate[0])) < 1 + 1e-9).all()


def test_numbers_are_those_of_the_integer_view():
    release = KINDS["halves"]()
    assert release.record.post_processing.estimate == "posterior"
    choice = PostProcessing(estimate="integer")
    view = release.replace(post_processing=choice)
    for one in (view, release.replace(post_processing=PostProcessing(estimate="posterior"))):
        points = one.to_points(seed=3)
        for level, column in (("wedge", "wedge"), ("half", "half")):
            answers = view.query(level=level).table.set_index("id")["estimate"]
            found = points[column].value_counts().reindex(answers.index, fill_value=0)
            assert found.tolist() == answers.tolist()


@pytest.mark.parametrize("kind", ["wedges", "wedges, resolution"])
def test_points_of_each_leaf_lie_in_its_region(kind):
    release = KINDS[kind]()
    tree, regions = release.tree, release.tree.regions
    whole = np.where(tree.is_leaf & ~tree.outside, 40, 0)
    batches = list(draw_points(release.index.fit, whole, np.random.default_rng(1)))
    leaf, x, y = (np.concatenate([getattr(b, n) for b in batches]) for n in ("leaf", "x", "y"))
    assert np.bincount(leaf, minlength=len(tree)).tolist() == whole.tolist()
    is_right = regions.assign(x, y) == tree.region[leaf]
    thin = tree.region[leaf] == 3
    assert thin.any()
    if kind == "wedges":
        assert is_right.all()
        for node in np.unique(leaf[thin]):
            assert len(np.unique(x[leaf == node])) == 40
    else:  # of cells in which the thin region has no value, some place of the region
        assert is_right[~thin].all()
        places = shapely.points(x[~is_right], y[~is_right])
        assert shapely.distance(tree.region_shapes[3], places).max() < 1e-9


@pytest.mark.parametrize("kind", ["boundary", "boundary, smooth"])
def test_no_point_lies_outside_the_raster_of_the_boundary(kind):
    release = KINDS[kind]()
    assert release.record.boundary
    raster = release.record.covariate.raster
    _, leaf, x, y = drawn(release, 20_000)
    row, column = (np.minimum(v / 8 * len(raster), len(raster) - 1).astype(int) for v in (y, x))
    assert (raster[row, column] > 0).all()
    assert shapely.distance(INSIDE[0], shapely.points(x, y)).max() < 8 / len(raster) * 1.5
    cut = release.record.covariate.mass(release.tree.boxes[leaf])
    assert (cut > 0).all()


def test_points_of_a_resolution_are_values():
    _, _, x, y = drawn(KINDS["resolution"]())
    for values in (x, y):
        np.testing.assert_array_equal(values, np.rint(values * 8) / 8)
    assert len(np.unique(x)) > 30


# --- inside the leaves ------------------------------------------------------------------------

SIDE = 8
PARTS = np.array([(i, j) for j in range(SIDE) for i in range(SIDE)]) / SIDE


def part_counts(release, leaf, x, y, node):
    """Points in SIDE x SIDE parts of a leaf."""
    box = release.domain.from_lattice(release.tree.boxes[[node]])[0]
    mine, size = leaf == node, box[2:] - box[:2]
    places = (np.stack([x[mine], y[mine]], axis=1) - box[:2]) / size * SIDE
    column, row = places.clip(0, SIDE - 1e-9).astype(int).T
    return np.bincount(row * SIDE + column, minlength=SIDE**2)


def p_value(observed, share):
    """Chi-square of counts whose shares are known; none may be where the share is 0."""
    assert observed[share == 0].sum() == 0
    seen = share > 0
    return pooled_p_value(observed[seen], share[seen] / share.sum() * observed.sum())


def shares_of(release, node):
    """Shares of the parts of a leaf by what queries use."""
    one, tree = release.index.fit, release.tree
    nodes = np.full(SIDE**2, node)
    if release.levels:
        box = tree.boxes[nodes].astype(float)
        size = box[:, 2:] - box[:, :2]
        low = box[:, :2] + PARTS * size
        part = np.concatenate([low, low + size / SIDE], axis=1)
        return clipped_share(tree, nodes, part, np.full(SIDE**2, 1 / SIDE**2))
    if one.density is None:
        return np.full(SIDE**2, 1 / SIDE**2)
    return one.density.part(tree, nodes, PARTS, PARTS + 1 / SIDE)


@pytest.mark.parametrize("kind", ["smooth", "uniform", "grid", "covariate", "boundary", "wedges"])
def test_points_inside_leaves_follow_the_density_of_queries(kind):
    release = KINDS[kind]()
    whole, *points = drawn(release, 400_000)
    leaves = np.flatnonzero(release.tree.is_leaf)
    if kind == "wedges":
        assert is_clipped(release.tree, leaves).any()
        leaves = leaves[is_clipped(release.tree, leaves)]
    # Of leaves with many points, those inside which the density is most uneven.
    full = leaves[whole[leaves] > 1_000]
    uneven = [np.std(shares_of(release, node)) for node in full]
    nodes = full[np.argsort(uneven)[-6:]]
    assert len(nodes) > 2
    found, even = [], []
    for node in nodes:
        counts = part_counts(release, *points, node)
        assert counts.sum() == whole[node]
        found.append(p_value(counts, shares_of(release, node)))
        even.append(stats.chisquare(counts).pvalue)
    assert min(found) > 1e-6, found
    if kind not in ("uniform",):  # another density would be seen
        assert min(even) < 1e-6, even


def test_strata_vary_less_than_points_drawn_by_themselves():
    release = release_from_counts([[400]]).replace(post_processing=PostProcessing())
    half = [int((drawn(release, 400, seed)[2] < 0.37).sum()) for seed in range(300)]
    alone = 400 * 0.37 * 0.63
    assert abs(np.mean(half) - 148) < 4 * np.sqrt(alone / 300)
    assert np.var(half) < alone / 4


def test_codes_of_the_curve_are_decoded():
    x, y = (side.ravel().astype(np.int64) for side in np.indices((32, 32)))
    codes = encode(x, y, 5)
    np.testing.assert_array_equal(np.stack(decode(codes, 5)), np.stack([x, y]))
    large = np.random.default_rng(1).integers(0, 4**18, 1_000)
    np.testing.assert_array_equal(encode(*decode(large, 18), 18), large)


def test_numbers_that_floats_miss_are_made_up_for(monkeypatch):
    release = release_from_counts([[3, 1], [4, 1]])
    one = fit(release.record)
    monkeypatch.setattr(
        "psd.statistics.points.round_counts",
        lambda tree, count, u: round_counts(tree, count * 0.998, u),
    )
    whole = whole_counts(one, 1_000, np.random.default_rng(1))
    assert whole[0] == 1_000
    tree = release.tree
    for level in reversed(tree.levels[1:]):
        sums = np.bincount(tree.parent[level], whole[level], len(tree))
        parents = np.unique(tree.parent[level])
        np.testing.assert_array_equal(sums[parents], whole[parents])


def test_estimates_of_nothing_have_no_points():
    release = release_from_counts([[-50, -60], [-70, -90]])
    assert whole_counts(release.index.fit).tolist() == [0] * len(release.tree)
    assert whole_counts(changed(release).index.fit, 5).tolist() == [0] * len(release.tree)
