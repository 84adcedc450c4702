"""What each part of the default method is worth: scores without it, on the same builds.

    python lab/ablation.py [--runs 5] [--folder ../shared/data]

Views are compared on the same releases, since a view costs nothing; parameters on builds of their
own. Scores as in `accuracy.py`, with the standard error over the builds.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from accuracy import BOUNDS

import psd
from psd.evaluation.evaluate import class_errors
from psd.evaluation.true_counts import PointRecorder, true_counts
from psd.evaluation.workload import draw_workload
from psd.ingest.sources import Columns, read
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.epsilon import parse_epsilon
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.release.post_processing import PostProcessing

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
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


def scores(name: str, epsilon: str, runs: int, folder: Path) -> dict[str, list[float]]:
    """Scores of every variant, build by build."""
    domain = psd.Domain(bounds=BOUNDS[name])
    seen = PointRecorder(domain)
    batches = read(folder / f"{name}.csv", Columns(x="lon", y="lat", user=None), domain)
    counts = tally_batches(seen.record(batches), domain, unit=PrivacyUnit())
    queries = draw_workload(*seen.points, domain.bounds)
    truth = true_counts(queries, seen.points, counts, domain, bounded=False)

    def built(settings):
        method = psd.method("cascade", settings)
        nano = parse_epsilon(epsilon)
        return draw_release(counts, domain, budget=Budget(nano), method=method, unit=PrivacyUnit())

    def score(release):
        return float(np.exp(np.log(class_errors(release, truth)).mean()))

    found: dict[str, list[float]] = {}
    for _ in range(runs):
        release = built({})
        for label, view in VIEWS.items():
            found.setdefault(label, []).append(score(changed(release, post_processing=view)))
        for label, settings in SETTINGS.items():
            found.setdefault(label, []).append(score(built(settings)))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    beside = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=beside)
    options = parser.parse_args()
    labels, runs = [*VIEWS, *SETTINGS], options.runs
    print(f"| data | epsilon | {' | '.join(labels)} |\n|{' --- |' * (len(labels) + 2)}")
    for name in BOUNDS:
        for epsilon in ("0.1", "1"):
            found = scores(name, epsilon, options.runs, options.folder)
            cells = [
                f"{np.mean(found[label]):.4f} ± {np.std(found[label], ddof=1) / runs**0.5:.4f}"
                for label in labels
            ]
            print(f"| {name} | {epsilon} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
