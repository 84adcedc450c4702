"""Calls that a newcomer guesses who knows pandas and GeoPandas: what is meant is done.

Each was written before it was tried; five of fifty are refused by one sentence that names the right
call. `tests/apps/planning/test_guessed_plans.py` has those of plans.
"""

import inspect
import re
from pathlib import Path

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.errors import InputDataError, LedgerError, ParameterError
from psd.publish.fields import GUESSED

COUNT = 4_000
DEGREES = (126.5, 37.1, 127.5, 37.9)


def near(estimate, true, *, within=300):
    return abs(float(np.squeeze(estimate)) - true) < within


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "lon": rng.uniform(126.6, 127.4, COUNT),
            "lat": rng.uniform(37.2, 37.8, COUNT),
            "time": pd.date_range("2026-03-01", periods=COUNT, freq="150s"),
            "who": [f"u{number % 1000}" for number in range(COUNT)],
        }
    )


@pytest.fixture(scope="module")
def gdf(df):
    """The same points in metres, as a GIS office holds them."""
    points = gpd.points_from_xy(df["lon"], df["lat"])
    return gpd.GeoDataFrame(df[["time", "who"]], geometry=points, crs=4326).to_crs(5179)


@pytest.fixture(scope="module")
def wards():
    names, edges = ["west", "east"], [(900_000, 1_900_000), (960_000, 1_900_000)]
    shapes = [shapely.box(x, y, x + 60_000, y + 100_000) for x, y in edges]
    return gpd.GeoDataFrame({"name": names}, geometry=shapes, crs=5179)


@pytest.fixture(scope="module")
def city(wards):
    return gpd.GeoDataFrame(geometry=[wards.union_all().buffer(-1_000)], crs=5179)


@pytest.fixture(scope="module")
def west(gdf, wards):
    """True number of points in the western ward."""
    return int(gdf.within(wards.geometry.iloc[0]).sum())


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, df, gdf, wards):
    monkeypatch.chdir(tmp_path)
    df.to_csv("points.csv", index=False)
    wards.to_file("wards.gpkg")


@pytest.fixture
def release(df):
    return psd.build(df, epsilon=1, bounds=DEGREES)


@pytest.fixture
def ledger():
    ledger = psd.Ledger.create("city.ledger")
    ledger.register("visits", budget=3)
    return ledger


# The request: where, and in which CRS


def test_01_bounds_of_polygons_in_metres(gdf, wards, west):
    release = psd.build(gdf, epsilon=1, bounds=wards.total_bounds)
    assert release.domain.crs == gdf.crs
    assert release.domain.bounds == tuple(wards.total_bounds)
    assert near(release.query(wards)["estimate"].iloc[0], west)


def test_records_and_places_of_any_form(df, gdf, wards, city, subtests):
    gdf.to_file("points.gpkg")
    named = df.rename(columns={"lon": "longitude", "lat": "latitude"})
    for name, rows in (("a", df[:2_000]), ("b", df[2_000:]), ("all", df)):
        rows.to_csv(f"{name}.csv", index=False)
        psd.tally(f"{name}.csv", f"{name}.tally", bounds=DEGREES)
    metres, degrees = (gdf.crs, tuple(wards.total_bounds)), ("EPSG:4326", DEGREES)
    box = {"bounds": DEGREES}
    for name, data, given, place in (
        ("polygons as bounds", gdf, {"bounds": wards}, metres),
        ("a boundary alone", gdf, {"boundary": city}, None),
        ("degrees", df, {"bounds": (126.5, 37.1, 127.5, 37.9)}, degrees),
        ("an array", df[["lon", "lat"]].to_numpy(), box, degrees),
        ("columns with long names", named, box, degrees),
        ("a series of points", gdf.geometry, {"bounds": wards}, metres),
        ("a CSV file", "points.csv", box, degrees),
        ("paths of files", Path("points.gpkg"), {"bounds": "wards.gpkg"}, None),
        ("a polygon as bounds", df, {"bounds": shapely.box(*DEGREES)}, degrees),
        ("the number of a CRS", gdf, {"bounds": wards.total_bounds, "crs": 5179}, metres),
        ("a file of a tally", "all.tally", {}, degrees),
        ("files of tallies", ["a.tally", "b.tally"], {}, degrees),
        ("merged files", psd.merge("a.tally", "b.tally"), {}, degrees),
        ("a merged list", psd.merge(["a.tally", "b.tally"]), {}, degrees),
    ):
        with subtests.test(name):
            release = psd.build(data, epsilon=1, **given)
            assert near(release.total, COUNT)
            assert release.domain.crs == (gdf.crs if data is gdf else release.domain.crs)
            assert release.record.boundary == ("boundary" in given)
            assert place in (None, (release.domain.crs, release.domain.bounds))


