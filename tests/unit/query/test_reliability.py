"""Classes of estimates by their relative errors and intervals."""

import numpy as np

from psd.query.answer_table import (
    QUALITIES,
    Limits,
    judge_estimates,
    relative_text,
    relative_to,
    reliability_limits,
)
from support.trees import grid_release


def test_classes_begin_and_end_at_the_limits():
    classes = [
        (0.0, 1.0, "good"),
        (0.12, 1.0, "good"),
        (np.nextafter(0.12, 1), 1.0, "use with care"),
        (0.3, 1.0, "use with care"),
        (np.nextafter(0.3, 1), 1.0, "poor"),
        (np.inf, 0.0, "poor"),
        (0.05, 0.0, "poor"),
        (0.2, 0.0, "poor"),
    ]
    relative, lower, quality = zip(*classes, strict=True)
    judged = judge_estimates(np.array(relative), np.array(lower), reliability_limits(0.3))
    assert judged.quality.tolist() == list(quality)
    assert judged.reliable.tolist() == [name != "poor" for name in quality]
    assert [QUALITIES[rank] for rank in judged.rank] == list(quality)


def test_errors_relative_to_0_and_less_are_infinite_and_no_error_is_0():
    estimate, error = np.array([4.0, 0.0, -1.0, 0.0]), np.array([1.0, 1.0, 1.0, 0.0])
    assert relative_to(estimate, error).tolist() == [0.25, np.inf, np.inf, 0.0]


def test_limits_of_a_caller():
    for threshold, limits in (
        (0.3, (0.12, 0.3)),
        (0.1, (0.1, 0.1)),
        ((0.165, 0.333), (0.165, 0.333)),
        (1, (0.12, 1)),
    ):
        read = reliability_limits(threshold)
        assert (read.good, read.reliable) == limits
        words = " ".join(read.texts.values())
        assert all(f"{limit:g}" in words for limit in limits)


def test_an_interval_that_holds_0_makes_an_estimate_poor():
    release = grid_release([[20, 0], [0, 900]], "0.5")
    box = [(0, 0, 1, 1)]
    usual, sure = (
        release.query(box, confidence=level).table.iloc[0] for level in (0.95, 1 - 1e-12)
    )
    assert usual.lower > 0
    assert usual.quality == "use with care"
    assert sure.lower == 0
    assert sure.relative_error == usual.relative_error
    assert (sure.quality, sure.reliable) == ("poor", False)


def test_relative_errors_and_limits_are_texts_for_people():
    errors = (0.0014, 0.12345, 7.3125, 369714453.7, np.inf)
    texts = ["0.14%", "12.3%", "731%", "above 1,000%", "infinite"]
    assert [relative_text(error) for error in errors] == texts
    text = Limits(good=0.12, reliable=0.3).texts["reliable"]
    assert text == "relative error at most 0.3, and an interval above 0"
