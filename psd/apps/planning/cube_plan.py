"""Simulated cubes: errors of areas in windows of time, on populations of an assumed density."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Floats
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
from psd.space.time_slices import TimeSlices

if TYPE_CHECKING:
    import pandas

    from psd.apps.planning.simulation import PlanRequest

__all__ = ["check_windows", "simulate_cube_errors"]


def check_windows(methods: Sequence[Any], slices: int, windows: Any) -> tuple[int, ...]:
    """Numbers of slices of the windows of a plan; none of methods that count each slice by itself.

    By default one slice, about the root of all of them, and all.

    Raises
    ------
    ParameterError
        If methods that divide time are planned beside others, or windows are given without one.
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


def simulate_cube_errors(
    request: PlanRequest, density: AssumedDensity, random: np.random.Generator
) -> Iterator[pandas.DataFrame]:
    """Draw a population over space and time and yield the errors of all queries, build by build.

    As `psd.apps.planning.simulation.simulate_errors`, of queries in windows of time.
    """
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
    x, y, weight = cell_centres(request.domain, people)
    assert people.slice is not None  # just drawn
    starts = [
        (size, int(start))
        for size in request.windows
        for start in np.unique(random.integers(0, slices - size + 1, WINDOW_STARTS))
    ]
    windows = [np.arange(start, start + size) for size, start in starts]
    boxes, extended = queries.boxes, extend_to_edges(queries.boxes, request.domain)
    true = []
    for window in windows:
        during = (people.slice >= window[0]) & (people.slice <= window[-1])
        true.append(count_in_boxes(x[during], y[during], weight[during], extended))
    hours = _hours(slices)
    areas = BoxAreas(given=boxes, boxes=boxes, ids=list(range(len(boxes))))
    for epsilon in request.epsilons:
        for method in request.methods:
            for law in request.series.laws:
                release = draw_cube(
                    people,
                    request.domain,
                    hours,
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
                asked = Windows.of_cells(windows, [slices])
                assert isinstance(release.record, CubeRecord)  # `draw_cube` makes one
                found = cube_totals(fit_cube(release.record), areas, asked)
                tables = []
                for (size, _), totals, counts in zip(starts, found, true, strict=True):
                    off = np.abs(np.maximum(totals.estimate, 0.0) - counts)
                    tables.append(
                        pd.DataFrame(
                            {
                                "epsilon": epsilon_text(epsilon),
                                "method": method.name,
                                "noise": law,
                                "density": density.kind,
                                "window": size,
                                "centres": queries.kinds,
                                "size_share": queries.sizes,
                                "count": counts,
                                "relative_error": off / relative_base(counts, request.count * size),
                                "absolute_error": off,
                            }
                        )
                    )
                yield pd.concat(tables)


def _hours(slices: int) -> TimeSlices:
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
    """Give synthetic records a time slice each.

    With an even density all slices are alike. Otherwise shares of halves of time are random, of all
    places alike and beside this of each block of them, as mornings are where people live.
    """
    group = -(-request.count * slices // MAX_GROUPS)
    parts = -(-people.counts // group)
    cell = np.repeat(np.arange(len(parts)), parts)
    last = np.cumsum(parts) - 1
    counts = np.full(len(cell), group)
    counts[last] = people.counts - group * (parts - 1)
    if density.kind == "uniform":
        number = random.integers(0, slices, len(cell))
    else:
        columns, rows = (
            each.astype(np.int64) * TIME_BLOCKS // size
            for each, size in zip(
                (people.columns, people.rows), request.domain.lattice, strict=True
            )
        )
        block = (rows * TIME_BLOCKS + columns)[cell]
        common = _time_shares(slices, random)
        number = np.empty(len(cell), np.int64)
        for each in np.unique(block).tolist():
            at = np.flatnonzero(block == each)
            shares = common * _time_shares(slices, random)
            number[at] = random.choice(slices, len(at), p=shares / shares.sum())
    made = Tally(columns=people.columns[cell], rows=people.rows[cell], counts=counts, slice=number)
    merged = add_tallies([made])
    return Tally(
        columns=merged.columns,
        rows=merged.rows,
        counts=merged.counts,
        slice=merged.slice,
        contributions=people.contributions,
    )


def _time_shares(slices: int, random: np.random.Generator) -> Floats:
    """Shares of slices, (slices,): each half of a span of time has a random part of its records."""
    shares = np.ones(1)
    while len(shares) < slices:
        part = random.beta(TIME_EVENNESS, TIME_EVENNESS, len(shares))
        shares = np.stack([shares * part, shares * (1 - part)], axis=1).ravel()
    return shares[:slices]
