"""What a campaign asks and costs."""

import pytest

from psd.apps.local.answer_design import design_options, design_words
from psd.apps.local.campaign_design import design
from psd.apps.local.campaigns import encode_campaign
from psd.apps.local.description import describe, shuffled_epsilon
from psd.apps.local.device import Words, draw_report, show_campaign
from psd.errors import ParameterError


@pytest.fixture
def shown(tmp_path):
    def about(campaign, **options):
        (tmp_path / "c.json").write_bytes(encode_campaign(campaign))
        return describe(str(tmp_path / "c.json"), **options)

    return about


def square(devices, **options):
    return design((0, 0, 1, 1), 1, devices, **{"rounds": 1, **options})


@pytest.mark.parametrize("protocol", [None, "k-ary", "unary", "hashing", "rappor"])
def test_the_numbers_of_a_campaign(shown, protocol):
    campaign = square(10_000, protocol=protocol, title="t")
    about = shown(campaign)
    assert (about.epsilon, about.devices, about.title) == ("1", 10_000, "t")
    assert sum(group.share for group in about.groups) == pytest.approx(1)
    for number, group in enumerate(about.groups):
        lines = [draw_report(campaign, number, i, Words()) for i in range(9)]
        assert max(map(len, lines)) + 1 <= group.report_bytes <= min(map(len, lines)) + 8
        assert 0 < group.q < group.p < 1


def test_one_false_report_moves_a_cell_as_the_formulas_say(shown):
    """Counts of one group of all devices: local.md, section H, at epsilon 1."""
    # hashing with g = 3; 3.33 with 4
    for protocol, moved, off in (
        ("unary", 3.16, 0.01),
        ("hashing", 2.75, 0.02),
        ("k-ary", 596, 1.5),
    ):
        group = shown(square(10**7, protocol=protocol)).groups[3]
        assert group.answers == 1025
        assert group.false_report * group.share == pytest.approx(moved, abs=off)
    campaign = square(25_000)
    about = shown(campaign, shuffled=True, delta="1e-6")
    assert about.delta == 1e-6
    for group in about.groups:
        expected = shuffled_epsilon(1.0, int(25_000 * group.share), 1e-6)
        assert group.shuffled_epsilon == pytest.approx(expected, rel=1e-3)
        assert group.shuffled_epsilon < 0.2
    assert shown(campaign).groups[0].shuffled_epsilon is None
    for options, words in [
        ({"shuffled": True, "delta": 1e-6, "tickets": True}, "without tickets"),
        ({"shuffled": True}, "delta must be a number above 0"),
        ({"shuffled": True, "delta": 1}, "delta must be a number above 0"),
        ({"delta": 1e-6}, "with shuffled alone"),
    ]:
        with pytest.raises(ParameterError, match=words):
            shown(campaign, **options)
    for protocol, lifetime in (("unary", "1"), ("rappor", "3.964226396")):
        about = shown(design_options(["a", "b"], 1, 1000, protocol=protocol))
        assert (about.epsilon, about.device_epsilon) == ("1", lifetime)


def test_p_and_q_are_shown_in_decimals_with_both_epsilons(shown):
    settings = {"hashes": 2, "flips": 64, "p": "0.50", "q": 0.75}
    campaign = design_words(None, 1000, settings=settings)
    about = shown(campaign)
    assert (about.epsilon, about.device_epsilon) == ("1.074285865", "4.394449155")
    assert about.groups[0].settings.endswith(
        "flips=64, bits=128, hashes=2, cohorts=16, p=0.5, q=0.75"
    )
    told = "a report costs epsilon 1.074285865; all of this device 4.394449155"
    assert told in show_campaign(campaign)
