"""What every constant of the estimates is worth: the same builds, answered with other values.

    python lab/constants.py [--only SMOOTH_SHIFT,LAGS] [--rows A;B] [--runs 1]
        [--data FOLDER] [--sets A,B] [-o constants.csv]

A small coverage matrix: rows of `coverage_matrix.py`, with a method and an epsilon for each. Each
build is answered with every constant of `psd/estimation/constants.py` as it is, and with the values
of `CANDIDATES` in its place. The last column says in how many builds any figure differs. The raster
of densities is a matter of precision alone, and is not tried.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from common import draw, exact_counts, holds, items, means_by_class, study, tally_of, write_table
from coverage_measures import Truth, truth_of
from data_sets import add_sets, chosen_sets
from hard_sets import hard_variants
from variants import Variant, changed_variants

import psd
from psd.estimation import constants
from psd.publish.public_inputs import resolve_post_processing
from psd.query.boxes import box_totals

ROWS = {
    r"^uk_road_accidents, streets$": ("auto", "1"),
    r"^uk_road_accidents, covariate$": ("auto", "0.1"),
    r"^uk_road_accidents, line$": ("htree", "0.1"),
    r"^osm_andorra_2016, 3 decimals$": ("auto", "0.1"),
    r"^osm_andorra_2016, as it is$": ("grid", "0.1"),
    r"^colonies$": ("auto", "0.1"),
}
"""Rows, by a regular expression of their names, and the method and epsilon of each."""

CANDIDATES: dict[str, tuple[Any, ...]] = {
    "APART_VARIANCE": (0.0, 1.0),
    "CEILING_ERRORS": (0.0, 4.0),
    "CUT_SHARE_VARIANCE": (1.0, 1.7),
    "EMPTY_VARIANCE": (0.0, 0.3),
    "ENOUGH_FAMILIES": (8, 32),
    "EVEN_SHARE": (0.0, 0.1),
    "EXPECTED_CLUSTER_SIZE": (1.0, 4.0),
    "EXPECTED_OVERDISPERSION": (0.03, 0.5),
    "FEW_FAMILIES": (1.0, 3.0),
    "LAGS": ((2, 3, 4), (4, 8, 16)),
    "LARGEST_FAMILY": (0.01, 1.0),
    "LARGE_REACH": (0.0, 1.0),
    "LIKELIHOOD_POINTS": (17,),
    "MEDIAN_REACH": (0.5, 1.5),
    "ONE_SIDED": (0.1, 0.7),
    "POOLING_PEERS": (4, 16),
    "SCALE_FREE": (3.0, 8.0),
    "SEEN_ERRORS": (3.0, 6.0),
    "SEEN_SHARES": ((0.0, 2.0), (0.2, 2.0)),
    "SHARES_TRIED": (25,),
    "SLOPE_OVERDISPERSION": (1.0, 2.0),
    "SMOOTHING_PASSES": (3,),
    "SMOOTH_SHIFT": (0.6, 1.8),
    "STEP_COLUMN_ERRORS": (0.0, 5.0),
}

DISTRICTS = 3  # that no figure is of

HEADS = ("constant", "value", "boxes", "least class", "unevenness", "width", "score", "rows")


class Figures(NamedTuple):
    """Shares of intervals that cover, predicted over true unevenness, and geometric means."""

    boxes: float
    least: float
    unevenness: float
    width: float
    score: float


@contextmanager
def replaced(name: str, value: Any) -> Iterator[None]:
    """Put a value in the place of a constant, in each module that has it."""
    with ExitStack() as stack:
        for module in [m for n, m in sys.modules.items() if n.startswith("psd.") and m]:
            if name in vars(module):
                stack.enter_context(mock.patch.object(module, name, value))
        yield


def figures(release: psd.Release, truth: Truth) -> Figures:
    """Figures of one build; its fit is computed with the constants as they are now."""
    release = psd.Release(release.record)
    answers = release.query(truth.boxes, confidence=0.95).table
    exact = box_totals(release.index, exact_counts(release.tree, truth.counts), truth.boxes)
    uneven = float(np.sqrt(((exact - truth.true) ** 2).mean()))
    predicted = float(np.sqrt((answers["nonuniformity_error"] ** 2).mean()))
    covers = holds(answers, truth.true)
    error = np.abs(answers["estimate"] - truth.true)
    error /= np.maximum(truth.true, 0.001 * truth.counts.counts.sum())
    return Figures(
        boxes=float(covers.mean()),
        least=float(means_by_class(truth.classes, covers).min()),
        unevenness=predicted / uneven,
        width=float(np.exp(np.log(answers["upper"] - answers["lower"] + 1).mean())),
        score=float(np.exp(np.log(means_by_class(truth.classes, error)).mean())),
    )


def measured(
    rows: Iterable[tuple[Variant, str, str]], options: Any
) -> dict[tuple[str, Any], list[Figures]]:
    """Figures of all builds by constant and value, and by ("", 0) with all as they are."""
    found: dict[tuple[str, Any], list[Figures]] = defaultdict(list)
    for variant, method, epsilon in rows:
        counts = tally_of(variant.points(), variant.domain)
        truth = truth_of(variant, variant.points(), counts, DISTRICTS)
        more = {} if variant.covariate is None else {"covariate": variant.covariate}
        choice = resolve_post_processing(
            psd.decompositions.method(method), estimate=None, density="covariate" if more else None
        )
        for _ in range(options.runs):
            release = draw(counts, variant.domain, method, epsilon, post_processing=choice, **more)
            found["", 0].append(figures(release, truth))
            for name in options.only:
                for value in CANDIDATES[name]:
                    with replaced(name, value):
                        found[name, value].append(figures(release, truth))
        print(f"{variant.name}, {epsilon}", file=sys.stderr, flush=True)
    return found


def lines(found: dict[tuple[str, Any], list[Figures]]) -> Iterator[tuple[str, ...]]:
    """A line for each value: means, and ratios to those of the constants as they are."""
    base = np.array(found.pop(("", 0)))
    yield ("as they are", "", *_cells(base, base))
    for (name, value), of_builds in found.items():
        stands = f"{value} for {getattr(constants, name)}"
        yield (name, stands, *_cells(np.array(of_builds), base))


def _cells(values: np.ndarray, base: np.ndarray) -> tuple[str, ...]:
    """Means of shares in percent, the least and largest ratio, and ratios to the base."""
    ratio = np.exp(np.log(values[:, 3:] / base[:, 3:]).mean(axis=0))
    differ = int((np.abs(values - base) > 1e-6 * np.abs(base)).any(axis=1).sum())
    return (
        f"{100 * values[:, 0].mean():.1f}",
        f"{100 * values[:, 1].mean():.1f}, {100 * values[:, 1].min():.1f}",
        f"{values[:, 2].min():.2f} to {values[:, 2].max():.2f}",
        *(f"{each:.3f}" for each in ratio),
        f"{differ} of {len(base)}",
    )


def main() -> None:
    parser = study(__doc__, runs=1)
    add_sets(parser)
    parser.add_argument("--only", type=items, default=list(CANDIDATES), help="names of constants")
    parser.add_argument("--rows", default=";".join(ROWS), help="expressions of rows")
    options = parser.parse_args()
    sets = chosen_sets(options)
    variants = [*changed_variants(sets), *hard_variants(sets)]
    chosen = []
    for expression in options.rows.split(";"):
        how = ROWS.get(expression, ("auto", "0.1"))
        chosen += [(row, *how) for row in variants if re.search(expression, row.name)]
    write_table(options.output, HEADS, list(lines(measured(chosen, options))))


if __name__ == "__main__":
    main()
