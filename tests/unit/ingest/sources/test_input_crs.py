"""Columns in another CRS than the release: transformed record by record, outside or counted."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest

import psd
from psd.errors import DomainError, ParameterError
from psd.ingest.reading import reading_of
from psd.ingest.sources import Columns, read
from psd.ingest.sources._points import make_projection
from psd.privacy.unit import PrivacyUnit
from psd.testing import SCRIPTS, RecordingSampler

LONDON = psd.Domain(bounds=(503000, 155000, 562000, 201000), crs="EPSG:27700")
DEGREES = psd.Domain(bounds=(-180, -90, 180, 90))


def batch_of(data, domain=LONDON, **columns):
    (batch,) = [batch for batch in read(data, Columns(**columns), domain) if len(batch.x)]
    return batch


def points(size=400, seed=3):
    """Degrees in and around Britain, at the poles and far away."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-8, 2, size), rng.uniform(49, 61, size)
    x[::7], y[::7] = rng.uniform(-180, 180, len(x[::7])), rng.uniform(-90, 90, len(y[::7]))
    x[:4], y[:4] = [np.nan, 0, 200, -0.1], [51.5, 95, 51, 90]
    return x, y


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("EPSG:4326", LONDON),
        ("EPSG:4326", psd.Domain(bounds=(0, 0, 4e6, 4e6), crs="EPSG:3035")),
        ("EPSG:4277", DEGREES),
        ("EPSG:4267", psd.Domain(bounds=(-180, 10, -50, 80), crs="EPSG:4269")),
        ("EPSG:27700", DEGREES),
    ],
    ids=["britain", "europe", "osgb36", "nad27", "back"],
)
def test_the_image_of_a_point_depends_on_that_point_alone(source, target):
    x, y = points()
    if source == "EPSG:27700":
        x, y = x * 50_000 + 4e5, y * 20_000 - 9e5
    project = make_projection(source, target, "the input")
    together = np.array(project((x, y)))
    order = np.random.default_rng(5).permutation(len(x))
    shuffled = np.array(project((x[order], y[order])))
    np.testing.assert_array_equal(shuffled, together[:, order])
    alone = [np.array(project((x[n : n + 1], y[n : n + 1])))[:, 0] for n in range(60)]
    np.testing.assert_array_equal(np.transpose(alone), together[:, :60])
    again = make_projection(source, target, "the input")
    np.testing.assert_array_equal(np.array(again((x[::-1], y[::-1]))), together[:, ::-1])


def test_known_points_of_britain():
    """The water tower at Caister, within the metres of a transformation without grids."""
    table = pd.DataFrame({"lon": [1.716073972], "lat": [52.658007833]})
    batch = batch_of(table, input_crs="EPSG:4326")
    np.testing.assert_allclose([batch.x[0], batch.y[0]], [651409.8, 313177.4], atol=5)


@pytest.mark.parametrize("kind", ["csv", "wkt", "pandas", "parquet", "xlsx", "geopandas"])
def test_every_source_transforms_alike(tmp_path, kind):
    x, y = points()
    x, y = x[4:].round(6), y[4:].round(6)  # workbooks keep 15 digits
    table = pd.DataFrame({"lon": x, "lat": y})
    expected = batch_of(table, input_crs="EPSG:4326")
    options, path = {"input_crs": "epsg:4326"}, tmp_path / f"t.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
    elif kind == "wkt":
        options["wkt"] = "geom"
        pd.DataFrame({"geom": [f"POINT ({a} {b})" for a, b in zip(x, y, strict=True)]}).to_csv(
            path := tmp_path / "t.csv", index=False
        )
    elif kind == "geopandas":  # a table that states no CRS
        path = gpd.GeoDataFrame(geometry=gpd.points_from_xy(x, y))
    elif kind != "pandas":
        {"parquet": table.to_parquet, "xlsx": table.to_excel}[kind](path, index=False)
    batch = batch_of(table if kind == "pandas" else path, **options)
    order, expected_order = np.lexsort((batch.y, batch.x)), np.lexsort((expected.y, expected.x))
    np.testing.assert_array_equal(batch.x[order], expected.x[expected_order])
    np.testing.assert_array_equal(batch.y[order], expected.y[expected_order])


def test_points_that_are_not_reached_are_outside_and_missing_ones_missing():
    table = pd.DataFrame({"lon": [0.0, 1e30, np.nan, 0], "lat": [95.0, 1e30, 51.5, 51.5]})
    batch = batch_of(table, input_crs="EPSG:4326")
    assert not np.isfinite(batch.x[:2]).any()
    assert not np.isnan(batch.x[:2]).any()
    assert np.isnan(batch.x[2])
    assert np.isfinite([batch.x[3], batch.y[3]]).all()


def test_one_crs_is_not_stated_twice():
    table = gpd.GeoDataFrame(geometry=gpd.points_from_xy([0.1], [51.5]), crs="EPSG:4326")
    assert np.isfinite(batch_of(table, input_crs="OGC:CRS84").x).all()
    with pytest.raises(DomainError, match="the GeoDataFrame states another CRS than EPSG:3857"):
        batch_of(table, input_crs="EPSG:3857")


@pytest.mark.parametrize(
    ("crs", "words"),
    [
        ("EPSG:99999", "input_crs must be a coordinate reference system"),
        ("EPSG:4978", "input_crs must have coordinates x and y"),
        ("+proj=longlat +nadgrids=/etc/passwd", "input_crs"),
    ],
)
def test_what_is_not_a_crs_of_columns(crs, words):
    with pytest.raises(DomainError, match=words.replace("+", r"\+")):
        Columns(input_crs=crs)


