"""How wrong a release really is. Private: only the holder of the data can know, and may look.

The error of an answer is split into parts that add up to it: what the noise did, what the cells
did, and, where contributions were bounded, what the bound left out. Relative errors beside noisy
answers give true counts back, so none of this may be published.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.fields import integer_between
from psd.errors import InputDataError, ParameterError
from psd.evaluation.true_counts import Points, Sightings, Truth, truth_of
from psd.evaluation.workload import Workload, workload
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Batch, Tally
from psd.ingest.tally_builder import tally_batches
from psd.publish.series import rows_in_slices
from psd.query.boxes import box_totals
from psd.space.box_tree import locate

if TYPE_CHECKING:
    import pandas

    from psd.api.release import Release
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices

__all__ = [
    "CONFIDENCE",
    "PRIVATE_NOTICE",
    "Evaluation",
    "class_errors",
    "evaluate",
    "geometric_mean",
]

PRIVATE_NOTICE = (
    "PRIVATE: true errors reveal true counts; do not publish this. Choosing a method, its "
    "parameters, bounds or epsilon after looking at it is itself a look at the data, which no "
    "epsilon pays for."
)

CONFIDENCE = 0.95
"""Of the intervals whose coverage is judged."""

_PREDICTED = ("error", "perturbation_error", "nonuniformity_error", "lower", "upper")
_LARGEST_RASTER = 256

# Keeps the logarithm of a class without any error finite.
_LEAST = 1e-9


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
        max(true count, 0.001 rows); the predicted ``error`` and its parts, the interval from
        ``lower`` to ``upper`` of confidence `CONFIDENCE`, and whether it ``covers``.
    summary : DataFrame
        Means per class of the relative errors and of ``covers``.
    score : float
        Geometric mean of the relative errors of the classes.
    raster : DataFrame, optional
        The same as answers for the cells of a raster over the domain, row by row from the
        south, where one was asked for.
    """

    answers: pandas.DataFrame
    summary: pandas.DataFrame
    score: float
    raster: pandas.DataFrame | None = None

    def __repr__(self) -> str:
        return "<Evaluation: private>"


def evaluate(
    release: Release,
    data: Any,
    *,
    boxes: NDArray[np.float64] | None = None,
    x: str = "lon",
    y: str = "lat",
    geometry: str | None = None,
    layer: str | None = None,
    time: str | None = None,
    during: TimeSlices | None = None,
    kept: Tally | None = None,
    raster: int | None = None,
) -> Evaluation:
    """Compare the answers of a release with the data that it was built from. Private.

    Guarantees
    ----------
    - For every query the parts add up to estimate minus true count, to rounding.

    Parameters
    ----------
    release : Release
        What is judged.
    data : object or list of objects
        The data that it was built from, as in `psd.build`. Private.
    boxes : ndarray, shape (n, 4), float64, optional
        Queries; the eight classes of `psd.evaluation.workload` where not given.
    x, y : str
        Names of the coordinate columns.
    geometry, layer : str, optional
        As in `psd.build`.
    time : str, optional
        Column of moments; goes with ``during``.
    during : TimeSlices, optional
        Slice of the release, where it is one of a series; other rows of the data are left out.
    kept : Tally, optional
        The build's private tally; needed where users were bounded, since nobody else knows
        which rows were kept.
    raster : int, optional
        Columns and rows of a raster whose cells are asked about as well, 1 to 256.

    Returns
    -------
    Evaluation

    Raises
    ------
    ParameterError
        If a release of bounded users is judged without its tally, or by another's; or if
        ``time`` and ``during`` do not go together.
    InputDataError
        If no record lies inside the bounds.

    Notes
    -----
    Perturbation: the estimate minus what the same cells would answer with the exact counts of
    the kept rows. Non-uniformity: that minus the kept rows in the query. Bounding: the kept
    rows minus all rows in the query; 0 where a row is the unit.
    """
    if time is not None and during is None:
        raise ParameterError("time, the column of moments, goes with a slice of a series")
    if during is not None and time is None:
        raise ParameterError(
            "a slice of a series is judged with time (--time), the column of moments"
        )
    columns = Columns(x=x, y=y, geometry=geometry, layer=layer, time=time)
    points = _points(data, columns, release.domain, during)
    if not len(points[0]):
        raise InputDataError("no record lies inside the bounds of the release; is it another file?")
    counts = _kept(release, kept, points)
    queries = (
        workload(*points, release.domain.bounds)
        if boxes is None
        else Workload(boxes=boxes, classes=np.full(len(boxes), "given"))
    )
    answers, cells = (
        None if asked is None else _answers(release, asked, points, counts)
        for asked in (queries, _raster(raster, release.domain))
    )
    assert answers is not None
    summary = _summary(answers)
    score = geometric_mean(summary["true_relative_error"].to_numpy())
    return Evaluation(answers=answers, summary=summary, score=score, raster=cells)


