"""Running totals: one record more, in any step, costs at most what the totals were given.

The true counts that meet noise are recorded with the record and without it. For discrete Laplace
noise the loss of a count is its change over the scale; for discrete Gaussian noise the loss in rho
is the square of its change over twice sigma squared. Both are summed over all steps.
"""

import re
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest

import psd
from psd.apps.streams import drawing
from psd.decompositions.grid import Grid
from psd.decompositions.quadtree import Quadtree
from psd.ingest.tally import Tally
from psd.privacy.loss import NANO, Loss
from psd.privacy.unit import PrivacyUnit
from psd.publish.public_inputs import PublicInputs
from psd.release.post_processing import PostProcessing
from psd.space.domain import Domain
from psd.space.time_slices import TimeSlices
from support.requests import request_of
from support.streams import create, day_of

DELTA = Fraction(1, 10**6)
SLICES = TimeSlices.parse("day", "2026-01-01..2026-01-07")
DOMAIN = Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))


class Recorder:
    """A sampler that gives true counts, and keeps what it was asked."""

    def __init__(self, draws):
        self.draws = draws

    def draw(self, mechanism):
        self.draws.append(mechanism)
        return mechanism.true


def tally(records):
    """Tally of so many records in one cell of the corner."""
    cell, counts = np.zeros(min(records, 1), np.int32), np.full(min(records, 1), records)
    return Tally(columns=cell, rows=cell, counts=counts, contributions=1)


def draws_of(counter, method, records, skipped=()):
    """All that meets noise for the totals of a week."""
    draws, blocks, last = [], {}, -1
    request = request_of(domain=DOMAIN, epsilon=1, method=method, slices=SLICES, time="time")
    draw = drawing.SliceDraws(
        request=request,
        inputs=PublicInputs(post_processing=PostProcessing()),
        slices=SLICES,
        counter=counter,
        statement={},
        delta=DELTA,
    )
    for step in sorted(set(range(len(records))) - set(skipped)):
        with patch.object(drawing, "SecureSampler", lambda: Recorder(draws)):
            total = draw.draw_total(range(last + 1, step + 1), tally(records[step]), blocks)
        blocks = {**blocks, **total.blocks} if counter == "toeplitz" else total.blocks
        last = step
    return draws


def loss(with_one, without):
    """Sum of the losses of all counts: epsilon, or rho in parts of 1e-12."""
    total = Fraction(0)
    for one, other in zip(with_one, without, strict=True):
        change = np.abs(one.true - other.true).astype(object)
        if hasattr(one, "rho"):
            total += Fraction(int((change**2 * one.rho).sum()), one.squared_sensitivity)
        else:
            prices = np.broadcast_to(one.sensitivity, len(change)).tolist()
            total += sum(map(Fraction, (change * one.epsilon).tolist(), prices))
    return total


METHODS = {"grid": Grid(size=2), "quadtree": Quadtree(height=1)}
LIMITS = {"tree": NANO // 2, "toeplitz": Loss.gaussian(NANO // 2, DELTA).rho}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("counter", LIMITS)
def test_a_record_of_any_step_costs_no_more_than_the_totals_were_given(counter, name):
    method, before = METHODS[name], [3, 0, 2, 1, 0, 0, 4]
    without, losses, limit = draws_of(counter, method, before), [], LIMITS[counter]
    for step in range(len(SLICES)):
        records = [number + (day == step) for day, number in enumerate(before)]
        losses.append(loss(draws_of(counter, method, records), without))
    assert max(losses) <= limit
    # The first step is in a block of each level, and changes the longest column.
    assert losses[0] > limit * Fraction(999, 1000)


@pytest.mark.parametrize("counter", LIMITS)
def test_slices_that_are_left_out_change_no_loss(counter):
    records = [[number, 0, 1, 0, 0, 0, 2] for number in (1, 0)]
    runs = [draws_of(counter, METHODS["grid"], each, skipped=(1, 4)) for each in records]
    assert LIMITS[counter] * Fraction(999, 1000) < loss(*runs) <= LIMITS[counter]


def stated_times(text, slices):
    """Rho of a user of some slices over that of one, as a guarantee states it."""
    [power] = re.findall(r"a user of T slices has T(\^2|) rho", text)
    return slices**2 if power else slices


def test_a_user_of_several_slices_costs_no_more_than_the_totals_state(tmp_path):
    """The sums of `toeplitz` read all slices so far, so a user may change one many times."""
    unit = {"user": "user", "max_contributions": 1, "per": "user-slice"}
    stream = create(tmp_path, **unit, epsilon=1, delta="1e-6", totals=True, counter="toeplitz")
    stream.add(day_of(tmp_path, "2026-01-05", 1), "2026-01-05")
    stated = psd.load(tmp_path / "city.totals.psd.parquet").record.guarantee_text
    without = draws_of("toeplitz", METHODS["grid"], [0] * 7)
    for slices in (2, 4, 7):
        records = [int(day < slices) for day in range(7)]
        cost = loss(draws_of("toeplitz", METHODS["grid"], records), without)
        assert slices * LIMITS["toeplitz"] < cost
        for text in (stated, stream.status().guarantee):
            assert cost <= stated_times(text, slices) * LIMITS["toeplitz"]


def test_a_user_of_several_slices_that_are_drawn_one_by_one_costs_the_sum_of_them():
    text = PrivacyUnit(kind="user-slice", max_contributions=2).concentrated_text
    assert stated_times(text, 7) == 7
