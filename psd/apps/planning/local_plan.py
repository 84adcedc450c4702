"""Expected errors of local campaigns, beside those of a central release of the same population.

Campaigns have their exact laws, and no report is drawn: the time does not depend on the devices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from psd._util.arrays import Floats, Integers
from psd._util.declared_parameters import integer_between
from psd.apps.evaluation.true_counts import (
    cell_centres,
    count_in_boxes,
    extend_to_edges,
    relative_base,
)
from psd.apps.evaluation.workload import (
    AREAS,
    Epsilon,
    check_distinct,
    draw_workload,
    listed,
    parse_epsilons,
)
from psd.apps.local.aggregation import Counted, release_of
from psd.apps.local.campaign_design import PLANS, design
from psd.apps.local.device import SHARES, Campaign
from psd.apps.local.protocols import protocol_of
from psd.apps.local.randomization import find_answers
from psd.apps.local.rounds import round_after
from psd.apps.planning._constants import QUERIES
from psd.apps.planning.plan import MAX_RECORDS
from psd.apps.planning.population import DENSITIES, AssumedDensity, draw_population
from psd.decompositions.auto import Auto
from psd.errors import ParameterError
from psd.ingest.tally import Tally
from psd.privacy.budget import Budget
from psd.privacy.loss import epsilon_text
from psd.privacy.unit import PrivacyUnit
from psd.publish.drawing import draw_release
from psd.query.boxes import box_estimates
from psd.space.domain import Domain, public_domain

if TYPE_CHECKING:
    import pandas

    from psd.api.release import Release


def draw_campaign(
    campaign: Campaign, x: Floats, y: Floats, devices: Integers, random: np.random.Generator
) -> Release:
    """Draw the release of a campaign of public points x, y (n,) with devices (n,) at each."""
    shares = np.array([group.share for group in campaign.groups]) / SHARES
    # (cells, groups): devices of each cell choose their group by themselves.
    in_groups = random.multinomial(devices, shares)
    counted: list[Counted] = []
    for number in range(len(campaign.groups)):
        # A later round is designed by the counts of those before it.
        if campaign.groups[number].draw is None:
            campaign = round_after(campaign, release_of(campaign, counted), counted)
        answers = find_answers(campaign, number, x, y)
        # Of the reports of a group, a cell with k devices is supported by Binomial(k, p) of these
        # and Binomial(reports - k, q) of the others: the exact law of each count. Cells are drawn
        # independently, as they are for ``unary``; others have slightly negative correlations.
        counted.append(_draw_counts(campaign, number, answers, in_groups[:, number], random))
    return release_of(campaign, counted)


def _draw_counts(
    campaign: Campaign,
    number: int,
    answers: Integers,
    devices: Integers,
    random: np.random.Generator,
) -> Counted:
    """Support counts of a group whose devices have these answers."""
    group = campaign.groups[number]
    protocol = protocol_of(group)
    p, q = float(protocol.p), float(protocol.q)
    # Devices with each answer, (answers,); the support of an answer comes from them and others.
    true = np.zeros(protocol.answers, np.int64)
    np.add.at(true, answers, devices)
    reports = int(true.sum())
    # By its law, and not report by report: the sums are all that a release reads.
    support = random.binomial(true, p) + random.binomial(reports - true, q)
    return Counted.of(group, reports, support)


PUBLIC_POINTS = "points"
"""Density of a plan whose populations are drawn from public points."""

_LEAST_DEVICES = 1_000
_MAX_RUNS = 100

Points = tuple[Floats, Floats]
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalPlan:
    """Expected errors of campaigns. Public: they follow from public parameters alone.

    ``table`` has a row per density, number of devices, epsilon and number of rounds: ``error`` of
    the campaign, ``central_error`` of a release with a curator, and their quotient ``factor``, each
    the geometric mean, over eight kinds of boxes, of their mean relative errors; ``percent_off``,
    the mean absolute error of boxes of 10 % of the area in per cent of the devices.
    """

    table: pandas.DataFrame
    runs: int


def plan(
    devices: Sequence[int],
    *,
    domain: Domain | tuple[float, float, float, float],
    epsilon: Epsilon | Sequence[Epsilon],
    rounds: Sequence[int] = (4,),
    density: str | Sequence[str] = DENSITIES,
    points: Points | None = None,
    runs: int = 2,
    seed: int = 0,
    progress: Progress = lambda finished, all_runs: None,
) -> LocalPlan:
    """Predict the errors of local campaigns, and those of the central model beside them.

    Guarantees
    ----------
    - Reads no data and no file: everything is simulated from the arguments.

    Parameters
    ----------
    devices : sequence of int
        Expected numbers of devices, 1,000 to 10^11, each once.
    domain : Domain or tuple of four numbers
        Study area.
    epsilon : str, int, float or Decimal, or sequence of these
        Epsilons of a report, each once. The central release has the same.
    rounds : sequence of int
        Numbers of rounds of `psd.apps.local.design`, each once.
    density : {"uniform", "clustered", "coastal", "places"} or sequence of these
        Assumed densities, each once; see `psd.apps.planning.population.AssumedDensity`.
    points : tuple of two ndarrays, optional
        Public points x and y, such as those of a published register. Populations are then drawn
        from them with replacement, in place of the densities.
    runs : int
        Populations of each density and number of devices, 1 to 100.
    seed : int
        Seed of the populations, the campaigns and the boxes; the noise of the central releases
        does not follow it.
    progress : callable
        Called with the number of finished populations and the number of all.

    Raises
    ------
    ParameterError
        If an argument is wrong; raised before anything is drawn.

    Notes
    -----
    The boxes are 200 of each of four sizes (0.01, 0.1, 1 and 10 % of the area) and two kinds of
    centres (anywhere, on a device). The relative error of a box is
    ``|estimate - true| / max(true, 0.001 devices)``. Support counts are drawn by their exact laws
    (`psd.apps.planning.local_plan`).

    Examples
    --------
    >>> import psd
    >>> expected = psd.apps.local.plan(
    ...     [10_000], domain=(0, 0, 1, 1), epsilon=1, density="uniform", runs=1
    ... )
    >>> float(expected.table["factor"][0]) > 2
    True
    """
    import pandas as pd

    numbers = [integer_between(_LEAST_DEVICES, MAX_RECORDS)("devices", n) for n in devices]
    numbers = list(check_distinct("devices", numbers, [str(n) for n in numbers]))
    nano = parse_epsilons(epsilon)
    area, runs = public_domain(domain), integer_between(1, _MAX_RUNS)("runs", runs)
    sources = _sources(listed(density), points, area)
    for number in rounds:
        if number != 1 and number not in PLANS:
            raise ParameterError(f"rounds must be 1, 2, 3, 4 or 7, got {number!r}", name="rounds")
    rounds = check_distinct("rounds", list(rounds), [str(number) for number in rounds])
    seed = integer_between(0, 2**32 - 1)("seed", seed)
    rows: list[dict[str, object]] = []
    total = len(sources) * len(numbers) * runs
    progress(0, total)
    for name, draw in sources.items():
        for count in numbers:
            for run in range(runs):
                random = np.random.default_rng((seed, run))
                rows += [{"density": name, **row} for row in _errors(
                    draw(count, random=random), area, nano, rounds, random)]  # fmt: skip
                progress(len(rows) // (len(nano) * len(rounds)), total)
    keys = ["density", "devices", "epsilon", "rounds"]
    table = pd.DataFrame(rows).groupby(keys, sort=False).mean().reset_index()
    table["factor"] = table["error"] / table["central_error"]
    return LocalPlan(table=table, runs=runs)


def _errors(
    people: Tally,
    domain: Domain,
    epsilons: Sequence[int],
    rounds: Sequence[int],
    random: np.random.Generator,
) -> Iterator[dict[str, object]]:
    """Errors of a central release and of campaigns of a population."""
    x, y, weight = cell_centres(domain, people)
    count = int(weight.sum())
    centres = random.choice(len(x), 10_000, p=weight / count)
    boxes = draw_workload(
        x[centres],
        y[centres],
        domain.bounds,
        seed=int(random.integers(2**31)),
        per_class=QUERIES,
    ).boxes
    true = count_in_boxes(x, y, weight, extend_to_edges(boxes, domain))
    for nano in epsilons:
        central = draw_release(
            people, domain, budget=Budget(nano), method=Auto(), unit=PrivacyUnit()
        )
        central_error = _summarise(central, boxes, true, count)[0]
        for number in rounds:
            campaign = design(
                domain.bounds, epsilon_text(nano), count, crs=domain.crs, rounds=number
            )
            release = draw_campaign(campaign, x, y, weight, random)
            error, off = _summarise(release, boxes, true, count)
            yield {
                "devices": count,
                "epsilon": epsilon_text(nano),
                "rounds": number,
                "error": error,
                "central_error": central_error,
                "percent_off": off,
            }


def _summarise(release: Release, boxes: Floats, true: Integers, count: int) -> tuple[float, float]:
    """Geometric mean of the errors of eight kinds of boxes, and per cent off in the largest."""
    # Boxes are those of two kinds of centres, of four areas each.
    off = np.abs(box_estimates(release.index, boxes) - true)
    classes = (off / relative_base(true, count)).reshape(2 * len(AREAS), -1).mean(axis=1)
    largest = off.reshape(2, len(AREAS), -1)[:, -1].mean() / count
    return float(np.exp(np.log(np.maximum(classes, 1e-9)).mean())), 100 * float(largest)


def _sources(
    densities: Sequence[str], points: Points | None, domain: Domain
) -> dict[str, Callable[..., Tally]]:
    """Function of a count and of random= that draws a population, by the name of its density."""
    if points is None:
        names = check_distinct("density", densities, list(densities))
        return {
            name: partial(draw_population, domain=domain, density=AssumedDensity(kind=name))
            for name in names
        }
    columns, rows, inside = domain.quantise(*points)
    if not inside.any():
        raise ParameterError("points must be inside the bounds, got none; x and y may be swapped")
    codes = rows.astype(np.int64) * domain.lattice[0] + columns

    def draw(count: int, random: np.random.Generator) -> Tally:
        cells, inverse = np.unique(codes, return_inverse=True)
        # Public points are a density here: populations are drawn from it anew.
        chances = np.bincount(inverse) / len(codes)
        drawn = random.multinomial(count, chances)
        row, column = np.divmod(cells[drawn > 0], domain.lattice[0])
        return Tally(
            columns=column.astype(np.int32),
            rows=row.astype(np.int32),
            counts=drawn[drawn > 0],
            contributions=1,
        )

    return {PUBLIC_POINTS: draw}
