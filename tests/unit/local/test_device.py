"""The device: cells, campaigns, reports, and the store."""

import hashlib
import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from psd.local import device
from psd.local.device import (
    NANO,
    Campaign,
    DeviceError,
    HashingDraw,
    Partition,
    Store,
    Words,
    answer_place,
    canonical_json,
    draw_report,
    find_cell,
    hash_codes,
)
from psd.space.domain import Domain
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


def test_vectors_of_codes_and_reports():
    assert hash_codes("campaign", 5, 2187) == [963, 1928, 2117, 1783, 956]
    draw, words = HashingDraw(NANO, 1024, 3, "campaign"), Listed(words_of(b"vectors"))
    reports = [draw.randomise(5, words) for _ in range(5)]
    assert reports == ["[168,2]", "[1269,1]", "[1377,1]", "[2027,0]", "[479,2]"]


# --------------------------------------------------------------------------------------- cells


@pytest.mark.parametrize(
    "bounds", [(126.4, 37.0, 127.6, 38.0), (-180, -90, 180, 90), (-1, -2, 3, 5)]
)
def test_cells_are_those_of_the_domain_bit_for_bit(bounds):
    domain = Domain(bounds=bounds)
    generator = np.random.default_rng(1)
    lines = generator.integers(0, 2**20 + 1, 3000)
    for axis in (0, 1):
        edges = domain.edges(axis, lines)
        low, high = bounds[axis], bounds[axis + 2]
        around = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
        around = np.concatenate([around, generator.uniform(low, high, 3000), [low, high]])
        around = around[(around >= low) & (around <= high)]
        expected = domain.axes[axis].find_cells(around)
        assert [find_cell(float(low), float(high), float(v)) for v in around] == expected.tolist()


def test_answers_are_the_cells_and_then_outside():
    one = campaign()
    centres = [(1 + 2 * column, 0.5 + row) for row in range(4) for column in range(4)]
    answers = [one.answer_of(0, x, y) for x, y in centres]
    assert [GRID[a] for a in answers] == [
        *("00", "01", "10", "11", "02", "03", "12", "13"),
        *("20", "21", "30", "31", "22", "23", "32", "33"),
    ]
    outside = [
        (NAN, 1),
        (1, NAN),
        (math.inf, 1),
        (-math.inf, 1),
        (8.001, 1),
        (1, -0.001),
        (37, 127),
    ]
    assert {one.answer_of(0, x, y) for x, y in outside} == {16}
    assert one.answer_of(0, 8.0, 4.0) == 15


