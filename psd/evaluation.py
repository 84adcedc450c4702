"""How wrong a release really is. Private: only the holder of the data can know, and may look.

The error of an answer is split into parts that add up to it: what the noise did, what the cells
did, and, where contributions were bounded, what the bound left out. Relative errors beside noisy
answers give true counts back, so none of this may be published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import InputDataError, ParameterError
from psd.query.boxes import box_fraction
from psd.query.cover import cover, total
from psd.sources import Columns, read
from psd.tally import Batch, Tally, tally
from psd.tree import locate
from psd.workload import Workload, workload

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas

    from psd.domain import Domain
    from psd.release import Release

__all__ = ["PRIVATE_NOTICE", "Evaluation", "evaluate"]

PRIVATE_NOTICE = (
    "PRIVATE: true errors reveal true counts; do not publish this. Choosing a method, its "
    "parameters, bounds or epsilon after looking at it is itself a look at the data, which no "
    "epsilon pays for."
)

# Real counts below this share of all rows are not told apart in relative errors.
_SANITY = 0.001
_QUERIES = 512


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Evaluation:
    """True errors of a release. Private.

    Parameters
    ----------
    answers : DataFrame
        One row per query: the box, ``class``, ``true_count``, ``estimate``, ``true_error``
        (estimate minus true count) and its parts ``true_perturbation_error``,
        ``true_nonuniformity_error`` and ``true_bounding_error``, which add up to it;
        ``true_relative_error`` and the relative size of each part, over
        max(true count, 0.001 rows); the predicted ``error``, and whether the interval
        ``covers``.
    summary : DataFrame
        Means per class of the relative errors and of ``covers``.
    score : float
        Geometric mean of the relative errors of the classes.
    """

    answers: pandas.DataFrame
    summary: pandas.DataFrame
    score: float

    def __repr__(self) -> str:
        return "<Evaluation: private>"


def evaluate(
    release: Release,
    data: Any,
    *,
    boxes: NDArray[np.float64] | None = None,
    x: str = "lon",
    y: str = "lat",
    kept: Tally | None = None,
) -> Evaluation:
    """Compare the answers of a release with the data that it was built from. Private.

    Guarantees
    ----------
    - For every query the parts add up to estimate minus true count, to rounding.

    Parameters
    ----------
    release : Release
        What is judged.
    data : path, list of paths, DataFrame or GeoDataFrame
        The data that it was built from. Private.
    boxes : ndarray, shape (n, 4), float64, optional
        Queries; the eight classes of `psd.workload` where not given.
    x, y : str
        Names of the coordinate columns.
    kept : Tally, optional
        The build's private tally; needed where users were bounded, since nobody else knows
        which rows were kept.

    Returns
    -------
    Evaluation

    Raises
    ------
    ParameterError
        If a release of bounded users is judged without its tally, or by another's.
    InputDataError
        If no row lies inside the bounds.

    Notes
    -----
    Perturbation: the estimate minus what the same cells would answer with the exact counts of
    the kept rows. Non-uniformity: that minus the kept rows in the query. Bounding: the kept
    rows minus all rows in the query; 0 where a row is the unit.
    """
    points = _points(data, Columns(x=x, y=y), release.domain)
    if not len(points[0]):
        raise InputDataError("no row lies inside the bounds of the release; is it another file?")
    counts = _kept(release, kept, points)
    queries = (
        workload(*points, release.domain.bounds)
        if boxes is None
        else Workload(boxes=boxes, classes=np.full(len(boxes), "given"))
    )
    answers = _answers(release, queries, points, counts, bounded=release.unit == "user")
    summary = _summary(answers)
    score = float(np.exp(np.log(summary["true_relative_error"].clip(lower=1e-9)).mean()))
    return Evaluation(answers=answers, summary=summary, score=score)


def _points(
    data: Any, columns: Columns, domain: Domain
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Coordinates of all rows inside the bounds."""
    parts = [(batch.x[inside], batch.y[inside]) for batch, inside in _inside(data, columns, domain)]
    x, y = (np.concatenate([part[axis] for part in parts] or [np.empty(0)]) for axis in (0, 1))
    return x, y


def _inside(
    data: Any, columns: Columns, domain: Domain
) -> Iterator[tuple[Batch, NDArray[np.bool_]]]:
    """Batches, and which of their rows lie inside the bounds."""
    for batch in read(data, columns, domain):
        yield batch, domain.quantise(batch.x, batch.y)[2]


