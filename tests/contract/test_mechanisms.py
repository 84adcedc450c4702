"""What holds for every mechanism: its draws have its law, and its law keeps to its cost.

A mechanism is found by the name of its file, so that a new one is tested without another test.
"""

import dataclasses

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from psd.accounting import PICO
from psd.mechanisms import mechanisms
from psd.mechanisms.base import Mechanism
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.loss import NANO
from psd.testing.transcripts import LeakError, RecordingSampler, ReplayingSampler
from support.goodness_of_fit import ALPHA, holds

DRAWS = 20_000
MECHANISMS = [pytest.param(kind, id=name) for name, kind in mechanisms().items()]
PUBLIC_FIELDS = "epsilon sensitivity numerator denominator rho squared_sensitivity"
IN_RHO = {"gaussian"}
"""Mechanisms whose cost is rho; that of the others is epsilon."""
PURE = [kind for kind in MECHANISMS if kind.id not in IN_RHO]
CONCENTRATED = [kind for kind in MECHANISMS if kind.id in IN_RHO]


def drawn(mechanism, number=DRAWS):
    """Answers of many draws, shape (number, n, ...)."""
    return np.array([mechanism.sample() for _ in range(number)])


def p_value(mechanism, answers):
    """Least p-value of the answers of each element, corrected for their number."""
    found = []
    for element in range(answers.shape[1]):
        _, first, seen = np.unique(
            answers[:, element], axis=0, return_index=True, return_counts=True
        )
        logs = [mechanism.log_probability(answers[number])[element] for number in first]
        expected = len(answers) * np.exp(logs)
        common = expected >= 5
        observed = np.append(seen[common], len(answers) - seen[common].sum())
        wanted = np.append(expected[common], len(answers) - expected[common].sum())
        if wanted[-1] < 5:
            observed, wanted = (np.append(a[:-2], a[-2:].sum()) for a in (observed, wanted))
        found.append(stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue)
    return min(found) * len(found)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_it_is_a_frozen_value_with_the_members_of_the_protocol(kind):
    members = {name for name in vars(Mechanism) if not name.startswith("_")}
    assert members <= set(dir(kind))
    first, _ = kind.neighbours()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(first, dataclasses.fields(first)[0].name, None)
    assert "object at" in repr(first), "a repr could show the private input"


@pytest.mark.parametrize("kind", MECHANISMS)
def test_answers_are_integers_or_truths_of_fresh_randomness(kind):
    first, _ = kind.neighbours()
    answer = first.sample()
    assert answer.shape[:1] == first.cost.shape
    assert answer.dtype in (np.int64, np.bool_)
    assert first.cost.dtype == np.int64
    assert len(np.unique(drawn(first, 100), axis=0)) > 1


@pytest.mark.deep
@pytest.mark.parametrize("kind", MECHANISMS)
def test_draws_have_the_law_of_the_log_probability(kind):
    for mechanism in kind.neighbours():
        assert holds(lambda mechanism=mechanism: p_value(mechanism, drawn(mechanism)))


@pytest.mark.deep
@pytest.mark.parametrize("kind", MECHANISMS)
def test_draws_of_a_neighbour_are_told_apart(kind):
    """The test above rejects answers of another input, so that it would see another law."""
    first, second = kind.neighbours()
    assert p_value(first, drawn(second)) < ALPHA


@pytest.mark.deep
@pytest.mark.parametrize("kind", PURE)
def test_no_answer_tells_more_than_its_cost(kind):
    first, second = kind.neighbours()
    assert all(np.array_equal(a, b) for a, b in zip(first.public, second.public, strict=True))
    worst = 0.0
    for answer in np.unique(np.concatenate([drawn(first, 2_000), drawn(second, 2_000)]), axis=0):
        ratio = first.log_probability(answer) - second.log_probability(answer)
        worst = max(worst, float(np.abs(ratio).sum()))
        assert (np.abs(ratio) <= first.cost / NANO + 1e-9).all()
    assert worst > 0


@pytest.mark.parametrize("kind", CONCENTRATED)
def test_divergences_are_at_most_the_cost_in_rho(kind):
    """Rényi divergences of several orders, summed over all answers that are not next to none."""
    first, second = kind.neighbours()
    assert all(np.array_equal(a, b) for a, b in zip(first.public, second.public, strict=True))
    answers = [np.full(len(first.cost), answer) for answer in range(-60, 61)]
    laws = [np.array([each.log_probability(a) for a in answers]) for each in (first, second)]
    assert np.exp(laws[0]).sum(axis=0) == pytest.approx(1)
    worst = 0.0
    for p, q in (laws, laws[::-1]):
        for order in (1.5, 2, 4, 8):
            divergence = logsumexp(order * p + (1 - order) * q, axis=0) / (order - 1)
            assert (divergence <= order * first.cost / PICO * (1 + 1e-9)).all()
            worst = max(worst, float((divergence / order).max()))
    assert worst == pytest.approx(first.cost.max() / PICO, rel=1e-3), "the neighbours use it up"


@pytest.mark.parametrize("kind", MECHANISMS)
def test_it_can_be_recorded_and_replayed(kind):
    first, second = kind.neighbours()
    recorder = RecordingSampler(SecureSampler())
    answer = recorder.draw(first)
    replayer = ReplayingSampler(recorder.draws)
    assert np.array_equal(replayer.draw(second), answer)
    ratio = second.log_probability(answer) - first.log_probability(answer)
    assert replayer.loss == pytest.approx(float(ratio.sum()))
    replayer.close()
    with pytest.raises(LeakError, match="more questions"):
        replayer.draw(second)


@pytest.mark.parametrize("kind", MECHANISMS)
def test_another_public_argument_is_another_question(kind):
    first, _ = kind.neighbours()
    others = [
        dataclasses.replace(first, **{field.name: 2 * getattr(first, field.name)})
        for field in dataclasses.fields(first)
        if field.name in PUBLIC_FIELDS.split()
    ]
    assert others
    for other in others:
        recorder = RecordingSampler(SecureSampler())
        recorder.draw(first)
        with pytest.raises(LeakError, match="another question"):
            ReplayingSampler(recorder.draws).draw(other)
