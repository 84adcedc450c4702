"""Builds with regions: answers of named regions and unions, sums over levels, what is refused."""

from functools import partial

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.decompositions import Regions
from psd.errors import ParameterError, PsdError
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.release.post_processing import PostProcessing
from psd.statistics.raster import density_raster
from support.cli_runner import fails
from support.tables import refused, refused_calls
from support.trees import EQUATOR_SCALE

PLANE = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(256, 256))


def wards():
    """Sixteen triangles and squares in four boroughs, and a corner that is in none."""
    rows = []
    for j in range(4):
        for i in range(4):
            west, south = 2 * i, 2 * j
            shape = shapely.box(west, south, west + 2, south + 2)
            if (i, j) == (3, 3):
                shape = shapely.Polygon([(6, 6), (8, 6), (6, 8)])
            ids = {"ward": f"w{j}{i}", "borough": f"b{j // 2}{i // 2}"}
            rows.append({**ids, "geometry": shape})
    return gpd.GeoDataFrame(rows, geometry="geometry", crs="EPSG:3857")


@pytest.fixture(scope="module")
def regions():
    return hierarchy_from_polygons(wards(), PLANE, ids="ward", parents=["borough"], gaps="outside")


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(3)
    x, y = random.normal(5, 1.5, (2, 4_000)).clip(0.001, 7.999)
    return pd.DataFrame({"x": x, "y": y})


def built(rows, regions, method="cascade", epsilon=1, **more):
    return psd.build(rows, regions=regions, epsilon=epsilon, method=method, x="x", y="y", **more)


def true_counts(rows, regions, level=-1):
    region = regions.assign(rows["x"].to_numpy(), rows["y"].to_numpy())
    owner = regions.ancestors(level)[region[region >= 0]]
    return np.bincount(owner, minlength=len(regions.levels[level].ids))


@pytest.mark.parametrize("method", ["cascade", "auto", "none", "regions"])
def test_answers_are_near_the_counts_of_the_rule(rows, regions, method):
    release = built(rows, regions, method, epsilon=100)
    for tier, level in enumerate(release.levels):
        answers = release.query(level=level).table
        assert answers["id"].tolist() == list(regions.levels[tier].ids)
        assert answers["estimate"].to_numpy() == pytest.approx(
            true_counts(rows, regions, tier), abs=3
        )
    assert release.total == pytest.approx(true_counts(rows, regions).sum(), abs=3)
    assert (release.method, release.record.epsilon) == ("regions", 100 * 10**9)


@pytest.mark.parametrize("method", ["cascade", "none"])
def test_every_level_adds_up(rows, regions, method):
    parent = regions.levels[1].parent
    release = built(rows, regions, method, epsilon="0.05")
    for estimate in ("least-squares", "posterior", "signed"):
        view = release.replace(post_processing=PostProcessing(estimate=estimate))
        boroughs, parts = (view.index.fit.estimates.count[view.tree.named(t)] for t in (0, 1))
        np.testing.assert_allclose(np.bincount(parent, parts), boroughs, atol=1e-9)
        assert boroughs.sum() == pytest.approx(view.index.fit.estimates.count[0])
        if estimate != "signed":
            assert view.index.fit.estimates.count.min() >= 0
            assert view.query(level="ward")["estimate"].sum() == pytest.approx(view.total)


def test_unions_have_the_estimate_of_their_parts_and_the_covariance_of_the_tree(rows, regions):
    release = built(rows, regions, "none", epsilon="0.5", estimate="signed")
    single = release.query(level="ward").table.set_index("id")
    parts = [["w00", "w01", "w10", "w11"], ["w22", "w00"], ["w33"]]
    union = release.query(parts, level="ward").table
    assert union["id"].tolist() == ["w00 + w01 + w10 + w11", "w22 + w00", "w33"]
    sums = [release.index.fit.estimates.signed[nodes_of(release, part)].sum() for part in parts]
    np.testing.assert_allclose(union["estimate"], np.maximum(sums, 0), atol=1e-9)
    [borough] = release.query(["b00"], level="borough")["error"]
    assert union["error"][0] == pytest.approx(borough)
    assert union["error"][2] == pytest.approx(single.loc["w33", "error"])
    assert (union["nonuniformity_error"] == 0).all()
    covariance = dense_covariance(release, parts[1])
    assert union["error"][1] ** 2 == pytest.approx(covariance)