def test_03_regions_alone(gdf, wards, west):
    release = psd.build(gdf, epsilon=1, regions=wards)
    assert near(release.query("west" if release.levels else wards)["estimate"].iloc[0], west)


def test_07_pairs(df):
    """Refused: without a point it would be a list without an input, which is refused."""
    pairs = list(zip(df["lon"], df["lat"], strict=True))
    with pytest.raises(InputDataError, match=r"np\.array\(points\) is an array"):
        psd.build(pairs, epsilon=1, bounds=DEGREES)
    assert near(psd.build(np.array(pairs), epsilon=1, bounds=DEGREES).total, COUNT)


def test_12_users(df):
    release = psd.build(df, epsilon=1, bounds=DEGREES, user="who", max_contributions=4)
    assert release.unit.kind == "user"
    assert near(release.total, COUNT, within=2_000)


# Time


def test_13_days_and_periods_of_pandas(df):
    periods = pd.period_range("2026-03-01", periods=7, freq="D")
    for days in (pd.date_range("2026-03-01", "2026-03-07"), periods):
        release = psd.build(df, epsilon=1, bounds=DEGREES, time="time", slices=days)
        assert list(release) == [f"2026-03-0{day}" for day in range(1, 8)]


def test_15_texts_of_days(df):
    days = ["2026-03-01", "2026-03-02", "2026-03-03"]
    release = psd.build(df, epsilon=1, bounds=DEGREES, time="time", slices=days)
    true = (df["time"] < "2026-03-02").sum()
    assert near(release["2026-03-01"].total, true)


# Methods, noise, CRS


def test_16_a_method_by_name_and_gaussian_noise(df):
    how = {"method": "quadtree", "delta": 1e-6, "noise": "gaussian"}
    release = psd.build(df, epsilon=1, bounds=DEGREES, **how)
    assert (release.method, release.epsilon) == ("quadtree", 1)
    assert "delta" in release.record.guarantee_text


def test_20_polygons_in_metres_around_degrees(df, wards, west):
    release = psd.build(df, epsilon=1, bounds=wards)
    assert near(release.total, COUNT)
    assert near(release.query(wards)["estimate"].iloc[0], west)


def test_21_regions_by_a_column(gdf, wards, west):
    release = psd.build(gdf, epsilon=1, regions=wards, region_id="name")
    assert near(release.query("west")["estimate"].iloc[0], west, within=30)


# Tallies


def test_22_a_tally_and_a_build(gdf, wards):
    """Refused: whoever counts the same records again must give the same name."""
    with pytest.raises(ParameterError, match=r'part must name .* part="2026-03"'):
        psd.tally(gdf, bounds=wards)
    tally = psd.tally(gdf, bounds=wards, part="March")
    assert near(psd.build(tally, epsilon=1).total, COUNT)


# Single counts


def test_27_a_count_in_a_polygon(gdf, wards, west, ledger):
    """Refused: an answer states no epsilon that others could add up, so a ledger has to."""
    with pytest.raises(ParameterError, match="ledger and dataset must be given"):
        psd.ask(gdf, wards.geometry.iloc[0], epsilon=0.5)
    paid = {"ledger": ledger, "dataset": "visits"}
    answer = psd.ask(gdf, wards.geometry.iloc[0], epsilon=0.5, **paid)
    assert near(answer.estimate, west, within=30)


