"""Randomness under control: bytes from a tape, and every path of a sampler with its weight."""

import math
import os

import numpy as np


class Tape:
    """Stands for `os.urandom`: gives the words it holds, one after the other, and no more."""

    def __init__(self, monkeypatch, *words):
        self.left = np.array(words, dtype=np.uint64).tobytes()
        monkeypatch.setattr(os, "urandom", self.read)

    def read(self, size):
        assert size <= len(self.left), "more randomness was asked for than expected"
        taken, self.left = self.left[:size], self.left[size:]
        return taken


class Branch(Exception):
    """A choice past the end of the script; carries the weights of its outcomes."""

    def __init__(self, weights):
        super().__init__()
        self.weights = weights


class Script:
    """Replaces the random functions by choices made beforehand, for arrays of one element."""

    def __init__(self, choices):
        self.choices = list(choices)

    def choose(self, weights):
        if not self.choices:
            raise Branch(weights)
        return self.choices.pop(0)

    def uniform_below(self, bounds):
        if bounds.size == 0 or bounds[0] == 1:
            return np.zeros(bounds.size, dtype=np.int64)
        return np.array([self.choose([1 / int(bounds[0])] * int(bounds[0]))])

    def geometric(self, q, size):
        """Draw V with P(V >= k) = q**k; what lies beyond 40 factors of e is left out."""
        if size == 0:
            return np.zeros(0, dtype=np.int64)
        count = math.ceil(40 / -math.log(q))
        return np.array([self.choose([(1 - q) * q**k for k in range(count)])])

    def unit_geometric(self, size):
        return self.geometric(math.exp(-1), size)

    def bernoulli_exp(self, numerators, denominators):
        true = math.exp(-int(numerators[0]) / int(denominators[0]))
        return np.array([bool(self.choose([1 - true, true]))])

    def bits(self, size):
        return np.array([bool(self.choose([0.5, 0.5]))] * size)


def enumerate_paths(run, smallest=1e-13):
    """Yield (outcome, weight) for every path of run(script) that weighs at least `smallest`."""
    stack = [((), 1.0)]
    while stack:
        choices, weight = stack.pop()
        try:
            yield run(Script(choices)), weight
        except Branch as branch:
            for choice, part in enumerate(branch.weights):
                if weight * part >= smallest:
                    stack.append(((*choices, choice), weight * part))
