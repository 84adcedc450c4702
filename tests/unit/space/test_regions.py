"""What may be given as polygons, the CRS that each way of giving them has, and what is refused."""

import json
import types

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from pyproj import Transformer

import psd
from psd.errors import DomainError, ParameterError
from psd.space import regions as placing
from psd.space.polygon_areas import clip_outlines
from psd.space.regions import MAX_TEXT, MAX_VERTICES, is_region, regions_table
from psd.testing import release_from_counts
from support.tables import refused, refused_calls

SQUARE = shapely.box(126.5, 37.2, 126.9, 37.7)
HOLED = SQUARE.difference(shapely.box(126.6, 37.3, 126.7, 37.4))
SEVERAL = shapely.union(HOLED, shapely.box(127, 37.1, 127.3, 37.9))
DEGREES, METRES = "EPSG:4326", "EPSG:5179"


@pytest.fixture(scope="module")
def release():
    domain = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
    counts = np.random.default_rng(2).integers(0, 500, 144)
    return psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 12), counts, 1.0, domain=domain
    )


def plain(answers):
    """Columns of the answers; those of a series have its geometry as well."""
    return answers.drop(columns="geometry", errors="ignore")


def geojson(shape):
    return json.loads(shapely.to_geojson(shape))


def feature(shape, **more):
    geometry = None if shape is None else geojson(shape)
    return {"type": "Feature", "properties": {"a": 1}, "geometry": geometry, **more}


def collection(*shapes, **more):
    return {"type": "FeatureCollection", "features": list(map(feature, shapes)), **more}


def interface(shape):
    """An object of some other library."""
    return types.SimpleNamespace(__geo_interface__=shape.__geo_interface__)


def named(crs):
    return {"type": "name", "properties": {"name": crs}}


WITH_CRS = {
    "GeoJSON geometry": geojson,
    "GeoJSON feature": feature,
    "GeoJSON collection": collection,
    "GeoJSON text": lambda shape: json.dumps(geojson(shape)),
    "GeoJSON text after a mark": lambda shape: "\ufeff " + json.dumps(feature(shape)),
    "GeoJSON with its CRS": lambda shape: collection(shape, crs=named("EPSG:4326")),
    "GeoJSON of CRS84": lambda shape: collection(shape, crs=named("urn:ogc:def:crs:OGC:1.3:CRS84")),
    "EWKT": lambda shape: f"SRID=4326;{shape.wkt}",
    "EWKT in small letters": lambda shape: f" srid = 4326 ; {shape.wkt.lower()}",
    "shape with SRID": lambda shape: shapely.set_srid(shape, 4326),
    "list of GeoJSON": lambda shape: [geojson(shape)],
    "GeoSeries": lambda shape: gpd.GeoSeries([shape], crs=DEGREES),
}
WITHOUT_CRS = {
    "WKT": lambda shape: shape.wkt,
    "WKT over lines": lambda shape: shape.wkt.replace(", ", ",\n"),
    "WKT with heights": lambda shape: shapely.force_3d(shape, 5).wkt,
    "list of WKT": lambda shape: [shape.wkt],
    "array of WKT": lambda shape: np.array([shape.wkt]),
    "tuple of shapes": lambda shape: (shape,),
    "interface": interface,
    "list of interfaces": lambda shape: [interface(shape)],
    "GeoSeries without CRS": lambda shape: gpd.GeoSeries([shape]),
}


def expected_of(release, *shapes):
    return plain(release.query(gpd.GeoSeries(list(shapes), crs=DEGREES)).table)


@pytest.mark.parametrize("shape", [SQUARE, HOLED, SEVERAL], ids=["square", "hole", "parts"])
def test_ways_that_say_their_crs(release, shape, subtests):
    expected = expected_of(release, shape)
    for way, make in WITH_CRS.items():
        given = make(shape)
        with subtests.test(way):
            assert is_region(given)
            read = regions_table(given)
            assert read.crs.equals(DEGREES, ignore_axis_order=True)
            assert read.iloc[0].equals_exact(shape, 1e-12)
            assert plain(release.query(given).table).equals(expected)
            assert plain(release.query(given, crs=DEGREES).table).equals(expected)


