"""True errors of a release. Private: only the holder of the data can compute them.

They add up from noise (perturbation), cells covered in part (non-uniformity), and records that the
bound left out (bounding). Answers and errors reveal true counts: never publish an evaluation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from psd._util.declared_parameters import integer_between
from psd._util.instances import check_instance, check_names
from psd.api.release import Release
from psd.apps.evaluation._constants import CONFIDENCE, MIN_CLASS_ERROR
from psd.apps.evaluation.cube_errors import cells_of, exact_answers, in_window
from psd.apps.evaluation.true_counts import (
    PointRecorder,
    Points,
    TrueCounts,
    true_counts,
    true_regions,
)
from psd.apps.evaluation.workload import Workload, draw_workload
from psd.errors import InputDataError, ParameterError
from psd.ingest.sources import Columns, read
from psd.ingest.tally import Batch, Tally
from psd.ingest.tally_builder import tally_batches
from psd.publish.drawing import rows_in_slices
from psd.publish.request_values import PointArguments
from psd.query.areas import NamedAreas
from psd.query.boxes import box_estimates, box_totals
from psd.release.cube import CubeRecord, WindowRecord
from psd.space.box_tree import locate
from psd.space.region_tree import RegionTree

if TYPE_CHECKING:
    import pandas

    from psd.space.time_slices import TimeSlices

__all__ = ["CONFIDENCE"]

PRIVATE_NOTICE = (
    "PRIVATE: true errors reveal true counts; do not publish this. If you choose a method, its "
    "parameters, bounds or epsilon after reading it, that choice reveals something about the data "
    "that epsilon does not cover."
)

_PREDICTED = ("error", "perturbation_error", "nonuniformity_error", "lower", "upper")
_MAX_RASTER = 256


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Evaluation:
    """True errors of a release. Private.

    ``answers`` has a row per query: the box, or the ``id`` of a region of a cube, ``class``,
    ``true_count``, ``estimate``, ``true_error`` (estimate minus true count) and its three parts;
    ``true_relative_error`` and that of each part, over max(true count, 0.001 of all records); the
    predicted ``error`` and its parts, ``lower`` and ``upper`` of confidence `CONFIDENCE`, and
    whether they hold (``covers``) the count of the records that the release counts. ``summary`` has
    means per class, ``score`` is the geometric mean of the relative errors of the classes, and
    ``raster`` has the columns of answers for the cells of a raster over the domain, row by row from
    the south.
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
    boxes: ArrayLike | None = None,
    time: str | None = None,
    during: TimeSlices | None = None,
    tally: Tally | None = None,
    raster: int | None = None,
    when: Any = None,
    category: Any = None,
    **names: Unpack[PointArguments],
) -> Evaluation:
    """Compare the answers of a release with the data that it was built from. Private.

    Guarantees
    ----------
    - For every query the parts add up to estimate minus true count, to rounding.

    Parameters
    ----------
    release : Release
        Release to evaluate.
    data : object or list of objects
        Data that the release was built from, as in `psd.build`. Private.
    boxes : array_like, shape (n, 4), optional
        West, south, east, north of queries; by default the eight classes of
        `psd.apps.evaluation.workload`, and with a cube of regions all of these, level by level.
    time : str, optional
        Column of times; required with ``during``.
    during : TimeSlices, optional
        Slice of the release if it is part of a series; records outside it are ignored. A cube needs
        ``time`` alone.
    tally : Tally, optional
        Private tally of the build. Required if contributions were bounded, because only the tally
        states which records the release counts; a build passes it to
        ``psd.build(observer={"private_tally": ...})``.
    raster : int, optional
        Columns and rows of a raster, 1 to 256, whose cells are evaluated as further queries.
    when : str, psd.space.time_slices.TimeWindow, or list of these, optional
        Windows of a cube, in each of which all queries are answered; all time by default.
    category : str or list of str, optional
        Labels of a cube with categories, for each of which all queries are answered, as in
        `psd.Release.query`; all together by default.
    **names
        Where the points are, as in `psd.publish.request_values.PointArguments`.

    Returns
    -------
    Evaluation

    Raises
    ------
    ParameterError
        If ``tally`` is missing, not needed or of another release, or if only one of ``time`` and
        ``during`` is passed.
    InputDataError
        If no record lies inside the bounds.

    Examples
    --------
    >>> import pandas as pd, psd
    >>> points = pd.DataFrame({"lon": [126.98, 127.03] * 50, "lat": [37.57, 37.50] * 50})
    >>> release = psd.build(points, domain=(126.4, 37, 127.6, 38), epsilon=1, method="quadtree")
    >>> evaluation = psd.apps.evaluation.evaluate(release, points, boxes=[(126.9, 37.5, 127, 37.6)])
    >>> evaluation
    <Evaluation: private>
    >>> evaluation.answers["true_count"].tolist()
    [50]

    Notes
    -----
    The perturbation error is the estimate minus the answer of the same cells with the exact counts
    of the tally. The non-uniformity error is that answer minus the records of the tally in the
    query. The bounding error is the records of the tally minus all records in the query; it is 0 if
    a record is the unit of privacy. Cells of a cube are those of both its trees, so the noise of
    the places inside its cells is part of the perturbation error.
    """
    import pandas as pd

    check_instance("release", release, Release, 'psd.load("r.psd.parquet")')
    if isinstance(release.record, WindowRecord):
        raise ParameterError(
            "release must be the cube itself to be evaluated, got a window of it; when= names "
            "windows"
        )
    cube = release.record if isinstance(release.record, CubeRecord) else None
    for name, given in (("when", when), ("category", category)):
        if cube is None and given is not None:
            raise ParameterError(f"{name} must be left out unless the release is a cube", name=name)
    if cube is not None:
        for name, given in (("during", during), ("raster", raster)):
            if given is not None:
                raise ParameterError(
                    f"{name} must be left out for a cube; when= names its windows", name=name
                )
        if time is None and cube.slices is not None:
            raise ParameterError("time must name the column of times to evaluate a cube")
        during = cube.slices
    if time is not None and during is None:
        raise ParameterError("time must be left out; the release is not a slice of a series")
    if during is not None and time is None:
        raise ParameterError("time must name the column of times to evaluate a slice of a series")
    check_names("argument", names, PointArguments.__annotations__)
    of_category = None if cube is None else cube.category
    labelled = None if of_category is None else of_category.column
    columns = Columns(time=time, category=labelled, **names)
    # Coordinates of all records inside the bounds, and inside the slice if there is one.
    recorder = PointRecorder(release.domain)
    if during is None:
        batches = read(data, columns, release.domain)
    else:
        columns = replace(columns, time_zone=during.time_zone)
        batches = rows_in_slices(read(data, columns, release.domain), during)
    for _ in recorder.record(batches):
        pass
    points, times, labels = recorder.points, recorder.times, recorder.labels
    if of_category is not None and labels is not None:
        # Records of other labels are left out before anything is counted, if they are dropped.
        kept = of_category.cells_of(labels) >= 0
        points, times = (points[0][kept], points[1][kept]), times[kept] if len(times) else times
        labels = labels.filter(kept)
    if cube is not None and isinstance(cube.plane.tree, RegionTree):
        # As are those in no region.
        regions: Any = cube.plane.tree.regions
        kept = regions.assign(*points) >= 0
        points, times = (points[0][kept], points[1][kept]), times[kept] if len(times) else times
    if not len(points[0]):
        raise InputDataError(
            "no record lies inside the bounds of the release; the data may be another file"
        )
    held = Batch(
        x=points[0],
        y=points[1],
        time=times if cube is not None and cube.slices is not None else None,
        label=labels,
    )
    counts = _counted_tally(release, tally, held)
    if boxes is None:
        queries = draw_workload(*points, release.domain.bounds)
    else:
        table = np.asarray(boxes, np.float64)
        if table.ndim != 2 or table.shape[1] != 4:
            raise ParameterError(
                "boxes must be rows of west, south, east, north, got an array of shape "
                f"{table.shape}",
                name="boxes",
            )
        queries = Workload(boxes=table, classes=np.full(len(table), "given"))
    if cube is not None:
        how: dict[str, Any] = {"when": when, "category": category, "confidence": CONFIDENCE}
        places: list[dict[str, Any]] = [{"areas": queries.boxes}]
        if boxes is None and release.levels:
            places = [{"level": level} for level in release.levels]
        answers = pd.concat(
            [
                _evaluate_windows(release.query(**each, **how), cube, queries, held, counts)
                for each in places
            ],
            ignore_index=True,
        )
    else:
        answers = _evaluate_queries(release, queries, points, counts)
    cells = None
    if raster is not None:
        side = integer_between(1, _MAX_RASTER)("raster", raster)
        # Queries are the cells of a raster, row by row from the south-west.
        west, south, east, north = release.domain.bounds
        x, y = np.linspace(west, east, side + 1), np.linspace(south, north, side + 1)
        near = (np.tile(x[:-1], side), np.repeat(y[:-1], side))
        far = (np.tile(x[1:], side), np.repeat(y[1:], side))
        raster_boxes = np.stack([*near, *far], axis=1)
        squares = Workload(boxes=raster_boxes, classes=np.full(side**2, "raster"))
        cells = _evaluate_queries(release, squares, points, counts)
    # Means per class, in the order of the classes.
    means = [name for name in answers.columns if name.startswith("true_relative")]
    summary = answers.groupby("class", sort=False)[[*means, "covers"]].mean().reset_index()
    score = geometric_mean(summary["true_relative_error"].to_numpy())
    return Evaluation(answers=answers, summary=summary, score=score, raster=cells)


