"""Polygon queries: areas, reprojection, the caller's table, and what is refused."""

import math

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.errors import DomainError, ParameterError
from psd.query.answer_table import COLUMNS
from psd.query.lines import find_sides
from psd.release.post_processing import PostProcessing
from support.releases import changed
from support.trees import METRES, random_queries, random_tree, release_of

SIZE = 64


@pytest.fixture(scope="module")
def release():
    return release_of(random_tree(np.random.default_rng(6), height=5, leaf_share=0.1))


@pytest.fixture(scope="module")
def seoul():
    """Release in degrees; its grid of 12 x 12 has no square metres."""
    domain = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
    tree = psd.decompositions.grid_tree(domain, 12)
    counts = np.random.default_rng(2).integers(0, 500, 144)
    return psd.Release.from_counts(tree, counts, 1.0, domain=domain)


def blob(rng, centre, radius):
    """Star-shaped polygon with 12 corners."""
    angle = np.arange(12) * 2 * math.pi / 12
    reach = radius * rng.uniform(0.4, 1, 12)
    return shapely.Polygon(
        np.column_stack([np.cos(angle), np.sin(angle)]) * reach[:, None] + centre
    )


def ring(rng, centre, radius):
    """Polygon with a hole."""
    return blob(rng, centre, radius).difference(blob(rng, centre, radius * 0.35))


def shapes(rng):
    """Random polygons, polygons with holes and multi-polygons; some reach outside."""
    centres = rng.uniform(0, SIZE, (30, 2))
    made = [blob(rng, c, rng.uniform(0.3, 40)) for c in centres[:10]]
    made += [ring(rng, c, rng.uniform(1, 40)) for c in centres[10:20]]
    made += [
        shapely.unary_union([ring(rng, a, 9), blob(rng, b, 9)])
        for a, b in zip(centres[10:20], centres[20:], strict=True)
    ]
    return made


def naive_fractions(release, shape):
    """Covered fraction of every leaf, leaf by leaf."""
    leaves = release.domain.from_lattice(release.tree.boxes[release.tree.is_leaf])
    return np.array([shape.intersection(c).area / c.area for c in shapely.box(*leaves.T)])


def test_polygons_are_answered_as_by_intersection_with_every_leaf(release):
    made = shapes(np.random.default_rng(9))
    assert sum(shape.geom_type == "MultiPolygon" for shape in made) > 3
    assert sum(len(shape.interiors) for shape in made if shape.geom_type == "Polygon") > 8
    table = release.query(made, crs=METRES).table
    leaf = release.tree.is_leaf
    count = release.index.fit.estimates.count[leaf]
    phi, cluster_size = (
        release.index.fit.dispersion.overdispersion[leaf],
        release.index.fit.dispersion.cluster_size,
    )
    lines = release.query(made, crs=METRES).areas.totals(release.index).line_variance
    for shape, row, line in zip(made, table.itertuples(), lines, strict=True):
        f = naive_fractions(release, shape)
        assert row.estimate == pytest.approx(f @ count, rel=1e-9, abs=1e-9)
        spread = (f * (1 - f) * count * (cluster_size + phi * count)).clip(0).sum() + line
        assert row.nonuniformity_error == pytest.approx(math.sqrt(spread), rel=1e-6, abs=1e-5)


def test_a_box_given_as_a_polygon_is_answered_as_the_box(release):
    boxes = random_queries(np.random.default_rng(10), (SIZE, SIZE), 60)
    boxes = np.vstack([boxes, [[0, 0, SIZE, SIZE], [-5, 3, 20, 90]]])
    by_box = release.query(boxes).table
    by_polygon = release.query(list(shapely.box(*boxes.T)), crs=METRES).table
    assert list(by_polygon.columns) == list(by_box.columns)
    assert by_polygon["id"].tolist() == by_box["id"].tolist()
    numbers = list(COLUMNS[:-2])
    np.testing.assert_allclose(by_polygon[numbers], by_box[numbers], rtol=1e-9, atol=1e-9)
    assert by_polygon["quality"].tolist() == by_box["quality"].tolist()


def test_own_cells_given_as_polygons_are_the_cells(seoul):
    cells = seoul.to_geopandas("all")[["geometry"]]
    answers = seoul.query(cells).table
    assert list(answers.estimate) == pytest.approx(seoul.index.fit.estimates.count)
    assert list(answers.perturbation_error) == pytest.approx(
        np.sqrt(seoul.index.fit.estimates.variance)
    )
    assert (answers.nonuniformity_error == 0).all()


@pytest.mark.deep
@pytest.mark.parametrize("density", ["uniform", "smooth"])
def test_polygons_that_cut_no_leaf_are_answered_by_every_density(release, density):
    viewed = changed(release, post_processing=PostProcessing(density=density))
    whole = viewed.query([shapely.box(0, 0, SIZE, SIZE)], crs=METRES).table
    assert whole["estimate"][0] == viewed.total
    leaf = np.flatnonzero(release.tree.is_leaf)[0]
    exactly = shapely.box(*release.tree.boxes[leaf])
    assert (
        viewed.query([exactly], crs=METRES)["estimate"][0] == viewed.index.fit.estimates.count[leaf]
    )