def _kept(release: Release, kept: Tally | None, points: tuple[NDArray[np.float64], ...]) -> Tally:
    """Tally of the rows that the release counts."""
    if release.unit == "record":
        if kept is not None:
            raise ParameterError("a release of single rows keeps all of them and needs no tally")
        return tally([Batch(x=points[0], y=points[1])], release.domain)
    if kept is None:
        raise ParameterError(
            "the release bounds the rows of each user, so its errors can only be split with the "
            "private tally of its build; keep it with --keep-tally and give it with --tally"
        )
    if kept.contributions != release.max_contributions:
        raise ParameterError("the tally is not of this release; its bound per user is another one")
    return kept


def _answers(
    release: Release,
    queries: Workload,
    points: tuple[NDArray[np.float64], NDArray[np.float64]],
    counts: Tally,
    *,
    bounded: bool,
) -> pandas.DataFrame:
    """True errors and their parts, query by query."""
    import pandas as pd

    predicted = release.query(queries.boxes)
    closed = _closed(queries.boxes, release.domain)
    true = _inside_boxes(*points, np.ones(len(points[0]), np.int64), closed)
    kept = _inside_boxes(*_centres(release.domain, counts), closed) if bounded else true
    exact = _exact_cells(release, counts, queries.boxes)
    estimate = predicted["estimate"].to_numpy()
    base = np.maximum(true, _SANITY * len(points[0]))
    parts = {
        "true_error": estimate - true,
        "true_perturbation_error": estimate - exact,
        "true_nonuniformity_error": exact - kept,
        "true_bounding_error": (kept - true).astype(float),
    }
    return pd.DataFrame(
        {
            **dict(zip(("west", "south", "east", "north"), queries.boxes.T, strict=True)),
            "class": queries.classes,
            "true_count": true,
            "estimate": estimate,
            **parts,
            **{f"true_relative{name[4:]}": np.abs(part) / base for name, part in parts.items()},
            "error": predicted["error"],
            "covers": (predicted["lower"] <= kept) & (kept <= predicted["upper"]),
        }
    )


def _closed(boxes: NDArray[np.float64], domain: Domain) -> NDArray[np.float64]:
    """Boxes that hold the far edges of the domain where they reach them, as its cells do."""
    closed = boxes.copy()
    for side in (2, 3):
        closed[boxes[:, side] >= domain.bounds[side], side] = np.inf
    return closed


def _inside_boxes(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    weight: NDArray[np.int64],
    boxes: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Weight of the points in each half-open box."""
    order = np.argsort(x, kind="stable")
    x, y, weight = x[order], y[order], weight[order]
    ends = zip(np.searchsorted(x, boxes[:, 0]), np.searchsorted(x, boxes[:, 2]), strict=True)
    return np.array(
        [
            weight[a:b][(y[a:b] >= box[1]) & (y[a:b] < box[3])].sum()
            for (a, b), box in zip(ends, boxes, strict=True)
        ],
        np.int64,
    )


def _centres(
    domain: Domain, counts: Tally
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Middle of each occupied lattice cell, and its kept rows."""
    x, y = (
        (domain.edges(axis, cells) + domain.edges(axis, cells + 1)) / 2
        for axis, cells in enumerate((counts.columns, counts.rows))
    )
    return x, y, counts.counts


def _exact_cells(
    release: Release, counts: Tally, boxes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What the cells of the release would answer with exact counts."""
    tree = release.tree
    exact = np.zeros(len(tree))
    np.add.at(exact, locate(tree, counts.columns, counts.rows), counts.counts)
    for level in reversed(tree.levels[1:]):
        np.add.at(exact, tree.parent[level], exact[level])
    lattice = release.domain.to_lattice(boxes)
    chunks = np.split(lattice, range(_QUERIES, len(lattice), _QUERIES))
    return np.concatenate(
        [total(cover(tree, len(part), box_fraction(tree.boxes, part)), exact) for part in chunks]
    )


def _summary(answers: pandas.DataFrame) -> pandas.DataFrame:
    """Mean of the relative errors and of the coverage per class, in the order of the classes."""
    columns = [name for name in answers.columns if name.startswith("true_relative")]
    means = answers.groupby("class", sort=False)[[*columns, "covers"]].mean()
    return means.reset_index()