def test_28_a_count_in_a_box(df):
    """Refused, as the one above."""
    with pytest.raises(ParameterError, match="ledger and dataset must be given"):
        psd.ask(df, (126.8, 37.3, 127.2, 37.6), epsilon=0.5)


def test_29_a_count_that_is_charged(df, ledger):
    answer = psd.ask(
        df,
        area=(126.8, 37.3, 127.2, 37.6),
        epsilon=0.5,
        ledger="city.ledger",
        dataset="visits",
        analyst="ann",
    )
    true = df["lon"].between(126.8, 127.2) & df["lat"].between(37.3, 37.6)
    assert near(answer.estimate, true.sum(), within=30)
    assert psd.ledger.Account(ledger, "visits").left == 2_500_000_000


# Ledgers


def test_33_a_new_ledger():
    """Refused: a mistyped path would begin a ledger in which nothing was spent."""
    ledger = psd.Ledger("new.ledger")
    with pytest.raises(LedgerError, match=r"psd\.Ledger\.create"):
        ledger.register("visits", budget=3)


def test_34_what_remains(df, ledger):
    psd.build(df, epsilon=1, bounds=DEGREES, ledger=ledger, dataset="visits")
    assert ledger.remaining("visits") == 2


def test_35_an_analyst(df, ledger):
    release = psd.build(
        df, epsilon=1, bounds=DEGREES, ledger="city.ledger", dataset="visits", analyst="ann"
    )
    release.save("visits.psd.parquet")
    [charge] = ledger.state().charges.values()
    assert (charge.analyst, charge.done) == ("ann", True)


# A release and its answers


def test_36_save_and_load(release):
    release.save("out.psd.parquet")
    again = psd.load("out.psd.parquet")
    assert again.query(DEGREES)["estimate"].iloc[0] == release.query(DEGREES)["estimate"].iloc[0]


def test_37_an_estimate(release):
    assert near(release.query((126.5, 37.1, 127.5, 37.9)).estimate, COUNT)


def test_39_answers_as_a_table_of_polygons(release, wards):
    table = release.query(wards).to_geodataframe()
    assert isinstance(table, gpd.GeoDataFrame)
    assert {"name", "estimate", "geometry"} <= set(table)


def test_answers_are_written_by_the_ending_of_a_name(release, wards, subtests):
    readers = {
        "parquet": gpd.read_parquet, "xlsx": pd.read_excel, "csv": pd.read_csv,
        "fgb": gpd.read_file, "geojson": gpd.read_file, "gpkg": gpd.read_file,
    }  # fmt: skip
    release.query(wards).to_csv("asked.csv")
    assert {"name", "estimate"} <= set(pd.read_csv("asked.csv"))
    for ending, read in readers.items():
        with subtests.test(ending):
            for _ in range(2):  # over a file that is there, as of GeoPandas
                release.query(wards).to_file(f"answers.{ending}")
            assert Path(f"answers.{ending}").is_file()
            assert {"name", "estimate"} <= set(read(f"answers.{ending}"))
    release.query(wards).to_file("named.gpkg", layer="asked")
    assert len(gpd.read_file("named.gpkg", layer="asked")) == len(wards)
    with pytest.raises(ParameterError, match=r"path must end in one of \.gpkg, .*\.ods"):
        release.query(wards).to_file("answers.ods")
    with pytest.raises(ParameterError, match="layer must be left out with a path that"):
        release.query(wards).to_file("answers.csv", layer="asked")
    assert not Path("answers.ods").exists()


