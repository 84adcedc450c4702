"""Campaigns that are designed from epsilon and the number of devices."""

from itertools import pairwise

import pytest

from psd.apps.local.campaign_design import design, grid_level, sigma, split_shares
from psd.apps.local.campaigns import encode_campaign, load_campaign
from psd.apps.local.device import NANO, SHARES, Campaign
from psd.errors import DomainError, ParameterError

BOUNDS = (126.4, 37, 127.6, 38)
LEVELS = [(1, 1000, 3), (1, 10_000, 3), (1, 100_000, 3), (1, 10**6, 4), (2, 10**6, 5),
          (4, 10**6, 6), (4, 10**12, 7)]  # fmt: skip


@pytest.mark.parametrize(
    "levels", [LEVELS[:-1], pytest.param(LEVELS[-1:], marks=pytest.mark.deep)], ids=len
)
def test_levels_of_one_round_follow_from_epsilon_and_devices(levels):
    for epsilon, devices, finest in levels:
        groups = design(BOUNDS, epsilon, devices, rounds=1).groups
        cells = [len(group.partition.cells) for group in groups]
        assert cells == [4**level for level in range(2, finest + 1)]
        assert sum(g.share for g in groups) == SHARES
        ratios = [b.share / a.share for a, b in pairwise(groups[1:])]
        assert ratios == pytest.approx([1.5] * len(ratios), rel=1e-4)
    assert sigma(NANO, 1) ** 2 == pytest.approx(3.682694, rel=1e-6)
    assert grid_level(1.5, sigma(NANO, 10**6), 3, 7) == 4
    assert sum(split_shares([1, 1, 1])) == SHARES


def test_a_campaign_is_written_and_read_by_the_device(tmp_path):
    campaign = design(BOUNDS, "0.5", 5000, title="buses", crs="EPSG:4326")
    (tmp_path / "c.json").write_bytes(encode_campaign(campaign))
    assert load_campaign(str(tmp_path / "c.json")) == campaign
    assert Campaign.load(str(tmp_path / "c.json")) == campaign
    assert (campaign.bounds, campaign.crs) == ((126.4, 37.0, 127.6, 38.0), "EPSG:4326")
    assert campaign.nano_epsilon == NANO // 2
    assert campaign.earlier == ()
    for name in ("k-ary", "unary", "subset", "hashing"):
        assert set(protocols(1, 1000, protocol=name)) == {name}
    assert protocols(4, 10**6) == ["subset"] * 2 + ["hashing"] * 3


def protocols(*arguments, **options):
    return [group.protocol for group in design(BOUNDS, *arguments, rounds=1, **options).groups]


def test_wrong_parameters_are_refused(subtests):
    for changes, words in [
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"epsilon": 1001}, "epsilon must be at most"),
        ({"devices": 0}, "devices must be between"),
        ({"devices": 1.5}, "devices must be an integer"),
        ({"rounds": 5}, "rounds must be 1, 2, 3, 4 or 7"),
        ({"rounds": 0}, "rounds must be"),
        ({"protocol": "laplace"}, "protocol must be one of"),
        ({"title": "a\nb"}, "title must be a printable text"),
        ({"protocol": "unary", "devices": 10**12, "epsilon": 4}, "at most 4,096 answers"),
    ]:
        arguments = {"bounds": BOUNDS, "epsilon": 1, "devices": 1000, "rounds": 1, **changes}
        with subtests.test(str(changes)), pytest.raises(ParameterError, match=words):
            design(**arguments)
    for bounds in ((0, 0, 1), (1, 0, 0, 1), (0, 0, 0, 1), (0, 0, 400, 1)):
        with subtests.test(str(bounds)), pytest.raises(DomainError):
            design(bounds, 1, 1000)
