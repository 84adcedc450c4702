"""Rounded coordinates and streets, found in noisy counts; and clusters of points."""

from dataclasses import replace

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from psd.estimation.least_squares import infer_counts
from psd.estimation.lines import (
    WIDTHS,
    CoordinateStep,
    LinePattern,
    common_variance_by_width,
    detect_step,
    fit_lines,
    has_unshared_lines,
    levels_halved,
    line_deviation,
    line_squares,
)
from psd.estimation.nonuniformity import divisions, fit_dispersion
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO, Loss
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.space.box_tree import locate
from psd.testing import SeededSampler
from support.releases import changed

SIDE = 256
BOUNDS = (10.0, 50.0, 11.0, 51.0)


def points(number=40_000, seed=1):
    """Points that are denser in the south-west, without any structure of their own."""
    return np.random.default_rng(seed).beta(1.2, 2, (number, 2))


def release_of_points(xy, side=SIDE, epsilon=1.0, columns=1):
    """Quadtree with noise on the leaves alone, each of so many columns and rows of a lattice."""
    lines = side * columns
    domain = psd.Domain(bounds=BOUNDS, lattice=(lines, lines))
    tree = psd.decompositions.grid_tree(domain, side)
    column, row = np.minimum((xy * lines).astype(int), lines - 1).T
    exact = np.bincount(locate(tree, column, row), minlength=len(tree))[tree.is_leaf]
    q = np.exp(-epsilon)
    random = np.random.default_rng(2)
    noise = random.geometric(1 - q, len(exact)) - random.geometric(1 - q, len(exact))
    return psd.Release.from_counts(tree, exact + noise, epsilon, domain=domain)


def pattern_with(**changes):
    """Pattern in which nothing is seen but the changes."""
    no_step = CoordinateStep(step=0.0, share=0.0)
    common, factor = np.zeros((2, WIDTHS)), np.ones((2, WIDTHS))
    return replace(LinePattern(step=no_step, common=common, factor=factor, apart=False), **changes)


def step_of(release):
    model = release.index.fit
    return detect_step(release.tree, model.estimates, model.parent_shares, release.domain)


@pytest.mark.deep
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_step_of_rounded_coordinates_is_found(epsilon):
    found = step_of(release_of_points(np.round(points() + 0.0, 2), epsilon=epsilon))
    assert found.step == pytest.approx(0.01)
    assert found.share == pytest.approx(1, abs=0.15)


@pytest.mark.deep
def test_the_share_of_rounded_records_is_found():
    xy = points()
    xy[::2] = np.round(xy[::2], 2)
    found = step_of(release_of_points(xy, epsilon=3.0))
    assert found.step == pytest.approx(0.01)
    assert found.share == pytest.approx(0.5, abs=0.1)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_coordinates_that_are_not_rounded_have_no_step(seed):
    release = release_of_points(points(seed=seed), epsilon=3.0)
    model = release.index.fit
    assert not fit_lines(release.tree, model.estimates, model.parent_shares, release.domain).is_seen


@pytest.mark.deep
@pytest.mark.parametrize("height", [2**0.5 - 1, 0.2537, 0.5031, 0.71])
def test_records_on_a_line_have_no_step(height):
    xy = points()
    xy[:, 1] = height
    assert step_of(release_of_points(xy, epsilon=3.0)).step == 0


def rounded_in_regions():
    """Release of records with two decimals in eight regions, whose cells are cut at any lines."""
    random = np.random.default_rng(3)
    domain = psd.Domain(bounds=BOUNDS)
    seeds = shapely.multipoints(np.array(BOUNDS[:2]) + random.random((8, 2)))
    cells = shapely.get_parts(shapely.voronoi_polygons(seeds, extend_to=shapely.box(*BOUNDS)))
    table = gpd.GeoDataFrame({"ward": [f"w{number}" for number in range(8)]}, geometry=cells)
    regions = hierarchy_from_polygons(table.set_crs(4326), domain, ids="ward")
    xy = (np.array(BOUNDS[:2]) + points(100_000)).round(2)
    return draw_release(
        tally_batches([Batch(x=xy[:, 0], y=xy[:, 1])], domain, strata=regions),
        domain,
        budget=Budget(Loss.pure(3 * NANO)),
        method=psd.decompositions.Regions(),
        unit=PrivacyUnit(),
        regions=regions,
        sampler=SeededSampler(5),
    )


