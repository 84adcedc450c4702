"""The device in a real browser: its store is on the disk first, and tabs take turns."""

import json
import os
import shutil

import pytest
from playwright import sync_api

from psd.apps.local.device import NANO, Campaign
from psd.apps.local.randomization import client
from support.local import GRID, HASHING, KARY, campaign_bytes

pytestmark = [pytest.mark.deep, pytest.mark.slow]
CHROMIUM = shutil.which("chromium")
if CHROMIUM is None and not os.environ.get("CI"):
    pytest.skip("no chromium on the path", allow_module_level=True)


PATIENCE = 900_000  # milliseconds, so that no test depends on the speed of the machine
ORIGIN = "https://device.test/"
HELPERS = """
  const bytes = (text) => new TextEncoder().encode(text);
  const told = (promise) => promise.catch((error) => `${error.code}: ${error.message}`);
  const answer = (name, campaign, x, y) =>
    told(psdDevice.open(name).then((device) => device.answer(bytes(campaign), x, y)));
  const create = (name, cap) => told(psdDevice.open(name).then((device) => device.create(cap)));
"""


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """Browser without a network, in which the origin of the tests has the device."""
    folder = tmp_path_factory.mktemp("js")
    client(str(folder / "device.js"), js=True)
    source = (folder / "device.js").read_text()
    page = f"<!doctype html><script>{source}</script><script>{HELPERS}</script>"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE
        )
        opened = browser.new_context()
        opened.set_default_timeout(PATIENCE)
        opened.route("**/*", lambda route: route.fulfill(body=page, content_type="text/html"))
        yield opened
        browser.close()


@pytest.fixture
def tab(context):
    page = context.new_page()
    page.goto(ORIGIN)
    yield page
    page.close()


def answer(page, name, raw, x=1.0, y=1.0):
    return page.evaluate(
        "([name, campaign, x, y]) => answer(name, campaign, x, y)", [name, raw.decode(), x, y]
    )


def create(page, name, cap="2"):
    return page.evaluate("([name, cap]) => create(name, cap)", [name, cap])


def spent(page, name):
    return page.evaluate("async (name) => (await psdDevice.open(name)).spent()", name)


def test_a_device_answers_once_and_has_its_store_after_a_reload(tab):
    raw = campaign_bytes()
    assert answer(tab, "a", raw).startswith("9: store is missing")
    assert create(tab, "a") is None
    assert create(tab, "a") == "9: store exists; it is not replaced"
    report = answer(tab, "a", raw)
    value = json.loads(report)
    assert value["campaign"] == Campaign.parse(raw).digest
    assert report == json.dumps(value, separators=(",", ":"))
    tab.reload()
    assert answer(tab, "a", raw, 7, None) == report
    assert spent(tab, "a") == 1
    assert answer(tab, "a", campaign_bytes(title="b"), 99, 99) != report
    assert answer(tab, "a", campaign_bytes(title="c")).startswith("4: campaign costs more")


def test_two_rounds_are_answered_once(tab):
    later = campaign_bytes(((0, GRID, KARY), (1_000_000, None, None)))
    create(tab, "g")
    assert answer(tab, "g", later) is None
    assert spent(tab, "g") == 0
    digest = Campaign.parse(later).digest
    second = campaign_bytes(((0, None, None), (1_000_000, GRID, HASHING)), earlier=[digest])
    assert json.loads(answer(tab, "g", second))["group"] == 1
    assert spent(tab, "g") == NANO / NANO


def test_no_random_words_is_a_refusal(tab):
    create(tab, "f")
    tab.evaluate("() => { crypto.getRandomValues = () => { throw new Error(); }; }")
    assert answer(tab, "f", campaign_bytes()).startswith("70: the operating system provides no")
    assert spent(tab, "f") == 0
    create(tab, "b", "0.5")  # before a word is drawn
    assert answer(tab, "b", campaign_bytes()).startswith("4: campaign costs more")


def test_the_report_is_in_the_store_before_it_is_given(tab):
    """Order of events: the transaction is complete, then the promise is kept."""
    create(tab, "c")
    events = tab.evaluate(
        """async (campaign) => {
          const events = [], real = IDBDatabase.prototype.transaction;
          IDBDatabase.prototype.transaction = function (...args) {
            const transaction = real.apply(this, args);
            events.push(args[2].durability);
            transaction.addEventListener("complete", () => events.push("complete"));
            return transaction;
          };
          await answer("c", campaign, 1, 1);
          events.push("report");
          IDBDatabase.prototype.transaction = real;
          return events;
        }""",
        campaign_bytes().decode(),
    )
    assert events == ["strict", "complete", "report"]


def test_a_store_that_cannot_be_written_gives_no_report(tab):
    create(tab, "d")
    refused = tab.evaluate(
        """async (campaign) => {
          const real = IDBObjectStore.prototype.put;
          IDBObjectStore.prototype.put = function () { throw new DOMException("", "QuotaExceededError"); };
          const result = await answer("d", campaign, 1, 1);
          IDBObjectStore.prototype.put = real;
          return result;
        }""",  # noqa: E501
        campaign_bytes().decode(),
    )
    assert "psd-report" not in refused
    assert spent(tab, "d") == 0


def test_two_tabs_with_one_store_give_one_report(context):
    pages = [context.new_page() for _ in range(2)]
    for page in pages:
        page.goto(ORIGIN)
    create(pages[0], "e")
    raw = campaign_bytes().decode()
    call = "(campaign) => Promise.all(Array.from({length: 20}, () => answer('e', campaign, 1, 1)))"
    for page in pages:
        page.evaluate(f"(campaign) => {{ window.answers = ({call})(campaign); }}", raw)
    reports = {line for page in pages for line in page.evaluate("() => window.answers")}
    assert len(reports) == 1
    assert spent(pages[1], "e") == 1
    for page in pages:
        page.close()