# --- ways to give polygons ----------------------------------------------------------------

SQUARE = shapely.box(1, 1, 30.5, 20)


def test_ways_to_give_one_polygon(release, subtests):
    expected = release.query([SQUARE.bounds]).table
    for name, regions in {
        "one polygon": SQUARE,
        "list": [SQUARE],
        "tuple": (SQUARE,),
        "array": np.array([SQUARE]),
        "multi-polygon": shapely.MultiPolygon([SQUARE]),
        "with heights": shapely.force_3d(SQUARE, 100),
        "clockwise": SQUARE.reverse(),
    }.items():
        with subtests.test(name):
            table = release.query(regions, crs=METRES).table
            assert list(table.columns) == ["id", *COLUMNS]
            assert table["id"].tolist() == [1]
            assert table.estimate[0] == pytest.approx(expected.estimate[0])
            assert table.error[0] == pytest.approx(expected.error[0])


def test_the_callers_columns_and_index_are_kept(release):
    regions = gpd.GeoDataFrame(
        {"name": ["b", "a"], "id": [7, 7]},
        geometry=[SQUARE, shapely.box(0, 0, 5, 5)],
        index=["x", "x"],
        crs="EPSG:3857",
    )
    before = regions.copy()
    answers = release.query(regions).table
    assert isinstance(answers, gpd.GeoDataFrame)
    assert list(answers.columns) == ["name", "id", "geometry", *COLUMNS]
    assert answers.index.tolist() == ["x", "x"]
    assert answers[["name", "id", "geometry"]].equals(before)
    assert regions.equals(before)
    assert answers.crs == "EPSG:3857"
    assert answers.estimate.iloc[0] == pytest.approx(
        release.query(SQUARE, crs=METRES).table.estimate[0]
    )


@pytest.mark.parametrize("index", [["b", "a"], ["x", "x"]])
@pytest.mark.parametrize("stated", [True, False])
def test_index_and_geometry_of_a_series_are_kept(release, index, stated):
    shapes = [SQUARE, shapely.box(0, 0, 5, 5)]
    regions = gpd.GeoSeries(shapes, index=index, crs="EPSG:3857" if stated else None, name="error")
    answers = release.query(regions, crs=None if stated else METRES).table
    assert list(answers.columns) == ["id", "geometry", *COLUMNS]
    assert answers.index.tolist() == index
    assert answers.geometry.tolist() == shapes
    assert answers.crs == "EPSG:3857"
    assert answers.estimate.tolist() == release.query(shapes, crs=METRES).table.estimate.tolist()


@pytest.mark.parametrize("ids", [True, False])
def test_index_and_columns_of_boxes_are_kept(release, ids):
    sides = {"west": [1, 0], "south": [1, 0], "east": [30.5, 5], "north": [20, 5]}
    named = {"id": ["p", "q"]} if ids else {}
    boxes = pd.DataFrame(sides | {"estimate": [1, 2], "town": ["A", "B"]} | named, index=[7, 7])
    answers = release.query(boxes).table
    columns = [*sides, "town", "id"] if ids else ["id", *sides, "town"]
    assert list(answers.columns) == [*columns, *COLUMNS]
    assert answers["id"].tolist() == (["p", "q"] if ids else [1, 2])
    assert answers.index.tolist() == [7, 7]
    expected = release.query(boxes[list(sides)].to_numpy()).table
    assert answers.estimate.tolist() == expected.estimate.tolist()


def test_names_of_columns(release):
    square = gpd.GeoDataFrame({"shape": [SQUARE]}, geometry="shape", crs=METRES)
    answers = release.query(square).table
    assert (answers.geometry.name, len(answers)) == ("shape", 1)
    nothing = release.query(gpd.GeoDataFrame({"name": []}, geometry=[], crs=METRES)).table
    assert len(nothing) == 0
    assert list(nothing.columns) == ["name", "geometry", *COLUMNS]
    for column in ("estimate", "reliable"):  # they would be overwritten
        with pytest.raises(ParameterError, match=f"must not have a column {column}"):
            release.query(square.assign(**{column: 1}))


# --- coordinate reference systems ---------------------------------------------------------


def test_regions_without_crs_are_refused(release):
    for regions in (gpd.GeoDataFrame(geometry=[SQUARE]), gpd.GeoSeries([SQUARE])):
        with pytest.raises(DomainError, match="no CRS"):
            release.query(regions)