def _raster(side: int | None, domain: Domain) -> Workload | None:
    """Cells of a raster over the domain, or none."""
    if side is None:
        return None
    side = integer_between(1, _LARGEST_RASTER)("raster", side)
    west, south, east, north = domain.bounds
    x, y = np.linspace(west, east, side + 1), np.linspace(south, north, side + 1)
    edges = (np.tile(x[:-1], side), np.repeat(y[:-1], side))
    far = (np.tile(x[1:], side), np.repeat(y[1:], side))
    return Workload(boxes=np.stack([*edges, *far], axis=1), classes=np.full(side**2, "raster"))


def geometric_mean(errors: NDArray[np.float64]) -> float:
    """Score of the mean relative errors of some classes."""
    return float(np.exp(np.log(np.maximum(errors, _LEAST)).mean()))


def class_errors(release: Release, truth: Truth) -> NDArray[np.float64]:
    """Mean true relative error of each class of queries; neither its parts nor predictions.

    Parameters
    ----------
    release : Release
        What is judged.
    truth : Truth
        Boxes and their true counts, under the domain and the bound of the release. Private.

    Returns
    -------
    ndarray, shape (classes,), float64
        In the order of the classes; the same as in the summary of `evaluate`.
    """
    relative = np.abs(release.estimate(truth.queries.boxes) - truth.true) / truth.base
    classes = dict.fromkeys(truth.queries.classes.tolist())
    return np.array([relative[truth.queries.classes == name].mean() for name in classes])


def _points(data: Any, columns: Columns, domain: Domain, during: TimeSlices | None) -> Points:
    """Coordinates of all rows inside the bounds, and in the slice where there is one."""
    seen = Sightings(domain)
    if during is None:
        batches = read(data, columns, domain)
    else:
        columns = replace(columns, time_zone=during.time_zone)
        batches = rows_in_slices(read(data, columns, domain), during)
    for _ in seen.of(batches):
        pass
    return seen.points


def _kept(release: Release, kept: Tally | None, points: Points) -> Tally:
    """Tally of the rows that the release counts."""
    if release.unit.kind == "record" and not release.boundary:
        if kept is not None:
            raise ParameterError("a release of single rows keeps all of them and needs no tally")
        return tally_batches([Batch(x=points[0], y=points[1])], release.domain)
    if kept is None:
        raise ParameterError(
            "the release keeps not all rows inside its bounds, so its errors can only be split "
            "with the private tally of its build; keep it with --keep-tally and give it with "
            "--tally"
        )
    if kept.contributions != release.unit.contributions:
        raise ParameterError("the tally is of another release; its bound per user differs")
    return kept


def _answers(
    release: Release, queries: Workload, points: Points, counts: Tally
) -> pandas.DataFrame:
    """True errors and their parts, query by query."""
    import pandas as pd

    bounded = release.unit.kind != "record" or release.boundary
    scale = release.unit.scale
    truth = truth_of(queries, points, counts, release.domain, bounded=bounded, scale=scale)
    boxes, true, kept = truth.queries.boxes, truth.true, truth.kept
    predicted = release.query(boxes, confidence=CONFIDENCE)
    exact = box_totals(release.index, _exact_counts(release, truth.counts) / scale, boxes)
    estimate = predicted["estimate"].to_numpy()
    parts = {
        "true_error": estimate - true,
        "true_perturbation_error": estimate - exact,
        "true_nonuniformity_error": exact - kept,
        "true_bounding_error": (kept - true).astype(np.float64),
    }
    relative = {f"true_relative{name[4:]}": np.abs(e) / truth.base for name, e in parts.items()}
    return pd.DataFrame(
        {
            **dict(zip(("west", "south", "east", "north"), boxes.T, strict=True)),
            "class": truth.queries.classes,
            "true_count": true,
            "estimate": estimate,
            **parts,
            **relative,
            **{name: predicted[name] for name in _PREDICTED},
            "covers": (predicted["lower"] <= kept) & (kept <= predicted["upper"]),
        }
    )


def _exact_counts(release: Release, counts: Tally) -> NDArray[np.float64]:
    """Exact count of each cell of the release."""
    tree = release.tree
    exact = np.zeros(len(tree))
    np.add.at(exact, locate(tree, counts.columns, counts.rows), counts.counts)
    for level in reversed(tree.levels[1:]):
        np.add.at(exact, tree.parent[level], exact[level])
    return exact


def _summary(answers: pandas.DataFrame) -> pandas.DataFrame:
    """Mean of the relative errors and of the coverage per class, in the order of the classes."""
    columns = [name for name in answers.columns if name.startswith("true_relative")]
    means = answers.groupby("class", sort=False)[[*columns, "covers"]].mean()
    return means.reset_index()