@pytest.mark.deep
def test_the_step_is_found_in_cells_of_regions():
    """Some cells have one part with all of their area: it tells nothing, with an error of 0."""
    release = rounded_in_regions()
    tree, shares = release.tree, release.index.fit.parent_shares
    assert np.count_nonzero((shares == 1)[1:] & ~tree.is_leaf[tree.parent[1:]]) > 10
    assert step_of(release).step == pytest.approx(0.01)
    assert release.index.fit.pattern.step == step_of(release)
    assert release.index.fit.line_deviation[:, tree.is_leaf].max() > 0


def hidden_step(side, **more):
    """Step of a release of so many columns and rows, the smallest cell being one of 256."""
    domain = psd.Domain(bounds=(10, 50, 10.02, 50.02), **more)
    tree = psd.decompositions.grid_tree(domain, side)
    counts = np.random.default_rng(2).poisson(9, np.count_nonzero(tree.is_leaf))
    model = psd.Release.from_counts(tree, counts, 1.0, domain=domain).index.fit
    return detect_step(tree, model.estimates, model.parent_shares, domain)


def test_the_smallest_cell_hides_a_step():
    """Cells are 7.8e-5 degrees wide: 1e-4 would be seen, and 1e-5 is the largest hidden one."""
    assert hidden_step(256) == CoordinateStep(step=1e-5, share=1.0)
    assert hidden_step(128).step == hidden_step(256, min_cell=0).step == 0


def test_a_declared_resolution_has_lines_and_no_step():
    """Lines that records lie on are seen whether or not the resolution is declared."""
    xy = points()
    streets = np.round((np.arange(97) + 0.37) / 97, 3) + 0.0005
    xy[:, 0] = streets[np.abs(xy[:, 0, None] - streets).argmin(axis=1)]
    domain = psd.Domain(bounds=BOUNDS, coordinate_resolution="0.001")
    tree = psd.decompositions.grid_tree(domain, 250)
    x, y = np.array(BOUNDS[:2])[:, None] + xy.T
    column, row, _ = domain.quantise(x, y)
    exact = np.bincount(locate(tree, column, row), minlength=len(tree))[tree.is_leaf]
    fitted = psd.Release.from_counts(tree, exact, 3.0, domain=domain).index.fit
    assert fitted.pattern.step.step == 0
    assert fitted.line_deviation[0].max() > fitted.line_deviation[1].max() == 0


def common(release, axis):
    model = release.index.fit
    found = divisions(release.tree, model.estimates, model.parent_shares)[axis]
    return common_variance_by_width(release.tree, found, axis, release.domain.lattice)


@pytest.mark.deep
def test_records_on_streets_lie_on_the_same_side_of_lines():
    xy = points()
    streets = (np.arange(97) + 0.37) / 97 + np.random.default_rng(4).normal(0, 0.002, 97)
    xy[:, 0] = streets[np.abs(xy[:, 0, None] - streets).argmin(axis=1)]
    release = release_of_points(xy, epsilon=3.0)
    across, along = common(release, 0), common(release, 1)
    assert (along == 0).all()
    assert (across[:4] < 0.001).all()
    assert across[7] > 0.1
    assert (np.diff(across[:8]) >= 0).all()
    lines = release.index.fit.line_deviation
    assert lines[0].max() > lines[1].max() == 0
    # A lattice that was chosen has columns of its own.
    leaf = release.tree.is_leaf
    count = np.maximum(release.index.fit.estimates.count[leaf], 0)
    assert release.index.fit.column_records[:, leaf] == pytest.approx(np.stack([count, count]))


