"""Boxes and polygons over region trees, against sums of the parts of cells by shapely."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.regions.polygon_hierarchy import hierarchy_from_polygons

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(256, 256))


@pytest.fixture(scope="module", params=["cascade", "none"])
def release(request):
    seeds = np.random.default_rng(1).uniform(0, 8, (12, 2))
    box = shapely.box(0, 0, 8, 8)
    cells = shapely.voronoi_polygons(shapely.multipoints(seeds), extend_to=box)
    shapes = shapely.intersection(shapely.get_parts(cells), box)
    table = gpd.GeoDataFrame({"id": [f"r{n}" for n in range(12)]}, geometry=shapes)
    regions = hierarchy_from_polygons(table.set_crs("EPSG:3857"), PLANE, ids="id")
    x, y = np.random.default_rng(2).normal(5, 2, (2, 3_000)).clip(0, 7.99)
    rows = pd.DataFrame({"x": x, "y": y})
    return psd.build(rows, regions=regions, epsilon=2, method=request.param, x="x", y="y")


def parts(release):
    """Leaves that records can lie in: polygon and estimate of each."""
    tree = release.tree
    leaves = np.flatnonzero(tree.is_leaf & ~tree.outside)
    boxes = shapely.box(*PLANE.from_lattice(tree.boxes[leaves]).T)
    shapes = shapely.intersection(tree.regions.shapes()[tree.region[leaves]], boxes)
    return shapes, release.index.fit.estimates.count[leaves]


def expected(release, query):
    """Sum of the even shares of all leaves."""
    shapes, count = parts(release)
    area = shapely.area(shapes)
    share = shapely.area(shapely.intersection(shapes, query)) / np.where(area > 0, area, 1)
    return float((share * count).sum())


BOXES = [(0, 0, 8, 8), (1, 1, 2.5, 3), (3.01, 0.2, 7.3, 6.6), (4, 4, 4.01, 4.01), (-3, 2, 9, 2.5)]


@pytest.mark.parametrize("box", BOXES)
def test_a_box_takes_the_share_of_each_part(release, box):
    [answer] = release.query([box]).table.to_dict("records")
    assert answer["estimate"] == pytest.approx(expected(release, shapely.box(*box)), abs=1e-6)
    assert release.query([box], errors=False).arrays["estimate"] == pytest.approx(
        answer["estimate"]
    )
    assert answer["lower"] <= answer["estimate"] <= answer["upper"]


def test_many_boxes_have_the_answers_of_each(release):
    random = np.random.default_rng(4)
    corners = np.sort(random.uniform(0, 8, (300, 2, 2)), axis=1)
    boxes = np.concatenate([corners[:, 0], corners[:, 1]], axis=1)
    answers = release.query(boxes)["estimate"].to_numpy()
    for number in (0, 7, 299):
        query = shapely.box(*boxes[number])
        assert answers[number] == pytest.approx(expected(release, query), abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_a_polygon_takes_the_share_of_each_part(release, seed):
    points = np.random.default_rng(seed).uniform(0, 8, (6, 2))
    polygon = shapely.convex_hull(shapely.multipoints(points))
    [answer] = release.query([polygon], crs="EPSG:3857").table.to_dict("records")
    assert answer["estimate"] == pytest.approx(expected(release, polygon), abs=1e-6)
    assert answer["nonuniformity_error"] > 0


def test_polygons_of_regions_have_the_answers_of_the_regions(release):
    shapes, named = release.tree.regions.shapes(), release.query().table
    union = shapely.union_all(shapes[[2, 5]])
    answers = release.query([*shapes, union], crs="EPSG:3857").table
    together = release.query([[named["id"][2], named["id"][5]]]).table
    for name in ("estimate", "error", "upper"):
        both = [*named[name], *together[name]]
        np.testing.assert_allclose(answers[name], both, rtol=1e-6, atol=1e-6)


def test_a_box_is_answered_as_the_polygon_with_its_sides(release):
    box = (1.3, 2.2, 6.1, 7.7)
    [by_box], [by_polygon] = (
        release.query([query], crs="EPSG:3857" if number else None).table.to_dict("records")
        for number, query in enumerate((box, shapely.box(*box)))
    )
    for name in ("estimate", "error", "upper"):
        assert by_box[name] == pytest.approx(by_polygon[name], rel=1e-6)
