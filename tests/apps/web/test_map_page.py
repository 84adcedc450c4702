"""The map page as a text: its policy, what it states and holds, and what is refused."""

import base64
import hashlib
import re

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd._util.colours import class_colours
from psd.apps.web import map_cube
from psd.apps.web import map_page as module
from psd.apps.web.map_page import map_page
from psd.errors import ParameterError
from psd.release.post_processing import PostProcessing
from psd.testing import SeededSampler
from psd.testing.data import release_from_counts
from support.cubes import cube, town
from support.map_engine import DOMAIN, KINDS, built, cube_of_wards, drawn, of_zooms, points
from support.tables import refused
from support.values import of_values
from support.web_pages import Page

RELEASE = release_from_counts(np.arange(64).reshape(8, 8))
SMOOTH = PostProcessing(estimate="posterior", density="smooth")


def test_scripts_and_styles_have_their_hashes_in_the_policy():
    page = Page(map_page(RELEASE))
    [policy] = [a["content"] for a in page.attributes("meta") if "http-equiv" in a]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "connect-src" not in policy
    code = [words for tag, attributes, words in page.found if tag == "script" and not attributes]
    stated = re.findall(r"'sha256-([^']+)'", policy)
    texts = [*("".join(words) for words in code), *page.texts("style")]
    hashes = [hashlib.sha256(text.encode()).digest() for text in texts]
    assert stated == [base64.b64encode(each).decode() for each in hashes]
    assert not any(attributes.get("src") for attributes in page.attributes("script"))
    names = [name for _, attributes, _ in page.found for name in attributes]
    assert not any(name == "style" or name.startswith("on") for name in names)
    text = (module.files("psd.apps.web.assets") / "map_words.js").read_text(encoding="utf-8")
    english, korean = text.split("  ko: {")
    keys = re.compile(r"(?:^|[{,] |\n\s+)\"?([a-zA-Z-]+)\"?: ")
    names = [set(keys.findall(part)) - {"en", "ko"} for part in (english, korean)]
    assert names[0] == names[1]
    assert len(names[0]) > 55


def test_classes_have_the_colours_of_other_maps():
    data = Page(map_page(RELEASE)).data
    for classes, scale in enumerate(data["scales"], 1):
        assert [data["colours"][at] for at in scale] == class_colours(classes)
    assert data["view"] == list(RELEASE.domain.bounds)


@pytest.mark.parametrize("title", ["</script><script>alert(1)</script>", "<!-- & ' \u2028", "서울"])
def test_titles_are_text(title):
    page = Page(map_page(RELEASE, title=title))
    assert page.texts("title") == [title]
    assert page.texts("h1") == [title]
    assert page.data["title"] == title
    plain = Page(map_page(RELEASE, title="Visits"))
    assert [tag for tag, *_ in page.found] == [tag for tag, *_ in plain.found]


def test_names_of_regions_are_text_and_other_columns_are_left_out():
    shapes = [shapely.box(0, 0, 4, 8), shapely.box(4, 0, 8, 8)]
    columns = {"id": ["</script>", "b"], "name": ["<b>", "c"], "note": ["private-77", "x"]}
    table = gpd.GeoDataFrame(columns, geometry=shapes, crs=RELEASE.domain.crs)
    text = map_page(RELEASE, regions=table)
    page = Page(text)
    assert page.data["groups"][0]["ids"] == ["</script>", "b"]
    assert "private-77" not in text
    assert page.data["groups"][0]["overlaps"] == []
    release = of_zooms("9,10")
    data = Page(map_page(drawn(release))).data
    assert [group["name"] for group in data["groups"]] == list(reversed(release.levels))
    assert (data["drawing"], data["hasCells"]) == (True, False)
    with pytest.raises(ParameterError, match="level must be left out"):
        map_page(drawn(release), level=1)


@pytest.mark.deep
def test_a_series_has_arrays_for_each_slice():
    series = psd.build(
        points().assign(time=pd.Timestamp("2024-02-05")), time="time", domain=DOMAIN, epsilon="1",
        slices=psd.TimeSlices.parse("month", "2024-01..2024-03"), sampler=SeededSampler(7),
    )  # fmt: skip
    page = Page(map_page(drawn(series)))
    assert [each["name"] for each in page.data["slices"]] == ["2024-01", "2024-02", "2024-03"]
    ids = [attributes.get("id") for attributes in page.attributes("script")]
    assert {"psd-slice-0", "psd-slice-1", "psd-slice-2"} <= set(ids)
    assert page.data["guarantee"] == drawn(series).record.guarantee_text


def test_too_many_cells_are_refused_with_the_way_to_fewer(monkeypatch):
    monkeypatch.setattr(module, "MAX_MAP_CELLS", 20)
    with pytest.raises(ParameterError, match="at most 20 cells on a map page, got 64; --level 2"):
        map_page(RELEASE)
    page = Page(map_page(RELEASE, level=2))
    assert page.data["cut"] == 2
    assert not page.data["drawing"]
    monkeypatch.setattr(module, "MAX_MAP_CELLS", 100)
    with pytest.raises(ParameterError, match="at most 33 cells on a map page, got 64; --level 2"):
        map_page(of_values())
    monkeypatch.setattr(module, "MAX_MAP_CELLS", 0)
    with pytest.raises(ParameterError, match="build fewer cells"):
        map_page(RELEASE)


