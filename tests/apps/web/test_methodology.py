"""The sheet of method: what it states, for every kind of release, and what it must not hold."""

import math
import re
import sys
from string import Formatter
from types import SimpleNamespace

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd.apps.web import methodology
from psd.apps.web.methodology import SQUARES, errors_by_size, methodology_page
from psd.apps.web.sheet_words import SHEET
from psd.errors import MissingExtraError
from psd.testing.data import release_from_counts
from support.cubes import cube
from support.web_pages import Page

pytestmark = pytest.mark.deep

BOUNDS = (126.4, 37, 127.6, 38)
DOMAIN = psd.Domain(bounds=BOUNDS)


@pytest.fixture(scope="module")
def visits():
    random = np.random.default_rng(4)
    x, y = random.normal([[126.9], [37.5]], 0.1, (2, 4000))
    return pd.DataFrame({"lon": x, "lat": y, "user_id": np.arange(4000) // 4})


def test_the_sheet_states_the_guarantee_and_the_statements(visits):
    about = {"title": "Visits <b>&", "publisher": "Office", "justification": "A board chose it"}
    release = psd.build(
        visits, epsilon="0.5", domain=DOMAIN, user="user_id", max_contributions=4, about=about
    )
    text = methodology_page(release)
    page = Page(text)
    words = page.words
    for expected in (
        "Visits <b>&",
        "epsilon 0.5 per user, at most 4 records of each",
        "a factor of at most 1.65",
        "Why this epsilon: A board chose it",
        f"SHA-256 {release.digest}",
        "At most 4 records of each user were counted",
    ):
        assert expected in words
    assert "<b>" not in text
    assert page.attributes("script") == []
    for _, attributes, _ in page.found:
        links = [value for name, value in attributes.items() if name in ("src", "href")]
        assert all(link.startswith("data:") for link in links)
    assert "default-src 'none'" in text


def test_probabilities_are_those_of_the_odds():
    assert methodology._after(0.5, math.log(3)) == pytest.approx(0.75)
    assert methodology._after(0.1, -1.0) == pytest.approx(1 / (1 + 9 * math.e))
    assert methodology._probability(0.99951) == "above 99.9%"
    assert methodology._probability(1e-6) == "below 0.001%"
    assert methodology._relative(math.inf) == "-"
    assert methodology._relative(1.2345) == "123%"
    assert methodology._relative(12.345) == "above 1,000%"
    text = methodology_page(release_from_counts([[500, 100], [0, 200]], epsilon=1000))
    words = Page(text).words
    assert "a factor of at most 1.97e+434, up or down" in words
    assert "50%below 0.001%above 99.9%" in re.sub(r"\n\s*", "", words)
    assert "given" in words


def test_a_series_states_its_slices_and_regions_their_levels(visits):
    rows = visits.assign(time=pd.Timestamp("2024-01-05"))
    months = psd.TimeSlices.parse("month", "2024-01..2024-03")
    series = psd.build(rows, slices=months, time="time", epsilon="1", domain=DOMAIN)
    words = Page(methodology_page(series)).words
    assert "3 by month, from 2024-01 to 2024-03" in words
    assert "Of the 3 time slices, 2024-02 is shown." in words
    regions = psd.regions.CellRegions(kind="tiles", cells="9,10")
    plane = psd.Domain(bounds=(14_070_000, 4_430_000, 14_210_000, 4_580_000), crs="EPSG:3857")
    x, y = visits["lon"] * 111_320, visits["lat"] * 120_000
    release = psd.build(
        pd.DataFrame({"x": x, "y": y}), x="x", y="y", epsilon="1", regions=regions, domain=plane
    )
    words = Page(methodology_page(release)).words
    for level in release.levels:
        assert re.search(rf"{level} \(\d+\)", words)
    assert "Estimated density of each region.\n" in words
    assert "not drawn" not in words


def test_the_sheet_says_that_the_rest_is_not_drawn():
    west = gpd.GeoDataFrame({"id": ["w"]}, geometry=[shapely.box(0, 0, 4, 8)], crs="EPSG:3857")
    release = psd.build(
        np.array([[1.0, 4.0]]),
        epsilon=1,
        domain=psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857"),
        regions=west,
        region_id="id",
        gaps="elsewhere",
        method="none",
    )
    words = Page(methodology_page(release)).words
    assert "What lies in no region is counted as elsewhere, and not drawn." in words


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="in the folder of the source of psd"):
        methodology_page(release_from_counts([[1, 2], [3, 4]]))


@pytest.mark.parametrize("resolution", [None, "0.001"])
def test_squares_have_their_area_and_lie_inside(visits, resolution, monkeypatch):
    domain = psd.Domain(bounds=BOUNDS, coordinate_resolution=resolution)
    release = psd.build(visits, epsilon="1", domain=domain, method="quadtree")
    one, asked = {"estimate": 1.0, "error": 1.0, "relative_error": 1.0, "quality": "poor"}, []

    def query(self, boxes):
        asked.append(boxes)
        return SimpleNamespace(table=pd.DataFrame([one] * len(boxes)))

    monkeypatch.setattr(type(release), "query", query)
    table = errors_by_size(release)
    assert table["size"].tolist() == [f"{area:,g} km²" for area in (0.01, 0.1, 1, 10, 100, 1000)]
    for area, boxes in zip((0.01, 0.1, 1, 10, 100, 1000), asked, strict=True):
        assert len(boxes) == SQUARES
        assert (boxes[:, :2] >= BOUNDS[:2]).all()
        assert (boxes[:, 2:] <= BOUNDS[2:]).all()
        height = (boxes[:, 3] - boxes[:, 1]) * 111
        width = (boxes[:, 2] - boxes[:, 0]) * 111.3 * np.cos(np.radians(boxes[:, 1]))
        np.testing.assert_allclose(height * width, area, rtol=0.02)
        np.testing.assert_allclose(height, width, rtol=0.02)


def test_shares_of_quality_sum_to_one(visits):
    release = psd.build(visits, epsilon="1", domain=DOMAIN)
    table = errors_by_size(release)
    pd.testing.assert_frame_equal(errors_by_size(release), table)
    assert (table[["good", "use with care", "poor"]].sum(axis=1) - 1).abs().max() < 1e-9
    assert table["relative_error"].is_monotonic_decreasing


def test_a_sheet_in_korean_has_all_words(visits):
    """Both languages have the same keys and places, and no word of a Korean sheet is English."""
    english, korean = SHEET["en"], SHEET["ko"]
    assert english.keys() == korean.keys()
    for key, text in english.items():
        fields = [sorted(field for _, field, _, _ in Formatter().parse(each) if field is not None)
                  for each in (text, korean[key])]  # fmt: skip
        assert {*fields[1]} <= {*fields[0]}, key
    assert {key for key, text in korean.items() if not re.search("[가-힣]", text)} == set()
    about = {"title": "방문", "language": "ko-KR"}
    months = psd.TimeSlices.parse("month", "2024-01..2024-03")
    rows = visits.assign(time=pd.Timestamp("2024-01-05"), fare=10.0)
    how = {"domain": DOMAIN, "about": about, "epsilon": "0.5"}
    user = {"user": "user_id", "max_contributions": 4}
    releases = (
        psd.build(visits, **how, **user),
        psd.build(rows, **how, slices=months, time="time"),
        psd.build(rows, **how, values={"fare": (0, 60)}),
        psd.build(visits, **how, **user, delta="1e-6", noise="gaussian"),
    )
    names = ("fare", "user_id", "sign", "check", "query", "difference", "good", "use", "with")
    known = {*names, "care", "poor", "psd", "SHA", "EPSG", "km", "m", "ko-KR", "https", "m²"}
    for release in releases:
        words = Page(methodology_page(release)).words
        method = words[words.index(korean["built"]) : words.index(korean["reading"])]
        prose = (
            words[words.index(korean["in_short"]) :].replace(method, "").replace(release.digest, "")
        )
        prose = re.sub(r"\(https?:[^)]*\)", "", prose)
        assert {*re.findall("[A-Za-z]{3,}", prose)} <= known
        assert "Sheet of method" in methodology_page(release, "en")
    words = Page(methodology_page(releases[1])).words
    assert "2024-01부터 2024-03까지 3개, 월 단위" in words
    assert "델타 1e-6" in Page(methodology_page(releases[3])).words


def test_a_cube_is_shown_in_all_time():
    release = cube()
    text = methodology_page(release)
    assert "All 48 time slices are shown together." in text
    assert release.record.guarantee_text in text
    assert release.digest in text
    squares = errors_by_size(release)
    assert (squares["error"] > 0).all()
    assert "시간 구간 48개를 모두 합쳐 보입니다." in methodology_page(release, "ko")