def test_42_cells_as_files_and_a_table(release):
    release.to_file("cells.gpkg")
    release.to_csv("cells.csv")
    table = release.to_geodataframe()
    assert isinstance(table, gpd.GeoDataFrame)
    for cells in (gpd.read_file("cells.gpkg", layer="cells"), pd.read_csv("cells.csv"), table):
        assert near(cells["estimate"].sum(), COUNT)


@pytest.mark.deep
def test_45_a_plot(release):
    from matplotlib import pyplot

    assert isinstance(release.plot(), pyplot.Axes)


def test_46_an_interval(release):
    answers = release.query(shapely.box(*DEGREES))
    assert (answers.lower < COUNT).all()
    assert (answers.upper > COUNT).all()


def test_48_a_day(df, wards):
    slices = "2026-03-01..2026-03-03"
    release = psd.build(df, epsilon=1, bounds=DEGREES, time="time", slices=slices)
    estimates = release.query(wards, when="2026-03-02")["estimate"]
    assert estimates.equals(release.query(wards, when=pd.Timestamp("2026-03-02"))["estimate"])
    true = df["time"].between("2026-03-02", "2026-03-02 23:59:59").sum()
    assert near(estimates.sum(), true)


@pytest.mark.deep
def test_49_a_raster(release):
    release.to_geotiff("cells.tif")
    assert Path("cells.tif").stat().st_size > 1_000


def test_50_polygons_and_a_file_of_them(release, wards, west):
    for areas in (wards, "wards.gpkg"):
        assert near(release.query(areas)["estimate"].iloc[0], west)


# Arguments that do not exist


def test_what_is_guessed_is_answered_by_what_there_is(df, subtests):
    for guess, words in {
        "unit": 'give per, such as per="day"',
        "height": 'give set, such as set={"height": 8}',
        "cell_size": "give set",
        "seed": "give sampler, .* whoever knows a seed knows the noise",
        "output": r"save the release: psd\.build",
        "bbox": "give bounds",
        "epsg": "give crs",
        "budget": "give epsilon",
        "user_id": "give user",
        "epsilom": "did you mean 'epsilon'",
        "noise_law": "is now noise",
        "region_levels": "give region_parent, the column of the level above",
        "levels": "levels of regions are named by region_id and region_parent",
    }.items():
        with subtests.test(guess), pytest.raises(ParameterError, match=words):
            psd.build(df, epsilon=1, bounds=DEGREES, **{guess: 1})
    with pytest.raises(ParameterError, match="epsilon must be left out for a tally"):
        psd.tally("points.csv", bounds=DEGREES, epsilon=1)
    with pytest.raises(ParameterError, match=r"after data must be named, such as epsilon=\.\.\."):
        psd.build(df, 1, DEGREES)
    with pytest.raises(ParameterError, match=r"area must be .* a file of them, got 'west'"):
        psd.ask(df, "west", epsilon=1)
    with pytest.raises(ParameterError, match="'box' does not exist; give area"):
        psd.ask(df, box=DEGREES, epsilon=1)


@pytest.mark.app("planning")
def test_guesses_are_of_nothing_that_there_is():
    uses = (psd.build, psd.tally, psd.ask, psd.plan)
    known = {name for use in uses for name in inspect.signature(use).parameters}
    assert not {*GUESSED} & known - {"seed", "users", "windows"}  # of plans
    assert {re.split(r"\W", hint)[0] for hint in GUESSED.values()} <= known
    assert {*dir(psd.Release), *dir(psd.Answers)}.isdisjoint({"to_csv", "to_geodataframe"})