def test_levels_and_releases_that_have_no_map_are_refused(subtests):
    table = [("level must be an integer from 0 to 3", -1, 99, True, 1.5)]
    refused(subtests, ParameterError, table, lambda level: map_page(RELEASE, level=level))
    with pytest.raises(ParameterError, match="from a seed"):
        map_page(built(points(100), method="grid"))
    table = gpd.GeoDataFrame(geometry=[shapely.box(0, 0, 4, 8)], crs=RELEASE.domain.crs)
    with pytest.raises(ParameterError, match="regions must be left out with level"):
        map_page(RELEASE, level=1, regions=table)


@pytest.mark.deep
def test_a_million_cells_are_refused_before_estimates_are_made():
    release = release_from_counts(np.zeros((1024, 1024), int))
    with pytest.raises(ParameterError, match="got 1,048,576; --level 8 shows larger cells"):
        map_page(release)
    assert "fit" not in vars(release.index)


@pytest.mark.deep
def test_degrees_are_drawn_with_their_width_on_the_ground():
    data = Page(map_page(drawn(built()), threshold=(0.1, 0.2))).data
    assert data["stretch"] == pytest.approx(np.cos(np.radians(37.5)))
    assert (data["good"], data["reliable"]) == (0.1, 0.2)
    assert Page(map_page(drawn(KINDS["metres"]()))).data["stretch"] == 1


def test_a_page_of_a_series_computes_no_density_and_keeps_no_fit(monkeypatch):
    months = psd.TimeSlices.parse("month", "2024-01..2024-03")
    made = psd.Release.from_slices(months, [RELEASE] * 3).replace(post_processing=SMOOTH)
    alone = map_page(made)
    monkeypatch.setattr("psd.estimation.fit.smooth_density", None)
    series = made.replace()
    assert map_page(series) == alone
    assert not any("fit" in vars(each.index) for each in map(series.__getitem__, series))


def test_a_page_has_classes_of_means_which_poor_ones_do_not_set():
    release = of_values(values={"fare": (0, 60), "balance": (-55, 5)})
    data = Page(map_page(release)).data
    assert [each["name"] for each in data["values"]] == ["fare", "balance"]
    finest, cells = data["classes"]["cells"][-1], release.to_geopandas()
    for number, name in enumerate(("fare", "balance")):
        exact = cells[cells[f"mean_{name}_quality"] != "poor"]
        breaks = finest[f"mean{number}"]
        assert 2 <= len(breaks) <= 6
        assert exact[f"mean_{name}"].min() < breaks[0] < breaks[-1] < exact[f"mean_{name}"].max()
    part = Page(map_page(release, level=1)).data
    assert part["classes"]["cells"][1] == data["classes"]["cells"][1]
    assert data["classes"]["cells"][0]["mean0"] == []  # a single cell
    plain = Page(map_page(RELEASE)).data
    assert plain["values"] == []
    assert set(plain["classes"]["cells"][-1]) == {"count", "density"}


def test_given_regions_have_means_and_sums():
    release = of_values()
    halves = [shapely.box(126, 37, 126.4, 38), shapely.box(126.4, 37, 127, 38)]
    table = gpd.GeoDataFrame({"id": ["west", "east"]}, geometry=halves, crs=4326)
    answers = release.query(table, mean="fare", sum="fare").table
    [group] = module._groups(release, table)
    given = module._given_answers(release, group, 0.3).reshape(-1, 2)
    assert given.shape == (5 + 13, 2)
    assert given[5].tolist() == answers.mean_fare.tolist()
    assert given[12].tolist() == answers.sum_fare.tolist()
    assert given[17].tolist() == answers.sum_fare_upper.tolist()
    [(means, exact)] = module._means_of(release, group, given.ravel(), 0.3)
    assert means.tolist() == answers.mean_fare.tolist()
    assert exact.tolist() == (answers.mean_fare_quality != "poor").tolist()


def test_a_page_of_a_cube_has_steps_of_time_and_all_cells():
    release = cube()
    windows = ["weekdays 07-09", "mondays", "2024-01-01T08"]
    data = Page(map_page(release, when=windows)).data
    assert [each["name"] for each in data["cube"]["steps"]] == windows
    assert data["cube"]["steps"][2]["cells"] == [[8]]
    assert (data["drawing"], data["hasCells"], data["guarantee"]) == (
        True, True, release.record.guarantee_text
    )  # fmt: skip
    assert data["digest"] == release.digest
    [one] = data["slices"]
    assert {"joint.noisy", "joint.node", "joint.phi"} <= {name for name, *_ in one["directory"]}
    # Without windows the page makes steps of all time and of each slice, by their names.
    every = Page(map_page(release)).data["cube"]
    assert (every["steps"], every["names"], every["labels"]) == ([], list(release), [])
    assert (every["names"][-1], every["ends"][-1]) == ("2024-01-02T23", "2024-01-03T00")
    of_view = Page(map_page(release["mondays"])).data
    view = of_view["cube"]
    assert data["zone"] == of_view["zone"] == release.slices.time_zone
    assert Page(map_page(RELEASE)).data["zone"] is None
    assert (view["isView"], [each["name"] for each in view["steps"]]) == (True, ["mondays"])
    assert view["steps"][0]["cells"] == [list(range(24))]
    with pytest.raises(ParameterError, match="the release is no cube"):
        map_page(release["mondays"], when="mondays")
    with pytest.raises(ParameterError, match="the release is no cube"):
        map_page(RELEASE, when="mondays")


