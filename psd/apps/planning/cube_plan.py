"""Simulated cubes: errors of areas in windows of time, on populations of an assumed density."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Floats, Integers
from psd._util.declared_parameters import integer_between
from psd.apps.evaluation.true_counts import (
    cell_centres,
    count_in_boxes,
    extend_to_edges,
    relative_base,
)
from psd.apps.planning._constants import (
    MAX_GROUPS,
    TIME_BLOCKS,
    TIME_EVENNESS,
    WINDOW_STARTS,
)
from psd.apps.planning.population import AssumedDensity, draw_population
from psd.apps.planning.simulation import draw_queries
from psd.errors import ParameterError
from psd.estimation.cube import fit_cube
from psd.ingest.tally import Tally, add_tallies
from psd.privacy.budget import Budget
from psd.privacy.loss import epsilon_text
from psd.publish.drawing import draw_cube
from psd.query.areas import BoxAreas
from psd.query.cubes import Windows, cube_totals
from psd.release.cube import CubeRecord
from psd.space.categories import CategoryAxis
from psd.space.time_slices import TimeSlices

if TYPE_CHECKING:
    import pandas

    from psd.apps.planning.simulation import PlanRequest

__all__ = [
    "check_categories",
    "check_windows",
    "hours_of",
    "simulate_cube_errors",
    "spread_in_time",
]

MAX_PLANNED_LABELS = 100


def check_windows(methods: Sequence[Any], slices: int, windows: Any) -> tuple[int, ...]:
    """Numbers of slices of the windows of a plan; none of methods that count each slice by itself.

    By default one slice, about the root of all of them, and all.
    """
    names = [each.name for each in methods if "time" in getattr(each, "axes", ())]
    if slices == 1 or not names:
        if windows is not None:
            raise ParameterError(
                "windows must be left out without slices and a method that divides time, such as "
                "cube; errors are those of one slice",
                name="windows",
            )
        return ()
    if len(names) < len(methods):
        raise ParameterError(
            f"methods must be {names[0]} alone with slices, whose windows are planned, got "
            f"{len(methods)} methods; plan the others by themselves, which count each slice",
            name="methods",
        )
    if windows is None:
        windows = (1, round(slices**0.5), slices)
    sizes = [integer_between(1, slices)("windows", size) for size in windows]
    return tuple(dict.fromkeys(sizes))


def check_categories(categories: Any, windows: tuple[int, ...]) -> tuple[float, ...]:
    """Parts of the records with each label of a planned category; none without one."""
    if categories is None:
        return ()
    if not windows:
        raise ParameterError(
            "categories must be left out without slices and method cube, which counts them; plan "
            "methods=cube with slices",
            name="categories",
        )
    if isinstance(categories, int):
        labels: int = integer_between(2, MAX_PLANNED_LABELS)("categories", categories)
        return (1 / labels,) * labels
    parts = [float(part) if isinstance(part, int | float) else -1.0 for part in categories]
    if (
        not 2 <= len(parts) <= MAX_PLANNED_LABELS
        or not all(0 < part < 1 for part in parts)
        or abs(sum(parts) - 1) > 1e-6
    ):
        raise ParameterError(
            f"categories must be 2 to {MAX_PLANNED_LABELS} parts above 0 % that sum to 100 %, got "
            f"{len(parts)} that sum to {100 * sum(parts):.4g} %",
            name="categories",
        )
    return tuple(parts)


def simulate_cube_errors(
    request: PlanRequest, density: AssumedDensity, random: np.random.Generator
) -> Iterator[pandas.DataFrame]:
    """As `psd.apps.planning.simulation.simulate_errors`, of queries in windows of time."""
    import pandas as pd

    slices = request.series.slices
    people = draw_population(
        request.count * slices,
        request.domain,
        density,
        random,
        contributions=request.max_contributions or 1,
    )
    x, y, weight = cell_centres(request.domain, people)
    queries = draw_queries(request, x, y, weight, random)
    people = _in_time(people, slices, request, density, random)
    parts, category = np.array(request.categories), None
    if request.categories:
        people, labels = _labelled(people, parts, random), tuple(map(str, range(len(parts))))
        category = CategoryAxis("label", labels, (-1,) * len(parts), has_other=False)
    x, y, weight = cell_centres(request.domain, people)
    assert people.slice is not None  # just drawn
    starts = [
        (size, int(start))
        for size in request.windows
        for start in np.unique(random.integers(0, slices - size + 1, WINDOW_STARTS))
    ]
    # Windows of the cells of all axes, and the part of the records that have their label.
    asked: list[tuple[int, dict[str, float], Integers]]
    asked = [(size, {}, np.arange(start, start + size)) for size, start in starts]
    cell = people.slice
    if people.region is not None:
        cell = people.slice * len(parts) + people.region
        asked = [
            (
                size,
                {"category": part},
                window * len(parts) + random.choice(np.flatnonzero(parts == part)),
            )
            for size, _, window in asked
            for part in dict.fromkeys(request.categories)
        ]
    boxes, extended = queries.boxes, extend_to_edges(queries.boxes, request.domain)
    true = []
    for _, _, window in asked:
        during = np.isin(cell, window)
        true.append(count_in_boxes(x[during], y[during], weight[during], extended))
    hours = hours_of(slices)
    areas = BoxAreas(given=boxes, boxes=boxes, ids=list(range(len(boxes))))
    for epsilon in request.epsilons:
        for method in request.methods:
            for law in request.series.laws:
                release = draw_cube(
                    people,
                    request.domain,
                    hours,
                    category=category,
                    budget=Budget(request.series.loss(epsilon, law)),
                    method=method,
                    unit=request.unit,
                    covariate=None,
                    boundary=None,
                    regions=None,
                    about=None,
                    values=(),
                    sampler=None,
                )
                assert isinstance(release.record, CubeRecord)  # `draw_cube` makes one
                cells = Windows.of_cells([each for *_, each in asked], release.record.sizes)
                found = cube_totals(fit_cube(release.record), areas, cells)
                tables = []
                for (size, of, _), totals, counts in zip(asked, found, true, strict=True):
                    off = np.abs(np.maximum(totals.estimate, 0.0) - counts)
                    tables.append(
                        pd.DataFrame(
                            {
                                "epsilon": epsilon_text(epsilon),
                                "method": method.name,
                                "noise": law,
                                "density": density.kind,
                                "window": size,
                                **of,
                                "centres": queries.kinds,
                                "size_share": queries.sizes,
                                "count": counts,
                                "relative_error": off
                                / relative_base(
                                    counts, request.count * size * of.get("category", 1)
                                ),
                                "absolute_error": off,
                            }
                        )
                    )
                yield pd.concat(tables)


def _labelled(people: Tally, parts: Floats, random: np.random.Generator) -> Tally:
    """Give synthetic records a label each, by its part of all, wherever and whenever they are."""
    counts = random.multinomial(people.counts, parts)
    row, label = np.nonzero(counts)
    return Tally(
        columns=people.columns[row],
        rows=people.rows[row],
        counts=counts[row, label],
        slice=None if people.slice is None else people.slice[row],
        region=label.astype(np.int32),
        contributions=people.contributions,
    )


def hours_of(slices: int) -> TimeSlices:
    """A public list of so many slices."""
    first = np.datetime64("2000-01-01T00", "h")
    return TimeSlices.parse("hour", f"{first}..{first + np.timedelta64(slices - 1, 'h')}")


def _in_time(
    people: Tally,
    slices: int,
    request: PlanRequest,
    density: AssumedDensity,
    random: np.random.Generator,
) -> Tally:
    """Give synthetic records a time slice each; with an even density all slices are alike."""
    block = None
    if density.kind != "uniform":
        columns, rows = (
            each.astype(np.int64) * TIME_BLOCKS // size
            for each, size in zip(
                (people.columns, people.rows), request.domain.lattice, strict=True
            )
        )
        block = rows * TIME_BLOCKS + columns
    return spread_in_time(people, slices, request.count * slices, block, random)


def spread_in_time(
    people: Tally,
    slices: int,
    number: int,
    block: Integers | None,
    random: np.random.Generator,
) -> Tally:
    """Give synthetic records, about a number of them, a time slice each.

    block: (cells,), place of each cell; None if all slices are alike. Shares of halves of time are
    random, of all places alike and beside this of each one, as mornings are where people live.
    """
    # Records of a cell go in groups that share a slice, which bounds the rows of the tally.
    group = -(-number // MAX_GROUPS)
    parts = -(-people.counts // group)
    cell = np.repeat(np.arange(len(parts)), parts)
    last = np.cumsum(parts) - 1
    counts = np.full(len(cell), group)
    # The last group of a cell has what is left, from 1 to a whole group.
    counts[last] = people.counts - group * (parts - 1)
    if block is None:
        when = random.integers(0, slices, len(cell))
    else:
        # A profile of time for all places, times one of each block of cells.
        common, place = _time_shares(slices, random), block[cell]
        when = np.empty(len(cell), np.int64)
        for each in np.unique(place).tolist():
            at = np.flatnonzero(place == each)
            shares = common * _time_shares(slices, random)
            when[at] = random.choice(slices, len(at), p=shares / shares.sum())
    made = Tally(
        columns=people.columns[cell],
        rows=people.rows[cell],
        counts=counts,
        slice=when,
        region=None if people.region is None else people.region[cell],
    )
    return replace(add_tallies([made]), contributions=people.contributions)


def _time_shares(slices: int, random: np.random.Generator) -> Floats:
    """Shares of slices, (slices,): each half of a span of time has a random part of its records."""
    shares = np.ones(1)
    while len(shares) < slices:
        part = random.beta(TIME_EVENNESS, TIME_EVENNESS, len(shares))
        shares = np.stack([shares * part, shares * (1 - part)], axis=1).ravel()
    return shares[:slices]
