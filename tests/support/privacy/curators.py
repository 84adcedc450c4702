"""Curators of small data sets."""

from psd.curator.curator import Curator
from psd.privacy.budget import Budget
from psd.privacy.loss import NANO
from psd.testing import RecordingSampler, small_domain, small_tally


def small_curator(side=3, rows=(0,), *, k=1, budget=NANO, domain=None, sampler=None, **options):
    """Curator of records at lattice cells, and its sampler, which notes what it is asked."""
    sampler = RecordingSampler() if sampler is None else sampler
    tally, domain = small_tally(side, rows, k), domain or small_domain(side)
    return Curator(tally, domain, budget=Budget(budget), sampler=sampler, **options), sampler
