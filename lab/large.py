"""Whether the published view spoils large queries: its errors over those of signed least squares.

    python lab/large.py [--data A,B] [--methods A,B] [--epsilons .1,1] [--runs 5]
        [--folder ../shared/data]

Every build is judged twice on the classes of 10 % of the area: with its own view, and with the
signed least-squares estimates of the same counts spread evenly in the leaves. The table has the
ratio of the two mean relative errors over all builds and its standard error (of ratios of means,
by linearisation). The bar is a ratio of at most 1.03.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from accuracy import BOUNDS, items

import psd
from psd.evaluation.evaluate import class_errors
from psd.evaluation.true_counts import PointRecorder, true_counts
from psd.evaluation.workload import Workload, draw_workload
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.query.boxes import box_totals
from psd.release.post_processing import PostProcessing

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from support.releases import changed

BAR = 1.03
SIZE = "10 %"


def signed_errors(release, truth):
    """Mean relative error per class of the signed least-squares estimates, spread evenly."""
    plain = changed(release, post_processing=PostProcessing())
    estimate = box_totals(plain.index, plain.estimates.signed, truth.queries.boxes)
    relative = np.abs(estimate - truth.true) / truth.base
    classes = dict.fromkeys(truth.queries.classes.tolist())
    return np.array([relative[truth.queries.classes == name].mean() for name in classes])


def ratio(view, signed):
    """Ratio of the means over the builds, and its standard error."""
    found = view.mean(axis=0) / signed.mean(axis=0)
    spread = (view - found * signed).std(axis=0, ddof=1) / np.sqrt(len(view))
    return found, spread / signed.mean(axis=0)


def prepared(path, domain):
    """Tally of a file, and the truth of its largest queries."""
    seen = PointRecorder(domain)
    counts = tally_batches(
        seen.record(read([path], Columns(x="lon", y="lat", user=None), domain)), domain
    )
    queries = draw_workload(*seen.points, domain.bounds)
    large = np.char.endswith(queries.classes, " " + SIZE)
    queries = Workload(boxes=queries.boxes[large], classes=queries.classes[large])
    return counts, true_counts(queries, seen.points, counts, domain, bounded=False)


def measured(counts, truth, domain, method, epsilon, runs):
    """Errors of the view and of signed least squares, one row per build."""
    found = []
    for _ in range(runs):
        release = draw_release(
            counts, domain, budget=Budget(parse_epsilon(epsilon)), method=method, unit=PrivacyUnit()
        )
        found.append((class_errors(release, truth), signed_errors(release, truth)))
    return np.array(found).transpose(1, 0, 2)


def parsed(arguments):
    """Options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--data", type=items, default=list(BOUNDS), help="data sets")
    parser.add_argument("--methods", type=items, default=list(psd.methods()))
    parser.add_argument("--epsilons", type=items, default=["0.1", "1"])
    parser.add_argument("--runs", type=int, default=5, help="builds of each, at least 2")
    parser.add_argument("--folder", type=Path, default=beside, help="where the data sets are")
    options = parser.parse_args(arguments)
    if options.runs < 2:
        parser.error("a standard error takes at least 2 runs")
    return options


def main():
    """Print the table."""
    options = parsed(sys.argv[1:])
    print(f"| data | epsilon | method | U {SIZE} | ± | D {SIZE} | ± | at most {BAR} |")
    print("|" + " --- |" * 8)
    for name in options.data:
        domain = psd.Domain(bounds=BOUNDS[name])
        counts, truth = prepared(options.folder / f"{name}.csv", domain)
        for epsilon in options.epsilons:
            for method in options.methods:
                errors = measured(counts, truth, domain, psd.method(method), epsilon, options.runs)
                found, spread = ratio(*errors)
                cells = " | ".join(f"{r:.3f} | {s:.3f}" for r, s in zip(found, spread, strict=True))
                kept = "yes" if (found <= BAR).all() else "no"
                print(f"| {name} | {epsilon} | {method} | {cells} | {kept} |", flush=True)


if __name__ == "__main__":
    main()
