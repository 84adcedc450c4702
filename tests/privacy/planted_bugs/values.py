"""Planted bugs of values: weights, bounds, noise, and what a value must not decide."""

import secrets
from dataclasses import replace
from fractions import Fraction

import numpy as np

from privacy.planted_bugs.bug import around, instead, planted
from psd.mechanisms.sampler import count_mechanism
from psd.privacy.values import WEIGHT

TESTS = "tests/privacy/test_values.py::"
RECORD = TESTS + "test_a_record_costs_epsilon_whatever_its_values_are"
USERS = TESTS + "test_a_user_costs_epsilon_wherever_the_records_are[quadtree-users]"
WEIGHTS = TESTS + "test_weights_are_whole_and_no_larger_than_a_record"


@planted(test=RECORD + "[grid-one]", like="noise for half of what a record changes")
@around("psd.curator.curator._noise_of_sums")
def noise_of_half_a_record(original, noise, weight, values):
    """The sums have the noise of one weight, M / 2, though a record changes both."""
    return original(noise, weight // 2, values)


@planted(test=RECORD + "[quadtree-two]", like="a budget that is divided by too few parts")
@around("psd.curator.curator._noise_of_sums")
def noise_of_one_value_for_all(original, noise, weight, values):
    """Several values have the noise of one, so that each costs all of epsilon."""
    return original(noise, weight, 1)


@planted(test=RECORD + "[grid-one]", like="bounds that are applied too late")
@around("psd.privacy.values.Value.weights")
def clamped_after_the_sum(original, value, values):
    """A value beyond its bounds weighs more than a record until the sum is clamped."""
    return np.floor((values - value.lower) / value.width * WEIGHT).astype(np.int64)


@planted(test=WEIGHTS, like="floats where true data is touched")
@instead("psd.privacy.values.Value.weights")
def weights_with_fractions(value, values):
    """Weights are floats, so that sums and their noise are not exact."""
    share = np.clip(values, value.lower, value.upper) - value.lower
    return share / value.width * WEIGHT


@planted(test=RECORD + "[grid-one]", like="two questions for the price of one")
@around("psd.curator.curator.Curator.count")
def counts_beside_the_sums(original, curator, cells, loss):
    """Counts are drawn beside the sums, each with all of what was charged once."""
    true = curator._layers[cells.layer].points.count(cells.nodes)
    amounts = np.broadcast_to(np.asarray(loss, np.int64), true.shape).copy()
    plain = replace(curator.noise, factor=Fraction(1))
    curator._sampler.draw(count_mechanism(plain, true, amounts))
    return original(curator, cells, loss)


@planted(test=USERS, like="randomness that is not a function of the own record")
@around("psd.ingest.tally_builder.round_weights")
def rounding_drawn_anew(original, weights, values, salt, cells, time):
    """The weights of users are rounded at random, so that those of all others move as well."""
    noise = np.array([secrets.randbelow(WEIGHT) for _ in weights], np.int64)
    return (weights[:, None] * values + noise[:, None]) // WEIGHT


@planted(test=RECORD + "[quadtree-one]", like="a shape that follows from the data")
@around("psd.decompositions.quadtree.Quadtree.build")
def cuts_where_values_are_high(original, quadtree, curator):
    """Cells are divided where the sum of a value is large, which nobody paid for."""
    cells = curator.root()
    curator.count(cells, curator.loss // 2)
    cells = curator.cut(cells, x=cells.middle(0), y=cells.middle(1))
    sums = curator._layers[cells.layer].points.values[0].count(cells.nodes)
    curator.count(cells[sums > 0], curator.loss // 4)
    return curator.tree()


@planted(test=RECORD + "[grid-one]", like="bounds from the data")
@instead("psd.ingest.tally_builder.value_weights")
def value_bounds_of_the_data(values, numbers):
    """A value is placed between the smallest and the largest one that occur."""
    weights = np.zeros(numbers.shape, np.int64)
    for column in range(len(values)):
        given = numbers[:, column]
        low, width = given.min(initial=0), np.ptp(given) if len(given) else 1.0
        weights[:, column] = np.floor((given - low) / (width or 1.0) * WEIGHT)
    return weights


@planted(test=RECORD + "[ask-one]", like="two questions for the price of one")
@around("psd.publish.single_count.SingleCount.build")
def ask_draws_the_sum_again(original, method, curator):
    """A single answer draws its sum beside the mean, with all of what was charged once."""
    [sums] = curator._tally.values.sum(axis=0, keepdims=True)
    loss = np.full(len(sums), curator.loss)
    curator._sampler.draw(count_mechanism(replace(curator.noise, factor=Fraction(1)), sums, loss))
    return original(method, curator)
