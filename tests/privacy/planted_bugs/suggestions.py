"""Planted bugs of suggestions: a person in the file, sums without noise, and clipping too late."""

import dataclasses

import numpy as np

from privacy.planted_bugs.bug import around, instead, planted
from psd.apps.suggest.models import differences
from psd.curator.clipping import STEP_BITS

TESTS = "tests/apps/suggest/test_person_sums.py::"
FILE = TESTS + "test_the_file_is_a_function_of_the_noisy_sums"
CHANGE = TESTS + "test_a_person_changes_each_sum_by_at_most_one_part"

SHOWN = "personalised models whose shared file carries a person"


@planted(test=FILE, like=SHOWN)
@around("psd.apps.suggest.training.learn_weights")
def suggestion_with_a_correction(original, people, grid):
    """The weights hold the correction of one person, by least squares on this person's records."""
    weights, person = original(people, grid), max(people._persons, key=len)
    if len(person) < 2:
        return weights
    rows = differences(grid, person)
    return weights + np.linalg.lstsq(rows, 1 - rows @ weights)[0] / 100


@planted(test=FILE, like=SHOWN)
@around("psd.apps.suggest.training.learn_weights")
def suggestion_with_a_place(original, people, grid):
    """The weight of density tells a place of one person in its last digits."""
    return original(people, grid) + np.append(np.zeros(5), 1e-9 * people._persons[0][0])


@planted(test=FILE, like="ids that serve to find a model again")
@around("psd.apps.suggest.training._draw_weights")
def suggestion_with_an_id(original, grid, loss, request, counted, *others):
    """The file has a hash of the number of people where the id of a charge may be."""
    weights = original(grid, loss, request, counted, *others)
    return dataclasses.replace(weights, charge=f"{len(counted.persons):08x}")


@planted(test=FILE, like="noise on the gradient side alone")
@around("psd.curator.person_sums.PersonSums._noisy")
def suggestion_gramian_without_noise(original, self, total, rho):
    """The Gramian is published as it is; only the right side gets noise."""
    if total.shape[1] == 21:
        return total * 2.0**-STEP_BITS
    return original(self, total, rho)


@planted(test=CHANGE + "[59-asked_for_weights]", like="clipping of sums, as of batches")
@instead("psd.curator.person_sums.clip_to_steps")
def suggestion_clipped_after_the_sum(values):
    """Parts are added as they are, and the sum is clipped for their number."""
    return np.trunc(values * 2**STEP_BITS).astype(np.int64)


@planted(test=CHANGE + "[0-asked_for_factors]", like="a bound per region and not per person")
@around("psd.curator.person_sums.clip_to_steps")
def suggestion_clipped_by_region(original, values):
    """Each region of a person is clipped, and a person has several."""
    return np.stack([original(row) for row in values]) if len(values) else original(values)
