"""What a campaign asks and costs."""

import pytest

from psd.errors import ParameterError
from psd.local.answer_design import design_options
from psd.local.campaign_design import design
from psd.local.campaigns import encode_campaign
from psd.local.description import describe
from psd.local.device import Words, draw_report
from psd.local.shuffling import shuffled_epsilon


@pytest.mark.parametrize("protocol", [None, "k-ary", "unary", "hashing", "rappor"])
def test_the_numbers_of_a_campaign(tmp_path, protocol):
    campaign = design((0, 0, 1, 1), 1, 10_000, rounds=1, protocol=protocol, title="t")
    (tmp_path / "c.json").write_bytes(encode_campaign(campaign))
    shown = describe(str(tmp_path / "c.json"))
    assert (shown.epsilon, shown.devices, shown.title) == ("1", 10_000, "t")
    assert sum(group.share for group in shown.groups) == pytest.approx(1)
    for number, group in enumerate(shown.groups):
        lines = [draw_report(campaign, number, i, Words()) for i in range(9)]
        assert max(map(len, lines)) + 1 <= group.report_bytes <= min(map(len, lines)) + 8
        assert 0 < group.q < group.p < 1


def test_rappor_has_an_epsilon_of_all_reports_of_a_device(tmp_path):
    shown = {}
    for protocol in ("unary", "rappor"):
        campaign = design_options(["a", "b"], 1, 1000, protocol=protocol)
        (tmp_path / "c.json").write_bytes(encode_campaign(campaign))
        about = describe(str(tmp_path / "c.json"))
        shown[protocol] = (about.epsilon, about.device_epsilon)
    assert shown == {"unary": ("1", "1"), "rappor": ("1", "3.964226396")}


def test_one_false_report_moves_a_cell_as_the_formulas_say(tmp_path):
    """Counts of one group of all devices: local.md, section H, at epsilon 1."""
    moved = {}
    for protocol in ("unary", "hashing", "k-ary"):
        campaign = design((0, 0, 1, 1), 1, 10**7, rounds=1, protocol=protocol)
        (tmp_path / "c.json").write_bytes(encode_campaign(campaign))
        group = describe(str(tmp_path / "c.json")).groups[3]
        assert group.answers == 1025
        moved[protocol] = group.false_report * group.share
    assert moved["unary"] == pytest.approx(3.16, abs=0.01)
    assert moved["hashing"] == pytest.approx(2.75, abs=0.02)  # with g = 3; 3.33 with 4
    assert moved["k-ary"] == pytest.approx(596, abs=1.5)


def test_shuffled_reports_of_each_group(tmp_path):
    path = tmp_path / "c.json"
    path.write_bytes(encode_campaign(design((0, 0, 1, 1), 1, 25_000, rounds=1)))
    shown = describe(str(path), shuffled=True, delta="1e-6")
    assert shown.delta == 1e-6
    for group in shown.groups:
        expected = shuffled_epsilon(1.0, int(25_000 * group.share), 1e-6)
        assert group.shuffled_epsilon == pytest.approx(expected, rel=1e-3)
        assert group.shuffled_epsilon < 0.2
    assert describe(str(path)).groups[0].shuffled_epsilon is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"shuffled": True, "delta": 1e-6, "tickets": True}, "without tickets"),
        ({"shuffled": True}, "delta must be a number above 0"),
        ({"shuffled": True, "delta": 1}, "delta must be a number above 0"),
        ({"delta": 1e-6}, "with shuffled alone"),
    ],
)
def test_shuffling_with_tickets_or_without_delta_is_refused(tmp_path, options, words):
    path = tmp_path / "c.json"
    path.write_bytes(encode_campaign(design((0, 0, 1, 1), 1, 25_000)))
    with pytest.raises(ParameterError, match=words):
        describe(str(path), **options)
