"""Boundaries: which points are held, and cells outside that nobody pays for."""

import dataclasses

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import psd
from psd.curator.curator import Curator
from psd.errors import DomainError, ParameterError
from psd.estimation.least_squares import infer_counts
from psd.estimation.posterior import posterior_counts
from psd.ingest.tally import Tally
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.space.boundary import Boundary, bounds_of
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from psd.space.even_odd import EdgeIndex
from psd.testing import SCRIPTS, RecordingSampler, small_domain
from support.releases import changed, decode, encode
from support.small_regions import cells_of
from support.tables import refused
from support.trees import random_tree

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(8, 8))
STAR = shapely.Polygon([(1, 1), (4, 2), (7, 1), (6, 4), (7, 7), (4, 6), (1, 7), (2, 4)])


def series(*shapes, crs="EPSG:3857"):
    return gpd.GeoSeries(list(shapes), crs=crs)


def boundary(*shapes, domain=PLANE):
    return Boundary.from_polygons(series(*shapes), domain)


def held_by(found, *points):
    return found.contains(*np.array(points, float).T).tolist()


# --- points -------------------------------------------------------------------------------


@pytest.mark.deep
@settings(derandomize=True, max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.01, 7.99), st.floats(0.01, 7.99)), min_size=3, max_size=9, unique=True
    ),
    st.sampled_from([(8, 8), (3, 5), (37, 37), (1024, 7), (2**20, 2**20), (1500, 2500)]),
)
def test_points_are_held_that_lie_in_the_polygon(corners, lattice):
    shape = shapely.convex_hull(shapely.multipoints(corners))
    shape = shape.difference(shapely.box(3, 3, 4, 4))
    if shape.geom_type not in ("Polygon", "MultiPolygon") or shape.area < 0.01:
        return
    domain = dataclasses.replace(PLANE, lattice=lattice)
    found = boundary(shape, domain=domain)
    x, y = np.random.default_rng(3).uniform(0, 8, (2, 400))
    held, inside = found.contains(x, y), shapely.intersects_xy(shape, x, y)
    assert not (held & ~inside).any()
    # Slivers thinner than rounding are left out, and nothing else.
    assert (held == inside).mean() > 0.99


corners = st.tuples(*[st.integers(0, 7)] * 2)
sizes = st.tuples(*[st.integers(1, 4)] * 2)
steps = [{"coordinate_resolution": step} for step in ("0.5", "1", "0.3", "0.01", "3")]
lattices = [{"lattice": size} for size in ((8, 8), (3, 5), (5, 3), (37, 37), (2**20, 2**20))]


@pytest.mark.deep
@settings(derandomize=True, max_examples=120, deadline=None)
@given(corners, sizes, st.sampled_from(steps + lattices))
def test_no_point_is_held_in_a_cell_that_is_known_to_be_empty(corner, size, options):
    """Also on the outline; rounded coordinates are held there as a query counts them."""
    far = min(corner[0] + size[0], 8), min(corner[1] + size[1], 8)
    domain = psd.Domain(bounds=PLANE.bounds, crs=PLANE.crs, **options)
    found = boundary(shapely.box(*corner, *far), domain=domain)
    x, y = np.random.default_rng(8).uniform(0, 8, (2, 300))
    x[:150], y[75:225] = (x[:150] * 2).round() / 2, (y[75:225] * 2).round() / 2
    held = found.contains(x, y)
    assert held.any() or "lattice" not in options
    cells = cells_of(domain, x, y)
    if "coordinate_resolution" in options:
        box = domain.to_lattice(np.array([[*corner, *far]], float))
        inside = ((box[:, :2] <= cells[:, :2]) & (cells[:, :2] < box[:, 2:])).all(axis=1)
        assert np.array_equal(held, inside)
    assert (found.mask.mass(cells[held]) > 0).all()


def test_most_points_are_decided_by_the_raster(monkeypatch):
    domain = dataclasses.replace(PLANE, lattice=(2**20, 2**20))
    found, asked = boundary(STAR, domain=domain), []
    original = EdgeIndex.contains
    monkeypatch.setattr(
        EdgeIndex, "contains", lambda *args: asked.append(len(args[1])) or original(*args)
    )
    x, y = np.random.default_rng(1).uniform(0, 8, (2, 20_000))
    held = found.contains(x, y)
    assert np.array_equal(held, shapely.intersects_xy(STAR, x, y))
    assert sum(asked) < 200


