"""Laws that are stated by p and q of rappor, and settings that a protocol does not have."""

import numpy as np
import pytest

from psd.apps.local.answer_design import design_numbers, design_options, design_words
from psd.apps.local.answer_tables import tabulate
from psd.apps.local.campaign_design import design
from psd.apps.local.campaigns import encode_campaign
from psd.apps.local.device import NANO, WINDOWS, Campaign
from psd.apps.local.protocols import list_protocols
from psd.errors import ParameterError
from support import seed_numbers as seeds
from support.local import all_rounds, collected, places
from support.local_regions import region_campaign

# Bits, hashes, flips of 128, p, q; epsilon of all reports, and of one.
GOLDEN = [
    (6, 2, 64, "0.5", "0.75", 4.394449, 1.074286),
    (4, 1, 64, "0.5", "0.75", 2.197225, 0.537143),
    (6, 2, 32, "0.35", "0.65", 7.783641, 1.831332),
    (8, 2, 96, "0.25", "0.75", 2.043302, 1.005258),
]
LAW = {"flips": 64, "p": "0.5", "q": "0.75"}


def one_hot(epsilon, settings, protocol="rappor"):
    return design_options(["a", "b"], epsilon, 9, protocol=protocol, settings=settings)


def of_places(epsilon, settings, protocol="rappor"):
    return design((0, 0, 8, 4), epsilon, 1000, rounds=1, protocol=protocol, settings=settings)


def of_words(epsilon, settings, protocol=None):
    return design_words(epsilon, 9, protocol=protocol, settings=settings)


def of_regions(epsilon, settings, protocol="rappor"):
    return region_campaign(epsilon=epsilon, settings=settings, protocol=protocol)


EVERY = [one_hot, of_places, of_words, of_regions]


def test_epsilon_follows_from_p_and_q(subtests):
    for bits, hashes, flips, p, q, forever, once in GOLDEN:
        with subtests.test(bits=bits, p=p):
            settings = {"bits": bits, "hashes": hashes, "flips": flips, "p": p, "q": q}
            one = of_words(None, settings)
            draw = one.groups[0].draw
            assert round(one.nano_epsilon / NANO, 6) == once
            assert round(draw.lifetime / NANO, 6) == forever
            rates = (flips / 128, float(p), float(q))
            assert (forever, once) == pytest.approx(
                seeds.rappor_formulas(hashes, *rates)[:2], abs=1e-6
            )
            assert one.nano_epsilon == draw.once
            stated = one.content["groups"][0]["protocol"]
            assert (stated["p"], stated["q"]) == (int(float(p) * NANO), int(float(q) * NANO))
            assert Campaign.parse(encode_campaign(one)) == one
    for make in EVERY:
        one = make(None, LAW)
        assert one.nano_epsilon == 537142933
        assert {group.draw.lifetime for group in one.groups} == {2197224578}
        assert make(None, {"flips": 64, "p": 0.5, "q": ".750"}) == one


def test_laws_that_are_refused(subtests):
    for settings, epsilon, told in [
        ({}, None, "epsilon must be given, or settings in its place: p, q and flips of protocol"),
        ({"flips": 9}, None, "epsilon must be given"),
        ({"p": "0.5", "flips": 64}, None, "given together, got no q"),
        ({"q": "0.5", "flips": 64}, None, "given together, got no p"),
        ({"p": "0.5", "q": "0.75"}, None, "given together, got no flips"),
        (LAW, 1, "p and q must be in place of epsilon"),
        (LAW | {"p": "0.75"}, None, "p must be below q, got 0.75 and 0.75"),
        (LAW | {"p": 0}, None, "p must be above 0 and below 1"),
        (LAW | {"q": 1}, None, "q must be above 0 and below 1"),
        (LAW | {"q": "0.1234567891"}, None, "at most nine decimals"),
        (LAW | {"q": "often"}, None, "q must be a decimal number"),
        (LAW | {"flips": 0}, None, "flips must be between 1 and 127"),
        (LAW | {"flips": "x"}, None, "flips must be an integer"),
        ({"truth": "0.7"}, None, "truth must be"),
    ]:
        for make in EVERY:
            with subtests.test(told, made=make.__name__), pytest.raises(ParameterError, match=told):
                make(epsilon, settings)
    for protocol in ("unary", None):
        with pytest.raises(ParameterError, match="with protocol rappor"):
            one_hot(None, LAW, protocol)
    with pytest.raises(ParameterError, match="truth must be of a campaign that asks for options"):
        of_places(None, {"truth": "0.7"}, "k-ary")


FIELDS = {
    "hashing": "modulus",
    "k-ary": "truth",
    "rappor": "encoding, flips, p, q",
    "subset": "size",
    "unary": "form",
    **{name: "window" if window else "none" for name, window in WINDOWS.items()},
}


def test_a_setting_that_a_protocol_does_not_have_names_those_that_it_has(subtests):
    assert FIELDS.keys() == set(list_protocols())
    for name, fields in FIELDS.items():
        makers = [one_hot, of_places, *([of_regions] if name == "rappor" else [])]
        if name in WINDOWS:
            makers = [lambda e, s, p: design_numbers(0, 9, e, 9, protocol=p, settings=s)]
        for make in makers:
            with (
                subtests.test(name, made=make.__name__),
                pytest.raises(ParameterError, match=f"got 'x'; {name} has {fields}$"),
            ):
                make(1, {"x": 1}, name)
    told = "rappor has bits, cohorts, encoding, flips, hashes, p, q$"
    with pytest.raises(ParameterError, match=told):
        of_words(1, {"x": 1})
    with pytest.raises(ParameterError, match="got 'name'; rappor has"):
        of_words(1, {"name": "k-ary"})


def test_rounds_keep_p_and_q():
    first = design((0, 0, 8, 4), None, 4000, rounds=2, protocol="rappor", settings=LAW)
    x, y = places(4000)
    campaigns, release = all_rounds(first, x, y)
    assert [one.nano_epsilon for one in campaigns] == [first.nano_epsilon] * 2
    draws = [one.groups[number].draw for number, one in enumerate(campaigns)]
    assert {(draw.p, draw.q, draw.flips) for draw in draws} == {(NANO // 2, 3 * NANO // 4, 64)}
    assert {(level.p, level.q) for level in release.record.local.levels} == {(11 / 16, 9 / 16)}


def test_options_by_p_and_q_are_tabulated(tmp_path):
    one = one_hot(None, {"flips": 8, "p": "0.02", "q": "0.5"})
    values = np.repeat(["a", "b", "c"], [6000, 3000, 1000])
    rows = tabulate(*collected(tmp_path, one, values.astype(object)))
    for row, count in zip(rows, (6000, 3000, 1000), strict=True):
        assert abs(row.estimate - count) < 6 * row.error
