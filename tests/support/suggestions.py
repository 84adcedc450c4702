"""Releases, visits and samplers for tests of suggestions."""

import numpy as np
import pandas as pd

import psd
from psd.mechanisms.gaussian import GaussianMechanism
from support.privacy.samplers import ExactSampler

DOMAIN = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0), lattice=(40, 40))
CELLS = 10
PRICE = {"epsilon": "0.5", "delta": "1e-6"}
TRAIN = {"user": "id", "cells": CELLS, **PRICE}


def city_release(seed=0):
    """A release of counts that grow towards one corner."""
    counts = np.random.default_rng(seed).poisson(np.add.outer(np.arange(10), np.arange(10)).ravel())
    return psd.Release.from_counts(
        psd.decompositions.grid_tree(DOMAIN, 10), counts, 1.0, domain=DOMAIN
    )


def visits(people=60, seed=1):
    """Records of people who stay near a home, some with one record, and one with very many."""
    draw = np.random.default_rng(seed)
    sizes = np.append(draw.integers(1, 6, people - 1), 40)
    person = np.repeat(np.arange(people), sizes)
    home = draw.uniform((126.5, 37.1), (127.5, 37.9), (people, 2))[person]
    points = np.clip(home + draw.normal(0, 0.05, home.shape), (126.41, 37.01), (127.59, 37.99))
    return pd.DataFrame({"lon": points[:, 0], "lat": points[:, 1], "id": person.astype(str)})


class RecordedSums(ExactSampler):
    """Sums without noise; what was asked is noted."""

    def __init__(self):
        self.asked = []

    def draw(self, mechanism):
        if isinstance(mechanism, GaussianMechanism):
            self.asked.append(mechanism)
            return mechanism.true.copy()
        return super().draw(mechanism)


class GivenSums:
    """Answers questions about sums with numbers that were fixed before, whatever the sums are."""

    def __init__(self, seed=0):
        self.numbers = np.random.default_rng(seed)

    def draw(self, mechanism):
        return self.numbers.integers(-(2**22), 2**22, mechanism.true.size)
