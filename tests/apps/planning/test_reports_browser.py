"""Reports in a real browser: marked, whole, readable on a phone, and asking nobody for anything."""

import os
import shutil

import pytest
from playwright import sync_api

from support.cli_runner import passes

PATIENCE = 900_000  # milliseconds, so that no test depends on the speed of the machine
CHROMIUM = shutil.which("chromium")
MISSING = CHROMIUM is None and "CI" not in os.environ

pytestmark = [pytest.mark.deep, pytest.mark.skipif(MISSING, reason="no chromium on the path")]

BOUNDS = "--bounds 0 0 10 10"
PHONE, SMALL_DESK, DESK = 375, 1100, 1280
NAMES = ("evaluate", "compare", "plan")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Reports of an evaluation and of a comparison, and the page of a plan."""
    folder = tmp_path_factory.mktemp("reports")
    visits = folder / "visits <b>&.csv"  # names are no markup
    rows = "".join(f"{i % 97 / 10},{i * i % 89 / 9}\n" for i in range(2_000))
    visits.write_text("lon,lat\n" + rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        passes(f"build -o r --epsilon 1 {BOUNDS}", visits)
        passes("check evaluate r --report evaluate.html", visits)
        quick = "--report compare.html --methods grid,quadtree --runs 2 --jobs 1"
        passes(f"check compare -o c.csv {BOUNDS} {quick}", visits)
        plan = "--count 1000 --methods grid --density uniform --runs 1"
        passes(f"plan --area 100 --epsilon 1 {plan} --plot plan.html")
    return folder


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE
        )
        yield opened
        opened.close()


@pytest.fixture
def opened(browser):
    """Open a page without a network: the page, what it asked for, and what the console said."""
    contexts = []

    def open_page(path, width):
        contexts.append(browser.new_context(viewport={"width": width, "height": 800}, offline=True))
        page = contexts[-1].new_page()
        page.set_default_timeout(PATIENCE)
        requests, said = [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(path.as_uri(), wait_until="load")
        return page, [url for url in requests if not url.startswith("data:")], said

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("width", [PHONE, DESK])
@pytest.mark.parametrize("name", NAMES)
def test_stands_alone_and_can_be_read(pages, opened, name, width):
    path = pages / f"{name}.html"
    page, requests, said = opened(path, width)
    assert (requests, said) == ([path.as_uri()], [])
    sizes = page.eval_on_selector_all("img", "all => all.map(i => i.complete * i.naturalWidth)")
    assert len(sizes) >= 2
    assert min(sizes) > 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    alts = page.eval_on_selector_all("img", "all => all.map(i => i.alt)")
    assert all(len(alt) > 20 for alt in alts)
    assert page.locator("table").count() >= 1
    # A table of facts has headings of rows alone.
    bare = "table:not(:has(th[scope=col], tbody tr th[scope=row]))"
    for selector, number in ((bare, 0), ("script", 0), ("h1", 1)):
        assert page.locator(selector).count() == number
    assert (name == "plan") == ("PRIVATE" not in page.content())


@pytest.mark.parametrize("name", NAMES)
def test_no_table_is_wider_than_a_small_desk(pages, opened, name):
    page, _, _ = opened(pages / f"{name}.html", SMALL_DESK)
    widths = page.eval_on_selector_all(
        ".scroll", "all => all.map(each => [each.scrollWidth, each.clientWidth])"
    )
    assert widths
    assert all(inner <= outer for inner, outer in widths)


@pytest.mark.parametrize("name", ["evaluate", "compare"])
def test_is_marked_private_from_end_to_end(pages, opened, name):
    page, _, _ = opened(pages / f"{name}.html", DESK)
    assert page.title().startswith("PRIVATE: ")
    banners = page.locator(".private")
    assert banners.count() == 2
    assert banners.first.is_visible()
    assert banners.first.inner_text().startswith("PRIVATE: true errors reveal true counts")
    assert banners.first.bounding_box()["y"] == 0
    captions = page.locator("figcaption").all_inner_texts()
    assert captions
    assert all(text.startswith("PRIVATE") for text in captions)


def test_the_policy_of_the_page_stops_what_would_leave_it(pages, opened):
    """Planted: a picture from elsewhere, and a script."""
    text = (pages / "evaluate.html").read_text()
    planted = '<img src="http://127.0.0.1:9/x.png"><script>document.title = "ran"</script></body>'
    path = pages / "planted.html"
    path.write_text(text.replace("</body>", planted))
    page, _, said = opened(path, DESK)
    assert page.title() != "ran"
    assert len([text for text in said if "Content Security Policy" in text]) == 2