def test_ways_that_need_to_be_told_their_crs(release, subtests):
    expected = expected_of(release, SEVERAL)
    near = pytest.approx(expected["estimate"][0], rel=1e-4)
    [away] = gpd.GeoSeries([SEVERAL], crs=DEGREES).to_crs(METRES)
    for way, make in WITHOUT_CRS.items():
        given = make(SEVERAL)
        with subtests.test(way):
            assert is_region(given)
            with pytest.raises(DomainError, match="no CRS; pass crs="):
                release.query(given)
            assert plain(release.query(given, crs=release.domain.crs).table).equals(expected)
            assert release.query(make(away), crs=METRES)["estimate"][0] == near


def test_one_shape_is_in_the_crs_of_the_release_and_several_say_theirs(release):
    expected = expected_of(release, SEVERAL)
    for way in (
        release.query(SEVERAL).table,
        release.query(SEVERAL, crs=release.domain.crs).table,
        release.query(shapely.set_srid(SEVERAL, 4326)).table,
    ):
        assert plain(way).equals(expected)
    [away] = gpd.GeoSeries([SEVERAL], crs=DEGREES).to_crs(METRES)
    near = pytest.approx(expected["estimate"][0], rel=1e-4)
    assert release.query(away, crs=METRES)["estimate"][0] == near


def test_a_crs_that_is_said_goes_before_the_default_of_geojson_and_not_before_its_own(release):
    there = gpd.GeoSeries([SQUARE], crs=DEGREES).to_crs(METRES)
    expected = plain(release.query(there).table)
    assert plain(release.query(geojson(there[0]), crs=METRES).table).equals(expected)
    assert plain(release.query(collection(there[0], crs=named(METRES))).table).equals(expected)
    with pytest.raises(DomainError, match="must have one CRS"):
        release.query(collection(there[0], crs=named(METRES)), crs=DEGREES)
    domain = psd.Domain(bounds=(900_000, 1_900_000, 1_000_000, 2_000_000), crs=METRES)
    made = release_from_counts(np.arange(16).reshape(4, 4), domain=domain)
    shape = gpd.GeoSeries([shapely.box(*domain.bounds).buffer(-30_000)], crs=METRES)
    by_table, by_json = (
        made.query(given)["estimate"][0]
        for given in (shape.to_crs(DEGREES), geojson(shape.to_crs(DEGREES)[0]))
    )
    assert by_json == by_table == pytest.approx(made.query(shape)["estimate"][0], rel=1e-3)
    ways = [geojson(SQUARE), f"SRID=4326;{HOLED.wkt}", shapely.set_srid(SEVERAL, 4326)]
    expected = expected_of(release, SQUARE, HOLED, SEVERAL)
    assert plain(release.query(ways).table).equals(expected)
    assert plain(release.query(collection(SQUARE, HOLED, SEVERAL)).table).equals(expected)
    assert release.query([collection(SQUARE, HOLED), feature(SEVERAL)])["id"].tolist() == [1, 2, 3]
    assert len(release.query(collection()).table) == 0


def test_a_crs_that_is_refused(release, subtests):
    there, unknown = f"SRID=4326;{SQUARE.wkt}", "a coordinate reference system"
    link = collection(SQUARE, crs={"type": "link"})
    table = [
        ("no CRS", [SQUARE.wkt, there], None),
        ("one CRS", [f"SRID=5179;{SQUARE.wkt}", there], None),
        ("one CRS", gpd.GeoSeries([SQUARE], crs=DEGREES), METRES),
        *((unknown, SQUARE, crs) for crs in ("EPSG:0", "")),
        ("a coordinate reference", f"SRID=1;{SQUARE.wkt}", None),
        ("must have a name", link, None),
        ("a coordinate reference", collection(SQUARE, crs=named("x")), None),
        ("crs of boxes must be", [SQUARE.bounds], METRES),
    ]
    refused_calls(
        subtests, DomainError, table, lambda given, crs: release.query(given, crs=crs).table
    )
    # Boxes may be said to be where they are.
    assert release.query([SQUARE.bounds], crs="OGC:CRS84").table.equals(
        release.query([SQUARE.bounds]).table
    )


OPEN = [[126.5, 37.2], [126.9, 37.2], [126.9, 37.7], [126.5, 37.7]]
RING = [*OPEN, OPEN[0]]


def polygon(*rings):
    return {"type": "Polygon", "coordinates": list(rings)}


def text_of(places):
    return f"POLYGON(({', '.join(f'{x} {y}' for x, y in places)}))"


UNREADABLE = "cannot be read as GeoJSON or WKT"
BOW_TIE = [RING[0], RING[2], RING[1], *RING[3:]]
NAN = [float("nan"), 1]


def test_regions_that_are_refused(release, subtests):
    deep = "GEOMETRYCOLLECTION(" * 200_000 + "POINT(1 1)" + ")" * 200_000
    mixed = {"type": "GeometryCollection", "geometries": []}
    letters = b"POLYGON EMPTY".decode("utf-16-be", "ignore")
    for says, *regions in (
        ("a path that exists", "districts.gpkg"),
        (UNREADABLE, "", "POLYGON((126.5 37.2", "POLYGON((1 1, 2 2))", "\udc80"),
        ("do not form a closed", text_of(OPEN)),
        ("must not be empty", "POLYGON EMPTY", "MULTIPOLYGON EMPTY", polygon()),
        ("must not be empty", {"type": "MultiPolygon", "coordinates": []}),
        ("got Point", "POINT(126.5 37.2)", geojson(shapely.Point(1, 1))),
        ("got GeometryC", "GEOMETRYCOLLECTION(POINT(1 1))", mixed),
        ("Nonlinear geometry types are not", "CURVEPOLYGON((0 0, 1 1, 2 0, 0 0))"),
        ("finite", "POLYGON((126 37, 127 37, nan 38, 126 37))"),
        ("finite", "POLYGON((1e400 37, 127 37, 127 38, 1e400 37))"),
        ("finite", polygon([NAN, *RING[1:4], NAN])),
        ("Self-inter", text_of(BOW_TIE)),
        ("cannot be", letters),
        ("at most 3 deep, got 200,000", "(" * 200_000),
        ("at most 3 deep, got 200,001", deep),
        ("nested too deep", "[" * 200_000),
        ("must be a GeoJSON object", "[1, 2]"),
        ("cannot be read as GeoJSON", "{"),
        ("lists as coordinates", {"type": "Polygon"}),
        ("must have features", {"type": "FeatureCollection"}),
        ("got missing", feature(None)),
        ("another object", {"west": 1}),
        ("closed rings .* a ring of 4", polygon(OPEN)),
        ("closed rings .* a ring of 1", polygon(RING[:1])),
        ("lists of vertices", polygon([]), polygon([[1], [2], [3], [1]])),
        ("lists of vertices", polygon([["a", "b"]] * 4), polygon([[10**400, 1]] * 4)),
        ("lists of vertices", polygon([RING, RING[:2]]), polygon([*RING[:2], [1], *RING[3:]])),
        ("must be a polygon, GeoJSON or WKT", (1, 2, 3, 4)),
    ):
        for region in regions:
            told = pytest.raises(ParameterError, match=f"region 2 .*{says}")
            with subtests.test(region=region), told:
                release.query([SQUARE, region], crs=DEGREES)


# --- what is refused by size, before GEOS works on it --------------------------------------


def circle(vertices):
    angle = np.linspace(0, 2 * np.pi, vertices + 1)[:-1]
    return shapely.Polygon(np.column_stack([127 + np.cos(angle) / 3, 37.5 + np.sin(angle) / 3]))


def spikes(number):
    """Thin spikes all around, each beside hundreds of others."""
    angle = np.linspace(0, 2 * np.pi, 2 * number + 1)[:-1]
    reach = np.where(np.arange(2 * number) % 2, 0.1, 0.4)
    return shapely.Polygon(
        np.column_stack([127 + np.cos(angle) * reach, 37.5 + np.sin(angle) * reach])
    )


def test_vertices_of_wkt_are_counted_before_it_is_read(release, monkeypatch):
    monkeypatch.setattr(shapely, "from_wkt", None)
    with pytest.raises(ParameterError, match="at most 500,000 vertices, got 500,001"):
        release.query("MULTIPOINT(" + "0 0," * MAX_VERTICES + "0 0)", crs=DEGREES)
    with pytest.raises(ParameterError, match="at most 50,000,000 characters, got 50,000,001"):
        release.query("(" * (MAX_TEXT + 1), crs=DEGREES)


def test_entangled_sides_are_counted_first(release, monkeypatch, subtests):
    for name in ("is_valid", "is_valid_reason", "segmentize", "prepare", "intersection"):
        monkeypatch.setattr(shapely, name, None)
    reach = np.linspace(0.4, 0.1, 10_000)
    rings = shapely.box(127 - reach, 37.5 - reach, 127 + reach, 37.5 + reach)
    pairs = zip(rings[::2], rings[1::2], strict=True)
    nested = [shapely.Polygon(a.exterior, [b.exterior]) for a, b in pairs]
    table = [
        ("at most 500,000 vertices, got 500,002; si", circle(MAX_VERTICES + 1)),
        (r"sides beside each other, got [\d,]+ of 60,001 v", spikes(30_000)),
        ("sides beside each other", shapely.MultiPolygon(nested)),
    ]
    refused(subtests, ParameterError, table, lambda shape: release.query(shape, crs=DEGREES).table)


def test_vertices_are_counted_while_sides_are_divided(release, monkeypatch):
    monkeypatch.setattr(placing, "MAX_VERTICES", 1000)
    # Its sides are 8,000 km long and curved in degrees, and keep their place to a decimetre.
    lines = [shapely.box(0, y, 8e6, y + 1e5) for y in np.linspace(1e6, 4e6, 4)]
    told = "region 2 must have at most 1,000 vertices once its sides are divided"
    with pytest.raises(ParameterError, match=told):
        release.query([lines[0] & lines[0].buffer(-4e4), shapely.MultiPolygon(lines)], crs=3035)


def test_what_is_abreast_is_counted_pair_by_pair():
    assert placing._FEW_VERTICES * (placing._FEW_VERTICES - 1) // 2 < placing.MAX_PAIRS
    for seed in range(20):
        rng = np.random.default_rng(seed)
        shape = shapely.MultiPoint(rng.integers(0, 9, (7, 2)) / 4).buffer(0.1, quad_segs=2)
        lines = [np.array(r.coords) for r in shapely.get_rings(shapely.get_parts(shape))]
        ends = np.concatenate([np.stack([line[:-1], line[1:]], axis=1) for line in lines])
        low, high = ends.min(axis=1), ends.max(axis=1)
        met = (low[:, None] <= high[None]) & (low[None] <= high[:, None])
        pairs = (met.sum(axis=(0, 1)) - len(ends)) // 2
        assert placing._count_pairs(shape) == pairs.min()