def geometric_mean(errors: NDArray[np.float64]) -> float:
    """Compute the score: the geometric mean of the mean relative errors of the classes."""
    return float(np.exp(np.log(np.maximum(errors, MIN_CLASS_ERROR)).mean()))


def class_errors(release: Release, truth: TrueCounts) -> NDArray[np.float64]:
    """Mean true relative error of each class, (classes,), as in the summary of `evaluate`."""
    estimate = box_estimates(release.index, truth.queries.boxes)
    relative = np.abs(estimate - truth.true) / truth.base
    classes = dict.fromkeys(truth.queries.classes.tolist())
    return np.array([relative[truth.queries.classes == name].mean() for name in classes])


def _counted_tally(release: Release, tally: Tally | None, held: Batch) -> Tally:
    """Tally of the records that the release counts; of a cube with their slices and categories."""
    cube = release.record if isinstance(release.record, CubeRecord) else None
    if release.unit.kind == "record" and not release.record.boundary:
        if tally is not None:
            raise ParameterError("tally= must be absent: this release counts every record")
        slices, strata = None, None
        if cube is not None:
            tree: Any = cube.plane.tree
            slices, strata = cube.slices, tree.regions if release.levels else cube.category
        return tally_batches([held], release.domain, slices=slices, strata=strata)
    if tally is None:
        raise ParameterError(
            "the release dropped some records inside its bounds, so evaluating it needs tally=, "
            "the private tally of its build; rebuild with keep_tally= to store it"
        )
    check_instance("tally", tally, Tally, 'psd.build(observer={"private_tally": tallies.append})')
    for name, is_missing in (
        ("time slices", cube is not None and cube.slices is not None and tally.slice is None),
        ("categories", cube is not None and cube.category is not None and tally.region is None),
        ("regions", cube is not None and bool(release.levels) and tally.region is None),
    ):
        if is_missing:
            raise ParameterError(f"tally= must have the {name} of the cube, got one without")
    bounds = {release.unit.contributions}
    each = release.unit.max_per_slice
    if cube is not None and cube.slices is not None and each is not None:  # a bound of each slice
        bounds |= {each} if each * len(cube.slices) in bounds else set()
    if tally.contributions not in bounds:
        raise ParameterError(
            "tally= must be the tally of this release; this tally has another bound per user, so "
            "it is of another release"
        )
    return tally


