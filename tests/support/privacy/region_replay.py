"""Replay and exact loss of builds over regions, on all small data sets of cell and region."""

import itertools
from fractions import Fraction
from functools import partial

import numpy as np

from psd.privacy.loss import NANO
from psd.testing import SCRIPTS, LeakError, compare_runs, run_method
from psd.testing.data import region_data_sets, region_keys, region_tally, small_domain
from support.privacy.replay import largest_loss, moved_loss


def run_regions(method, regions, keys, sampler, *, k=1, epsilon=NANO):
    """Build a method on the records at these pairs."""
    domain, tally = small_domain(4), region_tally(regions, keys, k)
    return run_method(method, tally, domain, epsilon, sampler, regions=regions)


def region_loss(method, regions, *, k=1, size=1, every=1):
    """Largest loss between data sets of at most ``size`` records and those with k more.

    The questions of both must be the same, about the same regions. Raises `LeakError` as
    `psd.testing.transcripts.replay_loss`.
    """
    worst, added = Fraction(0), region_keys(regions)
    users = list(itertools.combinations_with_replacement(added, k))
    for number, keys in enumerate(region_data_sets(regions, size)):
        others = [keys + user for user in users[number % every :: every]]
        build = partial(run_regions, method, regions, k=k)
        worst = max(worst, largest_loss(build, keys, others, compare=compare_questions))
    return worst


def compare_questions(first, second):
    """Check that two builds do the same, and ask about the same regions."""
    compare_runs(first, second)
    for a, b in zip(first.curator.questions, second.curator.questions, strict=True):
        if not np.array_equal(a.regions, b.regions):
            raise LeakError("questions about other regions than on the other data set")


def exact_signed_loss(method, regions, *, k=1):
    """Largest absolute sum of signed log-ratios over data sets, added users and all answers.

    Counts allow every answer, so each costs its change over its scale; the change of every count
    is in the same direction, up.
    """
    users = itertools.combinations_with_replacement(region_keys(regions), k)
    how = {"scripts": SCRIPTS[:1], "compare": compare_questions, "measure": moved_loss}
    return largest_loss(partial(run_regions, method, regions, k=k), (), users, **how)