@pytest.mark.parametrize("crs", ['LOCAL_CS["site",UNIT["metre",1]]'])
def test_a_local_crs_is_refused_before_a_record_is_read(crs):
    with pytest.raises(DomainError, match="cannot be transformed to EPSG:27700"):
        psd.build("no-file.csv", domain=LONDON, epsilon=1, input_crs=crs)


def test_a_resolution_is_one_of_the_release_and_of_columns_in_its_crs_alone():
    """Rounded values of one CRS are no multiples of a step in another."""
    rounded = psd.Domain(bounds=(-1, 51, 1, 52), coordinate_resolution="0.001")
    table = pd.DataFrame({"lon": [0.1], "lat": [51.5]})
    assert batch_of(table, rounded, input_crs="EPSG:4326").x[0] == 0.1
    with pytest.raises(DomainError, match="coordinate_resolution must be left out"):
        psd.build(table, domain=rounded, epsilon=1, input_crs="EPSG:27700")


def test_the_smallest_cell_is_measured_in_the_crs_of_the_release():
    table = pd.DataFrame({"lon": [0.1] * 50, "lat": [51.5] * 50})
    release = psd.build(table, domain=LONDON, epsilon=1, input_crs="EPSG:4326", method="cascade")
    assert (release.crs, release.domain.min_cell) == ("EPSG:27700", "5")
    assert min(release.domain.width / 2**20, 5) * release.domain.cell_step[0] >= 0


@pytest.mark.parametrize("what", ["boundary", "regions", "private bounds", "slices"])
def test_areas_are_those_of_the_release(what):
    """Records at the places of the release are the same, whichever way they came there."""
    x, y = points(3000, seed=8)
    table = pd.DataFrame({"x": x[4:], "y": y[4:]})
    to_grid = make_projection("EPSG:4326", LONDON, "the input")
    moved = pd.DataFrame(np.transpose(to_grid((x[4:], y[4:]))), columns=["x", "y"])
    moved = moved.where(np.isfinite(moved), -9e9)
    options = {"domain": LONDON, "epsilon": 5, "method": "quadtree"}
    if what == "boundary":
        circle = gpd.GeoSeries.from_xy([530_000], [180_000], crs="EPSG:27700").buffer(20_000)
        options["boundary"] = circle
    elif what == "regions":
        squares = psd.CellRegions(kind="grid-cells", cells="1km,10km")
        options |= {"regions": squares, "method": "none"}
    elif what == "private bounds":
        options["domain"] = psd.PrivateBounds(crs="EPSG:27700", share="0.5", beyond=5)
    else:
        for each in (table, moved):
            each["day"] = np.where(np.arange(len(each)) % 2, "2024-01-01", "2024-01-02")
        options |= {"slices": psd.TimeSlices.parse("day", "2024-01-01..2024-01-02"), "time": "day"}
    drawn = []
    for data, more in ((table, {"input_crs": "EPSG:4326"}), (moved, {})):
        noise = RecordingSampler(SCRIPTS[2])
        psd.build(data, sampler=noise, **options, **more)
        drawn.append([call.true.tolist() for call in noise.draws])
    assert drawn[0] == drawn[1]
    assert sum(map(len, drawn[0])) > 0


def test_the_crs_is_part_of_the_reading():
    assert reading_of(Columns(input_crs="epsg:4326"))["input_crs"] == "EPSG:4326"
    assert "input_crs" not in reading_of(Columns())


def test_charges_for_disjoint_boxes_add_up(tmp_path):
    """Which box a record at its side is in depends on PROJ and its grids."""
    path = tmp_path / "p.csv"
    path.write_text("lon,lat\n" + "0.1,51.5\n" * 50)
    west = psd.Domain(bounds=(503000, 155000, 530000, 201000), crs="EPSG:27700")
    east = psd.Domain(bounds=(530001, 155000, 562000, 201000), crs="EPSG:27700")
    spent = {}
    for name, options in (("alike", {}), ("transformed", {"input_crs": "EPSG:4326"})):
        ledger = psd.Ledger.create(tmp_path / name)
        ledger.register("rows", 5, columns=Columns(**options))
        for domain in (west, east):
            account = psd.Account(ledger, "rows")
            psd.build(path, domain=domain, epsilon=1, method="grid", account=account, **options)
        spent[name] = account.left
    assert spent["alike"] - spent["transformed"] == 10**9


def test_an_engine_refuses_to_transform():
    columns = Columns(input_crs="EPSG:4326")
    from psd.ingest.engines._counts import tally_table

    with pytest.raises(ParameterError, match=r"input_crs must be that of the bounds, EPSG:27700"):
        tally_table(None, lambda query: None, columns, LONDON, unit=PrivacyUnit())


def test_proj_fetches_nothing(monkeypatch):
    from pyproj import Transformer, _network

    seen, transform = [], Transformer.transform

    def watched(self, *arguments, **options):
        seen.append(_network.is_network_enabled())
        return transform(self, *arguments, **options)

    monkeypatch.setattr(Transformer, "transform", watched)
    _network.set_network_enabled(active=True)
    try:
        batch_of(pd.DataFrame({"lon": [0.1], "lat": [51.5]}), input_crs="EPSG:4326")
        assert _network.is_network_enabled()
    finally:
        _network.set_network_enabled(active=False)
    assert seen == [False]