@pytest.mark.deep
def test_a_line_that_has_all_records_on_one_side_is_off_by_a_leaf():
    release = release_of_points(np.floor(points() * 128) / 128 + 1e-6, epsilon=10.0)
    leaf = np.flatnonzero(release.tree.is_leaf)
    narrow = leaf[levels_halved(release.tree, leaf, 0, release.domain.lattice) >= 7]
    count = np.maximum(release.index.fit.estimates.count, 0)
    model, all_of_narrow = release.index.fit, np.tile(count[narrow], (2, 1))
    assert model.line_deviation[:, narrow] == pytest.approx(all_of_narrow, rel=1e-3)
    # The common variance is estimated; with its largest value there is no error left.
    full = pattern_with(common=np.full((2, WIDTHS), 0.25))
    count, overdispersion = model.estimates.count, model.dispersion.overdispersion
    deviation = line_deviation(release.tree, count, overdispersion, full, release.domain)
    assert deviation[:, narrow] == pytest.approx(all_of_narrow, rel=1e-6)


@pytest.mark.parametrize(("part", "factor"), [(1e-6, 1.3), (0.5, 1.15), (1.0, 1.0)])
def test_cuts_anywhere_err_more_where_points_move_by_less_than_a_cell(part, factor):
    domain = psd.Domain(bounds=BOUNDS)
    tree = psd.decompositions.grid_tree(domain, 2)
    pattern = pattern_with(common=np.full((2, WIDTHS), 0.25 * part))
    deviation = line_deviation(tree, np.full(len(tree), 10.0), np.zeros(len(tree)), pattern, domain)
    assert deviation[:, tree.is_leaf] == pytest.approx(10 * (factor * part) ** 0.5, rel=1e-5)


@pytest.mark.deep
def test_the_factor_of_sides_is_part_of_the_deviation():
    release = release_of_points(np.floor(points() * 128) / 128 + 1e-6, epsilon=10.0)
    model = release.index.fit
    twice = replace(model.pattern, factor=np.full((2, WIDTHS), 2.0))
    count, overdispersion = model.estimates.count, model.dispersion.overdispersion
    other = line_deviation(release.tree, count, overdispersion, twice, release.domain)
    leaf = release.tree.is_leaf
    assert other[:, leaf] == pytest.approx(2**0.5 * model.line_deviation[:, leaf])


@pytest.mark.deep
def test_records_without_lines_have_no_factor():
    pattern = release_of_points(points(), epsilon=3.0).index.fit.pattern
    assert (pattern.factor == 1).all()


@pytest.mark.deep
def test_wide_cells_whose_lines_pass_between_the_values_know_them_from_narrow_ones():
    # Values are multiples of 1/64: halves of cells that are wider hold as many of them.
    release = release_of_points(np.floor(points() * 64) / 64 + 1e-6, epsilon=3.0)
    for axis in (0, 1):
        assert common(release, axis)[2:8] == pytest.approx(
            [0.25 / 256, 0.25 / 64, 0.25 / 16, 0.25 / 4, 0.25, 0.25], rel=0.1
        )


def test_lumps_are_measured():
    # Lumps of five; cells that are nearly empty draw the fit towards 1.
    single = points(60_000)
    clusters = np.repeat(points(12_000), 5, axis=0)
    fitted = []
    for xy in (single, clusters):
        release = release_of_points(xy, side=64, epsilon=3.0)
        tree, model = release.tree, release.index.fit
        fitted.append(fit_dispersion(tree, model.estimates, model.parent_shares).cluster_size)
    assert fitted[0] < 1.3
    assert 2 < fitted[1] < 6


def test_the_records_of_a_cell_of_the_lattice_may_be_at_one_point():
    release = release_of_points(points(), side=16)
    overdispersion, is_leaf = release.index.fit.dispersion.overdispersion, release.tree.is_leaf
    assert (overdispersion[is_leaf] == 1).all()
    assert (overdispersion[~is_leaf] < 1).any()


def test_a_polygon_across_cells_of_a_coarse_lattice_is_covered():
    # All records of a cell are in its middle: a polygon has all or nothing of a cell it cuts.
    xy = (np.floor(points() * 16) + 0.5) / 16
    release = release_of_points(xy, side=16, epsilon=3.0)
    corner = np.array(BOUNDS[:2])
    corners = [np.array([(0, 0), (1, share), (1, 0)]) for share in np.linspace(0.2, 1, 40)]
    shapes = [shapely.Polygon(part + corner) for part in corners]
    answers = release.query(shapes, crs=release.domain.crs).table
    true = np.array([shapely.contains_xy(s, *(xy + corner).T).sum() for s in shapes])
    assert ((answers["lower"] <= true) & (true <= answers["upper"])).mean() > 0.9


