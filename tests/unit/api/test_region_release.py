"""Builds with regions: answers of named regions and unions, sums over levels, what is refused."""

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.decompositions import Regions
from psd.errors import ParameterError, PsdError
from psd.space.polygon_hierarchy import hierarchy_from_polygons
from support.cli_runner import fails, passes

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
        answers = release.query_regions(level)
        assert answers["id"].tolist() == list(regions.levels[tier].ids)
        assert answers["estimate"].to_numpy() == pytest.approx(
            true_counts(rows, regions, tier), abs=3
        )
    assert release.total == pytest.approx(true_counts(rows, regions).sum(), abs=3)
    assert (release.method, release.record.epsilon) == ("regions", 100 * 10**9)


@pytest.mark.parametrize("method", ["cascade", "none"])
@pytest.mark.parametrize("estimate", ["least-squares", "posterior", "signed"])
def test_every_level_adds_up(rows, regions, method, estimate):
    release = built(rows, regions, method, epsilon="0.05", estimate=estimate)
    parent = regions.levels[1].parent
    boroughs, parts = (release.estimates.count[release.tree.named(t)] for t in (0, 1))
    np.testing.assert_allclose(np.bincount(parent, parts), boroughs, atol=1e-9)
    assert boroughs.sum() == pytest.approx(release.estimates.count[0])
    if estimate != "signed":
        assert release.estimates.count.min() >= 0
        assert release.query_regions("ward")["estimate"].sum() == pytest.approx(release.total)


def test_unions_have_the_estimate_of_their_parts_and_the_covariance_of_the_tree(rows, regions):
    release = built(rows, regions, "none", epsilon="0.5", estimate="signed")
    single = release.query_regions("ward").set_index("id")
    parts = [["w00", "w01", "w10", "w11"], ["w22", "w00"], ["w33"]]
    union = release.query_regions("ward", ids=parts)
    assert union["id"].tolist() == ["w00 + w01 + w10 + w11", "w22 + w00", "w33"]
    sums = [release_sum(release, part) for part in parts]
    np.testing.assert_allclose(union["estimate"], np.maximum(sums, 0), atol=1e-9)
    [borough] = release.query_regions("borough", ids=["b00"])["error"]
    assert union["error"][0] == pytest.approx(borough)
    assert union["error"][2] == pytest.approx(single.loc["w33", "error"])
    assert (union["nonuniformity_error"] == 0).all()
    covariance = dense_covariance(release, parts[1])
    assert union["error"][1] ** 2 == pytest.approx(covariance)


def release_sum(release, ids):
    """Sum of the signed estimates of wards."""
    level = release.tree.regions.levels[1]
    nodes = release.tree.named(1)[[level.ids.index(name) for name in ids]]
    return release.estimates.signed[nodes].sum()


def dense_covariance(release, ids):
    """Variance of a sum of wards by dense least squares over the leaves."""
    tree = release.tree
    leaves = np.flatnonzero(tree.is_leaf & ~tree.outside)
    design = np.zeros((len(tree), len(leaves)))
    design[leaves, np.arange(len(leaves))] = 1
    for level in tree.levels[:0:-1]:
        np.add.at(design, tree.parent[level], design[level])
    measured = tree.epsilon > 0
    variance = tree.noise.variance(tree.epsilon[measured])
    inverse = np.linalg.inv(design[measured].T / variance @ design[measured])
    level = tree.regions.levels[1]
    weight = design[tree.named(1)[[level.ids.index(name) for name in ids]]].sum(axis=0)
    return weight @ inverse @ weight


def test_records_in_no_region_are_dropped_before_every_question(rows, regions):
    corner = pd.DataFrame({"x": np.full(3_000, 7.9), "y": np.full(3_000, 7.9)})
    release = built(pd.concat([rows, corner]), regions, epsilon=200)
    assert release.total == pytest.approx(true_counts(rows, regions).sum(), abs=2)


def test_a_build_of_no_records_is_a_release(regions):
    release = built(pd.DataFrame({"x": [7.95], "y": [7.95]}), regions)
    assert len(release.query_regions()) == 16


