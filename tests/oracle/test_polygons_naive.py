"""Polygon answers under every density, leaf by leaf and part by part with overlays of GEOS."""

import numpy as np
import pytest
import shapely

from psd.estimation.density import PARTS
from psd.release.post_processing import DENSITIES, PostProcessing
from psd.space.covariate import Covariate
from support.releases import changed
from support.trees import METRES, dense_least_squares, published_noise, random_tree, release_of

pytestmark = pytest.mark.deep

SIDE = 64


def shapes(rng):
    """Polygons, some with holes and some in parts."""
    made = []
    for centre in rng.uniform(0, SIDE, (12, 2)):
        angle = np.arange(14) * 2 * np.pi / 14
        reach = rng.uniform(3, 30) * rng.uniform(0.4, 1, 14)
        places = centre + np.column_stack([np.cos(angle), np.sin(angle)]) * reach[:, None]
        holes = shapely.MultiPoint(rng.uniform(0, SIDE, (6, 2))).buffer(2.5)
        made.append(shapely.Polygon(places).difference(holes))
    return [shape for shape in made if shape.intersects(shapely.box(0, 0, SIDE, SIDE))]


def area_in(shape, west, south, east, north):
    return shape.intersection(shapely.box(west, south, east, north)).area


def part_share(release, rank, box, shape):
    """Share of a leaf in a shape by the smooth density: its parts one by one."""
    west, south, east, north = box
    x, y = np.linspace(west, east, PARTS + 1), np.linspace(south, north, PARTS + 1)
    size = (x[1] - x[0]) * (y[1] - y[0])
    share = release.index.fit.density.share[rank]
    return sum(
        share[row, column] * area_in(shape, x[column], y[row], x[column + 1], y[row + 1]) / size
        for row in range(PARTS)
        for column in range(PARTS)
    )


def mass_share(release, box, shape):
    """Share of a leaf in a shape by the covariate: raster cells one by one."""
    raster = release.record.covariate.raster
    (rows, columns), (west, south, east, north) = raster.shape, box
    wide, high = SIDE / columns, SIDE / rows
    inside = whole = 0.0
    for row in range(int(south / high), int(np.ceil(north / high))):
        for column in range(int(west / wide), int(np.ceil(east / wide))):
            cell = (
                max(west, column * wide),
                max(south, row * high),
                min(east, (column + 1) * wide),
                min(north, (row + 1) * high),
            )
            inside += raster[row, column] * area_in(shape, *cell)
            whole += raster[row, column] * (cell[2] - cell[0]) * (cell[3] - cell[1])
    if whole == 0:
        return area_in(shape, *box) / ((east - west) * (north - south))
    return inside / whole


def leaf_shares(release, shape):
    """Share of every leaf's count in a shape."""
    boxes = release.tree.boxes[release.tree.is_leaf].astype(float)
    shares = []
    for rank, box in enumerate(boxes):
        fraction = area_in(shape, *box) / ((box[2] - box[0]) * (box[3] - box[1]))
        if release.record.post_processing.density == "smooth" and 0 < fraction < 1:
            fraction = part_share(release, rank, box, shape)
        if release.record.post_processing.density == "covariate" and 0 < fraction < 1:
            fraction = mass_share(release, box, shape)
        shares.append(fraction)
    return np.array(shares)


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("seed", [2, 4])
def test_answers_and_both_errors_are_those_of_the_naive_way(density, seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, height=5, leaf_share=0.1)
    raster = rng.integers(0, 3, (20, 24)).astype(np.uint16)
    release = release_of(tree)
    release = changed(
        release,
        covariate=Covariate(domain=release.domain, raster=raster),
        post_processing=PostProcessing(density=density),
    )
    given = shapes(rng)
    table = release.query(given, crs=METRES).table
    weights = np.array([leaf_shares(release, shape) for shape in given])
    assert ((weights > 0) & (weights < 1)).sum() > 100
    count = release.index.fit.estimates.count[tree.is_leaf]
    assert table["estimate"].to_numpy() == pytest.approx(weights @ count, rel=1e-9, abs=1e-9)
    _, covariance = dense_least_squares(tree)
    deviation = np.sqrt(np.einsum("ij,jk,ik->i", weights, covariance, weights))
    signed = changed(release, post_processing=PostProcessing(estimate="signed", density=density))
    if density != "smooth":  # A smooth density follows from the estimates.
        predicted = signed.query(given, crs=METRES)["perturbation_error"]
        assert predicted.to_numpy() == pytest.approx(deviation, rel=1e-9)
    nodes = published_noise(release)
    leaves = np.flatnonzero(tree.is_leaf)
    covariance = nodes[np.ix_(leaves, leaves)]
    deviation = np.sqrt(np.einsum("ij,jk,ik->i", weights, covariance, weights))
    assert table["perturbation_error"].to_numpy() == pytest.approx(deviation, rel=1e-9)
