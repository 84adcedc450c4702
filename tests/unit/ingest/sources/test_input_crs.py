"""Columns in another CRS than the release: transformed record by record, outside or counted."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
from pyproj import Transformer, _network

import psd
from psd.curator.private_bounds import PrivateBounds
from psd.errors import DomainError
from psd.ingest.columns import reading_of
from psd.ingest.points import make_projection
from psd.ingest.sources import Columns, read
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


PAIRS = {
    "britain": ("EPSG:4326", LONDON),
    "europe": ("EPSG:4326", psd.Domain(bounds=(0, 0, 4e6, 4e6), crs="EPSG:3035")),
    "osgb36": ("EPSG:4277", DEGREES),
    "nad27": ("EPSG:4267", psd.Domain(bounds=(-180, 10, -50, 80), crs="EPSG:4269")),
    "back": ("EPSG:27700", DEGREES),
}


@pytest.mark.parametrize(("source", "target"), PAIRS.values(), ids=PAIRS)
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


def test_known_points_and_points_that_are_not_reached():
    """The water tower at Caister, within the metres of a transformation without grids."""
    batch = batch_of(degrees([1.716073972], [52.658007833]), input_crs="EPSG:4326")
    np.testing.assert_allclose([batch.x[0], batch.y[0]], [651409.8, 313177.4], atol=5)
    table = degrees([0.0, 1e30, np.nan, 0], [95.0, 1e30, 51.5, 51.5])
    batch = batch_of(table, input_crs="EPSG:4326")
    assert not np.isfinite(batch.x[:2]).any()
    assert not np.isnan(batch.x[:2]).any()
    assert np.isnan(batch.x[2])
    assert np.isfinite([batch.x[3], batch.y[3]]).all()


def degrees(lon, lat):
    return pd.DataFrame({"lon": lon, "lat": lat})


def test_every_source_transforms_alike(subtests, tmp_path):
    x, y = (values[4:].round(6) for values in points())  # workbooks keep 15 digits
    table = degrees(x, y)
    texts = pd.DataFrame({"geom": [f"POINT ({a} {b})" for a, b in zip(x, y, strict=True)]})
    table.to_csv(tmp_path / "t.csv", index=False)
    texts.to_csv(tmp_path / "wkt.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet")
    table.to_excel(tmp_path / "t.xlsx", index=False)
    expected = sorted_points(batch_of(table, input_crs="EPSG:4326"))
    for data, options in [
        *((tmp_path / name, {}) for name in ("t.csv", "t.parquet", "t.xlsx")),
        (tmp_path / "wkt.csv", {"wkt": "geom"}),
        (gpd.GeoDataFrame(geometry=gpd.points_from_xy(x, y)), {}),  # that states no CRS
    ]:
        with subtests.test(kind=type(data).__name__, data=str(data)[:99]):
            batch = batch_of(data, input_crs="epsg:4326", **options)
            np.testing.assert_array_equal(sorted_points(batch), expected)


def sorted_points(batch):
    order = np.lexsort((batch.y, batch.x))
    return batch.x[order], batch.y[order]


def test_one_crs_is_not_stated_twice():
    table = gpd.GeoDataFrame(geometry=gpd.points_from_xy([0.1], [51.5]), crs="EPSG:4326")
    assert np.isfinite(batch_of(table, input_crs="OGC:CRS84").x).all()
    with pytest.raises(DomainError, match="the GeoDataFrame states another CRS than EPSG:3857"):
        batch_of(table, input_crs="EPSG:3857")
    assert reading_of(Columns(input_crs="epsg:4326"))["input_crs"] == "EPSG:4326"
    assert "input_crs" not in reading_of(Columns())


def test_what_is_not_a_crs_of_columns():
    for crs, words in [
        ("EPSG:99999", "input_crs must be a coordinate reference system"),
        ("EPSG:4978", "input_crs must have coordinates x and y"),
        ("+proj=longlat +nadgrids=/etc/passwd", "input_crs"),
    ]:
        with pytest.raises(DomainError, match=words):
            Columns(input_crs=crs)
    local = 'LOCAL_CS["site",UNIT["metre",1]]'  # is refused before a record is read
    with pytest.raises(DomainError, match="cannot be transformed to EPSG:27700"):
        psd.build("no-file.csv", domain=LONDON, epsilon=1, input_crs=local)


def test_resolution_and_cells_are_those_of_the_release():
    """Rounded values of one CRS are no multiples of a step in another."""
    rounded = psd.Domain(bounds=(-1, 51, 1, 52), coordinate_resolution="0.001")
    table = degrees([0.1], [51.5])
    assert batch_of(table, rounded, input_crs="EPSG:4326").x[0] == 0.1
    with pytest.raises(DomainError, match="coordinate_resolution must be left out"):
        psd.build(table, domain=rounded, epsilon=1, input_crs="EPSG:27700")
    table = degrees([0.1] * 50, [51.5] * 50)
    release = psd.build(table, domain=LONDON, epsilon=1, input_crs="EPSG:4326", method="cascade")
    assert (release.domain.crs, release.domain.min_cell) == ("EPSG:27700", "5")


@pytest.mark.deep
def test_areas_are_those_of_the_release(subtests):
    """Records at the places of the release are the same, whichever way they came there."""
    x, y = (values[4:] for values in points(3000, seed=8))
    table = pd.DataFrame({"x": x, "y": y, "day": "2024-01-01"})
    table.loc[::2, "day"] = "2024-01-02"
    to_grid = make_projection("EPSG:4326", LONDON, "the input")
    x, y = (np.where(np.isfinite(values), values, -9e9) for values in to_grid((x, y)))
    moved = table.assign(x=x, y=y)
    circle = gpd.GeoSeries.from_xy([530_000], [180_000], crs="EPSG:27700").buffer(20_000)
    squares = psd.regions.CellRegions(kind="grid-cells", cells="1km,10km")
    days = psd.TimeSlices.parse("day", "2024-01-01..2024-01-02")
    for options in [
        {"boundary": circle},
        {"regions": squares, "method": "none"},
        {"domain": PrivateBounds(crs="EPSG:27700", share="0.5", beyond=5)},
        {"slices": days, "time": "day"},
    ]:
        options = {"domain": LONDON, "epsilon": 5, "method": "quadtree", **options}
        drawn = []
        for data, more in ((table, {"input_crs": "EPSG:4326"}), (moved, {})):
            noise = RecordingSampler(SCRIPTS[2])
            psd.build(data, sampler=noise, **options, **more)
            drawn.append([call.true.tolist() for call in noise.draws])
        with subtests.test(options=options):
            assert drawn[0] == drawn[1]
            assert sum(map(len, drawn[0])) > 0


def test_charges_for_disjoint_boxes_add_up(tmp_path):
    """Which box a record at its side is in depends on PROJ and its grids."""
    path = tmp_path / "p.csv"
    path.write_text("lon,lat\n" + "0.1,51.5\n" * 50)
    sides = (503000, 530000), (530001, 562000)
    boxes = [psd.Domain(bounds=(a, 155000, b, 201000), crs="EPSG:27700") for a, b in sides]
    spent = {}
    for name, options in (("alike", {}), ("transformed", {"input_crs": "EPSG:4326"})):
        ledger = psd.Ledger.create(tmp_path / name)
        ledger.register("rows", 5, columns=Columns(**options))
        for domain in boxes:
            account = psd.ledger.Account(ledger, "rows")
            psd.build(path, domain=domain, epsilon=1, method="grid", account=account, **options)
        spent[name] = account.left
    assert spent["alike"] - spent["transformed"] == 10**9


def test_proj_fetches_nothing(monkeypatch):
    seen, transform = [], Transformer.transform

    def watched(self, *arguments, **options):
        seen.append(_network.is_network_enabled())
        return transform(self, *arguments, **options)

    monkeypatch.setattr(Transformer, "transform", watched)
    _network.set_network_enabled(active=True)
    try:
        batch_of(degrees([0.1], [51.5]), input_crs="EPSG:4326")
        assert _network.is_network_enabled()
    finally:
        _network.set_network_enabled(active=False)
    assert seen == [False]