def test_noise_alone_has_the_expected_cluster_size():
    tree = psd.decompositions.grid_tree(psd.Domain(bounds=BOUNDS, lattice=(4, 4)), 4)
    estimates = infer_counts(
        psd.Release.from_counts(
            tree, np.zeros(16, int), 1.0, domain=psd.Domain(bounds=BOUNDS, lattice=(4, 4))
        ).tree
    )
    share = np.where(tree.parent >= 0, 0.25, 1.0)
    assert fit_dispersion(tree, estimates, share).cluster_size == 2


def alternating_tree(axes):
    """Tree of 256 x 256 cells of the lattice, each level divided in halves along an axis."""
    boxes, parent, level = [np.array([[0, 0, SIDE, SIDE]])], [np.array([-1])], [np.zeros(1, int)]
    first = 0
    for depth, axis in enumerate(axes, 1):
        above = boxes[-1]
        halves = np.repeat(above, 2, axis=0)
        middle = (above[:, axis] + above[:, axis + 2]) // 2
        halves[::2, axis + 2], halves[1::2, axis] = middle, middle
        boxes.append(halves)
        parent.append(first + np.repeat(np.arange(len(above)), 2))
        level.append(np.full(len(halves), depth))
        first += len(above)
    boxes, parent, level = (np.concatenate(values) for values in (boxes, parent, level))
    return psd.decompositions.Tree(
        boxes=boxes.astype(np.int32),
        parent=parent,
        level=level,
        count=np.zeros(len(boxes), np.int64),
        loss=np.where(level == len(axes), 10**9, 0),
    )


def test_a_division_along_one_axis_tells_nothing_of_the_other():
    # Even from west to east, all at one latitude; the last five divisions are along x.
    random = np.random.default_rng(3)
    x, y = random.integers(0, SIDE, 40_000), np.full(40_000, 100)
    tree = alternating_tree([1, 1, 1, 0, 0, 0, 0, 0])
    exact = np.bincount(locate(tree, x, y), minlength=len(tree))
    estimates = infer_counts(replace(tree, count=exact))
    share = np.where(tree.parent >= 0, 0.5, 1.0)
    assert fit_dispersion(tree, estimates, share).overdispersion[-1] > 0.9
    # Halves that a line divides have no overdispersion.
    lines = np.where(tree.level < 3, 0.5, 0.0)
    assert fit_dispersion(tree, estimates, share, lines).overdispersion[-1] < 0.1


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
def test_what_lines_explain_is_not_counted_twice(seed):
    # All at one latitude: all or nothing along y, even along x, a third of a quarter's squares.
    xy = points(seed=seed)
    xy[:, 1] = 100.3 / SIDE
    release = release_of_points(xy, epsilon=3.0)
    model, narrow = release.index.fit, (release.tree.level >= 5) & ~release.tree.is_leaf
    twice = fit_dispersion(release.tree, model.estimates, model.parent_shares).overdispersion[
        narrow
    ]
    assert twice == pytest.approx(np.full(len(twice), 1 / 3), abs=0.1)
    along = divisions(release.tree, model.estimates, model.parent_shares)
    of_lines = line_squares(release.tree, along, model.pattern.common, release.domain.lattice)
    once = fit_dispersion(
        release.tree, model.estimates, model.parent_shares, of_lines
    ).overdispersion[narrow]
    assert (once < 0.05).all()
    assert model.line_deviation[1].max() > 0.9 * model.estimates.count[release.tree.is_leaf].max()


