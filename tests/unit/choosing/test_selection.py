"""`select`: answers, and refusals that show no score."""

import numpy as np
import pytest

from psd.choosing import select
from psd.choosing import selection as module
from psd.errors import ParameterError

GOOD = {"epsilon": 1, "sensitivity": 1}


def test_the_arguments_reach_the_mechanism(monkeypatch):
    made = []

    class Mechanism:
        def __init__(self, **arguments):
            made.append(arguments)

        def sample(self):
            return np.array([2])

    monkeypatch.setattr(module, "PermuteAndFlip", Mechanism)
    assert select([4, 5, 6], epsilon="0.25", sensitivity=9, is_monotone=True) == 2
    assert select([4, 5, 6], epsilon=1, sensitivity=1) == 2
    assert [m["scores"].tolist() for m in made] == [[4, 5, 6]] * 2
    assert [(m["epsilon"], m["sensitivity"], m["is_monotone"]) for m in made] == [
        (250_000_000, 9, True),
        (10**9, 1, False),
    ]


@pytest.mark.parametrize(
    "scores", [[7], (1, 2), np.array([3, 4], np.uint8), np.array([2**63 - 1, -(2**63)])]
)
def test_lists_and_arrays_of_integers_are_scores(scores):
    assert select(scores, **GOOD) in range(len(scores))
    assert type(select(scores, **GOOD)) is int


@pytest.mark.parametrize("scores", [[], [[77, 78]], 77, [[77], [78, 79]], np.empty((0, 2), int)])
def test_no_list_is_refused(scores):
    with pytest.raises(ParameterError, match="one list of at least one number") as refused:
        select(scores, **GOOD)
    assert "77" not in str(refused.value)


@pytest.mark.parametrize(
    "scores", [[77.5], [True], ["77"], [None], [2**70], [float("nan")], np.array([2**63], "u8")]
)
def test_what_is_not_an_integer_is_refused(scores):
    with pytest.raises(ParameterError, match="integers of at most 64 bits") as refused:
        select(scores, **GOOD)
    assert "77" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("epsilon", value) for value in (0, -1, 1_001, "x", float("nan"), 1e-10)],
        *[("sensitivity", value) for value in (0, -1, 2**32 + 1, 1.5, True, "many")],
        *[("is_monotone", value) for value in (1, "yes", None)],
    ],
)
def test_arguments_out_of_range_are_refused(name, value):
    with pytest.raises(ParameterError, match=f"^{name} must"):
        select([1, 2], **{**GOOD, name: value})
