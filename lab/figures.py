"""Figures of docs/privacy/how-we-test-privacy.md, in three minutes.

    python lab/figures.py

The tests are collected and their support is used, so it needs the extra `test`.
"""

import subprocess
import sys
from typing import Any

import numpy as np
from common import ROOT, study
from scipy import stats

import psd
from privacy.planted_bugs.registry import BUGS
from privacy.test_exact_loss import FEWER
from privacy.test_replay import SPACES, part
from psd.privacy.loss import NANO
from psd.testing import SCRIPTS, replay_loss
from support.goodness_of_fit import ALPHA, _edges, _survival, discrete_laplace_p_value
from support.privacy.exact_loss import worst_exact_loss, worst_loss_of_a_move
from support.privacy.replay import small_methods
from support.privacy.samplers import counts as noisy_counts

N, SCALE = 100_000, 10.0


def collected(marker):
    """Number of tests that pytest finds."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--collect-only", "-m", marker]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sum("::" in line for line in said.splitlines())


def chance_to_miss(factor):
    """Chance that one run of the chi-square test passes a scale that is off by a factor."""
    edges = _edges(N, SCALE)
    right, wrong = (
        -np.diff([1.0, *_survival(edges, scale), 0.0]) for scale in (SCALE, SCALE * factor)
    )
    noncentral = N * ((wrong - right) ** 2 / right).sum()
    limit = stats.chi2.isf(ALPHA, edges.size)
    return stats.ncx2.cdf(limit, edges.size, noncentral)


def replayed():
    """Worst losses of all small methods on the first of the spaces, and pairs in all."""
    space: Any = SPACES[0].values
    side, k, parts, *_ = space
    found = [replay_loss(method, side, k, every=part(method, parts)) for method in small_methods()]
    return [float(worst) for worst, _ in found], sum(pairs for _, pairs in found)


def rows():
    """Label and figure, line by line."""
    yield "tests of every run", f"{collected('not nightly and not spark'):,}"
    yield "tests of the nightly run", f"{collected('nightly'):,}"
    yield "planted bugs", f"{len(BUGS)}"
    losses, pairs = replayed()
    yield "replay, 3 x 3, records: settings of methods", f"{len(losses)}"
    yield "replay, 3 x 3, records: pairs of neighbours", f"{pairs:,}"
    yield "replay: worst loss at epsilon 1, least and most", f"{min(losses):.4f} {max(losses):.4f}"
    few = [method.values[0] for method in FEWER]
    exact = [worst_exact_loss(m, side=3, rows=1, k=1, scripts=SCRIPTS[:1]) for m in few]
    yield (
        "enumeration, 3 x 3, at most two rows: worst loss, least and most",
        f"{min(exact):.4f} {max(exact):.4f}",
    )
    move = worst_loss_of_a_move(psd.decompositions.Grid(size=2), side=3, rows=1)
    yield "enumeration, grid: worst loss of a row that moves", f"{move:.4f}"
    counts = noisy_counts(np.zeros(N, np.int64), np.full(N, NANO // 10), 1)
    yield (
        "noise of 100,000 counts, epsilon 0.1: p-value",
        f"{discrete_laplace_p_value(counts, 10):.2g}",
    )
    for factor in (0.7, 0.9, 1.1, 1.3):
        yield f"chance that a scale x {factor} passes once", f"{chance_to_miss(factor):.1g}"


def main():
    study(__doc__).parse_args()
    for label, figure in rows():
        print(f"{label:66} {figure}", flush=True)


if __name__ == "__main__":
    main()