def with_users(rows):
    """The records with users who have up to four, on one of two days."""
    number = np.arange(len(rows))
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(number % 2, unit="D")
    return rows.assign(u=[f"u{n}" for n in number // 4], t=days)


@pytest.mark.parametrize("count", ["records", "users"])
@pytest.mark.parametrize("method", ["cascade", "none"])
def test_users_are_bounded_and_counted_in_regions(rows, regions, method, count):
    users = with_users(rows)
    more = {"max_contributions": 4} if count == "records" else {}
    release = built(users, regions, method, epsilon=400, user="u", count=count, **more)
    expected = true_counts(rows, regions)
    if count == "users":
        region = regions.assign(rows["x"].to_numpy(), rows["y"].to_numpy())
        held = pd.Series(region)[region >= 0].groupby(users["u"].to_numpy()[region >= 0])
        assert release.query_regions("borough")["estimate"].sum() == pytest.approx(
            held.ngroups, abs=0.1 * held.ngroups
        )
        return
    assert release.query_regions()["estimate"].to_numpy() == pytest.approx(expected, abs=5)


def test_each_slice_has_its_regions(rows, regions, tmp_path):
    users = with_users(rows)
    days = psd.TimeSlices.parse("day", "2024-01-01..2024-01-02")
    series = built(users, regions, epsilon=100, slices=days, time="t")
    series.save(tmp_path / "series.psd.parquet")
    again = psd.load(tmp_path / "series.psd.parquet")
    assert again.digest == series.digest
    for day in series:
        pd.testing.assert_frame_equal(again[day].query_regions(), series[day].query_regions())
    for release, day in zip(
        (series[day] for day in series), sorted(users["t"].unique()), strict=True
    ):
        expected = true_counts(users[users["t"] == day], regions)
        assert release.query_regions()["estimate"].to_numpy() == pytest.approx(expected, abs=4)


def test_sums_over_slices_answer_named_regions(rows, regions):
    users = with_users(rows)
    days = psd.TimeSlices.parse("day", "2024-01-01..2024-01-02")
    series = built(users, regions, epsilon=100, slices=days, time="t")
    total = series.total_regions()
    assert total["estimate"].to_numpy() == pytest.approx(true_counts(users, regions), abs=6)
    noise = sum(series[day].query_regions()["perturbation_error"] ** 2 for day in days)
    assert (total["perturbation_error"] ** 2).to_numpy() == pytest.approx(noise, rel=0.5)
    one = series.total_regions(None, None, "2024-01-02", "2024-01-02")
    pd.testing.assert_frame_equal(one, series["2024-01-02"].query_regions())
    table = pd.DataFrame({"area": total["id"][::-1].to_numpy()})
    beside = series.total_table(table, "area")
    assert beside["estimate"].tolist() == total["estimate"][::-1].tolist()
    assert list(beside["area"]) == list(table["area"])
    with pytest.raises(ParameterError, match="'2024-01-03' is not in this series"):
        series.total_regions(None, None, "2024-01-02", "2024-01-03")


def test_a_boundary_drops_records_of_regions(rows, regions):
    boundary = gpd.GeoSeries([shapely.box(0, 0, 8, 3.5)], crs="EPSG:3857")
    release = built(rows, regions, epsilon=200, boundary=boundary)
    inside = rows[rows["y"] < 3.5]
    answers = release.query_regions("ward").set_index("id")
    assert answers["estimate"].to_numpy() == pytest.approx(true_counts(inside, regions), abs=2)
    assert answers.loc["w20", ["estimate", "upper"]].tolist() == [0, 0]
    assert release.query([(0, 4, 8, 8)])["upper"].tolist() == [0]


def test_a_covariate_is_public_input_of_regions(rows, regions):
    covariate = gpd.GeoSeries([shapely.box(0, 0, 8, 6)], crs="EPSG:3857")
    release = built(rows, regions, epsilon=200, covariate=covariate)
    answers = release.query_regions("ward")["estimate"]
    assert answers.to_numpy() == pytest.approx(true_counts(rows, regions), abs=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"level": "county"}, "level must be one of borough, ward, got 'county'"),
        ({"ids": ["w0"]}, r"ids must be those of level ward, got 'w0'; did you mean 'w\d+'\?"),
        ({"ids": ["Bank"]}, r"got 'Bank'; the level has \d+ ids, the first is 'w00'"),
        ({"ids": [7]}, r"got '7'; the level has \d+ ids"),
        ({"level": "borough", "ids": ["w00"]}, "level borough, got 'w00'; it is one of level ward"),
        ({"ids": [["w00", "w00"]]}, "different ids"),
        ({"ids": [[]]}, "ids"),
        ({"confidence": 2}, "confidence"),
    ],
)
def test_other_regions_are_refused(rows, regions, arguments, words):
    with pytest.raises(ParameterError, match=words):
        built(rows, regions, "none").query_regions(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"method": "quadtree"},
        {"method": psd.method("grid")},
        {"domain": (0, 0, 1, 1)},
        {"density": "smooth"},
    ],
)
def test_what_does_not_go_with_regions_is_refused(rows, regions, arguments):
    with pytest.raises(ParameterError):
        built(rows, regions, **{"method": "cascade", **arguments})