def nodes_of(release, ids):
    ids_of_wards = release.tree.regions.levels[1].ids
    return release.tree.named(1)[[ids_of_wards.index(name) for name in ids]]


def dense_covariance(release, ids):
    """Variance of a sum of wards by dense least squares over the leaves."""
    tree = release.tree
    leaves = np.flatnonzero(tree.is_leaf & ~tree.outside)
    design = np.zeros((len(tree), len(leaves)))
    design[leaves, np.arange(len(leaves))] = 1
    for level in tree.levels[:0:-1]:
        np.add.at(design, tree.parent[level], design[level])
    measured = tree.loss > 0
    variance = tree.noise.variance(tree.loss[measured])
    inverse = np.linalg.inv(design[measured].T / variance @ design[measured])
    weight = design[nodes_of(release, ids)].sum(axis=0)
    return weight @ inverse @ weight


def test_records_in_no_region_are_dropped_before_every_question(rows, regions):
    corner = pd.DataFrame({"x": np.full(3_000, 7.9), "y": np.full(3_000, 7.9)})
    release = built(pd.concat([rows, corner]), regions, epsilon=200)
    assert release.total == pytest.approx(true_counts(rows, regions).sum(), abs=2)
    assert len(built(corner, regions).query().table) == 16
    outline = gpd.GeoSeries([shapely.box(0, 0, 4, 8)], crs="EPSG:3857")
    cells = psd.regions.CellRegions(kind="grid-cells", cells="2")
    release = built(rows, cells, "none", epsilon=100, domain=PLANE, boundary=outline)
    assert len(release.query().table) == 8
    inside = rows["x"] < 4
    assert release.query()["estimate"].sum() == pytest.approx(inside.sum(), abs=10)