def test_overdispersion_beside_lines_is_that_along_them():
    # All records of each cell are in one of its quarters.
    domain = psd.Domain(bounds=BOUNDS, lattice=(SIDE, SIDE))
    tree = psd.decompositions.grid_tree(domain, 16)
    exact = np.zeros(len(tree), int)
    exact[tree.is_leaf] = 1000 * ((tree.boxes[tree.is_leaf, :2] // 16 % 2) == [1, 0]).all(axis=1)
    for level in reversed(tree.levels[1:]):
        np.add.at(exact, tree.parent[level], exact[level])
    estimates = infer_counts(replace(tree, count=exact, loss=np.full(len(tree), 10**11)))
    share, lowest = np.where(tree.parent >= 0, 0.25, 1.0), tree.level == tree.level.max()
    phi = [
        fit_dispersion(tree, estimates, share, np.full(len(tree), lines)).overdispersion[lowest]
        for lines in (0.0, 0.25, 0.5)
    ]
    # No line explains it; one along x, or along y; both, and the diagonal is left.
    assert np.array(phi) == pytest.approx(np.ones((3, 256)), abs=0.02)


@pytest.mark.deep
def test_without_lines_nothing_is_explained():
    model = release_of_points(points(), epsilon=3.0).index.fit
    assert not model.pattern.common.any()
    fitted = fit_dispersion(model.tree, model.estimates, model.parent_shares)
    assert (fitted.overdispersion == model.dispersion.overdispersion).all()


def test_a_family_counts_for_a_small_part_of_its_level_at_most():
    # Sixty-three even families, and one with half of all squares and all records in one cell.
    domain = psd.Domain(bounds=BOUNDS, lattice=(SIDE, SIDE))
    tree = psd.decompositions.grid_tree(domain, 16)
    exact = np.where(tree.is_leaf, 100, 0)
    crowded = tree.first_child[tree.parent[-1]]
    exact[crowded : crowded + 4] = 0
    exact[crowded] = 3200
    for level in reversed(tree.levels[1:]):
        np.add.at(exact, tree.parent[level], exact[level])
    estimates = infer_counts(replace(tree, count=exact, loss=np.full(len(tree), 10**11)))
    share = np.where(tree.parent >= 0, 0.25, 1.0)
    overdispersion = fit_dispersion(tree, estimates, share).overdispersion[tree.is_leaf]
    assert overdispersion == pytest.approx(np.full(256, 0.015 / (0.015 + 0.5)), abs=0.01)


def release_on_a_line(name):
    """Release of records on one line from west to east, and boxes with a side beside it."""
    x = np.random.default_rng(6).beta(1.2, 2, 30_000)
    xy = np.array(BOUNDS[:2]) + np.stack([x, np.full(len(x), 2**0.5 - 1)], axis=1)
    domain = psd.Domain(bounds=BOUNDS)
    release = draw_release(
        tally_batches([Batch(x=xy[:, 0], y=xy[:, 1])], domain),
        domain,
        budget=Budget(Loss.pure(NANO)),
        method=psd.decompositions.method(name),
        unit=PrivacyUnit(),
        post_processing=psd.decompositions.method(name).post_processing,
    )
    random = np.random.default_rng(7)
    west, side = random.uniform(0, 0.5, 300), random.uniform(0.2, 0.5, 300)
    south = 2**0.5 - 1 + random.uniform(-0.1, 0.1, 300)
    boxes = np.stack([west, south, west + side, south + side], axis=1) + np.tile(BOUNDS[:2], 2)
    inside = (x >= west[:, None]) & (x < (west + side)[:, None])
    return release, boxes, np.where(south <= 2**0.5 - 1, inside.sum(axis=1), 0)


def is_apart(release):
    model = release.index.fit
    found = divisions(release.tree, model.estimates, model.parent_shares)
    return has_unshared_lines(release.tree, found)


@pytest.mark.deep
@pytest.mark.parametrize("name", ["htree", "kd-standard"])
def test_leaves_that_lie_apart_are_wrong_together(name):
    release, boxes, true = release_on_a_line(name)
    assert is_apart(release)
    # Intervals of 24 builds cover 82 to 100 % of the boxes, and 7 to 77 % with independent errors.
    together = covered(release.query(boxes).table, true)
    alone = changed(release)
    vars(alone.index.fit)["line_deviation"] = None
    assert together > max(0.75, covered(alone.query(boxes).table, true) + 0.1)


def covered(answers, true):
    """Share of the intervals that hold the true counts."""
    return float(np.mean((answers["lower"] <= true) & (true <= answers["upper"])))


@pytest.mark.parametrize("name", ["quadtree", "grid", "kd-hybrid", "cascade"])
def test_cells_that_are_divided_in_the_middle_do_not_lie_apart(name):
    assert not is_apart(release_on_a_line(name)[0])


def test_what_leaves_apart_have_in_common_follows_from_their_overdispersion():
    domain = psd.Domain(bounds=BOUNDS)
    tree = psd.decompositions.grid_tree(domain, 2)
    pattern = pattern_with(apart=True)
    count, overdispersion = np.full(len(tree), 10.0), np.linspace(0, 1, len(tree))
    deviation = line_deviation(tree, count, overdispersion, pattern, domain)
    leaf = tree.is_leaf
    assert deviation[:, leaf] == pytest.approx(
        np.tile(10 * 0.5**0.5 * overdispersion[leaf] ** 4, (2, 1))
    )
    assert not LinePattern.from_array(replace(pattern, apart=False).to_array()).is_seen
    assert LinePattern.from_array(pattern.to_array()).is_seen


def test_records_of_a_chosen_lattice_are_in_the_middle_of_its_cells():
    domain = psd.Domain(bounds=BOUNDS, lattice=(8, 8))
    tree = psd.decompositions.grid_tree(domain, 8)
    release = psd.Release.from_counts(tree, np.arange(64) + 100, 10.0, domain=domain)
    lattice = np.array([[1.25, 2, 3, 5], [1.75, 2, 3, 5]])
    with_column, without = release.query(release.domain.from_lattice(lattice)).table.itertuples()
    column, both = release.query(domain.from_lattice(np.array([[1, 2, 2, 5], [1, 2, 3, 5]]))).table[
        "estimate"
    ]
    # All records of the column are on one side of the line, in place of a quarter of them.
    assert with_column.nonuniformity_error >= 0.25 * column
    assert without.nonuniformity_error == pytest.approx(with_column.nonuniformity_error)
    assert with_column.lower <= both <= with_column.upper
    assert without.lower <= both - column <= without.upper
    along = release.query(release.domain.from_lattice(np.rint(lattice))).table
    assert (along["nonuniformity_error"] == 0).all()


def release_of_coarse_leaves(columns=4):
    """Each leaf has so many columns and rows of a lattice that was chosen."""
    domain = psd.Domain(bounds=BOUNDS, lattice=(8 * columns, 8 * columns))
    counts = np.arange(64) + 1000
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 8), counts, 10.0, domain=domain
    )
    fitted = release.index.fit.dispersion
    even = replace(fitted, overdispersion=0 * fitted.overdispersion, cluster_size=0.0)
    vars(release.index.fit)["dispersion"] = even
    return release