def test_members_that_there_are_not_are_answered(release, wards):
    for of, name, words in (
        (release, "to_parquet", "save"),
        (release, "error", "query"),
        (release, "report", "sheet"),
        (release, "difference", "difference=other"),
        (release.query(wards), "export", r"to_file\(path\) a map"),
        (release.query(wards), "to_xarray", r"release\.to_xarray\(\)"),
        (release.query(wards), "map", r"explore\(\)"),
        (release.query(wards), "std", "error"),
        (release.query(wards), "iloc", r"table\.iloc"),
        (psd.Ledger("city.ledger"), "left", "remaining"),
    ):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; .*{words}"):
            getattr(of, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        _ = release.nothing


def test_guessed_values_are_answered_by_what_to_write(df, gdf, wards, release, subtests):
    named = psd.build(gdf, epsilon=1, regions=wards, region_id="name", per="record")
    days = psd.build(
        df, epsilon=1, bounds=DEGREES, user="who", max_contributions=4, time="time",
        slices=pd.period_range("2026-03-01", "2026-03-02", freq="D"),
    )  # fmt: skip
    box = (126.9, 37.5, 127.0, 37.6)
    both = [box, (126.95, 37.5, 127.0, 37.6)]
    for call, words in (
        (lambda: release.query(quantiles=[0.5]), "quantiles must be True or False, .* classes="),
        (lambda: release.query(quantiles=5), "quantiles must be True or False, got '5'; classes="),
        (lambda: release.query(box, difference=release, ratio="yes"), "ratio must be True or F"),
        (lambda: named.query("name"), r"query\(level='name'\) answers all regions"),
        (lambda: days.query(box, when=df["time"]), r"FIRST\.\.LAST, .* a value of type Series"),
        (lambda: release.query((37.5, 126.9, 37.6, 127.0)), "EPSG:4326, .* west south east north"),
        (lambda: release.query(both).total(), r"joint\(\)\.combine\(weights\) sums"),
        (
            lambda: psd.build(df, epsilon=1, bounds=DEGREES, per="record", where="kin = 'flu'"),
            "no column 'kin'.* or correct it in where=",
        ),
        (lambda: psd.build(gdf, epsilon=1, regions=wards.geometry), "regions must be paths, a Geo"),
    ):
        with subtests.test(words), pytest.raises((ParameterError, InputDataError), match=words):
            call()
    assert named.levels == ("name",)
    assert len(named.query(level="name")) == 2
    for when in (pd.Period("2026-03-01", freq="D"), pd.Timestamp("2026-03-01")):
        assert len(days.query(box, when=when)) == 1
    period = pd.period_range("2026-03-01", "2026-03-02", freq="D")
    for windows in (days.slices, days.slices.names, list(days.slices), period):
        assert days.query(box, when=windows)["when"].tolist() == list(days.slices)


def test_wards_that_do_not_fill_their_box(gdf, wards, west):
    """What lies between regions is left out where they alone state the area."""
    shapes = wards.geometry.buffer(-5_000)
    ragged = wards.set_geometry([shapes.iloc[0], shapes.iloc[1].centroid.buffer(20_000)])
    release = psd.build(gdf, epsilon=1, regions=ragged)
    true = int(gdf.within(ragged.geometry.iloc[0]).sum())
    assert near(release.query("west")["estimate"].iloc[0], true, within=60)
    with pytest.raises(ParameterError, match='gaps="elsewhere"'):
        psd.build(gdf, epsilon=1, regions=ragged, bounds=wards)
    tally = psd.tally(gdf, regions=ragged, part="all")
    assert (
        psd.build(tally, epsilon=1, regions=ragged, gaps="outside").domain.bounds
        == release.domain.bounds
    )


def test_the_records_are_no_bounds(gdf):
    for name in ("bounds", "boundary", "regions"):
        with pytest.raises(ParameterError, match=f"{name} must be public"):
            psd.build(gdf, epsilon=1, **{name: gdf})


def test_a_tally_of_a_dataset(df, ledger):
    paid = {"ledger": ledger, "dataset": "visits"}
    psd.tally("points.csv", "a.tally", bounds=DEGREES, **paid)
    with pytest.raises(LedgerError, match="user"):
        psd.tally("points.csv", bounds=DEGREES, user="who", max_contributions=2, x="lat", **paid)
    assert ledger.remaining("visits") == 3
    psd.build("a.tally", epsilon=1, **paid)
    assert ledger.remaining("visits") == 2
