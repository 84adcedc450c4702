"""Replay and exact loss of builds over regions, on all small data sets of cell and region."""

import itertools
from fractions import Fraction

import numpy as np

from psd.privacy.epsilon import NANO
from psd.testing import SCRIPTS, LeakError, RecordingSampler, ReplayingSampler
from psd.testing.exact_loss import WalkingSampler
from psd.testing.regions import region_data_sets, region_keys, region_tally
from psd.testing.replay import compare_runs, run_method, transcript_loss
from psd.testing.small import small_domain

__all__ = ["LeakError", "region_loss", "run_regions"]


def run_regions(method, regions, keys, sampler, *, k=1, epsilon=NANO):
    """Build a method on the records at these pairs."""
    domain, tally = small_domain(4), region_tally(regions, keys, k)
    return run_method(method, tally, domain, epsilon, sampler, regions=regions)


def region_loss(method, regions, *, k=1, size=1, every=1, scripts=SCRIPTS):
    """Largest loss between data sets of at most ``size`` records and those with k more.

    The questions of both must be the same, about the same regions. Raises `LeakError` as
    `psd.testing.replay.replay_loss`.
    """
    worst, added = Fraction(0), region_keys(regions)
    users = list(itertools.combinations_with_replacement(added, k))
    for number, keys in enumerate(region_data_sets(regions, size)):
        for script in scripts:
            recorder = RecordingSampler(script)
            first = run_regions(method, regions, keys, recorder, k=k)
            for user in users[number % every :: every]:
                replayer = ReplayingSampler(recorder.draws)
                second = run_regions(method, regions, keys + user, replayer, k=k)
                compare_runs(first, second)
                compare_spans(first.curator, second.curator)
                worst = max(worst, transcript_loss(recorder.draws, replayer.draws))
    if worst > 1:
        raise LeakError(f"loss {worst} above epsilon")
    return worst


def compare_spans(curator, other):
    """Check that the questions of two builds are about the same regions."""
    for a, b in zip(curator.questions, other.questions, strict=True):
        if not np.array_equal(a.regions, b.regions):
            raise LeakError("questions about other regions than on the other data set")


def exact_signed_loss(method, regions, *, k=1, scripts=SCRIPTS[:1]):
    """Largest absolute sum of signed log-ratios over data sets, added users and all answers.

    Counts allow every answer, so each costs its change over its scale; the change of every count
    is in the same direction, up. The sampler is the one that walks through shapes.
    """
    worst = Fraction(0)
    users = itertools.combinations_with_replacement(region_keys(regions), k)
    for user in users:
        for script in scripts:
            walker = WalkingSampler(script, ())
            run_regions(method, regions, (), walker, k=k)
            replayer = ReplayingSampler(walker.draws)
            run_regions(method, regions, user, replayer, k=k)
            total = Fraction(0)
            for a, b in zip(walker.draws, replayer.draws, strict=True):
                change = (b.true - a.true).tolist()
                parts = zip(change, a.epsilon.tolist(), a.sensitivity.tolist(), strict=True)
                total += sum(Fraction(c * e, NANO * s) for c, e, s in parts)
            worst = max(worst, total)
    return worst