def with_users(rows):
    """The records with users who have up to four, on one of two days."""
    number = np.arange(len(rows))
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(number % 2, unit="D")
    return rows.assign(u=[f"u{n}" for n in number // 4], t=days)


@pytest.mark.parametrize("method", ["cascade", "none"])
def test_users_are_bounded_and_counted_in_regions(rows, regions, method):
    users = with_users(rows)
    options = {"epsilon": 400, "user": "u"}
    release = built(users, regions, method, **options, count="records", max_contributions=4)
    expected = true_counts(rows, regions)
    assert release.query()["estimate"].to_numpy() == pytest.approx(expected, abs=5)
    release = built(users, regions, method, **options, count="users")
    region = regions.assign(rows["x"].to_numpy(), rows["y"].to_numpy())
    held = users["u"][region >= 0].nunique()
    total = release.query(level="borough")["estimate"].sum()
    assert total == pytest.approx(held, abs=0.1 * held)


DAYS = psd.TimeSlices.parse("day", "2024-01-01..2024-01-02")


def test_each_slice_has_its_regions_and_sums_over_slices_answer_them(rows, regions, tmp_path):
    users = with_users(rows)
    series = built(users, regions, epsilon=100, slices=DAYS, time="t")
    series.save(tmp_path / "series.psd.parquet")
    again = psd.load(tmp_path / "series.psd.parquet")
    assert again.digest == series.digest
    for day, time in zip(series, sorted(users["t"].unique()), strict=True):
        answers = series[day].query().table
        pd.testing.assert_frame_equal(again[day].query().table, answers)
        expected = true_counts(users[users["t"] == time], regions)
        assert answers["estimate"].to_numpy() == pytest.approx(expected, abs=4)
    total = series.query().table
    assert total["estimate"].to_numpy() == pytest.approx(true_counts(users, regions), abs=6)
    noise = sum(series[day].query()["perturbation_error"] ** 2 for day in DAYS)
    assert (total["perturbation_error"] ** 2).to_numpy() == pytest.approx(noise, rel=0.5)
    one = series.query(when="2024-01-02").table
    pd.testing.assert_frame_equal(one, series["2024-01-02"].query().table)
    table = pd.DataFrame({"area": total["id"][::-1].to_numpy()})
    beside = series.query(table, id="area").table
    assert beside["estimate"].tolist() == total["estimate"][::-1].tolist()
    assert list(beside["area"]) == list(table["area"])
    with pytest.raises(ParameterError, match=r'; try when="2024-01-02"$'):
        series.query(when="2024-01-02..2024-01-03")


def test_a_boundary_drops_records_of_regions_and_a_covariate_none(rows, regions):
    boundary = gpd.GeoSeries([shapely.box(0, 0, 8, 3.5)], crs="EPSG:3857")
    release = built(rows, regions, epsilon=200, boundary=boundary)
    inside = rows[rows["y"] < 3.5]
    answers = release.query(level="ward").table.set_index("id")
    assert answers["estimate"].to_numpy() == pytest.approx(true_counts(inside, regions), abs=2)
    assert answers.loc["w20", ["estimate", "upper"]].tolist() == [0, 0]
    assert release.query([(0, 4, 8, 8)])["upper"].tolist() == [0]
    covariate = gpd.GeoSeries([shapely.box(0, 0, 8, 6)], crs="EPSG:3857")
    answers = built(rows, regions, epsilon=200, covariate=covariate).query(level="ward").table
    expected = true_counts(rows, regions)
    assert answers["estimate"].to_numpy() == pytest.approx(expected, abs=2)


def test_other_regions_are_refused(rows, regions, subtests):
    release = built(rows, regions, "none")
    table = [
        ("level must be one of borough, ward, got 'county'", {"level": "county"}),
        (r"must be those of level ward, got 'w0'; did you mean 'w\d+'\?", {"areas": ["w0"]}),
        (r"got 'Bank'; the level has \d+ ids, the first is 'w00'", {"areas": "Bank"}),
        ("borough, got 'w00'; it is one of level ward", {"level": "borough", "areas": ["w00"]}),
        ("different ids", {"areas": [["w00", "w00"]]}),
        ("confidence", {"confidence": 2}),
    ]
    refused(subtests, ParameterError, table, lambda options: release.query(**options).table)


def test_what_does_not_go_with_regions_is_refused(rows, regions, subtests):
    methods = {"method": "quadtree"}, {"method": psd.decompositions.method("grid")}
    table = [(".", *methods, {"domain": (0, 0, 1, 1)}, {"density": "smooth"})]
    build = partial(built, rows, regions)
    refused(subtests, ParameterError, table, lambda options: build(**options))
    with pytest.raises(ParameterError, match="regions are given"):
        psd.build(rows, domain=PLANE, epsilon=1, method=Regions(), x="x", y="y")
    with pytest.raises(PsdError):
        psd.build(rows, domain=PLANE, epsilon=1, method="regions", x="x", y="y")


# --- verbs of cells ------------------------------------------------------------------------

BOXES = [(0, 0, 4, 4), (1, 1, 3.5, 7), (4, 4, 8, 8)]


@pytest.mark.deep
@pytest.mark.parametrize("method", ["cascade", "none"])
def test_joint_answers_have_the_errors_of_single_ones(rows, regions, method):
    release = built(rows, regions, method)
    polygons = gpd.GeoSeries([shapely.box(*box).buffer(-0.1) for box in BOXES], crs="EPSG:3857")
    for asked in (BOXES, polygons):
        joint, single = release.query(asked).joint(), release.query(asked).table
        assert np.diag(joint.covariance) == pytest.approx(single["error"].to_numpy() ** 2)
        assert np.linalg.eigvalsh(joint.covariance).min() > -1e-6
        assert (joint.answers["joint_upper"] >= single["upper"] - 1e-9).all()


def test_named_regions_are_answered_jointly_and_nested_ones_add_up(rows, regions):
    release = built(rows, regions)
    joint = release.query(level="borough").joint()
    single = release.query(level="borough").table
    assert joint.answers["id"].tolist() == single["id"].tolist()
    assert np.diag(joint.covariance) == pytest.approx(single["error"].to_numpy() ** 2)
    assert (joint.nonuniformity_covariance == 0).all()
    assert joint.total().estimate == pytest.approx(release.total)
    union = release.query([["b00", "b01"]], level="borough").table
    first = release.query(["b00", "b01"], level="borough").joint()
    assert first.total().error == pytest.approx(union["error"][0])
    overlapping = release.query([["b00", "b01"], "b01", "b11"], level="borough").joint()
    assert overlapping.overlap == (0, 1)
    with pytest.raises(ParameterError, match="got 'county'"):
        release.query(level="county").joint()
    areas = [(3, 3, 5, 5), (2.5, 2.5, 6, 6.5), (0, 0, 8, 8)]
    answers = built(rows, regions).query(areas).nested()
    estimate, ring = answers["estimate"].to_numpy(), answers["ring"].to_numpy()
    assert estimate == pytest.approx(np.cumsum(ring))
    assert (ring >= 0).all()


def boxes_of(columns, rows):
    """Cells of a raster."""
    x, y = np.linspace(0, 8, columns + 1), np.linspace(8, 0, rows + 1)
    return [(x[i], y[j + 1], x[i + 1], y[j]) for j in range(rows) for i in range(columns)]


@pytest.mark.parametrize("method", ["cascade", "none"])
def test_a_raster_has_the_answers_of_its_cells(rows, regions, method):
    release = built(rows, regions, method)
    raster = density_raster(release.index.fit, 7, 5)
    assert raster.count.sum() == pytest.approx(release.total)
    answers = release.query(boxes_of(7, 5)).table
    for name in ("estimate", "perturbation_error", "nonuniformity_error"):
        band = raster.count if name == "estimate" else getattr(raster, name)
        assert band.ravel() == pytest.approx(answers[name].to_numpy(), rel=1e-6, abs=1e-6)


def test_a_raster_of_rounded_coordinates_has_the_answers_of_its_cells(rows):
    space = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", coordinate_resolution="0.125")
    rounded = hierarchy_from_polygons(wards(), space, ids="ward", gaps="outside")
    release = built(rows, rounded)
    raster = density_raster(release.index.fit, 3, 3)
    assert raster.count.sum() == pytest.approx(release.total)
    assert raster.count.ravel() == pytest.approx(
        release.query(boxes_of(3, 3), errors=False).arrays["estimate"], abs=1e-6
    )


def test_top_ranks_the_regions_of_a_level(rows, regions, subtests):
    release = built(rows, regions)
    top = release.query(top=2, level="borough", draws=200).table
    answers = release.query(level="borough").table.sort_values("estimate", ascending=False)
    assert top["id"].tolist() == answers["id"].tolist()[:2]
    assert top["rank"].tolist() == [1, 2]
    assert top["probability"].between(0, 1).all()
    assert len(release.query(top=16, draws=50).table) == 16
    assert len(release.query(top=3, size=(5, 5), draws=50).table) == 3
    assert len(release.query(BOXES, top=1, draws=50).table) == 1
    table = [
        ("top must be an integer from 1 to 16", {"top": 17}),
        ("by must be count", {"top": 1, "by": "density"}),
        ("level must be left out", {"top": 1, "level": "ward", "size": (2, 2)}),
    ]
    refused(subtests, ParameterError, table, lambda options: release.query(**options))
    # Class breaks are those of the raster.
    breaks = release.query(quantiles=True, classes=4, size=(6, 6), draws=20).table
    assert (np.diff(breaks["density"]) >= 0).all()
    assert (breaks["error"] > 0).any()


@pytest.mark.parametrize("method", ["cascade", "none"])
def test_errors_are_explained(rows, regions, method):
    release = built(rows, regions, method)
    [explanation] = release.query([(1.1, 1.1, 5.3, 6.2)]).explain()
    answer = release.query([(1.1, 1.1, 5.3, 6.2)]).table
    remedies = explanation.remedies.set_index("change")["error"]
    assert remedies["as it is"] == pytest.approx(answer["error"][0])
    assert remedies["10 times the epsilon"] < remedies["as it is"]
    assert "cells half as wide at its edge" in remedies
    assert len(explanation.cut)
    [whole] = release.query(gpd.GeoSeries([wards().geometry[0]], crs="EPSG:3857")).explain()
    assert whole.cut.empty
    assert whole.noise_share == 1


@pytest.mark.parametrize("ending", ["npy", pytest.param("tif", marks=pytest.mark.deep)])
def test_rasters_of_cells_are_exported(rows, regions, tmp_path, ending):
    release = built(rows, regions)
    release.export(tmp_path / f"r.{ending}", size=(6, 4))
    if ending == "npy":
        assert np.load(tmp_path / "r.npy")[0].sum() == pytest.approx(release.total, rel=1e-6)
    with pytest.raises(ParameterError, match="level must be left out if output is a raster"):
        release.export(tmp_path / f"s.{ending}", level="ward")
    with pytest.raises(ParameterError, match="size must be left out unless output is a raster"):
        release.export(tmp_path / "s.gpkg", size=(6, 4))


def test_regions_are_a_table_with_their_polygons(rows, regions):
    release = built(rows, regions)
    for level in ("ward", "borough", None):
        table, answers = release.to_geopandas(level=level), release.query(level=level).table
        for name in ("id", "estimate"):
            assert table[name].tolist() == answers[name].tolist()
        assert table.crs == "EPSG:3857"
        expected = wards() if level != "borough" else wards().dissolve("borough", as_index=False)
        shapes = expected.set_index(level or "ward").geometry.loc[table["id"]]
        assert shapely.equals(table.geometry.to_numpy(), shapes.to_numpy()).all()
        km2 = shapely.area(table.geometry.to_numpy()) / 1e6 * EQUATOR_SCALE
        assert table["density"].tolist() == pytest.approx((table["estimate"] / km2).tolist())
        assert table.attrs["epsilon"] == "1"


def test_regions_are_exported(rows, regions, tmp_path, subtests):
    release = built(rows, regions)
    expected = release.to_geopandas(level="borough")
    for ending, read in {
        "gpkg": partial(gpd.read_file, layer="regions"),
        "parquet": gpd.read_parquet,
        "fgb": gpd.read_file,
        "geojson": gpd.read_file,
        "csv": pd.read_csv,
        "xlsx": pd.read_excel,
    }.items():
        release.export(tmp_path / f"r.{ending}", level="borough", unreliable="mark")
        table = read(tmp_path / f"r.{ending}")
        with subtests.test(ending):
            assert table["id"].tolist() == expected["id"].tolist()
            assert table["estimate"].tolist() == pytest.approx(expected["estimate"].tolist())
            assert set(table["threshold"]) == {0.3}
    for words, name, options in (
        ("output must end in", "s.kml", {}),
        ("level", "s.gpkg", {"level": "street"}),
        ("unreliable must be one of", "s.gpkg", {"unreliable": "hide"}),
    ):
        with subtests.test(words), pytest.raises(ParameterError, match=words):
            release.export(tmp_path / name, **options)
    assert list(tmp_path.glob("s.*")) == []
    built(rows, regions).save(tmp_path / "r")
    for told, *option in (
        ("--cells must be left out with a release of regions", "--cells", "all"),
        ("must be left out unless output is a raster", "--size", 9, 9),
        ("must be left out unless output is a raster", "--band", "count"),
    ):
        assert told in fails(2, "export", tmp_path / "r", tmp_path / "b.gpkg", *option)


@pytest.mark.deep
def test_regions_are_drawn(rows, regions):
    import matplotlib as mpl

    mpl.use("agg")
    release = built(rows, regions)
    axes = release.plot(level="ward")
    (shown,) = axes.collections
    assert len(shown.get_paths()) == 16
    axes.figure.canvas.draw()
    mpl.pyplot.close("all")
    assert "<img" not in release._repr_html_()
    assert "epsilon 1 per record" in release._repr_html_()


# --- regions of files and of cells ---------------------------------------------------------


def test_regions_are_given_by_files_or_by_the_name_of_cells(rows, regions, tmp_path):
    path = str(tmp_path / "wards.gpkg")
    wards().to_file(path)
    files = psd.regions.RegionFiles(
        paths=(path,), ids=("ward",), parents=("borough",), gaps="outside"
    )
    options = {"domain": PLANE, "epsilon": 100}
    release = built(rows, files, "none", **options)
    assert release.tree.regions.digest == regions.digest
    expected = true_counts(rows, regions)
    assert release.query()["estimate"].to_numpy() == pytest.approx(expected, abs=3)
    cells = psd.regions.CellRegions(kind="grid-cells", cells="2,4")
    release = built(rows, cells, "none", **options)
    assert release.levels == ("4m", "2m")
    tally = psd.tally(rows, domain=PLANE, regions=cells, x="x", y="y", part="a")
    again = psd.build(tally, regions=cells, method="none", **options)
    expected = release.query()["estimate"].to_numpy()
    assert again.query()["estimate"].to_numpy() == pytest.approx(expected, abs=6)


def test_regions_that_cannot_be_given_are_refused(rows, tmp_path, subtests):
    path = str(tmp_path / "wards.gpkg")
    wards().to_file(path)
    files = psd.regions.RegionFiles(paths=(path,), ids=("ward",))
    with pytest.raises(ParameterError, match="must not be an input of records"):
        psd.tally(path, domain=PLANE, regions=files)
    table = [
        ("must not be an input of records", {"data": path, "regions": files}),
        ("region_id must be the column that names the regions", {"regions": wards()}),
        (
            r"regions must be .* psd\.regions\.RegionHierarchy, got a value of type int",
            {"regions": 5},
        ),
        ("must cover the bounds", {"regions": files}),
    ]
    known = {"data": rows, "domain": PLANE, "epsilon": 1, "x": "x", "y": "y"}
    refused(subtests, ParameterError, table, lambda options: psd.build(**known | options))


def test_a_table_of_the_caller_keeps_its_columns_and_order(rows, regions, subtests):
    release = built(rows, regions)
    table = pd.DataFrame({"code": ["b11", "b00", "b11"], "seats": [1, 2, 3]}, index=[7, 8, 9])
    answers = release.query(table, id="code", level="borough").table
    assert answers.index.tolist() == [7, 8, 9]
    assert answers.columns[:3].tolist() == ["code", "seats", "estimate"]
    expected = release.query(table["code"].tolist(), level="borough").table
    assert answers["estimate"].tolist() == expected["estimate"].tolist()
    faults = [
        ("areas must be a DataFrame", [1], "code"),
        ("id must be one of the columns of areas .code, seats., got 'id'", table, "id"),
        ("ids must be those of level borough, got '1'", table, "seats"),
        ("must not have a column error", table.assign(error=1), "code"),
    ]
    refused_calls(
        subtests,
        ParameterError,
        faults,
        lambda areas, id: release.query(areas, id=id, level="borough").table,
    )
