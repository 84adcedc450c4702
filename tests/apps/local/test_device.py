"""The device: cells, campaigns, reports, and the store."""

import hashlib
import json
import math
import os
import random
import re
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from psd.apps.local import device
from psd.apps.local.device import (
    NANO,
    Campaign,
    DeviceError,
    Store,
    Words,
    answer_place,
    campaign_digest,
    draw_report,
)
from psd.space.domain import Domain
from psd.version import LAST_READER
from support.local import GRID, HASHING, KARY, Listed, campaign, campaign_bytes, campaign_value

FILE = Path(device.__file__)
NAN = math.nan


def words_of(label):
    """The words of the vectors: SHA-256 of a label and a number, cut in four."""
    number = 0
    while True:
        digest = hashlib.sha256(label + number.to_bytes(8, "big")).digest()
        yield from (int.from_bytes(digest[i : i + 8], "big") for i in range(0, 32, 8))
        number += 1


BOUNDS = [(126.4, 37.0, 127.6, 38.0), (-180, -90, 180, 90), (-1, -2, 3, 5)]


@pytest.mark.parametrize("bounds", BOUNDS)
def test_cells_are_those_of_the_domain_bit_for_bit(bounds):
    domain, generator = Domain(bounds=bounds), np.random.default_rng(1)
    lines = generator.integers(0, 2**20 + 1, 3000)
    for axis, (low, high) in enumerate(zip(bounds[:2], bounds[2:], strict=True)):
        edges = domain.edges(axis, lines)
        around = [edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)]
        around = np.concatenate([*around, generator.uniform(low, high, 3000), [low, high]])
        around = around[(around >= low) & (around <= high)]
        expected = domain.axes[axis].find_cells(around)
        assert [
            device.find_cell(float(low), float(high), float(v)) for v in around
        ] == expected.tolist()