@pytest.mark.parametrize("place", [0.0, 0.1, 0.5, 0.8])
@pytest.mark.parametrize("first", [4, 5, 7])
def test_wide_leaves_err_by_the_place_of_a_side_in_its_column(first, place):
    release = release_of_coarse_leaves()
    west = first + place
    box, leaves = [[west, 8, 20, 20]], [[4, 8, 8, 20]]
    found, whole = (
        release.query(release.domain.from_lattice(np.array(b))).table for b in (box, leaves)
    )
    # Three leaves lie one above the other, each with four columns.
    wrong = whole["estimate"][0] / 4 * min(place, 1 - place)
    assert found["nonuniformity_error"][0] == pytest.approx(wrong, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize(("lines", "counts"), [(1024, True), (64, False)])
def test_a_step_wider_than_the_columns_of_a_chosen_lattice_counts(lines, counts):
    domain = psd.Domain(bounds=BOUNDS, lattice=(lines, lines))
    tree = psd.decompositions.grid_tree(domain, 64)
    pattern = pattern_with(step=CoordinateStep(step=0.01, share=1.0))
    count = np.full(len(tree), 10.0)
    deviation = line_deviation(tree, count, np.zeros(len(tree)), pattern, domain)
    assert (deviation[:, tree.is_leaf] > 0).all() == counts
    assert (deviation > 0).any() == counts