def test_outlines_that_pass_too_many_cells_are_refused(release):
    x = np.repeat(np.arange(2000) / 2000, 2)
    y = np.tile([0, 0.9, 0.9, 0], 1000)
    comb = np.column_stack([126.5 + x, 37.05 + y])
    shape = shapely.Polygon([*comb, (127.5, 37.02), (126.5, 37.02)])
    with pytest.raises(ParameterError, match=r"must have an outline of at most .* got 1,802"):
        release.query(shape, crs=DEGREES)
    # The same beside the domain, but for a corner of it.
    away = shapely.union(shapely.affinity.translate(shape, 0, -0.97), SQUARE)
    assert release.query(away, crs=DEGREES)["estimate"][0] > 0


@pytest.mark.parametrize("shape", [circle(100_000), circle(1000), spikes(1200)])
def test_large_polygons_that_are_simple_enough_are_answered(release, shape):
    whole = release.query(release.domain.bounds)["estimate"][0]
    estimate = release.query(shape, crs=DEGREES)["estimate"][0]
    assert 0 < estimate < whole


# --- reprojection ---------------------------------------------------------------------------


def test_polygons_across_longitude_180_are_answered_and_beyond_a_crs_refused():
    domain = psd.Domain(bounds=(-180, -20, 180, 20))
    made = release_from_counts(np.arange(16).reshape(4, 4), domain=domain)
    across = shapely.box(-1e6, -1e6, 1e6, 1e6)
    here = shapely.box(-3e6, -1e6, -1e6, 1e6)
    assert (
        len(made.query([here, across], crs="EPSG:3832").table) == 2
    )  # its middle is 150 degrees east
    across = shapely.affinity.translate(across, 3.3e6)
    both = made.query([here, across], crs="EPSG:3832")["estimate"]
    degrees = Transformer.from_crs("EPSG:3832", DEGREES, always_xy=True)
    west, south, east, north = degrees.transform_bounds(*across.bounds)
    assert west > east
    parts = made.query([(west, south, 180, north), (-180, south, east, north)])["estimate"]
    assert both[1] == pytest.approx(parts.sum(), rel=1e-6)
    beyond = made.query(shapely.box(west, south, east + 360, north), crs=DEGREES)["estimate"]
    assert beyond[0] == pytest.approx(parts.sum(), rel=1e-9)
    domain = psd.Domain(bounds=(0, 0, 1e7, 1e7), crs="EPSG:3857")
    made = release_from_counts([[0, 1], [2, 3]], domain=domain)
    told = r"region 1 cannot be expressed in EPSG:3857; does it reach a pole .* Clip it"
    with pytest.raises(DomainError, match=told):
        made.query(shapely.box(0, 0, 9, 95), crs=DEGREES)


# Releases in CRSs that have no place for a part of the world, or put it anywhere.
NARROW = {
    "EPSG:3031": (-5e6, -5e6, 5e6, 5e6), "EPSG:3413": (-3e6, -3e6, 3e6, 3e6),
    "EPSG:2193": (1e6, 4.7e6, 2.6e6, 6.3e6), "EPSG:32633": (2e5, 5e6, 8e5, 6e6),
    "EPSG:3035": (2.5e6, 1.5e6, 6.5e6, 5.5e6), "EPSG:27700": (0, 0, 7e5, 13e5),
    "EPSG:2154": (1e5, 6e6, 1.2e6, 7.1e6), "EPSG:3832": (2e6, -3e6, 5e6, -1e6),
}  # fmt: skip