def test_regions_in_metres_are_brought_to_degrees(seoul):
    west, south, east, north = 126.6, 37.2, 127.3, 37.7
    fine = shapely.segmentize(shapely.box(west, south, east, north), 0.001)
    for crs in ("EPSG:5179", "EPSG:3857"):
        metres = gpd.GeoSeries([fine], crs="EPSG:4326").to_crs(crs)
        expected = seoul.query([(west, south, east, north)]).table.loc[0]
        answer = seoul.query(metres).table.loc[0]
        assert answer["estimate"] == pytest.approx(expected["estimate"], rel=1e-5)
        assert answer["perturbation_error"] == pytest.approx(
            expected["perturbation_error"], rel=1e-3
        )


def test_long_lines_are_divided_before_they_are_brought_over(seoul):
    # A straight side of 90 km in EPSG:5179 is an arc in degrees; four corners alone
    # would miss it by up to 100 m.
    square = shapely.box(910_000, 1_900_000, 1_000_000, 1_990_000)
    regions = gpd.GeoSeries([square], crs="EPSG:5179")
    corners = regions.to_crs("EPSG:4326")
    dense = gpd.GeoSeries([shapely.segmentize(square, 50)], crs="EPSG:5179").to_crs("EPSG:4326")
    expected = seoul.query(dense).table.estimate[0]
    assert abs(seoul.query(corners).table.estimate[0] - expected) > 1e-4 * expected
    assert seoul.query(regions).table.estimate[0] == pytest.approx(expected, rel=1e-7)


def test_the_answer_stays_in_the_callers_crs(seoul):
    regions = gpd.GeoDataFrame(
        {"name": ["a", "b"]},
        geometry=list(shapely.box([126.5, 127], 37.1, [126.8, 127.5], 37.9)),
        index=[5, 5],
        crs="EPSG:4326",
    ).to_crs("EPSG:5179")
    answers = seoul.query(regions).table
    assert answers.crs == "EPSG:5179"
    assert answers.geometry.equals(regions.geometry)
    assert answers.index.tolist() == [5, 5]


def test_axis_order_is_x_before_y_whatever_the_authority_says(seoul):
    # EPSG:4326 is latitude first for the authority; so is EPSG:4019.
    regions = gpd.GeoSeries([shapely.box(126.6, 37.2, 126.9, 37.4)], crs="EPSG:4019")
    expected = seoul.query([(126.6, 37.2, 126.9, 37.4)]).table.estimate[0]
    assert seoul.query(regions).table.estimate[0] == pytest.approx(expected, rel=1e-4)


# --- what is refused ----------------------------------------------------------------------


BAD_SHAPES = {
    "bow-tie": (
        shapely.Polygon([(0, 0), (9, 9), (9, 0), (0, 9)]),
        r"not valid \(Self-intersection",
    ),
    "empty": (shapely.Polygon(), "must not be empty"),
    "empty multi-polygon": (shapely.MultiPolygon(), "must not be empty"),
    "point": (shapely.Point(1, 1), "got Point"),
    "line": (shapely.LineString([(0, 0), (1, 1)]), "got LineString"),
    "mixture": (shapely.GeometryCollection([SQUARE]), "got GeometryC"),
    "nothing": (None, "got missing"),
    "outside": (shapely.box(65, 0, 70, 9), "outside the bounds"),
    "touching the east": (shapely.box(64, 0, 70, 9), "outside the bounds"),
    "touching a corner": (shapely.box(64, 64, 70, 70), "outside the bounds"),
    "all around the domain": (
        shapely.box(-9, -9, 99, 99).difference(shapely.box(-1, -1, 65, 65)),
        "outside the bounds",
    ),
    "infinite": (shapely.box(0, 0, math.inf, 9), "finite"),
}


def test_bad_polygons_are_refused_by_number_and_reason(release, subtests):
    for name, (shape, says) in BAD_SHAPES.items():
        with subtests.test(name):
            with pytest.raises(ParameterError, match=f"region 2 .*{says}"):
                release.query([SQUARE, shape, SQUARE], crs=METRES)
            with pytest.raises(ParameterError, match=f"region 2 .*{says}"):
                release.query(gpd.GeoSeries([SQUARE, shape], crs=METRES, index=[8, 9]))


def test_a_missing_shape_in_another_crs_is_refused_too(seoul):
    regions = gpd.GeoSeries([shapely.box(126.6, 37.2, 126.9, 37.4), None], crs="EPSG:4326")
    with pytest.raises(ParameterError, match="region 2 must be a polygon, got missing"):
        seoul.query(regions.to_crs("EPSG:3857"))


def test_a_part_outside_is_not_answered_for(release):
    inside = release.query(shapely.box(50, 50, 64, 64), crs=METRES).table.iloc[0, 1:]
    reaching = release.query(shapely.box(50, 50, 1000, 1000), crs=METRES).table.iloc[0, 1:]
    assert list(reaching) == pytest.approx(list(inside))


def test_sides_of_a_triangle_err_by_their_direction():
    domain = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
    triangle = shapely.Polygon([(0, 0), (3, 0), (0, 3)])
    sides = find_sides(np.array([triangle]), domain)
    assert (sides.weight + 0).tolist() == [[0.0, 0.5, -1.0], [-1.0, 0.5, 0.0]]
