"""Planted bugs of suggestions: a person in the file, sums without noise, and clipping too late."""

from __future__ import annotations

import dataclasses

import numpy as np

import psd.curator.person_sums
import psd.publish.suggestions
from privacy.planted_bugs.bug import planted, replaced
from psd.curator.clipping import STEP_BITS
from psd.curator.person_sums import PersonSums

TESTS = "tests/privacy/test_person_sums.py::"
FILE = TESTS + "test_the_file_is_a_function_of_the_noisy_sums"
CHANGE = TESTS + "test_a_person_changes_each_sum_by_at_most_one_part"

SHOWN = "personalised models whose shared file carries a person"


def with_people(change):
    """Weights changed by the people that they were learnt from."""
    original = psd.publish.suggestions.learn_weights

    def learn_weights(people, grid):
        return change(original(people, grid), people, grid)

    return replaced(psd.publish.suggestions, "learn_weights", learn_weights)


@planted(test=FILE, like=SHOWN)
def suggestion_with_a_correction():
    """The weights hold the correction of one person, by least squares on this person's records."""
    from psd.suggest.shared import differences

    def corrected(weights, people, grid):
        person = max(people._persons, key=len)
        if len(person) < 2:
            return weights
        rows = differences(grid, person)
        return weights + np.linalg.lstsq(rows, 1 - rows @ weights)[0] / 100

    return with_people(corrected)


@planted(test=FILE, like=SHOWN)
def suggestion_with_a_place():
    """The weight of density tells a place of one person in its last digits."""

    def placed(weights, people, grid):
        return weights + np.append(np.zeros(5), 1e-9 * people._persons[0][0])

    return with_people(placed)


@planted(test=FILE, like="ids that serve to find a model again")
def suggestion_with_an_id():
    """The file has a hash of the number of people where the id of a charge may be."""
    original = psd.publish.suggestions._draw_weights

    def draw_weights(grid, loss, request, counted, *others):
        weights = original(grid, loss, request, counted, *others)
        return dataclasses.replace(weights, charge=f"{len(counted.persons):08x}")

    return replaced(psd.publish.suggestions, "_draw_weights", draw_weights)


@planted(test=FILE, like="noise on the gradient side alone")
def suggestion_gramian_without_noise():
    """The Gramian is published as it is; only the right side gets noise."""
    original = PersonSums._noisy

    def noisy(self, total, rho):
        if total.shape[1] == 21:
            return total * 2.0**-STEP_BITS
        return original(self, total, rho)

    return replaced(PersonSums, "_noisy", noisy)


@planted(test=CHANGE + "[59-asked_for_weights]", like="clipping of sums, as of batches")
def suggestion_clipped_after_the_sum():
    """Parts are added as they are, and the sum is clipped for their number."""

    def unclipped(values):
        return np.trunc(values * 2**STEP_BITS).astype(np.int64)

    return replaced(psd.curator.person_sums, "clip_to_steps", unclipped)


@planted(test=CHANGE + "[0-asked_for_factors]", like="a bound per region and not per person")
def suggestion_clipped_by_region():
    """Each region of a person is clipped, and a person has several."""
    original = psd.curator.person_sums.clip_to_steps

    def by_row(values):
        return np.stack([original(row) for row in values]) if len(values) else original(values)

    return replaced(psd.curator.person_sums, "clip_to_steps", by_row)