@pytest.mark.parametrize(
    "options",
    [
        {"bounds": (0, 0, 8, 8), "lattice": (2**20, 2**20)},
        {"bounds": (0, 0, 8, 8), "lattice": (1500, 1025)},
        {"bounds": (0, 0, 8, 8), "lattice": (90, 1024)},
        {"bounds": (0.0, 0.009, 8.0, 7.991), "coordinate_resolution": "0.01"},
        {"bounds": (0.0, 0.0, 8.009, 8.009), "coordinate_resolution": "0.02"},
    ],
    ids=str,
)
def test_certain_cells_are_right_about_all_points(options):
    """Also of points beside the lines of the raster, and at the bounds."""
    domain = psd.Domain(crs="EPSG:3857", **options)
    found = boundary(STAR, shapely.box(7, 3, 8, 9), domain=domain)
    cells, rng = found.certain_cells(), np.random.default_rng(1)
    part = np.full(cells.side**2, -2)
    part[cells.cell] = cells.part
    sides = []
    for axis in (0, 1):
        low, high = domain.bounds[axis], domain.bounds[axis + 2]
        lines = low + rng.integers(0, cells.side + 1, 20_000) / cells.scale[axis]
        near = np.concatenate([lines, rng.uniform(low, high, 20_000), [low, high] * 50])
        near = np.nextafter(near, rng.choice([-np.inf, np.inf], len(near)))
        sides.append(rng.permutation(near.clip(low, high)))
    places = [
        np.minimum(((values - cells.origin[n]) * cells.scale[n]).astype(int), cells.side - 1)
        for n, values in enumerate(sides)
    ]
    certain = part[places[1] * cells.side + places[0]]
    decided = certain > -2
    assert np.array_equal(found.contains(*sides)[decided], certain[decided] == 0)
    assert np.unique(certain[decided]).tolist() == [-1, 0]
    assert decided.mean() > (0.8 if cells.side > 300 else 0.4)


def test_areas_that_share_an_outline_share_no_point_and_overlaps_are_one_area():
    west, east = (boundary(shapely.box(a, 0, a + 4, 8)) for a in (0, 4))
    x, y = (side.ravel() for side in np.meshgrid(np.arange(17) / 2, np.arange(17) / 2))
    assert np.array_equal(west.contains(x, y), x < 4)
    assert np.array_equal(east.contains(x, y), x >= 4)
    one = boundary(shapely.box(1, 1, 5, 5), shapely.box(3, 3, 7, 7))
    assert one.mask.raster[4, 4] == one.mask.raster[2, 2] == one.mask.raster.max()
    assert held_by(one, (4, 4), (6, 6), (6, 2)) == [True, True, False]
    domain = psd.Domain(bounds=(900_000, 1_900_000, 1_000_000, 2_000_000), crs="EPSG:5179")
    plot = gpd.GeoSeries([shapely.Point(950_000, 1_950_000).buffer(20_000)], crs="EPSG:5179")
    found = Boundary.from_polygons(plot.to_crs("EPSG:4326"), domain)
    points = [(x, 1_950_000) for x in (950_000, 971_000, 930_500)]
    assert held_by(found, *points) == [True, False, True]
    bounds = bounds_of(plot.to_crs("EPSG:4326"), "EPSG:5179")
    assert bounds == pytest.approx(plot.total_bounds, abs=50)


def test_what_is_no_boundary_and_a_count_outside_it_are_refused(subtests):
    def use(polygons):
        return Boundary.from_polygons(polygons, PLANE)

    outside, crossing = shapely.box(20, 20, 30, 30), [(0, 0), (2, 2), (0, 2), (2, 0)]
    table = [
        ("has no CRS", gpd.GeoSeries([STAR])),
        ("the boundary lies outside the bounds", series(outside)),
    ]
    refused(subtests, DomainError, table, use)
    table = [
        ("at least one polygon", series()),
        ("polygon 1 of the boundary is not a polygon", series(shapely.Point(1, 1))),
        ("is not valid", series(shapely.Polygon(crossing))),
    ]
    refused(subtests, ParameterError, table, use)
    table = pd.DataFrame({"lon": [1.5], "lat": [3.5]})
    with pytest.raises(ParameterError, match="must be a GeoDataFrame"):
        psd.build(table, domain=PLANE, epsilon=1, boundary=(0, 0, 1, 1))
    table = pd.DataFrame({"lon": [1.5, 2.5, 7.5], "lat": [3.5, 4.5, 0.5]})
    grid = psd.decompositions.Grid(size=8)
    release = psd.build(table, domain=PLANE, epsilon=1, method=grid, boundary=series(STAR))
    outside = np.flatnonzero(release.record.outside & release.tree.is_leaf)[0]
    fields = {name: getattr(release.tree, name).copy() for name in ("count", "loss")}
    fields["loss"][outside] = NANO
    tree = dataclasses.replace(release.tree, **fields)
    with pytest.raises(ParameterError, match="outside the boundary"):
        changed(release, tree=tree)
    view = psd.decompositions.Grid(size=2).post_processing
    with pytest.raises(ParameterError, match="boundary"):
        changed(release, covariate=None, post_processing=view)
    # A boundary has no name and no point in the file.
    content = encode(release)
    assert b'"boundary": true' in content
    assert b"7.5" not in content


# --- the curator --------------------------------------------------------------------------


def asked(shape):
    places, noise = np.array([2, 3], np.int32), RecordingSampler(SCRIPTS[1])
    tally = Tally(columns=places, rows=places, counts=np.ones(2, int))
    mask = boundary(shape, domain=small_domain(8)).mask
    return Curator(tally, small_domain(8), budget=Budget(NANO), sampler=noise, boundary=mask), noise