def test_answers_are_the_cells_and_then_outside():
    one = campaign()
    centres = [(1 + 2 * column, 0.5 + row) for row in range(4) for column in range(4)]
    answers = [one.answer_of(0, x, y) for x, y in centres]
    expected = "00 01 10 11 02 03 12 13 20 21 30 31 22 23 32 33"
    assert [GRID[a] for a in answers] == expected.split()
    beside = [(NAN, 1), (1, NAN), (math.inf, 1), (-math.inf, 1), (8.001, 1), (1, -0.001), (37, 127)]
    assert {one.answer_of(0, x, y) for x, y in beside} == {16}
    assert one.answer_of(0, 8.0, 4.0) == 15
    partition = device.Partition(("0", "10", "11", "12", "13", "2", "3"))
    half = 2**19
    corners = [(0, 0), (half, 0), (half + half // 2, 0), (2**20 - 1, half - 1), (0, half)]
    assert [partition.answer(*corner) for corner in corners] == [0, 1, 2, 4, 5]
    assert device.Partition(("",)).answer(5, 5) == 0
    assert device.hash_codes("campaign", 5, 2187) == [963, 1928, 2117, 1783, 956]
    draw, words = device.HashingDraw(NANO, 1024, 3, "campaign"), Listed(words_of(b"vectors"))
    reports = [draw.randomise(5, words) for _ in range(5)]
    assert reports == ["[168,2]", "[1269,1]", "[1377,1]", "[2027,0]", "[479,2]"]
    three = campaign(((500_000, GRID, KARY), (0, GRID, KARY), (500_000, None, None)))
    words = [0, 499_999, 500_000, 999_999]
    assert [three.draw_group(Listed([w])) for w in words] == [0, 0, 2, 2]
    # Numbers are the nearest step, options their number, and words any text.
    one = campaign(**number(["-10", "10.46"]))
    values = [-10, -9.991, -9.989, 10.46, 1e300, -math.inf, NAN, "0.23", "here", "12,5"]
    steps = [0, 0, 1, 1023, 1023, 0, 512, 512, 512, 512]
    assert [one.answer_of(0, v) for v in values] == steps
    one = campaign(**option(["bus", "train"]))
    assert [one.answer_of(0, text) for text in ("train", "bus", "", NAN, "Bus")] == [1, 0, 2, 2, 2]
    one, texts = campaign(**word()), ("seoul", "", NAN, "\ud800")
    assert [one.answer_of(0, text) for text in texts] == ["seoul", "", "", "\ud800"]


def refusal(raw):
    with pytest.raises(DeviceError) as caught:
        Campaign.parse(raw)
    assert caught.value.code == 2
    return str(caught.value)


def without_title(value):
    return {key: content for key, content in value.items() if key != "title"}


BAD = [
    (lambda v: {**v, "title": "another"}, "does not match its digest"),
    (lambda v: {**v, "extra": 1}, "must have its fields"),
    (without_title, "must have its fields"),
    (lambda v: {**v, "psd-campaign": 2}, "version that this device does not know"),
    (lambda v: {"psd": 1}, "must be a campaign of psd"),
    (lambda v: [v], "must be a campaign of psd"),
]


def one_group(cells=GRID, protocol=HASHING, share=1_000_000):
    return {"groups": ((share, cells, protocol),)}


def number(ends, name="duchi", nano=NANO, **settings):
    fields = {"question": "numbers", "domain": None, "nano_epsilon": nano}
    return {**fields, **one_group(ends, {"name": name, **settings})}


def option(texts, protocol=KARY):
    return {"question": "options", "domain": None, **one_group(texts, protocol)}


BLOOM = {"name": "rappor", "encoding": "bloom", "flips": 40, "bits": 32, "hashes": 2, "cohorts": 8}
ONE_HOT = {"name": "rappor", "encoding": "one-hot", "flips": 40}


def word(cells=(), **settings):
    return {"question": "words", "domain": None, **one_group(list(cells), {**BLOOM, **settings})}


def one_hot(**settings):
    return one_group(protocol={**ONE_HOT, **settings})


def by(name, **settings):
    return one_group(protocol={"name": name, **settings})


def square(*bounds, lattice=2**20):
    return {"domain": {"bounds": list(bounds), "crs": "x", "lattice": [lattice] * 2}}


FLIPS, WINDOW = "flips must be an integer from 1 to 127", "window must be"
FEWER = "flips must be fewer, for its epsilon"
FIELDS, NO_PROTOCOL = "protocol must have its fields", "does not have its protocol"
BAD_FIELDS = [
    ("nano_epsilon must be", [{"nano_epsilon": nano} for nano in (0, 1000 * NANO + 1, True)]),
    ("devices must be", [{"devices": 0}]),
    ("title must be", [{"title": "a\nb"}]),
    ("does not know its question", [{"question": "songs"}]),
    ("earlier must be", [{"earlier": ["short"]}, {"earlier": "A" * 22}]),
    ("lattice must", [square("0", "0", "8", "4", lattice=8)]),
    ("be wide", [square("8", "0", "0", "4"), square("0", "0", "1e-320", "4")]),
    ("4 numbers in", [square(0, 0, 8, 4)]),
    ("bounds", [square("0", "0", "inf", "4")]),
    ("domain must be null", [{"question": "numbers"}]),
    (NO_PROTOCOL, [number(["0", "1"], "k-ary"), word(name="k-ary")]),
    ("range must be 2 numbers", [number(["0"]), number(["0", "x"])]),
    ("range must be wide enough", [number(["1", "0"])]),
    ("must have its fields", [number(["0", "1"], window=1)]),
    (WINDOW, [number(["0", "1"], "piecewise", window=window) for window in (0, 1025)]),
    (WINDOW, [number(["0", "1"], "staircase", window=window) for window in (0, 1024)]),
    (WINDOW, [number(["0", "1"], "bounded-staircase", window=1023)]),
    (
        "nano_epsilon of a number",
        [number(["0", "1"], nano=nano) for nano in (12 * NANO + 1, NANO // 1000 - 1)],
    ),
    ("each option must be stated once", [option(["a", "a"])]),
    ("an option must be", [option(["a", ""]), option(["a\n"])]),
    ("number of answers", [option([])]),
    ("number of answers must be an integer from 1 to 1", [word(["a"])]),
    ("encoding must be spelled bloom", [word(encoding="one-hot")]),
    (FLIPS, [word(flips=0), word(flips=128), one_hot(flips=0), one_hot(flips=128)]),
    (
        FEWER,
        [word(flips=127, hashes=1), one_hot(flips=126), {"nano_epsilon": 4 * NANO, **one_hot()}],
    ),
    ("bits must be an integer from 2 to 256", [word(bits=1), word(bits=257)]),
    ("hashes must be an integer from 1 to 16", [word(hashes=0), word(hashes=17)]),
    ("hashes must be at most as many as bits", [word(bits=8, hashes=9)]),
    ("cohorts must be an integer from 1 to 1,024", [word(cohorts=0), word(cohorts=1025)]),
    ("p must be below q", [word(p=9, q=9), one_hot(p=NANO - 1, q=1)]),
    ("p must be an integer from 1 to 999,999,999", [word(p=0, q=9), one_hot(p="0.5", q=9)]),
    ("q must be an integer from 1 to 999,999,999", [word(p=9, q=NANO), one_hot(p=9, q=0)]),
    (FIELDS, [word(p=9), one_hot(q=9), one_hot(bits=32), by("k-ary", p="1"), by("hashing")]),
    ("encoding must be spelled one-hot", [one_hot(encoding="bloom")]),
    ("1 to 16 groups", [{"groups": ()}]),
    ("must add up to 1,000,000", [one_group(share=999_999)]),
    ("a group must be asked", [one_group(cells=None, protocol=None)]),
    ("must leave no gap", [one_group(list(cells)) for cells in ("012", "023", "1023")]),
    ("not overlap", [one_group(list("01233")), one_group(["0", "00", "1", "2", "3"])]),
    ("at most 20 digits", [one_group(["4"]), one_group(["0" * 21])]),
    ("number of answers must be", [one_group([]), one_group([f"{i:09b}" for i in range(65_536)])]),
    ("cells must be a list", [one_group([1])]),
    (NO_PROTOCOL, [by("laplace"), by(["k-ary"])]),
    ("must be a prime", [by("hashing", modulus=4)]),
    ("modulus must be", [by("hashing", modulus=1)]),
    ("different reports", [by("hashing", modulus=4099)]),
    ("size must be", [by("subset", size=0), by("subset", size=17)]),
    ("form must be", [by("unary", form="other")]),
    ("half of", [{"nano_epsilon": 1, **by("unary", form="symmetric")}]),
]


def test_a_campaign_whose_epsilon_does_not_cover_p_and_q_is_refused():
    for fields in (word, one_hot):
        rates = {"p": NANO // 2, "q": 3 * NANO // 4}
        draw = campaign(**fields(**rates), nano_epsilon=2 * NANO).groups[0].draw
        assert NANO // 2 < draw.once < 2 * NANO
        assert campaign(**fields(**rates), nano_epsilon=draw.once)
        raw = campaign_bytes(**fields(**rates), nano_epsilon=draw.once - 1)
        assert "its epsilon must cover a report by p and q" in refusal(raw)


def test_campaigns_with_wrong_fields_are_refused(subtests):
    for words, wrong in BAD_FIELDS:
        for number, fields in enumerate(wrong):
            with subtests.test(words, row=number):
                assert words in refusal(campaign_bytes(**fields))
    for edit, words in BAD:
        assert words in refusal(device.canonical_json(edit(campaign_value())).encode())
    digits = b'{"psd-campaign":' + b"9" * 5000 + b"}"
    twice = b'{"psd-campaign":1,"psd-campaign":1}'
    texts = [b"", b"{", b"\xff", twice, b'{"psd-campaign":NaN}', b'{"psd-campaign":1.0}', digits]
    for raw in (*texts, b"[" * 100_000):
        assert "not strict JSON" in refusal(raw)
    value = campaign_value()
    spaced = json.dumps(value, indent=2).encode()
    assert Campaign.parse(spaced) == Campaign.parse(device.canonical_json(value).encode())
    assert not {"p", "q", "truth", "threshold"} & set(re.findall(r'"(\w+)"', spaced.decode()))


@pytest.fixture
def store(tmp_path):
    path = str(tmp_path / "store")
    Store.create(path, 2 * NANO)
    return path


def spent(path):
    with Store.locked(path) as opened:
        return opened.spent


class Broken(Words):
    """A system without randomness."""

    def word(self):
        raise DeviceError("the operating system provides no random numbers", 70)


def test_asked_again_a_device_gives_the_same_report(store):
    one = campaign()
    first = answer_place(store, one, 1, 1, Words())
    assert [answer_place(store, one, x, 1, Words()) for x in (1, 7, NAN)] == [first] * 3
    assert spent(store) == NANO
    assert os.stat(store).st_mode & 0o777 == 0o600


def refused(store, one, words, x=1, y=1, drawn=None):
    """Code of a refusal; nothing is drawn unless it is said."""
    with pytest.raises(DeviceError, match=words) as caught:
        answer_place(store, one, x, y, drawn or Broken())
    return caught.value.code


ABOVE_CAP = "more epsilon than the cap"
HALVES = ((500_000, GRID, KARY), (500_000, None, None))
ALL = ((1_000_000, GRID, KARY),)


def test_campaigns_add_up_to_the_cap(store):
    assert refused(store, campaign(nano_epsilon=2 * NANO + 1), ABOVE_CAP) == 4
    for number in range(2):
        assert answer_place(store, campaign(title=str(number)), 1, 1, Words())
    assert refused(store, campaign(title="2"), ABOVE_CAP) == 4
    assert spent(store) == 2 * NANO


def test_a_device_answers_in_its_group_only_and_once(store):
    first = campaign(HALVES)
    later = campaign(((500_000, None, None), (500_000, GRID, HASHING)), earlier=[first.digest])
    group_1 = Listed([500_000] * 99)
    assert answer_place(store, first, 1, 1, group_1) is None
    assert spent(store) == 0
    report = answer_place(store, later, 1, 1, Words())
    assert json.loads(report)["group"] == 1
    assert answer_place(store, first, 1, 1, Broken()) is None
    last = campaign(one_group()["groups"], earlier=[first.digest, later.digest])
    assert answer_place(store, last, 1, 1, Broken()) is None
    assert answer_place(store, later, 7, 1, Broken()) == report
    assert spent(store) == NANO


def stranger(*earlier, groups=HALVES, title="of a stranger"):
    return campaign(groups, title=title, earlier=[one.digest for one in earlier])


def test_no_campaign_fetches_or_uses_up_the_report_of_another(store):
    mine, second = campaign(), campaign(title="second")
    report = answer_place(store, mine, 1, 1, Words())
    for asking in (stranger(mine), stranger(second, mine), stranger(mine, groups=ALL)):
        assert answer_place(store, asking, 1, 1, Broken()) is None
    assert spent(store) == NANO
    assert answer_place(store, mine, 1, 1, Broken()) == report


def test_a_campaign_that_another_one_names_gets_its_own_report_at_its_own_cost(store):
    """So a stranger who names a campaign cannot silence it, and nobody gets what others got."""
    mine, third = campaign(), campaign(title="third")
    asking = stranger(mine, groups=ALL)
    fetched = answer_place(store, asking, 1, 1, Words())
    assert json.loads(fetched)["campaign"] == asking.digest
    report = answer_place(store, mine, 1, 1, Words())
    assert json.loads(report)["campaign"] == mine.digest
    assert spent(store) == 2 * NANO
    assert refused(store, third, ABOVE_CAP) == 4
    assert answer_place(store, asking, 7, 3, Broken()) == fetched


def test_rounds_that_are_seen_in_reverse_order_cost_their_sum(store):
    first = campaign(HALVES)
    later = stranger(first, groups=HALVES[::-1])
    assert json.loads(answer_place(store, later, 1, 1, Listed([500_000] * 99)))["group"] == 1
    assert json.loads(answer_place(store, first, 1, 1, Listed([0] * 99)))["group"] == 0
    assert spent(store) == 2 * NANO


def test_a_group_is_taken_over_from_equal_shares_alone(store, subtests):
    first = campaign(HALVES)
    assert answer_place(store, first, 1, 1, Listed([500_000])) is None
    quarters = ((250_000, GRID, KARY), (750_000, None, None))
    for name, groups, drawn, group in (
        ("equal shares", HALVES, Broken(), 1),
        ("other shares", quarters, Listed([0] * 99), 0),
        ("fewer groups", one_group(cells=GRID)["groups"], Listed([0] * 99), 0),
    ):
        with subtests.test(name):
            one = stranger(first, groups=groups, title=name)
            assert (answer_place(store, one, 1, 1, drawn) is None) == (group == 1)
            with Store.locked(store) as opened:
                assert opened.answers[one.digest]["group"] == group
                assert opened.answers[one.digest]["shares"] == one.shares


def test_links_to_a_store_lead_to_one_store(store, tmp_path, subtests):
    one, other = campaign(), campaign(title="other")
    link = str(tmp_path / "link")
    os.symlink(store, link)
    report = answer_place(link, one, 1, 1, Words())
    assert os.path.islink(link)
    assert answer_place(store, one, 7, 3, Broken()) == report
    assert answer_place(store, other, 1, 1, Words())
    assert refused(link, campaign(title="third"), ABOVE_CAP) == 4
    assert (spent(link), spent(store)) == (2 * NANO, 2 * NANO)
    hard = str(tmp_path / "hard")
    os.link(store, hard)
    for path in (store, hard, link):
        with subtests.test(path):
            assert refused(path, one, "has a hard link") == 9
    os.remove(hard)
    assert answer_place(store, one, 7, 3, Broken()) == report


def test_a_file_that_is_left_over_or_prepared_is_not_written_to(store, tmp_path, subtests):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    prepared = {
        "a symbolic link": lambda path: os.symlink(victim, path),
        "a broken link": lambda path: os.symlink(tmp_path / "nowhere", path),
        "a hard link": lambda path: os.link(victim, path),
        "a file for all": lambda path: Path(path).touch(0o644),
    }
    for number, (name, prepare) in enumerate(prepared.items()):
        path = str(tmp_path / f"{number}.store")
        Store.create(path, 2 * NANO)
        prepare(f"{path}.new")
        with subtests.test(name):
            assert answer_place(path, campaign(), 1, 1, Words())
            assert os.stat(path).st_mode & 0o777 == 0o600
            assert not os.path.islink(path)
            assert not os.path.lexists(f"{path}.new")
            assert spent(path) == NANO
    assert victim.read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()
    os.mkdir(f"{store}.new")
    assert refused(store, campaign(), "cannot be written", drawn=Words()) == 6
    assert spent(store) == 0


def test_a_kill_between_write_and_rename_forgets_no_report_that_left(store, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(*paths):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(Killed):
            answer_place(store, campaign(), 1, 1, Words())
    assert os.path.exists(f"{store}.new")
    assert spent(store) == 0
    report = answer_place(store, campaign(), 1, 1, Words())
    assert answer_place(store, campaign(), 7, 3, Broken()) == report
    assert spent(store) == NANO
    assert not os.path.exists(f"{store}.new")


def test_the_group_depends_on_no_point():
    two = campaign(((500_000, GRID, KARY), (500_000, GRID, KARY)))
    for x in (1, 7, NAN):
        words = Words()
        words._words = iter([3, *[2**63] * 20])
        assert draw_report(two, two.draw_group(words), two.answer_of(0, x, 1), words)
        assert two.draw_group(Listed([3])) == 0


@pytest.fixture
def large(tmp_path):
    path = str(tmp_path / "large")
    Store.create(path, 100 * NANO)
    return path


def settled(path):
    """What the first answer settled: cohort and bits."""
    with Store.locked(path) as opened:
        [entry] = opened.answers.values()
        return entry["settled"]


WORDS = [word(), option(["a", "b"], ONE_HOT)]


@pytest.mark.parametrize("fields", WORDS, ids=["bloom", "one-hot"])
def test_asked_again_rappor_reports_the_first_answer_anew(large, fields):
    one = campaign(**fields)
    reports = [answer_place(large, one, "a", NAN, Words()) for _ in range(9)]
    kept = settled(large)
    reports += [answer_place(large, one, text, NAN, Words()) for text in ("b", "", NAN)]
    assert len(set(reports)) == 12
    assert settled(large) == kept
    # The reports tell the settled bits and nothing else: their words alone differ.
    expected = draw_report(one, 0, kept, Listed([7] * 600))
    assert answer_place(large, one, "c", NAN, Listed([7] * 600)) == expected


def test_all_reports_of_an_answer_cost_no_more_than_its_settled_bits(large, store):
    one = campaign(**word())
    lifetime = one.groups[0].draw.lifetime
    assert 6 * NANO < lifetime < 7 * NANO
    costs = []
    for number in range(9):
        assert answer_place(large, one, str(number), NAN, Words())
        costs.append(spent(large))
    assert costs == [min((number + 1) * NANO, lifetime) for number in range(9)]
    one = campaign(**word())
    for _ in range(2):
        assert answer_place(store, one, "a", NAN, Words())
    for text in ("a", "b", NAN):
        refused(store, one, ABOVE_CAP, text, NAN)
    assert spent(store) == 2 * NANO


def test_settled_bits_follow_from_the_secret_of_the_store(large):
    """So a copy of a store, from before the answer, gives no second draw of them."""
    first, other = campaign(**word()), campaign(**word(), title="other")
    answer_place(large, other, "seoul", NAN, Words())
    copy = Path(large).read_bytes()
    answer_place(large, first, "seoul", NAN, Words())
    with Store.locked(large) as opened:
        kept = {name: entry["settled"] for name, entry in opened.answers.items()}
    Path(large).write_bytes(copy)
    answer_place(large, first, "seoul", NAN, Words())
    with Store.locked(large) as opened:
        assert {name: entry["settled"] for name, entry in opened.answers.items()} == kept
        assert kept[other.digest] != kept[first.digest]
        assert re.fullmatch("[0-9a-f]{64}", opened.secret)


def test_a_later_round_with_other_flips_learns_nothing_of_the_settled_bits(large):
    first = campaign(**word())
    report = answer_place(large, first, "seoul", NAN, Words())
    later = campaign(**word(flips=1), earlier=[first.digest])
    assert answer_place(large, later, "seoul", NAN, Broken()) is None
    assert report != answer_place(large, first, "seoul", NAN, Words())
    assert spent(large) == 2 * NANO


def test_lost_and_damaged_stores_answer_nothing(store):
    with pytest.raises(DeviceError, match="is not replaced"):
        Store.create(store, 5 * NANO)
    answer_place(store, campaign(), 1, 1, Words())
    raw = Path(store).read_bytes()
    changed = raw.replace(b":2000000000", b":3000000000")
    assert changed != raw
    cut = (raw[:-2], raw[: len(raw) // 2])
    edits = ({"cap": "2"}, {"cap": True}, {"answers": []}, {"answers": {"0" * 64: {}}})
    edited = [{**json.loads(raw), **edit} for edit in edits]
    cut += tuple(json.dumps({**each, "digest": campaign_digest(each)}).encode() for each in edited)
    for content in (b"", b"{}", b'{"psd-device":1}', b"\0" * 500, *cut, changed):
        Path(store).write_bytes(content)
        assert refused(store, campaign(title="b"), "store is damaged") == 9
    for older in (1, 2):
        Path(store).write_text(f'{{"psd-store":{older},"cap":2,"answers":{{}}}}')
        told = f"old store format {older}; commit {LAST_READER} .* no fresh budget$"
        assert refused(store, campaign(title="b"), told) == 9
    assert device.LAST_READER == LAST_READER
    os.remove(store)
    os.mkfifo(store)
    assert refused(store, campaign(title="b"), "store must be a file") == 9
    os.remove(store)
    assert refused(store, campaign(title="b"), "store is missing") == 9
    assert not Path(store).exists()


def test_a_store_in_use_is_refused_and_one_gives_one_form_of_reports(store, monkeypatch, tmp_path):
    monkeypatch.setattr(device, "_WAIT", 0.05)
    monkeypatch.setattr(device.time, "sleep", lambda seconds: None)
    with Store.locked(store):
        refused(store, campaign(), "in use")
    form = (
        r'\{"psd-report":1,"campaign":"[\w-]{22}","group":0,"nonce":"[0-9a-f]{32}",'
        r'"answer":\[\d+,[012]\]\}'
    )
    for number, point in enumerate([(1, 1), (NAN, NAN), (100, 100), (math.inf, 0)]):
        path = str(tmp_path / f"{number}")
        Store.create(path, 2 * NANO)
        assert re.fullmatch(form, answer_place(path, campaign(), *point, Words()))


def test_no_report_leaves_before_it_is_synced(store, monkeypatch):
    events = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (events.append("fsync"), fsync(handle))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append("replace"), replace(a, b))[1])
    assert answer_place(store, campaign(), 1, 1, Words())
    assert events == ["fsync", "replace", "fsync"]
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "no space")))
    assert refused(store, campaign(title="b"), "store cannot be written", drawn=Words()) == 6
    monkeypatch.setattr(os, "fsync", fsync)
    assert spent(store) == NANO


def answering(store, one, pipe):
    """Process that answers and writes its report to a pipe."""
    child = os.fork()
    if child:
        return child
    try:
        os.write(pipe, (answer_place(store, one, 1, 1, Words()) + "\n").encode())
    finally:
        os._exit(0)


def sent_to(reader, writer):
    os.close(writer)
    with open(reader) as lines:
        return lines.read().splitlines()


@pytest.mark.deep
@pytest.mark.parametrize(
    "kills",
    [60, pytest.param(500, marks=[pytest.mark.nightly, pytest.mark.slow])],
    ids=["some", "all"],
)
def test_kills_lose_and_double_no_spending(tmp_path, kills):
    generator, left = random.Random(5), 0
    for number in range(kills):
        store, one = str(tmp_path / f"{number}"), campaign()
        Store.create(store, 10 * NANO)
        reader, writer = os.pipe()
        child = answering(store, one, writer)
        if number == 1:  # one that is not killed in time, however slow the machine is
            os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        elif number:  # and one that is killed at once
            time.sleep(generator.random() * 0.05)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        sent = sent_to(reader, writer)
        if sent:
            left += 1
            with Store.locked(store) as opened:
                assert opened.answers[one.digest]["report"] == sent[0]
        report = answer_place(store, one, 7, 3, Words())
        assert report == answer_place(store, one, 1, 1, Broken())
        assert sent in ([], [report])
        assert spent(store) == NANO
    assert 0 < left < kills


@pytest.mark.deep
def test_two_processes_with_one_store_give_one_report(tmp_path):
    one = campaign()
    for number in range(10):
        store = str(tmp_path / f"{number}")
        Store.create(store, 10 * NANO)
        reader, writer = os.pipe()
        for child in [answering(store, one, writer) for _ in range(4)]:
            os.waitpid(child, 0)
        sent = sent_to(reader, writer)
        assert (len(sent), len(set(sent))) == (4, 1)
        assert spent(store) == NANO


def test_a_system_without_randomness_is_refused(store, monkeypatch):
    def urandom(count):
        raise NotImplementedError

    monkeypatch.setattr(os, "urandom", urandom)
    assert refused(store, campaign(), "no random numbers", drawn=Words()) == 70
    assert spent(store) == 0


@pytest.fixture(scope="module")
def program():
    """The main function of the file that devices run."""
    return runpy.run_path(str(FILE))["main"]


@pytest.fixture
def run(tmp_path, monkeypatch, program, capsys):
    """Run the program in a folder with a campaign and a store: code, output and errors."""

    def words(*args):
        monkeypatch.setattr(sys, "argv", ["device.py", *args])
        try:
            code = program()
        except SystemExit as end:
            code = end.code
        return code, *capsys.readouterr()

    monkeypatch.chdir(tmp_path)
    Path("c.json").write_bytes(campaign_bytes())
    assert words("new", "--store", "s", "--cap", "2")[0] == 0
    return words


def reports(run, *words):
    code, out, err = run("answer", *words)
    assert (code, err) == (0, "")
    [line] = out.splitlines()
    return line


STORE = ("c.json", "--store", "s")


def test_every_point_gives_a_report_and_nothing_else(run):
    points = [("1", "1"), ("127", "37"), ("nan", "inf"), ("-inf", "-1e3")]
    for number, point in enumerate([*(("--at", *point) for point in points), ("--nowhere",)]):
        run("new", "--store", f"{number}", "--cap", "2")
        store = ("c.json", "--store", f"{number}")
        assert reports(run, *store, *point) == reports(run, *store, "--nowhere")


def test_every_answer_gives_a_report_and_nothing_else(run):
    for question, fields in (("numbers", number(["0", "9"])), ("options", option(["bus", "-x"]))):
        Path("q.json").write_bytes(campaign_bytes(**fields))
        for text in ("5", "-1", "-.5", "1e999", "nan", "", "bus", "-x", "--nowhere"):
            run("new", "--store", f"{question} {text}", "--cap", "2")
            reports(run, "q.json", "--store", f"{question} {text}", "--answer", text)


REFUSED = [
    (2, "answer", *STORE, "--at", "here", "1"),
    (2, "answer", *STORE),
    (2, "answer", *STORE, "--at", "1", "1", "--nowhere"),
    (2, "answer", *STORE, "--nowhere", "--ticket", "AB"),
    (2, "answer", *STORE, "--answer", "5"),
    (2, "answer", "missing.json", "--store", "s", "--nowhere"),
    (9, "answer", "c.json", "--store", "lost", "--nowhere"),
    (9, "answer", "c.json", "--store", "c.json", "--nowhere"),
    (9, "new", "--store", "s", "--cap", "2"),
    (6, "new", "--store", "no/folder", "--cap", "2"),
    (2, "new", "--store", "t", "--cap", "0"),
    (2, "new", "--store", "t", "--cap", "nan"),
    (9, "status", "--store", "lost"),
]


def test_refusals_are_a_line_and_a_code(run, subtests):
    before = Path("s").read_bytes()
    for code, *args in REFUSED:
        with subtests.test(" ".join(args)):
            ended, out, err = run(*args)
            assert (ended, out, err.count("error:")) == (code, "", 1)
            assert Path("s").read_bytes() == before
            assert not Path("t").exists()


def test_show_and_status(run):
    shown = run("show", "c.json")[1]
    assert "a report costs epsilon 1; this device answers once" in shown
    assert "group 0, 100.0% of the devices: 17 answers by hashing" in shown
    ticket = "0123456789abcdef" * 2
    assert json.loads(reports(run, *STORE, "--nowhere", "--ticket", ticket))["nonce"] == ticket
    assert run("status", "--store", "s") == (0, "spent epsilon 1 of 2\n", "")
    Path("w.json").write_bytes(campaign_bytes(**word()))
    shown = run("show", "w.json")[1]
    assert "asks for words of any kind" in shown
    assert "a report costs epsilon 1; all of this device 6.745595815" in shown
    for _ in range(2):
        run("new", "--store", "w", "--cap", "2")
        reports(run, "w.json", "--store", "w", "--answer", "-5 서울")
    run("new", "--store", "x", "--cap", "2")
    reports(run, "--answer", "x --answer", "w.json", "--store", "x")
    assert run("answer", "w.json", "--store", "w", "--answer")[0] == 2


@pytest.mark.deep
def test_the_program_runs_without_the_library(tmp_path):
    command = [sys.executable, "-I", str(FILE), "new", "--store", "s", "--cap", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "s").exists()
    source = FILE.read_text()
    assert len(source.splitlines()) <= 860
    imported = set(re.findall(r"^(?:from|import) (\w+)", source, re.M)) | {"fcntl"}
    assert imported <= sys.stdlib_module_names | {"__future__"}
