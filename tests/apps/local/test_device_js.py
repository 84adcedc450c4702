"""The device in JavaScript, run by node: the same reports from the same words as device.py."""

import base64
import hashlib
import json
import os
import random
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

import psd.apps.local.device as device
from psd.apps.local.campaigns import encode_campaign
from psd.apps.local.device import NANO, Campaign, DeviceError, Store, draw_report
from psd.apps.local.protocols import protocol_of
from psd.apps.local.randomization import ManyWords, client, format_reports, randomise_group
from psd.errors import WriteError
from psd.version import LAST_READER
from support.local import GRID, HASHING, KARY, Listed, campaign_bytes, campaign_value
from support.local_regions import region_campaign

NODE = shutil.which("node")
FILE = Path(device.__file__).with_name("device.js")
RUNNER = Path(__file__).parents[2] / "support" / "run_device.js"
PROTOCOLS = [
    KARY,
    *({"name": "hashing", "modulus": modulus} for modulus in (3, 2, 53)),
    *({"name": "subset", "size": size} for size in (1, 6)),
    *({"name": "unary", "form": form} for form in ("optimised", "symmetric")),
]

if NODE is None and os.environ.get("PSD_REQUIRE_NODE"):
    raise RuntimeError("node must be on the path")


pytestmark = [pytest.mark.deep, pytest.mark.skipif(NODE is None, reason="no node on the path")]


def text(content):
    return base64.b64encode(content).decode()


