"""Plans of local campaigns, against campaigns whose reports are drawn one by one."""

import numpy as np
import pytest

import psd
from psd.apps.evaluation.workload import draw_workload
from psd.apps.local.campaign_design import design
from psd.apps.local.protocols import protocol_of
from psd.apps.planning.local_plan import _draw_counts, draw_campaign
from psd.errors import ParameterError
from support.local import GRID, all_rounds, campaign, sum_inside
from support.seeded_system import seeded_system

BOUNDS = (0, 0, 8, 4)
DEVICES = 10_000


def people(seed=1):
    """Devices of which many are in a small part of the bounds."""
    generator = np.random.default_rng(seed)
    wide = generator.random(DEVICES) < 0.3
    x = np.where(wide, generator.uniform(0, 8, DEVICES), generator.normal(2.2, 0.3, DEVICES))
    y = np.where(wide, generator.uniform(0, 4, DEVICES), generator.normal(1.3, 0.2, DEVICES))
    return x, y


@pytest.mark.deep
@pytest.mark.slow
@pytest.mark.parametrize(
    ("rounds", "epsilon"),
    [
        (4, 1),
        (1, 4),
        *(pytest.param(*plan, marks=pytest.mark.nightly) for plan in ((1, 1), (4, 4))),
    ],
)
@seeded_system()
def test_drawn_counts_have_the_errors_of_real_reports(epsilon, rounds):
    """Mean errors of boxes over 12 campaigns of each kind, beside each other.

    All draws are seeded. Over 30 campaigns of each kind the mean logarithm of the errors of a
    campaign had a standard deviation of at most 0.106, so that 0.2 is 4.6 standard errors of the
    difference of two means of 12.
    """
    x, y = people()
    boxes = draw_workload(x, y, BOUNDS, per_class=60).boxes
    first, generator = design(BOUNDS, epsilon, DEVICES, rounds=rounds), np.random.default_rng(2)

    def errors(draw):
        off = [
            np.abs(draw().query(boxes, errors=False).arrays["estimate"] - sum_inside(x, y, boxes))
            for _ in range(12)
        ]
        return np.mean(np.reshape(off, (12, 8, -1)), axis=2)

    ones = np.ones(DEVICES, np.int64)
    drawn = errors(lambda: draw_campaign(first, x, y, ones, generator))
    real = errors(lambda: all_rounds(first, x, y)[1])
    assert abs(np.log(drawn).mean() - np.log(real).mean()) < 0.2
    assert np.abs(np.log(drawn.mean(axis=0) / real.mean(axis=0))).mean() < 0.25


@pytest.mark.parametrize(
    "protocol", [{"name": "hashing", "modulus": 3}, {"name": "subset", "size": 4}]
)
def test_drawn_counts_have_the_stated_mean_and_variance(protocol):
    """Chi-square of both moments of the estimate of a cell, by the variance of the protocol."""
    one = campaign(((1_000_000, GRID, protocol),), devices=1000)
    x, y = np.array([1.0, 7.0]), np.array([1.0, 3.0])
    devices, generator = np.array([400, 600]), np.random.default_rng(5)
    law = protocol_of(one.groups[0])
    p, q = float(law.p), float(law.q)
    cell, runs = one.answer_of(0, 1.0, 1.0), 2000
    answers = np.array([one.answer_of(0, a, b) for a, b in zip(x, y, strict=True)])
    support = np.array(
        [_draw_counts(one, 0, answers, devices, generator).support[cell] for _ in range(runs)]
    )
    shares = (support / 1000 - q) / (p - q)
    variance = float(law.variance(0)) + 0.4 * (1 - p - q) / (p - q)
    deviation = np.sqrt(variance / 1000)
    assert abs(shares.mean() - 0.4) < 4.5 * deviation / np.sqrt(runs)
    assert abs(shares.var() / deviation**2 - 1) < 4.5 * np.sqrt(2 / runs)


def small(**changes):
    options = {"domain": BOUNDS, "epsilon": [1], "density": ["clustered"], "runs": 1}
    return psd.apps.local.plan(**{"devices": [2000], **options, **changes})


@pytest.mark.deep
def test_a_row_for_each_number_of_devices_epsilon_and_rounds():
    calls = []
    options = {"devices": [2000, 20_000], "epsilon": ["1", "4"], "rounds": [1, 4]}
    table = small(**options, progress=lambda *numbers: calls.append(numbers)).table
    assert len(table) == 8
    assert calls == [(0, 2), (1, 2), (2, 2)]
    assert (table["factor"] > 1.5).all()
    error = table.set_index(["devices", "epsilon", "rounds"])["error"]
    assert error[20_000, "4", 4] < error[2000, "1", 4]
    table = small(points=people()).table
    assert table["density"].tolist() == ["points"]
    with pytest.raises(ParameterError, match="inside the bounds"):
        small(points=(np.full(3, 99.0), np.full(3, 99.0)))


def test_wrong_arguments_are_refused():
    for changes, words in [
        ({"devices": [999]}, "devices must be"),
        ({"devices": [5000, 5000]}, "devices"),
        ({"epsilon": [0]}, "epsilon"),
        ({"rounds": [5]}, "rounds must be 1, 2, 3, 4 or 7"),
        ({"rounds": []}, "rounds"),
        ({"density": ["flat"]}, "density must be one of"),
        ({"runs": 0}, "runs must be"),
    ]:
        with pytest.raises(ParameterError, match=words):
            small(**changes)
