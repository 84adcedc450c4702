"""Tables of words: which words there are, from real campaigns and from simulated counts."""

import csv
import io
from fractions import Fraction

import numpy as np
import pytest

from psd.apps.local.answer_design import design_options, design_words
from psd.apps.local.answer_tables import (
    MAX_WORDS,
    decode_words,
    encode_table,
    tabulate,
    tabulate_words,
)
from psd.apps.local.campaigns import encode_campaign
from psd.apps.local.device import NANO, RapporDraw
from psd.apps.local.protocols.rappor import Rappor
from psd.errors import InputDataError, ParameterError
from support.local import collected, support_of

WORDS = [f"w{i}" for i in range(60)]


def parts_of(folder, campaign, texts):
    return collected(folder, campaign, np.array(texts, object))


def test_words_of_real_reports_are_found_with_their_numbers(tmp_path):
    true = {"seoul": 9000, "부산": 6000, "": 3000, "jeju": 2000}
    campaign = design_words(4, 20_000, settings={"bits": 32, "cohorts": 8})
    texts = [text for text, count in true.items() for _ in range(count)]
    paths = parts_of(tmp_path, campaign, texts)
    rows = tabulate_words(*paths, ["jeju", "seoul", "부산", *WORDS])
    assert [row.word for row in rows[:3]] == ["jeju", "seoul", "부산"]
    assert rows[-1].word == "no word"
    for row in rows:
        count = true.get("" if row.word == "no word" else row.word, 0)
        assert abs(row.unbiased - count) < 6 * row.error
        assert row.estimate >= 0
        assert row.low < row.unbiased < row.high
    assert {row.word for row in rows if row.present} >= {"jeju", "seoul", "부산", "no word"}
    assert sum(row.present for row in rows) <= 5
    first = next(csv.DictReader(io.StringIO(encode_table(rows).decode())))
    names = ["word", "estimate", "unbiased", "error", "low", "high", "present"]
    assert (list(first), first["present"]) == (names, "true")


def simulated(protocol, counts, words, generator):
    """Table of the reports of devices in random cohorts, by the exact law of a bit."""
    draw, p, q = protocol.draw, float(protocol.p), float(protocol.q)
    table = np.zeros((draw.cohorts, draw.answers + 1), np.int64)
    parts = [generator.multinomial(n, np.full(draw.cohorts, 1 / draw.cohorts)) for n in counts]
    for cohort, devices in enumerate(np.array(parts).T):
        ones = np.zeros(draw.answers, np.int64)
        for word, count in zip(words, devices, strict=True):
            ones[list(draw.bits(word, cohort))] += count
        total = devices.sum()
        table[cohort, :-1] = generator.binomial(ones, p) + generator.binomial(total - ones, q)
        table[cohort, -1] = total
    return table


def zipf(words, used, devices):
    weights = np.where(np.arange(words) < used, 1 / (1 + np.arange(words)), 0)
    return np.floor(weights / weights.sum() * devices).astype(np.int64)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("nano", "hashes", "flips", "p", "q"),
    [(1_074_286_000, 2, 64, 0, 0), (4 * NANO, 1, 1, 0, 0), (1_074_286_000, 2, 64, 0.5, 0.75),
     (9 * NANO, 2, 1, 0.01, 0.5), (9 * NANO, 2, 2, 0.5, 0.99)],
    ids=["epsilon of the paper", "epsilon 4", "p and q of the paper", "few 1", "few 0"],
)  # fmt: skip
def test_errors_are_those_of_the_estimates(nano, hashes, flips, p, q):
    """As in the paper, least squares .0104 and non-negative .0069 at its epsilon; z of sd 1."""
    words = [f"w{i}" for i in range(100)]
    rates = {"p": int(p * NANO), "q": int(q * NANO)}
    protocol = Rappor(draw=RapporDraw(nano, 32, "bloom", flips, hashes, 16, **rates))
    counts = zipf(100, 50, 100_000)
    generator = np.random.default_rng(1)
    scores, wrong, false = [], [], 0
    for _ in range(20):
        decoded = decode_words(protocol, simulated(protocol, counts, words, generator), words)
        true = counts / counts.sum()
        scores.append((decoded.unbiased - true) / decoded.errors)
        wrong.append([decoded.unbiased - true, decoded.shares - true, decoded.errors])
        false += int((decoded.unbiased > 3.29 * decoded.errors)[50:].sum())
    plain, positive, stated = np.sqrt((np.array(wrong) ** 2).mean(axis=(0, 2)))
    assert 0.9 < np.std(scores) < 1.1
    assert abs(np.mean(scores)) < 0.15
    assert 0.9 * stated < plain < 1.1 * stated
    assert positive < (0.85 if nano < 9 * NANO else 0.95) * plain
    assert false <= 4
    if flips == 64:
        assert plain < 0.0104
        assert positive < 0.0070


