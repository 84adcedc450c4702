"""The methods of the library with parameters that suit small lattices, and what they ask.

The checker itself, which records on one data set and replays on its neighbour, is `psd.testing`.
"""

from contextlib import contextmanager
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import psd
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import NANO
from psd.testing import (
    SCRIPTS,
    LeakError,
    RecordingSampler,
    ReplayingSampler,
    Script,
    compare_runs,
    run_method,
    small_domain,
    small_tally,
    transcript_loss,
)


def answers_of_the_first(patch):
    """Let every build have the answers of the first one; a way to begin one.

    A build that asks more, or less, than the first fails.
    """
    recorded, position = [], [0]

    def replaying(draw):
        def answer(*question):
            if position[0] == len(recorded):
                recorded.append(draw(*question))
            position[0] += 1
            return recorded[position[0] - 1]

        return answer

    patch.setattr(SecureSampler, "draw", replaying(SecureSampler.draw))

    @contextmanager
    def again():
        position[0], first = 0, len(recorded)
        yield
        assert position[0] == (first or len(recorded)), "not as many questions as of the first"

    return again


def largest_loss(
    build, first, others, *, scripts=SCRIPTS, compare=compare_runs, measure=transcript_loss, claim=1
):
    """Largest loss of one data set beside others; ``build`` makes a run of data and a sampler.

    Raises `LeakError` as `psd.testing.replay_loss`.
    """
    worst = Fraction(0)
    for script in scripts:
        recorder = RecordingSampler(script)
        made = build(first, recorder)
        for other in others:
            replayer = ReplayingSampler(recorder.draws)
            compare(made, build(other, replayer))
            worst = max(worst, measure(recorder.draws, replayer.draws))
    if worst > claim:
        raise LeakError(f"loss {worst} above the promised {claim}")
    return worst


def moved_loss(draws, others):
    """Sum of what each count moves over its scale, all in one direction."""
    total = Fraction(0)
    for a, b in zip(draws, others, strict=True):
        moved = abs(a.true - b.true).tolist()
        parts = zip(moved, a.loss.tolist(), a.sensitivity.tolist(), strict=True)
        total += sum((Fraction(m * e, NANO * s) for m, e, s in parts), Fraction(0))
    return total


# Settings with which each method is exercised on small lattices; a new method runs with its
# defaults until it is listed here.
SMALL_SETTINGS = {
    "adaptive-grid": ({}, {"size": "2", "first_share": "0.3"}),
    # Small signals, so that a few rows pay for more than one tier.
    "cascade": ({"signal": "1"}, {"signal": "1", "step_share": "0.5", "height": "3"}),
    "grid": ({}, {"size": "2"}),
    "hilbert-rtree": ({"order": "1"}, {"height": "1"}),
    "htree": ({}, {"size": "2"}),  # without a size, the scripts make it 1, 3 and 5
    # With this share, some of the small data sets look uniform to the grid and some do not.
    "kd-cell": ({"resolution": "4", "height": "3", "structure_share": "0.55"},),
    "kd-hybrid": ({"private_levels": "1"}, {"height": "3", "private_levels": "1"}),
    "kd-standard": ({}, {"height": "2"}),  # without a height, the scripts make it 1, 4 and 5
    "quadtree": (
        {"height": "2"},
        {"height": "2", "budget": "uniform"},
        {"height": "1", "budget": "leaf"},
        {"height": "1", "budget": "workload", "workload": "1 3"},
    ),
}


def small_cases() -> list:
    """Every registered method, small, as parameters of a test."""
    return [
        pytest.param(
            psd.decompositions.method(name, settings),
            id=",".join([name, *(f"{key}={value}" for key, value in settings.items())]),
        )
        for name in psd.methods()
        for settings in SMALL_SETTINGS.get(name, ({},))
    ]


def small_methods() -> list:
    """Every registered method, small."""
    return [case.values[0] for case in small_cases()]


def has_selections(method) -> bool:
    """Whether a method selects as well as counts."""
    recorder = RecordingSampler(SCRIPTS[1])
    run_method(method, small_tally(3, (0, 4)), small_domain(3), NANO, recorder)
    return any(call.kind == "select" for call in recorder.draws)


@cache
def is_adaptive(method) -> bool:
    """Whether counts of cells within the domain say which cells a method asks about next."""

    def boxes(factor):
        script = Script(
            "made up",
            lambda _, true: np.arange(len(true)) ** 2 * factor if len(true) > 1 else true + 40,
            lambda _, scores: 0,
            lambda _, biased: biased > 0,
        )
        run_of = run_method(
            method, small_tally(32, (0, 4)), small_domain(32), NANO, RecordingSampler(script)
        )
        return [question.boxes.tolist() for question in run_of[0].questions]

    return boxes(0) != boxes(1)