@pytest.mark.parametrize(
    "crs", [pytest.param("EPSG:2154", marks=pytest.mark.deep), *sorted({*NARROW} - {"EPSG:2154"})]
)
def test_polygons_that_reach_far_beyond_a_release_are_those_inside_it(crs, subtests):
    """The rest of them has no place in the CRS, or another one."""
    domain = psd.Domain(bounds=NARROW[crs], crs=crs)
    made = release_from_counts(np.full((8, 8), 100), domain=domain)
    x, y = (np.linspace(*domain.bounds[axis::2], 102)[1:-1] for axis in (0, 1))
    places = np.stack([each.ravel() for each in np.meshgrid(x, y)])
    to_degrees = Transformer.from_crs(crs, DEGREES, always_xy=True)
    longitude, latitude = to_degrees.transform(*places)
    for shape in (
        shapely.box(-180, -90, 180, 90), shapely.box(0, -90, 360, 90),
        shapely.box(-180, -85, 180, 85), shapely.box(-180, 0, 180, 90),
        shapely.box(-180, -90, 180, 0), shapely.box(-180, -90, 0, 90),
        shapely.MultiPolygon([shapely.box(160, -90, 180, 90), shapely.box(-180, -90, -170, 90)]),
    ):  # fmt: skip
        turns = [shapely.intersects_xy(shape, longitude + k, latitude) for k in (0, 360)]
        share = np.logical_or(*turns).mean()
        with subtests.test(str(shape)):
            if share == 0:
                with pytest.raises(ParameterError, match="region 1 lies outside the bounds"):
                    made.query(shape, crs=DEGREES)
                continue
            answer = made.query(shape, crs=DEGREES)["estimate"][0]
            assert answer == pytest.approx(6400 * share, abs=1e-6 if share == 1 else 64)


def test_parts_that_meet_at_longitude_180_cover_what_the_whole_covers():
    domain = psd.Domain(bounds=(2_226_389, -2_500_000, 4_452_779, -1_300_000), crs="EPSG:3832")
    counts = np.random.default_rng(3).integers(0, 50, (8, 8))
    made = release_from_counts(counts, domain=domain)
    cut = shapely.MultiPolygon([shapely.box(178, -20, 180, -15), shapely.box(-180, -20, -178, -15)])
    mercator = Transformer.from_crs(DEGREES, "EPSG:3832", always_xy=True)
    whole = shapely.box(*mercator.transform(178, -20), *mercator.transform(-178, -15))
    columns, rows = (np.linspace(*domain.bounds[axis::2], 9) for axis in (0, 1))
    west, south = np.meshgrid(columns[:-1], rows[:-1])
    cells = shapely.box(west, south, west + columns[1] - columns[0], south + rows[1] - rows[0])
    share = shapely.area(shapely.intersection(cells, whole)) / shapely.area(cells)
    model, shapes = made.index.fit, placing.to_release_crs(regions_table([cut], DEGREES), domain)
    boxes = domain.from_lattice(model.tree.boxes[model.tree.is_leaf])
    found = clip_outlines(np.repeat(shapes, len(boxes)), boxes).fraction
    order = np.lexsort((boxes[:, 0], boxes[:, 1]))
    assert found[order] == pytest.approx(share.ravel(), abs=1e-6)
    answers = [
        made.query(shape, crs=crs).table for shape, crs in ((cut, DEGREES), (whole, domain.crs))
    ]
    assert answers[0]["estimate"][0] == pytest.approx(answers[1]["estimate"][0], rel=1e-6)


def test_records_on_both_sides_of_longitude_180_are_all_in_a_cut_polygon():
    """Cells of 2.5 degrees reach beyond it, so that a coarse grid gives 86 of 100."""
    places = [(179.5, -17), (-179.5, -17), (178.5, -16), (-178.5, -18)]
    to_plane = Transformer.from_crs(DEGREES, "EPSG:3832", always_xy=True)
    x, y = to_plane.transform(*np.repeat(places, 25, axis=0).T)
    made = psd.build(
        pd.DataFrame({"x": x, "y": y}), x="x", y="y", crs="EPSG:3832", epsilon=1000,
        bounds=(2_226_389, -2_500_000, 4_452_779, -1_300_000),
    )  # fmt: skip
    cut = shapely.MultiPolygon([shapely.box(178, -20, 180, -15), shapely.box(-180, -20, -178, -15)])
    assert made.query(cut, crs=DEGREES)["estimate"][0] == pytest.approx(100, abs=1)
