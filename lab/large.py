"""Whether the published view spoils large queries: its errors over those of signed least squares.

    python lab/large.py [--methods A,B] [--epsilons .1,1] [--runs 5] [--data FOLDER] [--sets A,B]

Every build is judged twice on the classes of 10 % of the area: with its own view, and with the
signed least-squares estimates of the same counts spread evenly in the leaves. The table has the
ratio of the two mean relative errors over all builds and its standard error (of ratios of means,
by linearisation). The bar is a ratio of at most 1.03.
"""

import numpy as np
from common import draw, means_by_class, study, write_table
from data_sets import add_sets, chosen_sets

import psd
from psd.apps.evaluation.true_errors import class_errors
from psd.apps.evaluation.workload import Workload, draw_workload
from psd.query.boxes import box_totals
from psd.release.post_processing import PostProcessing
from support.releases import changed

BAR, SIZE = 1.03, "10 %"


def large_queries(x, y, bounds):
    """The classes of the largest boxes."""
    queries = draw_workload(x, y, bounds)
    large = np.char.endswith(queries.classes, " " + SIZE)
    return Workload(boxes=queries.boxes[large], classes=queries.classes[large])


def signed_errors(release, truth):
    """Mean relative error per class of the signed least-squares estimates, spread evenly."""
    plain = changed(release, post_processing=PostProcessing())
    estimate = box_totals(plain.index, plain.index.fit.estimates.signed, truth.queries.boxes)
    return means_by_class(truth.queries.classes, np.abs(estimate - truth.true) / truth.base)


def ratio(view, signed):
    """Ratio of the means over the builds, and its standard error."""
    found = view.mean(axis=0) / signed.mean(axis=0)
    spread = (view - found * signed).std(axis=0, ddof=1) / np.sqrt(len(view))
    return found, spread / signed.mean(axis=0)


def rows(options):
    """One row per data set, epsilon and method."""
    for one in chosen_sets(options):
        truth = one.truth(large_queries)
        for epsilon in options.epsilons:
            for method in options.methods:
                errors = []
                for _ in range(options.runs):
                    release = draw(truth.counts, one.domain, method, epsilon)
                    errors.append((class_errors(release, truth), signed_errors(release, truth)))
                found, spread = ratio(*np.array(errors).transpose(1, 0, 2))
                cells = (f"{r:.3f} | {s:.3f}" for r, s in zip(found, spread, strict=True))
                yield (one.name, epsilon, method, *cells, "yes" if (found <= BAR).all() else "no")


def main() -> None:
    parser = study(__doc__, methods=",".join(psd.methods()), epsilons="0.1,1", runs=5)
    add_sets(parser)
    options = parser.parse_args()
    if options.runs < 2:
        parser.error("a standard error takes at least 2 runs")
    header = ("data", "epsilon", "method", f"U {SIZE}", "±", f"D {SIZE}", "±", f"at most {BAR}")
    write_table(options.output, header, rows(options))


if __name__ == "__main__":
    main()