@pytest.mark.parametrize("rates", [(0, 0), (NANO // 2, 3 * NANO // 4), (NANO // 100, NANO // 2)])
def test_errors_of_a_word_are_those_of_its_law(rates):
    """Words that share no bit, in one cohort: n times the variance of a share is exactly v(s)."""
    protocol = Rappor(draw=RapporDraw(2 * NANO, 8, "bloom", 16, 1, 1, *rates))
    words = list("abcdefgh")
    first = {tuple(protocol.draw.bits(word, 0)): word for word in words}
    words, devices = list(first.values()), 10**12
    shares = [0.5, 0.3, *[0.2 / (len(words) - 2)] * (len(words) - 2)]
    assert len(words) > 2
    table = np.full((1, 9), float(protocol.q) * devices)
    table[0, 8] = devices
    for word, share in zip(words, shares, strict=True):
        table[0, list(protocol.draw.bits(word, 0))] += (
            float(protocol.p - protocol.q) * share * devices
        )
    decoded = decode_words(protocol, table, words)
    assert decoded.unbiased == pytest.approx(shares)
    exact = [float(protocol.variance(Fraction(share))) for share in shares]
    assert decoded.errors**2 * devices == pytest.approx(exact)


@pytest.mark.parametrize("rates", [(0, 0), (NANO // 2, 3 * NANO // 4)])
def test_least_squares_are_unbiased_by_enumeration(rates):
    """Expected counts of every report of every word give exactly the shares."""
    words = ["a", "b", "c"]
    protocol = Rappor(draw=RapporDraw(2 * NANO, 4, "bloom", 16, 1, 2, *rates))
    shares = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    expected = np.zeros((2, 5), object)
    for word, share in zip(words, shares, strict=True):
        for report, chance in protocol.law(word):
            expected += share * chance * support_of(protocol, report).astype(object)
    table = np.array(expected * 12 * 10**15, np.float64)
    decoded = decode_words(protocol, table, words)
    assert decoded.unbiased == pytest.approx([float(share) for share in shares], abs=1e-9)
    assert decoded.shares == pytest.approx([float(share) for share in shares], abs=1e-9)
    protocol = Rappor(draw=RapporDraw(NANO, 2, "bloom", 31, 1, 2))
    bits = {}
    for number in range(40):
        key = tuple(tuple(protocol.draw.bits(f"w{number}", c)) for c in range(2))
        bits.setdefault(key, []).append(f"w{number}")
    twins = next(words for words in bits.values() if len(words) > 1)
    with pytest.raises(ParameterError, match="must differ in their bits"):
        decode_words(protocol, table_of(protocol), twins[:2])
    with pytest.raises(ParameterError, match="at most the bits of all cohorts with reports, 4"):
        decode_words(protocol, table_of(protocol), WORDS[:5])
    words = [f"w{i}" for i in range(80)]
    protocol = Rappor(draw=RapporDraw(4 * NANO, 32, "bloom", 1, 1, 16))
    table = simulated(protocol, zipf(80, 80, 10**6), words, np.random.default_rng(2))
    every, few = (decode_words(protocol, table, words[:n]) for n in (80, 5))
    assert few.errors.min() > 1.5 * every.errors.max()


def table_of(protocol):
    return simulated(protocol, [500], ["a"], np.random.default_rng(3))


def test_lists_of_words_that_are_refused(tmp_path, subtests):
    paths = parts_of(
        tmp_path, design_words(1, 100, settings={"bits": 32, "cohorts": 2}), ["a"] * 50
    )
    for words, level, told in [
        (["a", "b", "a"], 0.05, "stated once each"),
        (["a", ""], 0.05, "stated once each"),
        ([], 0.05, "1 to 4,096, got 0"),
        (list(map(str, range(MAX_WORDS + 1))), 0.05, "1 to 4,096, got 4,097"),
        (list(map(str, range(70))), 0.05, "at most the bits of all cohorts with reports, 64"),
        (["a"], 0, "level must be above 0"),
        (["a"], 1, "level must be above 0"),
    ]:
        with subtests.test(told, level=level), pytest.raises(ParameterError, match=told):
            tabulate_words(*paths, words, level=level)


def test_other_campaigns_and_files_are_refused(tmp_path):
    paths = parts_of(tmp_path, design_words(1, 100), ["a"] * 9)
    with pytest.raises(ParameterError, match="must ask for options or numbers, got words"):
        tabulate(*paths)
    (tmp_path / "c.json").write_bytes(encode_campaign(design_options(["a"], 1, 9)))
    with pytest.raises(ParameterError, match="must ask for words, got options"):
        tabulate_words(*paths, ["a"])
    (tmp_path / "none").mkdir()
    (tmp_path / "c.json").write_bytes(encode_campaign(design_words(1, 100)))
    with pytest.raises(InputDataError):
        tabulate_words(paths[0], str(tmp_path / "none"), ["a"])
    usual = design_words(1, 9).groups[0].draw
    assert (usual.answers, usual.hashes, usual.cohorts, usual.flips) == (128, 1, 16, 31)
    two = design_words(1, 9, settings={"hashes": 2}).groups[0].draw
    assert (two.hashes, two.flips) == (2, 69)
    for wrong in ({"hashes": 17}, {"hashes": "x"}, {"flips": 128}, {"gamma": 1}):
        with pytest.raises(ParameterError):
            design_words(1, 9, settings=wrong)
    for name in ("k-ary", "square-wave"):
        with pytest.raises(ParameterError, match="protocol must be of words"):
            design_words(1, 9, protocol=name)
    assert all(design_words(epsilon, 9).nano_epsilon for epsilon in ("0.001", "1", "11"))
