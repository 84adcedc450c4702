"""Tests of many random inputs: every seed that fails is named."""

import numpy as np


def for_seeds(number):
    """Make a test of a function of a generator: it is called with all seeds below a number."""

    def decorate(check):
        def test(subtests):
            for seed in range(number):
                with subtests.test(seed=seed):
                    check(np.random.default_rng(seed))

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate
