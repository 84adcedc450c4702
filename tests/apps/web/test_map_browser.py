"""The map page in Chromium with the network cut: drawn areas, regions, slices, keys, languages."""

import json
import os
import shutil
import time

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely
from playwright import sync_api

import psd
from psd._util.colours import class_breaks
from psd.api.release import Release
from psd.apps.web import map_cube
from psd.apps.web.map_page import map_page
from psd.query.answer_table import QUALITIES
from psd.testing import SeededSampler
from psd.testing.data import release_from_counts
from support.cubes import cube, of_labels
from support.map_engine import (
    DOMAIN,
    KINDS,
    NAMES,
    built,
    cube_of_wards,
    drawn,
    of_wards,
    points,
    stated,
)

CHROMIUM = shutil.which("chromium")
MISSING = CHROMIUM is None and "CI" not in os.environ

pytestmark = [pytest.mark.deep, pytest.mark.skipif(MISSING, reason="no chromium on the path")]

# Without a graphics card.
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
PATIENCE = 900  # seconds, on a machine that is very busy
SIZE = {"width": 1200, "height": 800}
RELEASE = drawn(built())
DASH = " \N{EN DASH} "
LOCAL = 'LOCAL_CS["site",UNIT["metre",1]]'
WARDS = gpd.GeoDataFrame(
    {"id": ["w1", "w2", "w3"], "name": ["West </script>", "East", "Far"]},
    geometry=[
        shapely.Polygon([(126.7, 37.3), (126.9, 37.3), (126.9, 37.7), (126.65, 37.6)]),
        shapely.Polygon([(126.9, 37.3), (127.2, 37.35), (127.1, 37.7), (126.9, 37.7)]),
        shapely.box(127.3, 37.1, 127.5, 37.3),
    ],
    crs=4326,
)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM, args=FLAGS, timeout=PATIENCE * 1000
        )
        yield opened
        opened.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Opens a page from a folder with spaces and other letters; checks it at the end."""
    contexts = []

    def opened(text, **options):
        path = tmp_path / "maps of 서울 ü" / "the map.html"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        settings = {"locale": "en-GB", "reduced_motion": "reduce", **options}
        context = browser.new_context(offline=True, viewport=SIZE, **settings)
        context.set_default_timeout(PATIENCE * 1000)
        page = context.new_page()
        requests, faults = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda m: faults.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        contexts.append((context, requests, faults))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=map]", timeout=PATIENCE * 1000)
        return page

    yield opened
    for context, requests, faults in contexts:
        # The page, and the worker of MapLibre, whose script is a part of the page.
        assert [url.split(":")[0] for url in requests] == ["file", "blob"]
        assert faults == []
        context.close()


@pytest.fixture(scope="module")
def text():
    return map_page(RELEASE, title="Visits <i>in</i> 서울")


@pytest.fixture(scope="module")
def wards_text():
    return map_page(RELEASE, regions=WARDS)


def close(found, expected):
    scale = np.maximum(np.abs(expected), 1)
    return float((np.abs(np.array(found) - expected) / scale).max()) < 1e-9


def shapes(page):
    return json.loads(page.evaluate("JSON.stringify(psdMap.state.shapes)"))


def answer(page, given):
    found = page.evaluate("(shapes) => psdMap.answer(shapes)", given)
    return [found[name] for name in NAMES]


def words(page, number="1"):
    """Answers, once they are those of a number of areas."""
    page.wait_for_selector(f"#answers[data-ready='{number}']", timeout=PATIENCE * 1000)
    return page.inner_text("#answers")


def pixels(page):
    return page.locator("#map canvas").screenshot()


def until(state, expected):
    """Wait for a state, however slow the machine is."""
    deadline = time.monotonic() + PATIENCE
    while not expected(state()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def middle(page):
    return page.evaluate("[...psdMap.map.getCenter().toArray(), psdMap.map.isMoving()]")


def clicked(page, *places):
    for x, y in places:
        page.mouse.click(x, y)


def box_drawn(page, *corners):
    page.click("#draw-box")
    clicked(page, *corners)
    return shapes(page)


def polygon_drawn(page, *corners):
    page.click("#draw-polygon")
    clicked(page, *corners)
    page.click("#finish")
    return shapes(page)


def has_the_answer_of_its_polygon(page, release):
    """Draw a polygon; give its answer by the library, which is that of the page."""
    [shape] = polygon_drawn(page, (250, 200), (480, 240), (520, 420), (300, 500))
    polygon = shapely.Polygon(shape["polygons"][0][0])
    expected = stated(release.query([polygon], crs=4326).table)[0]
    assert close(answer(page, [shape]), expected)
    return expected


def test_the_title_is_text_nothing_is_loaded_and_the_printed_page_has_all(opened, text):
    page = opened(text)
    assert page.inner_text("h1") == "Visits <i>in</i> 서울"
    assert page.title() == "Visits <i>in</i> 서울"
    assert page.evaluate("performance.getEntriesByName('psd-cells').length") == 1
    page = opened(text)
    page.emulate_media(media="print")
    assert page.is_visible("#legend")
    page.wait_for_selector("#picture", state="visible", timeout=PATIENCE * 1000)
    assert page.evaluate("document.getElementById('picture').naturalWidth") > 300
    assert not page.is_visible("#controls")
    assert not page.is_visible("#hover")


def test_drawn_polygons_and_boxes_have_the_joint_answer_unless_they_overlap(opened, text):
    page = opened(text)
    expected = has_the_answer_of_its_polygon(page, RELEASE)
    assert f"{expected[0]:,.0f} records" in words(page)
    page = opened(text)
    assert polygon_drawn(page, (250, 200), (500, 450), (500, 200), (250, 450)) == []
    assert "cross each other" in page.inner_text("#help")
    page = opened(text)
    box_drawn(page, (200, 200), (360, 330))
    boxes = [shape["box"] for shape in box_drawn(page, (420, 300), (560, 430))]
    assert len(boxes) == 2
    total = stated(RELEASE.query(np.array(boxes)).joint().total())[0]
    assert close(answer(page, shapes(page)), total)
    assert f"{total[0]:,.0f} records" in words(page, "2")
    box_drawn(page, (300, 250), (460, 350))
    assert "overlap" in words(page, "3")
    page.click("#undo")
    assert "overlap" not in words(page, "2")
    page.click("#clear")
    assert "No area" in page.inner_text("#answers")


def test_a_walk_by_keys_alone_draws_a_box(opened, text):
    page = opened(text)
    order = []
    for _ in range(30):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        if order[-1] == "draw-box":
            break
    assert {"CANVAS", "show", "level", "theme", "language", "draw-box"} <= set(order)
    page.keyboard.press("Enter")
    while page.evaluate("document.activeElement.tagName") != "CANVAS":
        page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    for key, axis in (("ArrowLeft", 0), ("ArrowUp", 1)):
        before = middle(page)
        page.keyboard.press(key)
        until(lambda: middle(page), lambda now: now[axis] != before[axis] and not now[2])  # noqa: B023
    page.keyboard.press("Enter")
    [shape] = shapes(page)
    assert close(answer(page, [shape]), stated(RELEASE.query([shape["box"]]).table)[0])
    assert "records" in words(page)


def test_a_box_by_numbers_has_its_answer(opened, text):
    page = opened(text)
    page.focus("#boxes summary")
    page.keyboard.press("Enter")
    for name, value in zip(("west", "south", "east", "north"), (127, 37.2, 126, 37.9), strict=True):
        page.fill(f"#box-{name}", str(value))
    page.press("#box-north", "Enter")
    assert "West must be below east" in page.inner_text("#help")
    page.fill("#box-west", "126.6")
    page.fill("#box-east", "127.1")
    page.press("#box-north", "Enter")
    assert shapes(page) == [{"box": [126.6, 37.2, 127.1, 37.9]}]
    expected = stated(RELEASE.query([(126.6, 37.2, 127.1, 37.9)]).table)[0]
    assert f"{expected[0]:,.0f} records" in words(page)


def test_regions_are_chosen_by_click_and_by_key_for_a_joint_answer(opened, wards_text):
    page = opened(wards_text)
    at = page.evaluate("(() => psdMap.map.project(psdMap.toMap(126.8, 37.5)))()")
    page.mouse.click(at["x"], at["y"])
    single = RELEASE.query(WARDS.geometry)["estimate"]
    assert f"{single[0]:,.0f} records" in words(page)
    assert "West </script> (w1)" in words(page)
    page.focus("#list summary")
    page.keyboard.press("Enter")
    page.fill("#filter", "east")
    assert page.locator("#choices input").count() == 1
    page.focus("#choices input")
    page.keyboard.press("Space")
    total = RELEASE.query(WARDS.geometry[:2]).joint().total()
    assert f"{total.estimate:,.0f} records" in words(page, "2")
    assert page.inner_text("#chosen") == "2 of 3 chosen"
    page = opened(wards_text)
    for index, expected in enumerate(stated(RELEASE.query(WARDS.geometry).table)):
        shape = {"polygons": [[np.array(WARDS.geometry[index].exterior.coords).tolist()]]}
        assert close(answer(page, [shape]), expected)


def test_named_regions_are_chosen_and_areas_over_them_are_drawn(opened):
    release = drawn(KINDS["wards"]())
    page = opened(map_page(release))
    page.mouse.click(300, 300)
    chosen = page.evaluate("[...psdMap.state.chosen]")
    answers = release.query().table
    estimate = answers["estimate"][chosen[0]]
    assert (f"{estimate:,.0f}" if estimate >= 100 else f"{estimate:.3g}") in words(page)
    has_the_answer_of_its_polygon(page, release)
    assert page.evaluate("psdMap.state.chosen.size") == 0


def test_the_legend_says_what_is_counted_and_not_drawn(opened):
    options = {"domain": RELEASE.domain, "epsilon": 1, "region_id": "id", "method": "none"}
    places = np.array([[126.7, 37.5]])
    for gaps, told in (("elsewhere", True), ("outside", False)):
        page = opened(map_page(psd.build(places, regions=WARDS, gaps=gaps, **options)))
        assert ("counted as elsewhere" in page.inner_text("#key")) == told


def test_a_drawn_area_that_reaches_into_no_region_says_so(opened):
    release = drawn(of_wards(gaps="outside"))
    whole = shapely.union_all(release.tree.region_shapes)
    gap = shapely.box(*release.domain.bounds).difference(whole)
    inside = whole.buffer(-0.01)
    page = opened(map_page(release))
    assert "nothing was counted there" in page.inner_text("#key")
    x, y = gap.representative_point().coords[0]
    part = (x - 0.01, y - 0.01, x + 0.01, y + 0.01)
    x, y = inside.representative_point().coords[0]
    within = (x - 0.005, y - 0.005, x + 0.005, y + 0.005)
    page.click("#boxes summary")
    for box, number in ((within, "1"), (part, "2")):
        assert len(release.query([box]).notes) == (box == part)
        for side, edge in zip(("west", "south", "east", "north"), box, strict=True):
            page.fill(f"#box-{side}", str(edge))
        page.click("#numbers button")
        told = words(page, number)
        assert told.count("A part of this shape lies in no region.") == int(number) - 1
    corners = [[west, south] for west, south in shapely.box(*part).exterior.coords[:-1]]
    shares = page.evaluate(
        "([box, corners]) => [{ box }, { polygons: [[corners]] }].map(psdMap.uncounted)",
        [list(part), corners],
    )
    share = shapely.box(*part).intersection(gap).area / shapely.box(*part).area
    assert np.allclose(shares, share, rtol=1e-9)
    page.click("#language")
    until(lambda: page.inner_text("#answers"), lambda text: "어느 구역에도 없습니다" in text)
    plain = opened(map_page(drawn(of_wards())))
    assert "nothing was counted there" not in plain.inner_text("#key")


def test_levels_kinds_and_themes_change_the_picture(opened, text):
    page = opened(text)
    seen = [pixels(page)]
    for change, *value in (
        (page.select_option, "#show", "reliability"),
        (page.select_option, "#show", "count"),
        (page.locator("#level").fill, "3"),
        (page.click, "#theme"),
    ):
        change(*value)
        until(lambda: pixels(page), lambda now: now not in seen)
        seen.append(pixels(page))
    assert page.inner_text("#level-text").startswith("3 / ")


def test_korean_and_english_have_all_words(opened, text):
    page = opened(text, locale="ko-KR", color_scheme="dark")
    assert page.evaluate("document.documentElement.lang") == "ko"
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert "범례" not in page.inner_text("#side")
    assert "다각형" in page.inner_text("#side")
    page.click("#language")
    side = page.inner_text("#side").replace("서울", "").replace("한국어", "")
    assert not any("가" <= letter <= "힣" for letter in side)
    assert "undefined" not in side


def test_slices_of_a_series_have_their_own_answers(opened):
    rows = points().assign(time=pd.Timestamp("2024-02-05"))
    rows.loc[::4, "time"] = pd.Timestamp("2024-01-05")
    series = psd.build(
        rows, slices=psd.TimeSlices.parse("month", "2024-01..2024-02"), time="time", epsilon="1",
        domain=DOMAIN, sampler=SeededSampler(7),
    )  # fmt: skip
    series = Release(drawn(series).record)
    page = opened(map_page(series))
    shape = {"box": [126.8, 37.4, 127.0, 37.6]}
    for number, name in [(1, "2024-02"), (0, "2024-01")]:
        page.locator("#slice").fill(str(number))
        page.wait_for_selector(f"#slice[data-shown='{number}']", timeout=PATIENCE * 1000)
        assert page.inner_text("#slice-text") == name
        assert close(answer(page, [shape]), stated(series[name].query([shape["box"]]).table)[0])


def test_a_page_of_one_window_names_it_without_a_slider(opened):
    page = opened(map_page(cube()["mondays"]))
    assert page.inner_text("#slice-text") == "mondays"
    for part in ("#slice", "#span-row", "#category-row"):
        assert not page.is_visible(part)
    assert page.inner_text("#shown") == "mondays"
    assert page.inner_text("#slice-name") == "View"


def rated(page):
    """Wait until the errors of all cells that are shown are computed."""
    until(lambda: page.evaluate("psdMap.isRated()"), bool)


def slid(page, slider, number):
    page.locator(slider).fill(str(number))


def test_cells_and_chosen_regions_of_a_cube_have_answers_of_windows(opened):
    release, windows = cube(), ["mondays", "weekdays 07-09"]
    halves = [shapely.box(0, 0, 8, 16), shapely.box(8, 0, 16, 16)]
    table = gpd.GeoDataFrame({"id": ["west", "east"]}, geometry=halves, crs=release.domain.crs)
    page = opened(map_page(release, regions=table, when=windows))
    assert page.inner_text("#limits") == ""
    for number, when in [(1, windows[1]), (0, windows[0])]:
        slid(page, "#slice", number)
        page.wait_for_selector(f"#slice[data-shown='{number}']", timeout=PATIENCE * 1000)
        assert page.inner_text("#slice-text") == when
        cells = release[when].to_geopandas(level=2)
        answers = [answer(page, [{"nodes": [int(cell)]}]) for cell in cells["cell"]]
        boxes = cells.geometry.bounds.to_numpy()
        assert close(answers, stated(release.query(boxes, when=when).table))
    page.select_option("#layer", "0")
    page.click("#list summary")
    for tick in page.locator("#list input[type=checkbox]").all():
        tick.check()
    found = words(page, "2")
    expected = release.query(table, when=windows[0])["estimate"]
    for name, number in zip(["west", "east"], expected, strict=True):
        assert name in found
        assert f"{number:,.0f}" in found
    assert "All together" not in found


def test_regions_of_a_cube_are_chosen_and_drawn_over_in_any_window(opened):
    release = cube_of_wards()
    page = opened(map_page(release))
    names = release.query(level="ward").table["id"].tolist()
    nodes = [{"nodes": [int(node)]} for node in release.record.plane.tree.named(1)]
    page.focus("#span-row summary")
    page.keyboard.press("Enter")
    for first, last in ((0, 47), (8, 8), (30, 35)):
        slid(page, "#span-first", first)
        slid(page, "#span-last", last)
        hours = list(release)
        when = (
            None
            if last == 47
            else hours[first]
            if first == last
            else ",".join(hours[first : last + 1])
        )
        expected = stated(release.query(level="ward", when=when).table)
        assert close([answer(page, [node]) for node in nodes], expected)
    # Regions that are shown have the classes of their densities, and their quality.
    qualities = release.query(level="ward", when=when).table["quality"]
    assert page.evaluate("psdMap.qualities()") == [QUALITIES.index(each) for each in qualities]
    page.click("#list summary")
    for tick in page.locator("#list input[type=checkbox]").all()[:2]:
        tick.check()
    told = words(page, "2")
    for name, value in zip(names[:2], expected[:2, 0], strict=True):
        assert name in told
        assert (f"{value:,.0f}" if value >= 100 else f"{value:.3g}") in told
    # Polygons and boxes take parts of regions.
    [shape] = polygon_drawn(page, (250, 200), (480, 240), (520, 420), (300, 500))
    area = gpd.GeoSeries([shapely.Polygon(shape["polygons"][0][0])], crs=release.domain.crs)
    assert close(answer(page, [shape]), stated(release.query(area, when=when).table)[0])
    page.click("#clear")
    [shape] = box_drawn(page, (250, 250), (500, 420))
    assert close(answer(page, [shape]), stated(release.query([shape["box"]], when=when).table)[0])
    page.select_option("#layer", "1")
    until(lambda: page.locator("#choices input").count(), lambda number: number == 5)
    seen = pixels(page)
    slid(page, "#slice", 0)
    until(lambda: pixels(page), lambda now: now != seen)


def test_regions_of_a_large_cube_have_the_answers_of_its_steps(opened, monkeypatch):
    release, windows = cube_of_wards(), ["mondays", "weekdays 07-09"]
    monkeypatch.setattr(map_cube, "MAX_CUBE_NODES", 100)
    page = opened(map_page(release, when=windows))
    assert not page.is_visible("#draw-box")
    nodes = [{"nodes": [int(node)]} for node in release.record.plane.tree.named(1)]
    for number, when in ((1, windows[1]), (0, windows[0])):
        slid(page, "#slice", number)
        page.wait_for_selector(f"#slice[data-shown='{number}']", timeout=PATIENCE * 1000)
        expected = stated(release.query(level="ward", when=when).table)
        assert close([answer(page, [node]) for node in nodes], expected)


def test_a_span_of_time_and_a_category_are_chosen_for_drawn_areas_of_a_cube(opened):
    release = of_labels()
    page = opened(map_page(release))
    [shape] = box_drawn(page, (250, 250), (500, 420))
    polygon_drawn(page, (250, 450), (480, 440), (520, 620), (300, 700))
    both = shapes(page)

    def agrees(**asked):
        box = stated(release.query([shape["box"]], **asked).table)[0]
        ring = shapely.Polygon(both[1]["polygons"][0][0])
        area = gpd.GeoSeries([ring], crs=release.domain.crs)
        polygon = stated(release.query(area, **asked).table)[0]
        return close(answer(page, both[:1]), box) and close(answer(page, both[1:]), polygon)

    assert page.inner_text("#shown") == "Time: all time, purpose: all"
    assert page.inner_text("#about-text").endswith("Times are those of UTC.")
    assert agrees()
    slid(page, "#slice", 9)
    assert page.inner_text("#slice-text") == "2024-01-01T08"
    assert agrees(when="2024-01-01T08")
    page.select_option("#category", label="daily")
    assert page.inner_text("#shown") == "Time: 2024-01-01T08, purpose: daily"
    assert agrees(when="2024-01-01T08", category="daily")
    # A span: its first hour, and then its last one, by keys.
    page.focus("#span-row summary")
    page.keyboard.press("Enter")
    slid(page, "#span-first", 7)
    page.focus("#span-last")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    named = page.inner_text("#slice-text")
    assert named == "2024-01-01T07..2024-01-01T12"
    assert agrees(when=named, category="daily")
    assert "All together" not in words(page, "2")
    # An end that passes the other one takes it along.
    slid(page, "#span-last", 2)
    assert page.inner_text("#slice-text") == "2024-01-01T02"
    assert page.input_value("#slice") == "3"
    assert page.inner_text("#span-last-text") == "2024-01-01T03"
    page.select_option("#category", "-1")
    assert agrees(when="2024-01-01T02")
    rated(page)
    seen = pixels(page)
    slid(page, "#slice", 0)
    until(lambda: pixels(page), lambda now: now != seen)
    page.click("#language")
    assert page.inner_text("#shown") == "시간: 전체 시간, purpose: 전체"
    assert "other (목록에 없는 값)" in page.locator("#category option").all_inner_texts()


def test_classes_of_a_cube_are_those_of_other_maps(opened):
    release = cube()
    page = opened(map_page(release))
    rated(page)
    cells = release["2024-01-01..2024-01-02"].to_geopandas()
    densities = cells["density"].to_numpy()
    breaks = class_breaks(densities, cells.geometry.area.to_numpy())
    texts = page.locator("#key li").all_inner_texts()[: len(breaks)]
    ends = [float(text.split(DASH)[1].replace(",", "")) for text in texts]
    assert ends == pytest.approx(breaks)
    colours = [QUALITIES.index(quality) for quality in cells["quality"]]
    assert page.evaluate("psdMap.qualities()") == colours


def test_a_release_without_a_place_on_earth_has_its_plane(opened):
    domain = psd.Domain(bounds=(0, 0, 80, 80), crs=LOCAL, lattice=(8, 8))
    release = release_from_counts(np.arange(64).reshape(8, 8) * 9, domain=domain)
    page = opened(map_page(release))
    [shape] = box_drawn(page, (200, 200), (400, 420))
    assert close(answer(page, [shape]), stated(release.query([shape["box"]]).table)[0])
    page = opened(map_page(RELEASE, level=2))
    assert "down to level 2" in page.inner_text("#limits")
    assert not page.is_visible("#draw-box")


def test_means_are_shown_with_their_reliability_and_answered(opened):
    release = drawn(KINDS["values"]())
    page = opened(map_page(release, regions=WARDS))
    options = page.locator("#show option").all_inner_texts()
    assert options[2:4] == ["Mean of fare", "Mean of balance"]
    page.select_option("#layer", "-1")
    counted = pixels(page)
    page.select_option("#show", "mean0")
    until(lambda: pixels(page) != counted, bool)
    assert page.inner_text("#legend-title") == "Mean of fare"
    assert "Hatched and faint: poor mean" in page.inner_text("#key")
    ends = page.locator("#key li").all_inner_texts()
    assert (ends[0].split(DASH)[0], ends[-4].split(DASH)[1]) == ("0", "60")
    page.mouse.move(400, 400)
    until(lambda: page.inner_text("#hover"), lambda text: text.startswith("Mean of fare: "))
    until(lambda: page.inner_text("#hover"), lambda text: " records, 95% interval" in text)

    page.click("#boxes summary")
    box = (126.8, 37.4, 127.05, 37.6)
    for side, edge in zip(("west", "south", "east", "north"), box, strict=True):
        page.fill(f"#box-{side}", str(edge))
    page.click("#numbers button")
    told = words(page)
    [row] = release.query([box], mean=["fare"], sum="fare").table.to_dict("records")
    assert f"Mean of fare\n{row['mean_fare']:.2f}".rstrip("0") in told
    assert f"{row['mean_fare_lower']:.2f}".rstrip("0") + DASH in told
    assert f"Sum of fare\n{row['sum_fare']:,.0f}" in told
    assert told.count("Sum of ") == 2
    page.click("#language")
    until(lambda: page.inner_text("#answers"), lambda text: "fare 평균" in text)
    assert page.locator("#show option").all_inner_texts()[2] == "fare 평균"
    page.click("#language")

    page.click("#clear")
    page.select_option("#layer", "0")
    page.click("#list summary")
    page.locator("#choices input").nth(1).check()
    told = words(page)
    table = release.query(WARDS, mean="fare", sum="fare").table
    assert f"Mean of fare\n{table.mean_fare[1]:.2f}".rstrip("0") in told
    assert f"Sum of fare\n{table.sum_fare[1]:,.0f}" in told
    page.locator("#choices input").nth(2).check()
    assert words(page, "2").count("Mean of fare") == 3  # together, and each