def test_cells_outside_are_not_drawn_and_not_charged():
    curator, noise = asked(shapely.box(0, 0, 4, 8))
    halves = curator.cut(curator.root(), x=[4])
    assert curator.inside_boundary(halves).tolist() == [True, False]
    assert curator.count(halves, NANO).tolist() == [2 + 40, 0]
    assert sum(len(call.true) for call in noise.draws) == 1
    assert curator.questions[0].boxes.tolist() == [[0, 0, 4, 8]]
    assert curator.tree().loss.tolist() == [0, NANO, 0]
    # Nothing was charged there, however often it is asked about.
    assert curator.count(halves[1:], NANO).tolist() == [0]
    assert curator.quantile(halves[1:], axis=1, loss=NANO).tolist() == [4]
    split = curator.homogeneous_split(halves[1:], axis=0, loss=NANO, bins=4, lines=3)
    assert split.tolist() == [4]
    assert sum(len(call.true) for call in noise.draws) == 1
    assert curator.spent == NANO


@pytest.mark.deep
@pytest.mark.parametrize("method", psd.methods())
def test_every_method_knows_that_nobody_is_outside(method):
    rng = np.random.default_rng(4)
    table = pd.DataFrame(rng.uniform(0, 8, (3000, 2)), columns=["lon", "lat"])
    table["u"] = [f"u{number}" for number in rng.integers(0, 400, 3000)]
    domain = dataclasses.replace(PLANE, lattice=(256, 256))
    how = {"domain": domain, "epsilon": 4, "method": method, "boundary": series(STAR)}
    release = psd.build(table, **how, user="u", count="users")
    held = shapely.intersects_xy(STAR, table.lon, table.lat)
    assert release.total == pytest.approx(table[held]["u"].nunique(), abs=60)
    outside = release.record.outside & release.tree.is_leaf
    assert outside.any() or method in ("auto", "privtree", "kd-standard", "hilbert-rtree", "htf")
    assert not release.index.fit.estimates.count[outside].any()
    assert not release.tree.loss[release.record.outside].any()
    table = release.query([(0, 0, 0.9, 8), (0, 0, 8, 0.9), (0, 0, 8, 8)]).table
    numbers = table[["estimate", "error", "lower", "upper"]].to_numpy()
    assert not numbers[:2].any()
    assert (numbers[2] > 0).all()
    loaded = decode(encode(changed(release, source="curator")))
    assert loaded.record.boundary
    pd.testing.assert_frame_equal(
        loaded.query([(0, 0, 3, 3)]).table, release.query([(0, 0, 3, 3)]).table
    )


# --- inference ----------------------------------------------------------------------------


def with_empty_leaves(seed):
    """A tree some of whose leaves are known to be empty, and the same with them counted."""
    tree = random_tree(np.random.default_rng(seed), height=4)
    empty = tree.is_leaf & (np.random.default_rng(seed).random(len(tree)) < 0.4)
    fields = {name: getattr(tree, name) for name in ("boxes", "parent", "level")}
    count, epsilon = np.where(empty, 0, tree.count), np.where(empty, 0, tree.loss)
    known = Tree(**fields, count=count, loss=epsilon)
    counted = Tree(**fields, count=count, loss=np.where(empty, 90 * NANO, epsilon))
    return known, counted, empty


def test_known_cells_are_counts_without_noise_and_posterior_medians_of_0():
    for seed in range(6):
        known, counted, empty = with_empty_leaves(seed)
        found, limit = infer_counts(known, empty=empty), infer_counts(counted)
        for name in ("signed", "variance", "count"):
            assert getattr(found, name) == pytest.approx(getattr(limit, name), abs=1e-6)
        count = posterior_counts(known, found, empty=empty)
        assert (count >= 0).all()
        for values in (found.count, found.variance, count):
            assert not values[empty].any()
        # Families add up, below which some leaf is not known to be empty.
        held = known.is_leaf & ~empty
        for level in known.levels[:0:-1]:
            np.logical_or.at(held, known.parent[level], held[level])
        inner = ~known.is_leaf & held
        kids = np.bincount(known.parent[1:], count[1:], len(known))
        assert kids[inner] == pytest.approx(count[inner], abs=1e-6)


# --- covariates and files -----------------------------------------------------------------


def test_a_covariate_ends_at_the_boundary_and_rules_out_nothing_inside():
    raster = np.zeros((4, 4), np.uint16)
    raster[:, 1:] = [5, 9, 2]
    known = Covariate(domain=PLANE, raster=raster)
    found = boundary(shapely.box(0, 0, 4, 8))
    steered, published = found.restrict(known), found.release_covariate(known)
    box = np.array([[0, 0, 2, 8], [2, 0, 4, 8], [4, 0, 8, 8]])
    assert (steered.mass(box) > 0).tolist() == [False, True, False]
    assert (published.mass(box) > 0).tolist() == [True, True, False]
    with pytest.raises(ParameterError, match="0 everywhere inside the boundary"):
        boundary(shapely.box(0, 0, 2, 8)).restrict(known)