def test_regions_have_their_own_method_and_no_other_has_regions(rows):
    with pytest.raises(ParameterError, match="regions are given"):
        psd.build(rows, domain=PLANE, epsilon=1, method=Regions(), x="x", y="y")
    with pytest.raises(PsdError):
        psd.build(rows, domain=PLANE, epsilon=1, method="regions", x="x", y="y")


# --- verbs of cells ------------------------------------------------------------------------

BOXES = [(0, 0, 4, 4), (1, 1, 3.5, 7), (4, 4, 8, 8)]


@pytest.mark.parametrize("method", ["cascade", "none"])
def test_joint_answers_have_the_errors_of_single_ones(rows, regions, method):
    release = built(rows, regions, method)
    polygons = gpd.GeoSeries([shapely.box(*box).buffer(-0.1) for box in BOXES], crs="EPSG:3857")
    for asked in (BOXES, polygons):
        joint, single = release.joint(asked), release.query(asked)
        assert np.diag(joint.covariance) == pytest.approx(single["error"].to_numpy() ** 2)
        assert np.linalg.eigvalsh(joint.covariance).min() > -1e-6
        assert (joint.answers["joint_upper"] >= single["upper"] - 1e-9).all()


def test_named_regions_are_answered_jointly(rows, regions):
    release = built(rows, regions)
    joint = release.joint_regions("borough")
    single = release.query_regions("borough")
    assert joint.answers["id"].tolist() == single["id"].tolist()
    assert np.diag(joint.covariance) == pytest.approx(single["error"].to_numpy() ** 2)
    assert (joint.nonuniformity_covariance == 0).all()
    assert joint.total().estimate == pytest.approx(release.total)
    union = release.query_regions("borough", ids=[["b00", "b01"]])
    first = release.joint_regions("borough", ["b00", "b01"])
    assert first.total().error == pytest.approx(union["error"][0])
    overlapping = release.joint_regions("borough", [["b00", "b01"], "b01", "b11"])
    assert overlapping.overlap == (0, 1)
    with pytest.raises(ParameterError, match="got 'county'"):
        release.joint_regions("county")


def test_nested_regions_add_up(rows, regions):
    answers = built(rows, regions).nested([(3, 3, 5, 5), (2.5, 2.5, 6, 6.5), (0, 0, 8, 8)])
    estimate, ring = answers["estimate"].to_numpy(), answers["ring"].to_numpy()
    assert estimate == pytest.approx(np.cumsum(ring))
    assert (ring >= 0).all()