def _evaluate_windows(
    asked: Any, cube: CubeRecord, queries: Workload, held: Batch, counts: Tally
) -> pandas.DataFrame:
    """True errors of a cube, window by window; queries: boxes, if not the regions of a level."""
    import pandas as pd

    # Number of the cell of all axes of each record, and of each count.
    numbers = np.zeros(len(held.x), np.int64)
    if cube.slices is not None and held.time is not None:
        numbers = cube.slices.index(held.time)
    if cube.category is not None:
        numbers = numbers * cube.category.size + cube.category.cells_of(held.label)
    cells, areas, domain = cells_of(counts, cube), asked.areas, cube.plane.domain
    unit = cube.plane.unit
    of_truth: dict[str, Any] = {"bounded": unit.kind != "record" or cube.boundary}
    of_truth["scale"] = unit.scale
    regions: Any = areas.tree.regions if isinstance(areas, NamedAreas) else None
    lowest: Any = None if regions is None else regions.assign(held.x, held.y)
    windows, tables = asked.time.windows, []
    assert asked.time.cube is not None  # a cube was asked
    exact = exact_answers(asked.time.cube.fit, counts, windows, areas, unit.scale)
    for window, label, columns, of_cells in zip(
        windows, asked.time.labels, asked.blocks, exact, strict=True
    ):
        during, kept = np.isin(numbers, window), in_window(counts, cells, window)
        if regions is None:
            truth = true_counts(queries, (held.x[during], held.y[during]), kept, domain, **of_truth)
        else:
            truth = true_regions(areas, lowest[during], kept, **of_truth)
        table = _error_table(truth, columns, of_cells)
        table["class"] = [", ".join((each, *label.values())) for each in table["class"]]
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _evaluate_queries(
    release: Release, queries: Workload, points: Points, counts: Tally
) -> pandas.DataFrame:
    """True errors and their parts, query by query."""
    bounded = release.unit.kind != "record" or release.record.boundary
    scale = release.unit.scale
    truth = true_counts(queries, points, counts, release.domain, bounded=bounded, scale=scale)
    boxes = truth.queries.boxes
    predicted = release.query(boxes, confidence=CONFIDENCE).table
    # Answers of the cells if their counts were exact: the estimate differs from them by the noise,
    # and they from the truth by what cells cannot show.
    tree, counts = release.tree, truth.counts
    exact_counts = np.zeros(len(tree))
    np.add.at(exact_counts, locate(tree, counts.columns, counts.rows), counts.counts)
    for level in reversed(tree.levels[1:]):  # from the leaves up, each cell adds to its parent
        np.add.at(exact_counts, tree.parent[level], exact_counts[level])
    exact = box_totals(release.index, exact_counts / scale, boxes)
    columns = {str(name): predicted[name].to_numpy() for name in predicted}
    return _error_table(truth, columns, exact)


def _error_table(
    truth: TrueCounts, predicted: dict[str, Any], exact: NDArray[np.float64]
) -> pandas.DataFrame:
    """Parts of the errors of answers; exact: (n,), answers of the cells without noise."""
    import pandas as pd

    true, in_tally = truth.true, truth.bounded
    estimate = predicted["estimate"]
    # The true error is the sum of its parts: by noise, by uneven cells, and by bounding.
    parts = {
        "true_error": estimate - true,
        "true_perturbation_error": estimate - exact,
        "true_nonuniformity_error": exact - in_tally,
        "true_bounding_error": (in_tally - true).astype(np.float64),
    }
    relative = {f"true_relative{name[4:]}": np.abs(e) / truth.base for name, e in parts.items()}
    return pd.DataFrame(
        {
            **truth.queries.places,
            "class": truth.queries.classes,
            "true_count": true,
            "estimate": estimate,
            **parts,
            **relative,
            **{name: predicted[name] for name in _PREDICTED},
            "covers": (predicted["lower"] <= in_tally) & (in_tally <= predicted["upper"]),
        }
    )