def in_node(*tasks):
    """Results of tasks of `run_device.js`."""
    done = subprocess.run(
        [NODE, RUNNER, FILE], input=json.dumps(tasks), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def results(*tasks):
    given = in_node(*tasks)
    assert [entry for entry in given if "error" in entry] == []
    return [entry["result"] for entry in given]


def words(seed, count=80):
    """Words of a device; the first ones are often drawn again."""
    generator = random.Random(seed)
    drawn = [generator.getrandbits(64) for _ in range(count)]
    if seed % 5 == 0:
        drawn[:3] = [2**64 - 1, 2**64 - 2, 2**64 - 300]
    return drawn


def test_hashes_codes_and_thresholds():
    texts = [b"", b"abc", bytes(55), bytes(56), bytes(63), bytes(64), bytes(range(256)) * 9]
    sizes = [(NANO, 1), (NANO, 2), (NANO, 3), (2 * NANO, 6), (4 * NANO, 52), (NANO // 2, 2)]
    more = [(1, 1), (1000 * NANO, 65_535), (123_456_789, 11, 6)]
    hashes, thresholds, codes = results(
        {"task": "hashes", "texts": [text(content) for content in texts]},
        {"task": "thresholds", "sizes": sizes + more},
        {"task": "codes", "seed": "campaign", "answers": 1024, "functions": 3**7},
    )
    assert hashes == [hashlib.sha256(content).hexdigest() for content in texts]
    assert [int(t) for t in thresholds] == [device.keep_threshold(*s) for s in sizes + more]
    assert int(thresholds[0]) == 3371412625719392690  # local.md, section G
    assert codes == device.hash_codes("campaign", 1024, 3**7)
    assert codes[:5] == [963, 1928, 2117, 1783, 956]


@pytest.mark.parametrize("nano", [NANO // 10, 3 * NANO])
def test_the_same_words_give_the_same_reports_as_python_and_in_bulk(nano):
    raws = [campaign_bytes(((1_000_000, GRID, p),), nano_epsilon=nano) for p in PROTOCOLS]
    drawn = [(answer, words(answer + 17 * i)) for answer in range(17) for i in range(3)]
    devices = [[0, answer, [str(w) for w in listed]] for answer, listed in drawn]
    given = results(*({"task": "reports", "campaign": text(r), "devices": devices} for r in raws))
    table = np.array([listed for _, listed in drawn], np.uint64)
    for raw, lines in zip(raws, given, strict=True):
        one = Campaign.parse(raw)
        assert lines == [draw_report(one, 0, answer, Listed(w)) for answer, w in drawn]
        blocks = iter([table[:, :8], table[:, 8:16], table[:, 16:32], table[:, 32:64]])
        many = ManyWords(len(drawn), lambda rows, columns, left=blocks: next(left))
        answers = np.array([answer for answer, _ in drawn])
        assert lines == format_reports(one, randomise_group(one, 0, answers, many))


@pytest.mark.parametrize("nano", [NANO // 10, 3 * NANO])
def test_the_word_before_a_threshold_keeps_and_the_word_at_it_does_not(nano):
    """After a word that keeps there is none for another answer; the words of a nonce are zero."""
    threshold = device.keep_threshold(nano, len(GRID))
    raw = campaign_bytes(((1_000_000, GRID, KARY),), nano_epsilon=nano)
    cases = [[5, (threshold << 2) - 1, 0, 0], [5, threshold << 2, 7, 0, 0]]
    devices = [[0, answer, list(map(str, drawn))] for answer, *drawn in cases]
    lines = results({"task": "reports", "campaign": text(raw), "devices": devices})[0]
    assert [json.loads(line)["answer"] for line in lines] == [[5], [8]]


def test_every_point_gives_a_report():
    form = json.loads(device.report_line("", 0, "", "[0]")).keys()
    for point in ((1, 1), (99, 1), (None, None), (1, -37), (8, 4)):
        done = answered(store_text(), campaign_bytes(), point=point)
        assert "error" not in done
        assert json.loads(done["result"]["report"]).keys() == form
    told = "campaign costs more epsilon than the cap of the store leaves"
    for point in ((1, 1), (99, 1), (None, None), (127, 37)):
        refused = answered(store_text(cap=NANO // 2), campaign_bytes(), point=point, words=[])
        assert refused == {"error": told, "code": 4}


def test_a_browser_without_randomness_is_refused():
    task = {"task": "system", "campaign": text(campaign_bytes()), "answers": [5]}
    refused = {"error": "the operating system provides no random numbers", "code": 70}
    assert in_node({**task, "random": False}) == [refused]
    assert len(results(task)[0]) == 1


def test_groups_answers_and_points():
    cells = ["0", *(f"1{d}" for d in "0123"), "2", "3"]
    raw = campaign_bytes(
        ((200_000, GRID, KARY), (0, GRID, KARY), (800_000, cells, KARY)),
        domain={"bounds": ["-7.6", "49.8", "1.9", "60.9"], "crs": "EPSG:4326",
                "lattice": [2**20, 2**20]},
    )  # fmt: skip
    one, generator = Campaign.parse(raw), np.random.default_rng(6)
    points = np.stack([generator.uniform(-8, 2, 3000), generator.uniform(49, 61, 3000)], axis=1)
    lines = np.arange(500) * 2100  # on lines of the lattice, where rounding decides
    points[:500, 0] = -7.6 + lines * (9.5 / 2**20)
    points[:500, 1] = 49.8 + lines * ((60.9 - 49.8) / 2**20)
    points = [*points.tolist(), [1.9, 60.9], [-7.6, 49.8], [float("nan"), 50], [0, float("inf")]]
    texts = [[repr(x), repr(y)] for x, y in points]
    texts[-2:] = [["NaN", "50"], ["0", "Infinity"]]
    seeds = [words(i, 8) for i in range(300)]
    groups, *answers = results(
        {"task": "groups", "campaign": text(raw), "devices": [list(map(str, s)) for s in seeds]},
        *({"task": "answers", "campaign": text(raw), "group": g, "points": texts} for g in (0, 2)),
    )
    assert groups == [one.draw_group(Listed(seed)) for seed in seeds]
    for group, given in zip((0, 2), answers, strict=True):
        assert given == [one.answer_of(group, x, y) for x, y in points]


OPTIONS = ["bus", "서울 \U0001f600", "none"]


def options_bytes(options=(*OPTIONS,), **fields):
    groups = ((1_000_000, list(options), HASHING),)
    return campaign_bytes(groups, **{"question": "options", "domain": None, **fields})


def store_task(raw, x, seed, y=1):
    drawn = list(map(str, words(seed)))
    task = {"task": "store", "text": store_text(), "campaign": text(raw)}
    return {**task, "x": x, "y": y, "words": drawn}


def test_every_answer_gives_a_report():
    """Texts that are no option or no number are an answer like any other."""
    asked = [(options_bytes(), x) for x in (*OPTIONS, "tram", "", "-1", "toString", None)]
    asked += [(campaign_bytes(), x) for x in (1, -1, 1e300, "here", "", None)]
    given = in_node(*(store_task(raw, x, 1) for raw, x in asked))
    assert [x for (_, x), entry in zip(asked, given, strict=True) if "error" in entry] == []
    one = Campaign.parse(options_bytes())
    points = [*OPTIONS, "tram", "", "toString", "Bus"]
    given = results(*(store_task(options_bytes(), option, i) for i, option in enumerate(points)))
    for i, (option, entry) in enumerate(zip(points, given, strict=True)):
        listed = Listed(words(i))
        assert one.draw_group(listed) == 0
        answer = one.answer_of(0, option)
        assert answer == (OPTIONS.index(option) if option in OPTIONS else 3)
        assert entry["report"] == draw_report(one, 0, answer, listed)


def domain(*bounds, lattice=(2**20, 2**20)):
    return {"domain": {"bounds": list(bounds), "crs": "", "lattice": list(lattice)}}


BAD = [
    {"question": "songs"}, {"title": "a\nb"}, {"title": "x" * 201}, {"title": 5},
    {"nano_epsilon": 0}, {"nano_epsilon": 1001 * NANO}, {"nano_epsilon": True}, {"devices": 0},
    {"earlier": ["x"]}, {"earlier": None}, {"extra": 1}, {"psd-campaign": 2},
    {"psd-campaign": True}, {"groups": []}, {"groups": {}}, {"domain": {}},
    domain("0", "0", "0", "4"), domain("0", "0", "1e999", "4"),
    domain("1", "0", "1.0000000001", "4"), domain(0, 0, 8, 4),
    domain("0", "0", "8", "4", lattice=(2**20, 2**19)),
]  # fmt: skip
BAD_CELLS = [
    GRID[:-1], [*GRID, "33"], ["0", "2", "1", "3"], ["0", "1", "2", "4"], [0, 1, 2, 3], [],
]  # fmt: skip
BAD_PROTOCOLS = [
    None, {"name": "laplace"}, {"name": "toString"}, {"name": "k-ary", "size": 1},
    {"name": "hashing", "modulus": 4}, {"name": "hashing", "modulus": 16_381},
    {"name": "hashing", "modulus": "3"}, {"name": "subset", "size": 17},
    {"name": "unary", "form": "loud"},
]  # fmt: skip


def refused_of(raws):
    return in_node(*({"task": "groups", "campaign": text(r), "devices": []} for r in raws))


def test_bad_campaigns_are_refused_in_the_same_sentence():
    groups = [(999_999, GRID, KARY), (1_000_000, None, None)]
    groups += [(1_000_000, cells, KARY) for cells in BAD_CELLS]
    groups += [(1_000_000, GRID, protocol) for protocol in BAD_PROTOCOLS]
    raws = [campaign_bytes(**fields) for fields in BAD]
    raws += [campaign_bytes((group,)) for group in groups]
    raws += [options_bytes(["a", "a"]), options_bytes(["a", ""]), options_bytes(["a\tb"])]
    raws += [options_bytes(["a" * 201]), options_bytes(domain={}), options_bytes([])]
    raws.append(device.canonical_json({**campaign_value(), "title": "changed"}).encode())
    raws += [b"{}", b"[]", b"5"]
    for raw, entry in zip(raws, refused_of(raws), strict=True):
        with pytest.raises(DeviceError) as caught:
            Campaign.parse(raw)
        assert entry == {"error": str(caught.value), "code": caught.value.code}


def test_another_spelling_is_refused():
    usual, stated = campaign_bytes(), b'"devices":1000'
    numbers = (b"1000.0", b"1e3", b'1000,"devices":1000', b"9007199254740993")
    changed = [usual.replace(stated, b'"devices":' + number) for number in numbers]
    changed += [usual.replace(b":", b": "), usual[:-1], b"\xef\xbb\xbf" + usual]
    changed += [usual.replace(b"a test", b"a \xff"), b"[" * 100_000]
    assert usual not in changed
    for given in refused_of(changed):
        assert "not JSON in its one spelling" in given["error"]
    titles = ["서울 \U0001f600", "é ü", 'quotes " and \\ slashes', "", "x" * 200]
    given = refused_of([campaign_bytes(title=title) for title in titles])
    assert given == [{"result": []}] * len(titles)
    texts = ["2", "0.5", "1000", "0.000000001", "0", "1001", "-1", "nan", "1e3", "", "0.0000000001"]
    expected = []
    for cap in texts:
        try:
            expected.append(device.parse_nano(cap))
        except DeviceError as error:
            expected.append(str(error))
    assert results({"task": "caps", "texts": texts}) == [expected]
    sizes = {"flips": 40, "bits": 8, "hashes": 1, "cohorts": 1}
    bloom, one_hot = ({"name": "rappor", "encoding": e} for e in ("bloom", "one-hot"))
    for question, cells, protocol, told in [
        ("words", [], bloom | sizes, "does not know its question"),
        ("options", ["a"], one_hot | {"flips": 9}, "its protocol"),
    ]:
        raw = campaign_bytes(((1_000_000, cells, protocol),), question=question, domain=None)
        assert Campaign.parse(raw).question == question
        assert told in refused_of([raw])[0]["error"]
    told = "campaign is not valid: this device does not know its question"
    assert refused_of([encode_campaign(region_campaign())]) == [{"error": told, "code": 2}]


def store_text(cap=2 * NANO, answers=None):
    return Store("", cap, answers or {}).content().decode().strip()


def answered(store, raw, seed=1, point=(1, 1), **more):
    return in_node({**store_task(raw, point[0], seed, point[1]), "text": store, **more})[0]


def test_a_store_answers_once_and_is_that_of_python():
    raw = campaign_bytes()
    first = answered(store_text(), raw)["result"]
    one = Campaign.parse(raw)
    listed = Listed(words(1))
    assert one.draw_group(listed) == 0
    assert first["report"] == draw_report(one, 0, one.answer_of(0, 1, 1), listed)
    store = Store._parse("", first["text"].encode())
    assert (store.cap, store.spent) == (2 * NANO, NANO)
    assert store.answers[one.digest]["report"] == first["report"]
    assert first["text"] == store.content().decode().strip()
    again = answered(first["text"], raw, seed=2, point=(None, None), words=[])
    assert again == {"result": first}
    other = answered(first["text"], campaign_bytes(title="b"), seed=3)["result"]
    refused = answered(other["text"], campaign_bytes(title="c"), words=[])
    assert refused["code"] == 4
    ticket = "0123456789abcdef" * 2
    with_ticket = answered(store_text(), raw, ticket=ticket)["result"]["report"]
    assert json.loads(with_ticket)["nonce"] == ticket


HALVES = ((500_000, GRID, KARY), (500_000, None, None))


def naming(*earlier, groups=HALVES, title="of a stranger"):
    digests = [Campaign.parse(raw).digest for raw in earlier]
    return campaign_bytes(groups, title=title, earlier=digests)


def test_no_campaign_fetches_or_uses_up_the_report_of_another():
    mine, second = campaign_bytes(), campaign_bytes(title="second")
    first = answered(store_text(), mine)["result"]
    for asking in (naming(mine), naming(second, mine), naming(mine, groups=HALVES[::-1])):
        given = answered(first["text"], asking, words=[])
        assert given == {"result": {"text": first["text"], "report": None}}
    # What another campaign names still has its own report, at its own cost.
    asking = naming(second, groups=((1_000_000, GRID, KARY),))
    fetched = answered(store_text(), asking, seed=2)["result"]
    own = answered(fetched["text"], second, seed=3)["result"]
    for raw, entry in ((asking, fetched), (second, own)):
        assert json.loads(entry["report"])["campaign"] == Campaign.parse(raw).digest
    assert Store._parse("", own["text"].encode()).spent == 2 * NANO
    assert answered(own["text"], mine, words=[])["code"] == 4


def test_rounds_that_are_seen_in_reverse_order_cost_their_sum():
    first = campaign_bytes(HALVES)
    later = naming(first, groups=HALVES[::-1])
    one = answered(store_text(), later, words=["500000", *["0"] * 30])["result"]
    both = answered(one["text"], first, words=["0"] * 30)["result"]
    groups = [json.loads(entry["report"])["group"] for entry in (one, both)]
    assert groups == [1, 0]
    assert Store._parse("", both["text"].encode()).spent == 2 * NANO


def test_a_group_is_taken_over_from_equal_shares_alone():
    first = campaign_bytes(HALVES)
    unasked = answered(store_text(), first, words=["500000"])["result"]
    assert unasked["report"] is None
    quarters = ((250_000, GRID, KARY), (750_000, None, None))
    for groups, drawn, group in ((HALVES, [], 1), (quarters, ["250000"], 1), (quarters, ["0"], 0)):
        raw = naming(first, groups=groups)
        done = answered(unasked["text"], raw, words=drawn + ["0"] * 30 * (not group))["result"]
        entry = json.loads(done["text"])["answers"][Campaign.parse(raw).digest]
        assert (entry["group"], done["report"] is None) == (group, group == 1)


def test_a_lost_or_damaged_store_answers_nothing():
    for store in (None, "", "{}", store_text()[:-3], store_text().replace("2", "3")):
        refused = answered(store, campaign_bytes(), words=[])
        assert refused["code"] == 9
        assert ("missing" if store is None else "damaged") in refused["error"]
    for older in (1, 2):
        store = store_text().replace('"psd-device":1', f'"psd-store":{older}')
        refused = answered(store, campaign_bytes(), words=[])
        assert refused["code"] == 9
        assert f"old store format {older}; " in refused["error"]
        assert f"commit {LAST_READER} " in refused["error"]
    later = ((0, GRID, KARY), (1_000_000, None, None))
    done = answered(store_text(), campaign_bytes(later))["result"]
    assert done["report"] is None
    entry = next(iter(json.loads(done["text"])["answers"].values()))
    assert entry == {"group": 1, "nano_epsilon": 0, "report": None, "shares": [0, 1_000_000]}


def test_reports_of_webcrypto_have_the_law_of_the_protocol():
    """Chi-square of 20,000 reports over all 17 reports of k-ary, at a false alarm of 1e-9."""
    raw = campaign_bytes(((1_000_000, GRID, KARY),), nano_epsilon=NANO)
    lines = results({"task": "system", "campaign": text(raw), "answers": [5] * 20_000})[0]
    assert len({json.loads(line)["nonce"] for line in lines}) == 20_000
    counts = Counter(json.dumps(json.loads(line)["answer"]) for line in lines)
    law = {r: 20_000 * float(p) for r, p in protocol_of(Campaign.parse(raw).groups[0]).law(5)}
    distance = sum((counts[report] - mean) ** 2 / mean for report, mean in law.items())
    assert distance < chi2.isf(1e-9, len(law) - 1)


def test_the_file_is_short_stands_alone_and_is_handed_out(tmp_path):
    source = FILE.read_text()
    assert len(source.splitlines()) <= 515
    calls = ("import ", 'require("', "fetch", "XMLHttpRequest", "Math.random", "eval", "http")
    assert [banned for banned in calls if banned in source] == []
    client(str(tmp_path / "device.js"), js=True)
    assert (tmp_path / "device.js").read_text() == source
    with pytest.raises(WriteError):
        client(str(tmp_path / "device.js"), js=True)