@pytest.mark.parametrize("method", ["cascade", "none"])
def test_a_raster_has_the_answers_of_its_cells(rows, regions, method):
    release = built(rows, regions, method)
    raster = release.raster(7, 5)
    assert raster.count.sum() == pytest.approx(release.total)
    x, y = np.linspace(0, 8, 8), np.linspace(8, 0, 6)
    boxes = [(x[i], y[j + 1], x[i + 1], y[j]) for j in range(5) for i in range(7)]
    answers = release.query(boxes)
    for name in ("estimate", "perturbation_error", "nonuniformity_error"):
        band = raster.count if name == "estimate" else getattr(raster, name)
        assert band.ravel() == pytest.approx(answers[name].to_numpy(), rel=1e-6, abs=1e-6)


def test_a_raster_of_rounded_coordinates_has_the_answers_of_its_cells(rows):
    space = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", coordinate_resolution="0.125")
    rounded = hierarchy_from_polygons(wards(), space, ids="ward", gaps="outside")
    release = built(rows, rounded)
    raster = release.raster(3, 3)
    x, y = np.linspace(0, 8, 4), np.linspace(8, 0, 4)
    boxes = [(x[i], y[j + 1], x[i + 1], y[j]) for j in range(3) for i in range(3)]
    assert raster.count.sum() == pytest.approx(release.total)
    assert raster.count.ravel() == pytest.approx(release.estimate(boxes), abs=1e-6)


def test_top_ranks_the_regions_of_a_level(rows, regions):
    release = built(rows, regions)
    top = release.top(2, level="borough", draws=200)
    answers = release.query_regions("borough").sort_values("estimate", ascending=False)
    assert top["id"].tolist() == answers["id"].tolist()[:2]
    assert top["rank"].tolist() == [1, 2]
    assert top["probability"].between(0, 1).all()
    assert len(release.top(16, draws=50)) == 16
    assert len(release.top(3, size=(5, 5), draws=50)) == 3
    assert len(release.top(1, regions=BOXES, draws=50)) == 1
    for arguments, words in (
        ({"k": 17}, "k must be an integer from 1 to 16"),
        ({"k": 1, "by": "density"}, "by must be count"),
        ({"k": 1, "level": "ward", "size": (2, 2)}, "level must be left out"),
    ):
        with pytest.raises(ParameterError, match=words):
            release.top(**arguments)


def test_class_breaks_are_those_of_the_raster(rows, regions):
    breaks = built(rows, regions).quantiles(4, size=(6, 6), draws=20)
    assert (np.diff(breaks["density"]) >= 0).all()
    assert (breaks["error"] > 0).any()


@pytest.mark.parametrize("method", ["cascade", "none"])
def test_errors_are_explained(rows, regions, method):
    release = built(rows, regions, method)
    [explanation] = release.explain([(1.1, 1.1, 5.3, 6.2)])
    answer = release.query([(1.1, 1.1, 5.3, 6.2)])
    remedies = explanation.remedies.set_index("change")["error"]
    assert remedies["as it is"] == pytest.approx(answer["error"][0])
    assert remedies["10 times the epsilon"] < remedies["as it is"]
    assert "cells half as wide at its edge" in remedies
    assert len(explanation.cut)
    [whole] = release.explain(gpd.GeoSeries([wards().geometry[0]], crs="EPSG:3857"))
    assert whole.cut.empty
    assert whole.noise_share == 1


@pytest.mark.parametrize("ending", ["npy", "tif"])
def test_rasters_of_cells_are_exported(rows, regions, tmp_path, ending):
    if ending == "tif":
        pytest.importorskip("rasterio")
    release = built(rows, regions)
    release.export(tmp_path / f"r.{ending}", size=(6, 4))
    if ending == "npy":
        assert np.load(tmp_path / "r.npy")[0].sum() == pytest.approx(release.total, rel=1e-6)
    with pytest.raises(ParameterError, match="level must be left out if output is a raster"):
        release.export(tmp_path / f"s.{ending}", level="ward")
    with pytest.raises(ParameterError, match="size must be left out unless output is a raster"):
        release.export(tmp_path / "s.gpkg", size=(6, 4))