def test_a_partition_of_unequal_cells():
    partition = Partition(("0", "10", "11", "12", "13", "2", "3"))
    half = 2**19
    corners = [(0, 0), (half, 0), (half + half // 2, 0), (2**20 - 1, half - 1), (0, half)]
    assert [partition.answer(*corner) for corner in corners] == [0, 1, 2, 4, 5]
    assert Partition(("",)).answer(5, 5) == 0


# ----------------------------------------------------------------------------------- campaigns


def refusal(raw):
    with pytest.raises(DeviceError) as caught:
        Campaign.parse(raw)
    assert caught.value.code == 2
    return str(caught.value)


BAD = {
    "digest": (lambda v: {**v, "title": "another"}, "does not match its digest"),
    "unknown field": (lambda v: {**v, "extra": 1}, "must have its fields"),
    "missing field": (
        lambda v: {k: x for k, x in v.items() if k != "title"},
        "must have its fields",
    ),
    "future version": (
        lambda v: {**v, "psd-campaign": 2},
        "version that this device does not know",
    ),
    "another file": (lambda v: {"psd": 1}, "must be a campaign of psd"),
    "a list": (lambda v: [v], "must be a campaign of psd"),
}


@pytest.mark.parametrize("name", BAD)
def test_campaigns_that_were_edited_are_refused(name):
    edit, words = BAD[name]
    assert words in refusal(canonical_json(edit(campaign_value())).encode())


def one_group(cells=GRID, protocol=HASHING, share=1_000_000):
    return {"groups": ((share, cells, protocol),)}


def number(ends, protocol, nano=NANO, *, words):
    fields = {"question": "numbers", "domain": None, "nano_epsilon": nano}
    return {**fields, **one_group(ends, protocol)}, words


def option(texts, *, words):
    return {"question": "options", "domain": None, **one_group(texts, KARY)}, words


BLOOM = {"name": "rappor", "encoding": "bloom", "flips": 40, "bits": 32, "hashes": 2, "cohorts": 8}
ONE_HOT = {"name": "rappor", "encoding": "one-hot", "flips": 40}


def word(cells=(), *, words="", **settings):
    fields = {"question": "words", "domain": None}
    return {**fields, **one_group(list(cells), {**BLOOM, **settings})}, words


def one_hot(*, words, **settings):
    return one_group(protocol={**ONE_HOT, **settings}), words


BAD_FIELDS = [
    ({"nano_epsilon": 0}, "nano_epsilon must be"),
    ({"nano_epsilon": 1000 * NANO + 1}, "nano_epsilon must be"),
    ({"nano_epsilon": True}, "nano_epsilon must be"),
    ({"devices": 0}, "devices must be"),
    ({"title": "a\nb"}, "title must be"),
    ({"question": "songs"}, "does not know its question"),
    ({"earlier": ["short"]}, "earlier must be"),
    ({"earlier": "A" * 22}, "earlier must be"),
    ({"domain": {"bounds": ["0", "0", "8", "4"], "crs": "x", "lattice": [8, 8]}}, "lattice must"),
    ({"domain": {"bounds": ["8", "0", "0", "4"], "crs": "", "lattice": [2**20] * 2}}, "be wide"),
    ({"domain": {"bounds": [0, 0, 8, 4], "crs": "x", "lattice": [2**20] * 2}}, "4 numbers in"),
    ({"domain": {"bounds": ["0", "0", "inf", "4"], "crs": "x", "lattice": [2**20] * 2}}, "bounds"),
    ({"domain": {"bounds": ["0", "0", "1e-320", "4"], "crs": "", "lattice": [2**20] * 2}}, "wide"),
    ({"question": "numbers"}, "domain must be null"),
    number(["0", "1"], {"name": "k-ary"}, words="does not have its protocol"),
    number(["0"], {"name": "duchi"}, words="range must be 2 numbers"),
    number(["0", "x"], {"name": "duchi"}, words="range must be 2 numbers"),
    number(["1", "0"], {"name": "duchi"}, words="range must be wide enough"),
    number(["0", "1"], {"name": "duchi", "window": 1}, words="must have its fields"),
    number(["0", "1"], {"name": "piecewise", "window": 0}, words="window must be"),
    number(["0", "1"], {"name": "piecewise", "window": 1025}, words="window must be"),
    number(["0", "1"], {"name": "staircase", "window": 0}, words="window must be"),
    number(["0", "1"], {"name": "staircase", "window": 1024}, words="window must be"),
    number(["0", "1"], {"name": "bounded-staircase", "window": 1023}, words="window must be"),
    number(["0", "1"], {"name": "duchi"}, 12 * NANO + 1, words="nano_epsilon of a number"),
    number(["0", "1"], {"name": "duchi"}, NANO // 1000 - 1, words="nano_epsilon of a number"),
    option(["a", "a"], words="each option must be stated once"),
    option(["a", ""], words="an option must be"),
    option(["a\n"], words="an option must be"),
    option([], words="number of answers"),
    word(["a"], words="number of answers must be an integer from 1 to 1"),
    word(name="k-ary", words="does not have its protocol"),
    word(encoding="one-hot", words="encoding must be spelled bloom"),
    word(flips=0, words="flips must be an integer from 1 to 127"),
    word(flips=128, words="flips must be an integer from 1 to 127"),
    word(flips=127, hashes=1, words="flips must be fewer, for its epsilon"),
    word(bits=1, words="bits must be an integer from 2 to 256"),
    word(bits=257, words="bits must be an integer from 2 to 256"),
    word(hashes=0, words="hashes must be an integer from 1 to 16"),
    word(hashes=17, words="hashes must be an integer from 1 to 16"),
    word(bits=8, hashes=9, words="hashes must be at most as many as bits"),
    word(cohorts=0, words="cohorts must be an integer from 1 to 1,024"),
    word(cohorts=1025, words="cohorts must be an integer from 1 to 1,024"),
    word(p=9, words="protocol must have its fields"),
    one_hot(encoding="bloom", words="encoding must be spelled one-hot"),
    one_hot(flips=0, words="flips must be an integer from 1 to 127"),
    one_hot(flips=128, words="flips must be an integer from 1 to 127"),
    one_hot(flips=126, words="flips must be fewer, for its epsilon"),
    one_hot(bits=32, words="protocol must have its fields"),
    ({"nano_epsilon": 4 * NANO, **one_hot(words="")[0]}, "flips must be fewer, for its epsilon"),
    ({"groups": ()}, "1 to 16 groups"),
    (one_group(share=999_999), "must add up to 1,000,000"),
    (one_group(cells=None, protocol=None), "a group must be asked"),
    (one_group(cells=["0", "1", "2"]), "must leave no gap"),
    (one_group(cells=["0", "2", "3"]), "must leave no gap"),
    (one_group(cells=["0", "1", "2", "3", "3"]), "not overlap"),
    (one_group(cells=["0", "00", "1", "2", "3"]), "not overlap"),
    (one_group(cells=["1", "0", "2", "3"]), "must leave no gap"),
    (one_group(cells=["4"]), "at most 20 digits"),
    (one_group(cells=["0" * 21]), "at most 20 digits"),
    (one_group(cells=[]), "number of answers must be"),
    (one_group(cells=[f"{i:09b}" for i in range(65_536)]), "number of answers must be"),
    (one_group(cells=[1]), "cells must be a list"),
    (one_group(protocol={"name": "laplace"}), "does not have its protocol"),
    (one_group(protocol={"name": ["k-ary"]}), "does not have its protocol"),
    (one_group(protocol={"name": "k-ary", "p": "1"}), "protocol must have its fields"),
    (one_group(protocol={"name": "hashing"}), "protocol must have its fields"),
    (one_group(protocol={"name": "hashing", "modulus": 4}), "must be a prime"),
    (one_group(protocol={"name": "hashing", "modulus": 1}), "modulus must be"),
    (one_group(protocol={"name": "hashing", "modulus": 4099}), "different reports"),
    (one_group(protocol={"name": "subset", "size": 0}), "size must be"),
    (one_group(protocol={"name": "subset", "size": 17}), "size must be"),
    (one_group(protocol={"name": "unary", "form": "other"}), "form must be"),
    ({"nano_epsilon": 1, **one_group(protocol={"name": "unary", "form": "symmetric"})}, "half of"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "words"), BAD_FIELDS, ids=range(len(BAD_FIELDS)))
def test_campaigns_with_wrong_fields_are_refused(fields, words):
    assert words in refusal(campaign_bytes(**fields))


def test_numbers_are_the_nearest_step_and_no_number_is_a_middle_one():
    protocol = {"name": "duchi"}
    one = campaign(**number(["-10", "10.46"], protocol, words="")[0])
    values = [-10, -9.991, -9.989, 10.46, 1e300, -math.inf, NAN, "0.23"]
    assert [one.answer_of(0, v) for v in values] == [0, 0, 1, 1023, 1023, 0, 512, 512]
    assert one.answer_of(0, "here") == one.answer_of(0, "12,5") == 512


def test_options_are_their_number_and_others_are_none_of_these():
    one = campaign(**option(["bus", "train"], words="")[0])
    assert [one.answer_of(0, text) for text in ("train", "bus", "", NAN, "Bus")] == [1, 0, 2, 2, 2]


def test_words_are_any_text_and_no_answer_is_an_empty_one():
    one = campaign(**word()[0])
    assert [one.answer_of(0, text) for text in ("seoul", "", NAN, "\ud800")] == [
        "seoul",
        "",
        "",
        "\ud800",
    ]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"\xff",
        b'{"psd-campaign":1,"psd-campaign":1}',
        b'{"psd-campaign":NaN}',
        b'{"psd-campaign":1.0}',
        b'{"psd-campaign":' + b"9" * 5000 + b"}",
        b"[" * 100_000,
    ],
)
def test_what_is_not_strict_json_is_refused(raw):
    assert "not strict JSON" in refusal(raw)


def test_a_campaign_states_no_probability_and_its_bytes_may_be_spaced():
    value = campaign_value()
    spaced = json.dumps(value, indent=2).encode()
    assert Campaign.parse(spaced) == Campaign.parse(canonical_json(value).encode())
    assert not {"p", "q", "truth", "threshold"} & set(re.findall(r'"(\w+)"', spaced.decode()))


def test_groups_are_drawn_by_their_shares():
    three = campaign(((500_000, GRID, KARY), (0, GRID, KARY), (500_000, None, None)))
    words = [0, 499_999, 500_000, 999_999]
    assert [three.draw_group(Listed([w])) for w in words] == [0, 0, 2, 2]


# --------------------------------------------------------------------------------------- store


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


def test_campaigns_add_up_to_the_cap(store):
    for number in range(2):
        assert answer_place(store, campaign(title=str(number)), 1, 1, Words())
    with pytest.raises(DeviceError, match="more epsilon than the cap") as caught:
        answer_place(store, campaign(title="2"), 1, 1, Broken())  # nothing is drawn
    assert caught.value.code == 4
    assert spent(store) == 2 * NANO


def test_a_campaign_above_the_cap_is_refused_before_anything_is_drawn(store):
    with pytest.raises(DeviceError, match="more epsilon than the cap"):
        answer_place(store, campaign(nano_epsilon=2 * NANO + 1), 1, 1, Broken())


@pytest.mark.parametrize("point", [(1, 1), (NAN, NAN), (100, 100), (math.inf, 0)])
def test_refusals_and_reports_have_one_form_for_all_points(store, point):
    report = answer_place(store, campaign(), *point, Words())
    assert re.fullmatch(
        r'\{"psd-report":1,"campaign":"[\w-]{22}","group":0,"nonce":"[0-9a-f]{32}",'
        r'"answer":\[\d+,[012]\]\}',
        report,
    )


def test_a_device_answers_in_its_group_only_and_once(store):
    first = campaign(((500_000, GRID, KARY), (500_000, None, None)))
    later = campaign(((500_000, None, None), (500_000, GRID, HASHING)), earlier=[first.digest])
    group_1 = Listed([500_000])
    assert answer_place(store, first, 1, 1, group_1) is None
    assert spent(store) == 0
    report = answer_place(store, later, 1, 1, Words())
    assert json.loads(report)["group"] == 1
    assert answer_place(store, first, 1, 1, Words()) == report
    assert spent(store) == NANO


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
        [kept] = entry["settled"].values()
        return kept


WORDS = [word()[0], {"question": "options", "domain": None, **one_group(["a", "b"], ONE_HOT)}]


@pytest.mark.parametrize("fields", WORDS, ids=["bloom", "one-hot"])
def test_asked_again_rappor_reports_the_first_answer_anew(large, fields):
    one = campaign(**fields)
    reports = [answer_place(large, one, "a", NAN, Words()) for _ in range(9)]
    kept = settled(large)
    reports += [answer_place(large, one, text, NAN, Words()) for text in ("b", "", NAN)]
    assert len(set(reports)) == 12
    assert settled(large) == kept
    # The reports tell the settled bits and nothing else: their words alone differ.
    listed = Listed([7] * 600)
    expected = draw_report(one, 0, kept, Listed([7] * 600))
    assert answer_place(large, one, "c", NAN, listed) == expected


def test_all_reports_of_an_answer_cost_no_more_than_its_settled_bits(large):
    one = campaign(**word()[0])
    lifetime = one.groups[0].draw.lifetime
    assert 6 * NANO < lifetime < 7 * NANO
    costs = []
    for number in range(9):
        assert answer_place(large, one, str(number), NAN, Words())
        costs.append(spent(large))
    assert costs == [min((number + 1) * NANO, lifetime) for number in range(9)]


@pytest.mark.parametrize("text", ["a", "b", NAN])
def test_further_reports_are_refused_by_the_cap_alone(store, text):
    one = campaign(**word()[0])
    for _ in range(2):
        assert answer_place(store, one, "a", NAN, Words())
    with pytest.raises(DeviceError, match="more epsilon than the cap"):
        answer_place(store, one, text, NAN, Broken())
    assert spent(store) == 2 * NANO


def test_settled_bits_follow_from_the_secret_of_the_store(large):
    """So a copy of a store, from before the answer, gives no second draw of them."""
    first, other = campaign(**word()[0]), campaign(**word()[0], title="other")
    answer_place(large, other, "seoul", NAN, Words())
    copy = Path(large).read_bytes()
    answer_place(large, first, "seoul", NAN, Words())
    with Store.locked(large) as opened:
        kept = {name: entry["settled"] for name, entry in opened.answers.items()}
    Path(large).write_bytes(copy)
    answer_place(large, first, "seoul", NAN, Words())
    with Store.locked(large) as opened:
        assert {name: entry["settled"] for name, entry in opened.answers.items()} == kept
        assert kept[other.series][other.digest] != kept[first.series][first.digest]
        assert re.fullmatch("[0-9a-f]{64}", opened.secret)


def test_a_later_round_with_other_flips_learns_nothing_of_the_settled_bits(large):
    first = campaign(**word()[0])
    report = answer_place(large, first, "seoul", NAN, Words())
    later = campaign(**word(flips=1)[0], earlier=[first.digest])
    assert answer_place(large, later, "seoul", NAN, Words()) == report
    assert spent(large) == NANO


@pytest.mark.parametrize("content", [b"", b"{}", b'{"psd-store":1}', None, b"\0" * 500])
def test_lost_and_damaged_stores_answer_nothing(store, content):
    if content is None:
        os.remove(store)
    else:
        Path(store).write_bytes(content)
    with pytest.raises(DeviceError, match=r"store is (missing|damaged)") as caught:
        answer_place(store, campaign(), 1, 1, Broken())
    assert caught.value.code == 9
    assert Path(store).exists() == (content is not None)


def test_a_store_that_was_cut_or_changed_answers_nothing(store):
    answer_place(store, campaign(), 1, 1, Words())
    raw = Path(store).read_bytes()
    for damaged in (raw[:-2], raw[: len(raw) // 2], raw.replace(b":2000000000", b":3000000000")):
        assert damaged != raw
        Path(store).write_bytes(damaged)
        with pytest.raises(DeviceError, match="store is damaged"):
            answer_place(store, campaign(title="b"), 1, 1, Words())


def test_an_existing_store_is_not_replaced(store):
    with pytest.raises(DeviceError, match="is not replaced"):
        Store.create(store, 5 * NANO)


def test_a_store_in_use_is_refused(store, monkeypatch):
    monkeypatch.setattr(device, "_WAIT", 0.05)
    with Store.locked(store), pytest.raises(DeviceError, match="in use"):
        answer_place(store, campaign(), 1, 1, Words())


def test_no_report_leaves_before_it_is_synced(store, monkeypatch):
    events = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: (events.append("fsync"), fsync(handle))[1])
    monkeypatch.setattr(os, "replace", lambda a, b: (events.append("replace"), replace(a, b))[1])
    assert answer_place(store, campaign(), 1, 1, Words())
    assert events == ["fsync", "replace", "fsync"]
    monkeypatch.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(DeviceError, match="store cannot be written") as caught:
        answer_place(store, campaign(title="b"), 1, 1, Words())
    assert caught.value.code == 6
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


KILLS = 60


@pytest.mark.parametrize(
    "kills", [KILLS, pytest.param(500, marks=pytest.mark.nightly)], ids=["some", "all"]
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
        os.close(writer)
        with open(reader) as lines:
            sent = lines.read().splitlines()
        if sent:
            left += 1
            with Store.locked(store) as opened:
                assert opened.answers[one.series]["report"] == sent[0]
        report = answer_place(store, one, 7, 3, Words())
        assert report == answer_place(store, one, 1, 1, Broken())
        assert sent in ([], [report])
        assert spent(store) == NANO
    assert 0 < left < kills


def test_two_processes_with_one_store_give_one_report(tmp_path):
    one = campaign()
    for number in range(10):
        store = str(tmp_path / f"{number}")
        Store.create(store, 10 * NANO)
        reader, writer = os.pipe()
        children = [answering(store, one, writer) for _ in range(4)]
        for child in children:
            os.waitpid(child, 0)
        os.close(writer)
        with open(reader) as lines:
            sent = lines.read().splitlines()
        assert len(sent) == 4
        assert len(set(sent)) == 1
        assert spent(store) == NANO


def test_a_system_without_randomness_is_refused(store, monkeypatch):
    def urandom(count):
        raise NotImplementedError

    monkeypatch.setattr(os, "urandom", urandom)
    with pytest.raises(DeviceError, match="no random numbers") as caught:
        answer_place(store, campaign(), 1, 1, Words())
    assert caught.value.code == 70
    assert spent(store) == 0


# -------------------------------------------------------------------------------- command line


def run(*args, cwd):
    return subprocess.run(
        [sys.executable, "-I", str(FILE), *args], cwd=cwd, capture_output=True, text=True
    )


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "c.json").write_bytes(campaign_bytes())
    assert run("new", "--store", "s", "--cap", "2", cwd=tmp_path).returncode == 0
    return tmp_path


@pytest.mark.parametrize(
    "point",
    [
        ("--at", "1", "1"),
        ("--at", "127", "37"),
        ("--at", "nan", "inf"),
        ("--at", "-inf", "-1e3"),
        ("--nowhere",),
    ],
)
def test_every_point_gives_a_report_and_nothing_else(folder, point):
    done = run("answer", "c.json", "--store", "s", *point, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1
    again = run("answer", "c.json", "--store", "s", "--nowhere", cwd=folder)
    assert again.stdout == done.stdout


@pytest.mark.parametrize("question", ["numbers", "options"])
@pytest.mark.parametrize("text", ["5", "-1", "-.5", "1e999", "nan", "", "bus", "-x", "--nowhere"])
def test_every_answer_gives_a_report_and_nothing_else(folder, question, text):
    fields = number(["0", "9"], {"name": "duchi"}, words="")[0]
    fields = fields if question == "numbers" else option(["bus", "-x"], words="")[0]
    (folder / "q.json").write_bytes(campaign_bytes(**fields))
    done = run("answer", "q.json", "--store", "s", "--answer", text, cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("answer", "c.json", "--store", "s", "--at", "here", "1"), 2),
        (("answer", "c.json", "--store", "s"), 2),
        (("answer", "c.json", "--store", "s", "--at", "1", "1", "--nowhere"), 2),
        (("answer", "c.json", "--store", "s", "--nowhere", "--ticket", "AB"), 2),
        (("answer", "c.json", "--store", "s", "--answer", "5"), 2),
        (("answer", "missing.json", "--store", "s", "--nowhere"), 2),
        (("answer", "c.json", "--store", "lost", "--nowhere"), 9),
        (("answer", "c.json", "--store", "c.json", "--nowhere"), 9),
        (("new", "--store", "s", "--cap", "2"), 9),
        (("new", "--store", "no/folder", "--cap", "2"), 6),
        (("new", "--store", "t", "--cap", "0"), 2),
        (("new", "--store", "t", "--cap", "nan"), 2),
        (("status", "--store", "lost"), 9),
    ],
)
def test_refusals_are_a_line_and_a_code(folder, args, code):
    before = (folder / "s").read_bytes()
    done = run(*args, cwd=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.count("error:") == 1
    assert (folder / "s").read_bytes() == before
    assert not (folder / "t").exists()


def test_show_states_both_epsilons_of_words(folder):
    (folder / "w.json").write_bytes(campaign_bytes(**word()[0]))
    shown = run("show", "w.json", cwd=folder).stdout
    assert "asks for words of any kind" in shown
    assert "a report costs epsilon 1; all of this device 6.745595815" in shown
    reports = [run("answer", "w.json", "--store", "s", "--answer", "-5 서울", cwd=folder)] * 2
    assert [done.returncode for done in reports] == [0, 0]


def test_show_and_status(folder):
    shown = run("show", "c.json", cwd=folder).stdout
    assert "a report costs epsilon 1; this device answers once" in shown
    assert "group 0, 100.0% of the devices: 17 answers by hashing" in shown
    ticket = "0123456789abcdef" * 2
    report = run("answer", "c.json", "--store", "s", "--nowhere", "--ticket", ticket, cwd=folder)
    assert json.loads(report.stdout)["nonce"] == ticket
    assert run("status", "--store", "s", cwd=folder).stdout == "spent epsilon 1 of 2\n"


def test_the_device_stands_alone_and_is_short():
    source = FILE.read_text()
    assert len(source.splitlines()) <= 800
    imported = set(re.findall(r"^(?:from|import) (\w+)", source, re.M)) | {"fcntl"}
    assert imported <= sys.stdlib_module_names | {"__future__"}
