"""Values of records by record and replay: what is read, weighed, bounded and drawn, all together.

Records are read as a source gives them, so a value that is clamped too late, weighs too much, or
moves the weights of other records costs more than epsilon here.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from psd.decompositions import method
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.privacy.loss import NANO, Loss
from psd.privacy.unit import PrivacyUnit
from psd.privacy.values import WEIGHT, Value
from psd.publish.single_count import SingleCount
from psd.testing import RecordingSampler, ReplayingSampler, Script, small_domain
from psd.testing.transcripts import SCRIPTS, compare_runs, run_method, transcript_loss

SIDE = 4
VALUES = (Value("fare", 0, 60), Value("balance", -10, 10))
# Both ends, beyond both, between them, and a third, whose weight is exact.
NUMBERS = (-1e9, 0.0, 20.0, 59.9, 60.0, 1e12)
KEY = bytes(16)

RECORD = PrivacyUnit()
TWO = PrivacyUnit(kind="user", max_contributions=2)
USERS = PrivacyUnit(kind="user", weight=WEIGHT)

METHODS = {
    "quadtree": method("quadtree", {"height": "2"}),
    "grid": method("grid", {"size": "2"}),
    "kd-standard": method("kd-standard", {"height": "2"}),
    "cascade": method("cascade"),
    "ask": SingleCount(),
}


def tally_of(rows, unit, values):
    """Tally of rows of a user, a cell and a number, of which all values are made."""
    users, cells, numbers = zip(*rows, strict=True) if rows else ((), (), ())
    cells, numbers = np.array(cells, int), np.array(numbers, float)
    batch = Batch(
        x=cells % SIDE + 0.5,
        y=cells // SIDE + 0.5,
        user=pa.array(users, pa.string()) if unit.has_user else None,
        values=np.stack([numbers, -numbers], axis=1)[:, : len(values)],
    )
    return tally_batches([batch], small_domain(SIDE), unit=unit, key=KEY, values=values)


def worst_loss(rows, more, unit, values, how, loss=NANO):
    """Largest loss between builds with some rows and with more, over the scripts."""
    worst = Fraction(0)
    for script in SCRIPTS:
        recorder = RecordingSampler(script)
        first = run_method(how, tally_of(rows, unit, values), small_domain(SIDE), loss, recorder)
        replayer = ReplayingSampler(recorder.draws)
        tally = tally_of(rows + more, unit, values)
        compare_runs(first, run_method(how, tally, small_domain(SIDE), loss, replayer))
        worst = max(worst, transcript_loss(recorder.draws, replayer.draws))
    return worst


BEFORE = [("bob", 5, 12.5), *(("cid", cell, 3.2171 + cell) for cell in (5, 0, 9, 14, 2, 7))]


@pytest.mark.parametrize("values", [VALUES[:1], VALUES], ids=["one", "two"])
@pytest.mark.parametrize("name", METHODS)
def test_a_record_costs_epsilon_whatever_its_values_are(name, values):
    losses = [
        worst_loss(rows, [("ann", cell, number)], RECORD, values, METHODS[name])
        for rows, cell, number in product(([], BEFORE), (0, 5, 15), NUMBERS)
    ]
    assert max(losses) <= 1
    # Counts use the promise up; so the check would see a larger one.
    assert max(losses) > Fraction(85, 100)


@pytest.mark.parametrize("unit", [TWO, USERS], ids=["two", "users"])
@pytest.mark.parametrize("name", ["quadtree", "kd-standard"])
def test_a_user_costs_epsilon_wherever_the_records_are(name, unit):
    for cells, numbers in (((0, 0), (0, 60)), ((0, 15), (1e9, -5)), ((3, 5, 5), (7, 7, 30))):
        more = [("ann", cell, number) for cell, number in zip(cells, numbers, strict=True)]
        for rows in ([], BEFORE):
            assert worst_loss(rows, more, unit, VALUES[:1], METHODS[name]) <= 1


def test_a_record_costs_no_more_than_rho():
    """Discrete Gaussian noise on all sums: the squared distance over their variance."""
    loss = Loss.gaussian(NANO, Fraction(1, 10**6))
    for number in NUMBERS:
        recorder = RecordingSampler(SCRIPTS[0])
        how = METHODS["grid"]
        run_method(how, tally_of([], RECORD, VALUES), small_domain(SIDE), loss, recorder)
        other = RecordingSampler(SCRIPTS[0])
        tally = tally_of([("ann", 5, number)], RECORD, VALUES)
        run_method(how, tally, small_domain(SIDE), loss, other)
        spent = Fraction(0)
        for a, b in zip(recorder.draws, other.draws, strict=True):
            first, second = a.mechanism, b.mechanism
            change = (first.true - second.true).astype(object) ** 2
            # n^2 rho_c / S^2 of the proof, for each sum of the question.
            spent += sum(
                Fraction(int(c * rho), first.squared_sensitivity)
                for c, rho in zip(change, first.rho.tolist(), strict=True)
            )
        assert spent <= loss.rho
        assert spent > 0.4 * loss.rho


def test_weights_are_whole_and_no_larger_than_a_record():
    numbers = np.array([*NUMBERS, 0.1, 1 / 3, 59.999999999])
    for value in VALUES:
        weights = value.weights(numbers)
        assert weights.dtype == np.int64
        assert ((weights >= 0) & (weights <= WEIGHT)).all()
    for unit in (RECORD, TWO, USERS):
        tally = tally_of([*BEFORE, ("ann", 7, 0.1)], unit, VALUES)
        assert tally.values.dtype == np.int64
        assert (tally.values >= 0).all()
        assert (tally.values <= tally.record_weight * tally.counts[:, None]).all()


def test_the_noise_of_each_pair_is_that_of_a_whole_record():
    """A script that echoes shows sensitivities; each must be the change of the worst record."""
    echo = Script("echo", lambda number, true: true, lambda number, scores: 0)
    for values in (VALUES[:1], VALUES):
        recorder = RecordingSampler(echo)
        tally = tally_of(BEFORE, RECORD, values)
        run_method(METHODS["grid"], tally, small_domain(SIDE), NANO, recorder)
        [draw] = recorder.draws
        assert draw.mechanism.sensitivity == WEIGHT * len(values)
        assert len(draw.mechanism.true) == 2 * len(values) * 4
        assert (draw.mechanism.epsilon == NANO).all()