@pytest.mark.parametrize("level", ["ward", "borough", None])
def test_regions_are_a_table_with_their_polygons(rows, regions, level):
    release = built(rows, regions)
    table = release.to_geopandas(level)
    answers = release.query_regions(level)
    assert table["id"].tolist() == answers["id"].tolist()
    assert table["estimate"].tolist() == answers["estimate"].tolist()
    assert table.crs == "EPSG:3857"
    expected = wards() if level != "borough" else wards().dissolve("borough", as_index=False)
    shapes = expected.set_index(level or "ward").geometry.loc[table["id"]]
    assert shapely.equals(table.geometry.to_numpy(), shapes.to_numpy()).all()
    km2 = shapely.area(table.geometry.to_numpy()) / 1e6
    assert table["density"].tolist() == pytest.approx((table["estimate"] / km2).tolist())
    assert table.attrs["epsilon"] == "1"


@pytest.mark.parametrize("ending", ["gpkg", "parquet", "fgb", "geojson", "csv", "xlsx"])
def test_regions_are_exported(rows, regions, tmp_path, ending):
    release, path = built(rows, regions), tmp_path / f"r.{ending}"
    release.export(path, level="borough", unreliable="mark")
    readers = {
        "gpkg": lambda path: gpd.read_file(path, layer="regions"),
        "parquet": gpd.read_parquet,
        "csv": pd.read_csv,
        "xlsx": pd.read_excel,
    }
    table = readers.get(ending, gpd.read_file)(path)
    expected = release.to_geopandas("borough")
    assert table["id"].tolist() == expected["id"].tolist()
    assert table["estimate"].tolist() == pytest.approx(expected["estimate"].tolist())
    assert set(table["threshold"]) == {0.3}


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("r.kml", {}, "output must end in"),
        ("r.gpkg", {"level": "street"}, "level"),
        ("r.gpkg", {"unreliable": "hide"}, "unreliable must be one of"),
    ],
)
def test_exports_of_regions_that_are_refused(rows, regions, tmp_path, name, options, words):
    with pytest.raises(ParameterError, match=words):
        built(rows, regions, "none").export(tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


def test_regions_are_drawn(rows, regions):
    mpl = pytest.importorskip("matplotlib")
    mpl.use("agg")
    release = built(rows, regions)
    axes = release.plot(level="ward")
    (shown,) = axes.collections
    assert len(shown.get_paths()) == 16
    axes.figure.canvas.draw()
    mpl.pyplot.close("all")
    assert "<img" not in release._repr_html_()
    assert "epsilon 1 per record" in release._repr_html_()


def test_the_command_writes_a_level_of_regions(rows, regions, tmp_path):
    release = built(rows, regions)
    release.save(tmp_path / "r")
    passes("export", tmp_path / "r", tmp_path / "a.gpkg", "--level", "borough")
    table = gpd.read_file(tmp_path / "a.gpkg", layer="regions")
    assert table["id"].tolist() == release.query_regions("borough")["id"].tolist()
    told = fails(2, "export", tmp_path / "r", tmp_path / "b.gpkg", "--cells", "all")
    assert "--cells must be left out with a release of regions" in told
    for option in (("--size", 9, 9), ("--band", "count")):
        told = fails(2, "export", tmp_path / "r", tmp_path / "b.gpkg", *option)
        assert "must be left out unless output is a raster" in told
    passes("export", tmp_path / "r", tmp_path / "c.npy", "--size", 9, 9)
    told = passes("top", tmp_path / "r", "-k", 2, "--level", "borough", "--draws", 50)
    assert release.query_regions("borough").sort_values("estimate")["id"].iloc[-1] in told
    told = passes("query", tmp_path / "r", "--all-regions", "--level", "borough", "--joint")
    assert "total" in told
    for kind, words in (("nested", "levels of regions add up"), ("explain", "they cut no cell")):
        assert words in fails(2, "query", tmp_path / "r", "--all-regions", f"--{kind}")
    assert "one of borough, ward" in fails(
        2, "export", tmp_path / "r", tmp_path / "b.gpkg", "--level", "street"
    )
    text = passes("query", tmp_path / "r", "--box", 1, 1, 4, 4, "--format", "csv")
    assert text.startswith("id,estimate,")


# --- regions of files and of cells ---------------------------------------------------------


def test_regions_are_given_by_files_or_by_the_name_of_cells(rows, regions, tmp_path):
    wards().to_file(tmp_path / "wards.gpkg")
    files = psd.RegionFiles(
        paths=(str(tmp_path / "wards.gpkg"),), ids=("ward",), parents=("borough",), gaps="outside"
    )
    release = psd.build(rows, domain=PLANE, regions=files, epsilon=100, method="none", x="x", y="y")
    assert release.regions_tree.regions.digest == regions.digest
    assert release.query_regions()["estimate"].to_numpy() == pytest.approx(
        true_counts(rows, regions), abs=3
    )
    cells = psd.CellRegions(kind="grid-cells", cells="2,4")
    release = psd.build(rows, domain=PLANE, regions=cells, epsilon=100, method="none", x="x", y="y")
    assert release.levels == ("4m", "2m")
    tally = psd.tally(rows, domain=PLANE, regions=cells, x="x", y="y", part="a")
    again = psd.build(tally, domain=PLANE, regions=cells, epsilon=100, method="none")
    assert again.query_regions()["estimate"].to_numpy() == pytest.approx(
        release.query_regions()["estimate"].to_numpy(), abs=6
    )


def test_regions_of_a_boundary_are_those_inside_it(rows):
    outline = gpd.GeoSeries([shapely.box(0, 0, 4, 8)], crs="EPSG:3857")
    cells = psd.CellRegions(kind="grid-cells", cells="2")
    release = psd.build(
        rows,
        domain=PLANE,
        regions=cells,
        boundary=outline,
        epsilon=100,
        method="none",
        x="x",
        y="y",
    )
    assert len(release.query_regions()) == 8
    inside = rows["x"] < 4
    assert release.query_regions()["estimate"].sum() == pytest.approx(inside.sum(), abs=10)


def test_regions_that_cannot_be_given_are_refused(rows, tmp_path):
    wards().to_file(tmp_path / "wards.gpkg")
    files = psd.RegionFiles(paths=(str(tmp_path / "wards.gpkg"),), ids=("ward",))
    with pytest.raises(ParameterError, match="must not be an input of records"):
        psd.build(str(tmp_path / "wards.gpkg"), domain=PLANE, regions=files, epsilon=1)
    with pytest.raises(ParameterError, match="must not be an input of records"):
        psd.tally(str(tmp_path / "wards.gpkg"), domain=PLANE, regions=files)
    with pytest.raises(ParameterError, match="domain must be public bounds with regions"):
        psd.build(rows, regions=files, epsilon=1, x="x", y="y")
    with pytest.raises(ParameterError, match=r"regions must be a psd\.RegionFiles"):
        psd.build(rows, domain=PLANE, regions=wards(), epsilon=1, x="x", y="y")
    with pytest.raises(ParameterError, match="must cover the bounds"):
        psd.build(rows, domain=PLANE, regions=files, epsilon=1, x="x", y="y")


def test_a_table_of_the_caller_keeps_its_columns_and_order(rows, regions):
    release = built(rows, regions)
    table = pd.DataFrame({"code": ["b11", "b00", "b11"], "seats": [1, 2, 3]}, index=[7, 8, 9])
    answers = release.query_table(table, "code", level="borough")
    assert answers.index.tolist() == [7, 8, 9]
    assert answers.columns[:3].tolist() == ["code", "seats", "estimate"]
    expected = release.query_regions("borough", table["code"].tolist())
    assert answers["estimate"].tolist() == expected["estimate"].tolist()
    for fault, words in (
        ({"table": [1]}, "table must be a DataFrame"),
        ({"table": table}, "column must be one of the table .code, seats., got 'id'"),
        ({"table": table, "column": "seats"}, "ids must be those of level borough, got '1'"),
        ({"table": table.assign(error=1), "column": "code"}, "must not have a column error"),
    ):
        with pytest.raises(ParameterError, match=words):
            release.query_table(**fault, level="borough")