def test_a_page_of_a_cube_has_its_tree_of_labels():
    data = town().assign(purpose="shop")
    labels = {"work": "", "office": "work", "shift": "work", "shop": ""}
    release = cube(data=data, category="purpose", labels=labels)
    stated = Page(map_page(release)).data["cube"]
    assert (stated["column"], stated["hasOther"]) == ("purpose", True)
    found = [(e["name"], e["depth"], e["first"], e["stop"]) for e in stated["labels"]]
    assert found == [
        ("work", 0, 0, 2), ("office", 1, 0, 1), ("shift", 1, 1, 2), ("shop", 0, 2, 3),
        ("other", 0, 3, 4),
    ]  # fmt: skip
    assert stated["chosen"] is None
    assert Page(map_page(release, category="purpose=work")).data["cube"]["chosen"] == "work"
    view = Page(map_page(release["mondays", "work"])).data["cube"]
    assert [each["name"] for each in view["steps"]] == ["mondays, purpose=work"]
    assert view["steps"][0]["cells"] == [list(range(24)), [0, 1]]
    with pytest.raises(ParameterError, match="did you mean 'work'"):
        map_page(release, category="wrok")


def test_a_page_of_too_large_a_cube_has_the_windows_of_its_steps(monkeypatch):
    release = cube()
    monkeypatch.setattr(map_cube, "MAX_CUBE_NODES", 100)
    data = Page(map_page(release, when=["mondays"])).data
    assert [each["name"] for each in data["slices"]] == ["mondays"]
    assert (data["drawing"], data["most"] > 0) == (False, True)
    assert "slope" not in str(data["slices"][0]["directory"])
    # Without windows all time, and each slice where a page has room for them.
    every = Page(map_page(release)).data["slices"]
    assert [each["name"] for each in every] == ["all time", *release]
    monkeypatch.setattr(module, "MAX_MAP_CELLS", 48 * int(release.tree.is_leaf.sum()))
    assert [each["name"] for each in Page(map_page(release)).data["slices"]] == ["all time"]
    # As do larger cells, whose answers the finer ones are not needed for.
    cells = Page(map_page(release, when="mondays", level=2)).data
    assert (cells["cut"], [each["name"] for each in cells["slices"]]) == (2, ["mondays"])


def test_a_page_of_a_cube_with_regions_has_each_level_and_answers_any_window(monkeypatch):
    release = cube_of_wards(data=town(1_000))
    page = Page(map_page(release, when=["mondays", "06-10"]))
    assert (page.data["hasCells"], page.data["drawing"]) == (False, True)
    assert [group["name"] for group in page.data["groups"]] == ["ward", "district"]
    assert page.data["groups"][0]["nodes"] == release.record.plane.tree.named(1).tolist()
    assert [each["name"] for each in page.data["cube"]["steps"]] == ["mondays", "06-10"]
    names = {name for name, *_ in page.data["slices"][0]["directory"]}
    assert {"joint.noisy", "joint.node", "joint.ground"} <= names
    view = Page(map_page(release["mondays"])).data["cube"]
    assert view["steps"][0]["cells"] == [list(range(24))]
    with pytest.raises(ParameterError, match="regions must be left out"):
        map_page(release, regions=gpd.GeoDataFrame(geometry=[shapely.box(0, 0, 1, 1)], crs=3857))
    with pytest.raises(ParameterError, match="level must be left out"):
        map_page(release, level=2)
    # Of a large cube the page has the answers of its steps.
    monkeypatch.setattr(map_cube, "MAX_CUBE_NODES", 10)
    data = Page(map_page(release, when=["mondays", "06-10"])).data
    assert [each["name"] for each in data["slices"]] == ["mondays", "06-10"]
    assert not data["drawing"]


def test_given_regions_of_a_cube_have_the_answers_of_windows():
    release, shapes = cube(), [shapely.box(1, 2, 7.3, 9), shapely.box(8, 8, 15, 16)]
    table = gpd.GeoDataFrame({"id": ["a", "b"]}, geometry=shapes, crs=release.domain.crs)
    [group] = module._groups(release["mondays"], table)
    for when in ("mondays", "06-10"):
        given = module._given_answers(release[when], group, 0.3).reshape(-1, 2)
        answers = release.query(table, when=when).table
        for values, name in zip(given, module._ANSWERS, strict=True):
            assert values == pytest.approx(answers[name].to_numpy())
