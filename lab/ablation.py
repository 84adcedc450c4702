"""What each part of the default method is worth: scores without it, on the same builds.

    python lab/ablation.py [--runs 5] [--epsilons .1,1] [--data FOLDER] [--sets A,B] [-o table.md]

Views are compared on the same releases, since a view costs nothing; parameters on builds of their
own. Scores as in `accuracy.py`, with the standard error over the builds.
"""

from common import draw, study, with_error, write_table
from data_sets import add_sets, chosen_sets

import psd
from psd.apps.evaluation.true_errors import class_errors, geometric_mean
from psd.release.post_processing import PostProcessing
from support.releases import changed

VIEWS = {
    f"{estimate}, {density}": PostProcessing(estimate=estimate, density=density)
    for estimate in ("posterior", "least-squares")
    for density in ("smooth", "uniform")
}
SETTINGS = {
    "signal 3": {"signal": "3"},
    "signal 8": {"signal": "8"},
    "step_share 0.1": {"step_share": "0.1"},
    "step_share 0.3": {"step_share": "0.3"},
    "total_share 0.05": {"total_share": "0.05"},
}


def scores(one, truth, epsilon, runs):
    """Scores of every variant, build by build."""

    def built(settings):
        return draw(
            truth.counts, one.domain, psd.decompositions.method("cascade", settings), epsilon
        )

    def score(release):
        return geometric_mean(class_errors(release, truth))

    found: dict[str, list[float]] = {label: [] for label in (*VIEWS, *SETTINGS)}
    for _ in range(runs):
        release = built({})
        for label, view in VIEWS.items():
            found[label].append(score(changed(release, post_processing=view)))
        for label, settings in SETTINGS.items():
            found[label].append(score(built(settings)))
    return found


def rows(options):
    """One row per data set and epsilon."""
    for one in chosen_sets(options):
        truth = one.truth()
        for epsilon in options.epsilons:
            found = scores(one, truth, epsilon, options.runs)
            yield (one.name, epsilon, *map(with_error, found.values()))


def main() -> None:
    parser = study(__doc__, epsilons="0.1,1", runs=5)
    add_sets(parser)
    options = parser.parse_args()
    write_table(options.output, ("data", "epsilon", *VIEWS, *SETTINGS), rows(options))


if __name__ == "__main__":
    main()
