"""From exact counts to a release, each slice with its own curator, whose answers are recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.api.release import Release
from psd.curator.curator import Curator
from psd.decompositions import Decomposition
from psd.errors import InputDataError, ParameterError
from psd.ingest.tally import Batch, Tally
from psd.mechanisms.base import Sampler
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import AXES, STATEMENTS, Budget, method_parameters
from psd.privacy.loss import epsilon_text
from psd.privacy.unit import (
    ContributionScope,
    PrivacyUnit,
    counted_unit,
    squared_sensitivity,
    unit_of_all_slices,
)
from psd.publish.insecure import SeededSampler
from psd.publish.public_inputs import PublicInputs, default_post_processing
from psd.release.cube import CubeRecord, other_layers
from psd.release.record import CountSource, ReleaseRecord
from psd.release.series import SeriesRecord
from psd.space.axes import TimeAxis
from psd.space.cube_tree import SliceCap
from psd.space.region_axis import RegionAxis

if TYPE_CHECKING:
    from psd.privacy.loss import LossMeasure
    from psd.privacy.values import Value
    from psd.publish.counting import CountedRows
    from psd.publish.request import BuildRequest
    from psd.regions.hierarchy import RegionHierarchy
    from psd.release.about import About
    from psd.release.post_processing import PostProcessing
    from psd.space.axes import Axis
    from psd.space.boundary import Boundary
    from psd.space.categories import CategoryAxis
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain
    from psd.space.region_tree import Regions
    from psd.space.time_slices import TimeSlices

__all__ = [
    "draw_cube",
    "draw_release",
    "rows_in_slices",
    "slice_budgets",
    "slice_tally",
    "squared_of",
]


def draw_counts(
    request: BuildRequest,
    counted: CountedRows,
    inputs: PublicInputs,
    budget: Budget,
    sampler: Sampler,
    *,
    on_slice: Callable[[int, int], None] | None = None,
) -> Release:
    """Draw the release of the counts, or the series of their slices, unless these are together."""
    scope = request.contribution_scope
    common: dict[str, Any] = {
        "budget": budget,
        "method": request.method,
        "unit": request.unit if scope == "slice" else counted.unit,
        "post_processing": inputs.post_processing,
        "covariate": inputs.covariate,
        "boundary": inputs.boundary,
        "regions": request.regions,
        "about": request.about,
        "values": request.values,
        "sampler": sampler,
    }
    if request.is_cube:
        common["category"] = request.category
        return draw_cube(counted.tally, counted.domain, request.slices, scope=scope, **common)
    if counted.tally.slice is None:
        squared = squared_of(budget, common["unit"], scope, None)
        return draw_release(counted.tally, counted.domain, squared_sensitivity=squared, **common)
    assert request.slices is not None  # by which the tally was counted
    return draw_series(
        counted.tally, counted.domain, request.slices, scope=scope, on_slice=on_slice, **common
    )


def draw_release(
    counts: Tally,
    domain: Domain,
    *,
    budget: Budget,
    method: Decomposition,
    unit: PrivacyUnit,
    squared_sensitivity: int | None = None,
    post_processing: PostProcessing | None = None,
    covariate: Covariate | None = None,
    boundary: Boundary | None = None,
    regions: RegionHierarchy | None = None,
    about: About | None = None,
    values: tuple[Value, ...] = (),
    sampler: Sampler | None = None,
) -> Release:
    """Draw the release of records that have been tallied: the part of a build after reading.

    counts: exact, of `domain` and `unit`, private; all else public. They have no records outside
    `boundary` or in none of the `regions`, by which they were counted. The method gets what is left
    of `budget`, and all of it is spent. A release of another sampler than `SecureSampler` cannot be
    saved.
    P1. The release is epsilon-differentially private for adding or removing one unit of the tally;
    of several releases of one tally the epsilons add up. With a budget in rho it is rho-zCDP, and
    (epsilon, delta)-differentially private.
    P2. It holds the noisy answers, public parameters and nothing else.
    """
    [record] = _draw_layers(
        counts,
        domain,
        budget=budget,
        method=method,
        unit=unit,
        squared_sensitivity=squared_sensitivity,
        post_processing=post_processing,
        covariate=covariate,
        boundary=boundary,
        regions=regions,
        about=about,
        values=values,
        sampler=sampler,
    )
    return Release(record)


def _draw_layers(
    counts: Tally,
    domain: Domain,
    *,
    budget: Budget,
    method: Decomposition,
    unit: PrivacyUnit,
    squared_sensitivity: int | None,
    post_processing: PostProcessing | None = None,
    covariate: Covariate | None,
    boundary: Boundary | None,
    regions: RegionHierarchy | None,
    about: About | None,
    values: tuple[Value, ...],
    sampler: Sampler | None,
    axes: tuple[Axis, ...] = (),
    cap: SliceCap | None = None,
) -> list[ReleaseRecord]:
    """Draw the layers of a release: one, or with axes the plane first and that of all axes last."""
    if counts.contributions != unit.contributions:
        raise ParameterError(
            f"unit must be that of the tally, {counts.contributions} contributions, got "
            f"{unit.contributions}"
        )
    parameters = method_parameters(method)
    inputs = PublicInputs(
        post_processing=post_processing or default_post_processing(method),
        covariate=covariate,
        boundary=boundary,
    )
    sampler = SecureSampler() if sampler is None else sampler
    weights, mask = inputs.method_covariate, inputs.mask
    published = domain

    # An adaptive method does not divide the blocks of the smallest cell, so it sees them as points.
    # Regions have outlines, which no block follows.
    is_fine = hasattr(method, "step") or regions is not None or domain.cell_step == (1, 1)
    blocks = None if is_fine else domain.blocks
    if blocks is not None:
        counts, domain = counts.in_blocks(blocks), domain.in_blocks(blocks)
        weights = None if weights is None else replace(weights, blocks=blocks)
        mask = None if mask is None else replace(mask, blocks=blocks)
    curator = Curator(
        counts,
        domain,
        budget=budget,
        sampler=sampler,
        squared_sensitivity=squared_sensitivity,
        covariate=weights,
        boundary=mask,
        regions=regions,
        axes=axes,
        cap=cap,
    )
    trees, picks = [method.build(curator)], curator.declared
    if axes:  # the plane is the first layer of such a method, and the joint one the last
        trees = [*map(curator.tree, range(curator.layers - 1)), *trees]
    del curator  # with the records and all that the trees were made of
    if blocks is not None:
        trees = [replace(t, boxes=blocks.to_fine(t.boxes).astype(np.int32)) for t in trees]
    # Explicit sizes divide as the caller told them to.
    if not all(published.blocks.keeps(tree.boxes) for tree in trees):
        published = replace(published, min_cell=None)

    # Only noise of the secure sampler may be published.
    source: CountSource = "insecure" if isinstance(sampler, SeededSampler) else "replay"
    if type(sampler) is SecureSampler:
        source = "curator"
    loss: dict[str, Any] = {"epsilon": budget.total}
    if not budget.measure.is_pure:  # then that of the whole release, with delta and rho
        whole = budget.loss
        loss = {"epsilon": whole.epsilon, "delta": whole.delta, "rho": whole.rho}
    stated = dict(budget.statement)
    if axes:
        stated[AXES] = ",".join(axis.name for axis in axes)
    return [
        ReleaseRecord(
            tree=tree,
            domain=published,
            **loss,
            method=method.name,
            parameters=parameters.with_statement(STATEMENTS, stated).with_picks(picks),
            unit=unit,
            post_processing=inputs.post_processing,
            covariate=inputs.release_covariate,
            boundary=boundary is not None,
            source=source,
            about=about,
            values=values,
        )
        for tree in trees
    ]


def draw_cube(
    counts: Tally,
    domain: Domain,
    slices: TimeSlices | None,
    *,
    category: CategoryAxis | None = None,
    regions: RegionHierarchy | None = None,
    scope: ContributionScope = "series",
    budget: Budget,
    unit: PrivacyUnit,
    **common: Any,
) -> Release:
    """Draw the cube of records that were tallied by slice, category or both, in one build.

    counts: exact, with the slice and the stratum of each, bounded by `counted_unit`, private; all
    else public. `common` are arguments of `draw_release`; the method divides time and categories.
    P4. The cube is epsilon-differentially private for adding or removing one unit; in rho it is
    rho-zCDP. One curator answers all questions of all layers, so its proof is that of the cube. A
    bound for each slice is one of all slices together, T times as large, in which each slice holds
    at most the bound (`psd.privacy.unit.unit_of_all_slices`). A category changes no sensitivity: a
    record has one, and the records of a unit in all of them are bounded together.
    """
    if slices is not None and not 0 < (counts.slices_below or 0) <= len(slices):
        raise ParameterError("slices must be those that the tally was counted with")
    if counts.contributions != counted_unit(unit, scope).contributions:
        raise ParameterError(
            f"unit must be that of the tally, {counts.contributions} contributions, got "
            f"{unit.contributions}"
        )
    whole, terms = cube_terms(unit, scope, slices, budget.measure, category, regions)
    counts = counts.with_contributions(whole.contributions)
    common |= {"budget": budget, "unit": whole, "regions": regions}
    plane, *others, joint = _draw_layers(counts, domain, **terms, **common)
    labels, times = other_layers(others)
    axes: dict[str, Any] = {"slices": slices, "category": category}
    return Release(CubeRecord(**axes, joint=joint, plane=plane, labels=labels, times=times))


def cube_terms(
    unit: PrivacyUnit,
    scope: ContributionScope,
    slices: TimeSlices | None,
    measure: LossMeasure,
    category: CategoryAxis | None = None,
    regions: Regions | None = None,
) -> tuple[PrivacyUnit, dict[str, Any]]:
    """Unit of a cube, and its curator's axes and noise; without slices that of one release."""
    axes: tuple[Axis, ...] = () if category is None else (category,)
    axes = axes if regions is None else (*axes, RegionAxis(regions))
    if slices is None:
        squared = None if measure.is_pure else squared_sensitivity(unit, scope, 1)
        return unit, {"axes": axes, "cap": None, "squared_sensitivity": squared}
    whole = unit_of_all_slices(unit, scope, len(slices))
    terms: dict[str, Any] = {"axes": (TimeAxis(slices), *axes)}
    terms |= {"cap": None, "squared_sensitivity": None}
    if not measure.is_pure:
        terms["cap"] = SliceCap.of_unit(whole)
        terms["squared_sensitivity"] = terms["cap"].squared_sensitivity(len(slices))
    return whole, terms


def slice_budgets(
    budget: Budget, slices: int, unit: PrivacyUnit, scope: ContributionScope
) -> tuple[Budget, ...]:
    """Budgets of all slices, from that of their series; `draw_series` has the proof."""
    counted_unit(unit, scope)
    if not budget.measure.is_pure:  # the bound of a slice is in the sensitivity
        return budget.in_parallel(slices)
    if scope == "slice" and budget.left < slices:
        raise ParameterError(
            f"epsilon must be at least {epsilon_text(slices)}, 1e-9 for each slice, got "
            f"{epsilon_text(budget.left)}; use fewer slices, or bound the records of a user over "
            "all slices together"
        )
    return budget.in_parallel(slices) if scope == "series" else budget.in_sequence(slices)


def draw_series(
    counts: Tally,
    domain: Domain,
    slices: TimeSlices,
    *,
    scope: ContributionScope = "series",
    budget: Budget,
    method: Decomposition,
    unit: PrivacyUnit,
    on_slice: Callable[[int, int], None] | None = None,
    **common: Any,
) -> Release:
    """Draw the series of records that were tallied by slice.

    counts: exact, with the slice of each, bounded by `counted_unit`, private; all else public.
    `budget` is that of the series; `on_slice` gets the numbers of slices drawn and of all; `common`
    are arguments of `draw_release`.
    P3. The series is epsilon-differentially private for adding or removing one unit; the epsilons
    of several series or releases of the same records add up.

    Parallel composition if k bounds a unit in all slices together: the slice is one more coordinate
    of the cell. A record lies in one slice, and every question of the curator of a slice reads only
    records of it. So z of slice s(z) is in cells of that curator's questions only, and the sum S(z)
    of epsilon over all questions of all slices whose cell has z is at most epsilon, as it enforces.
    With every scale and sensitivity times k, a unit with m_z records at z, m_1 + m_2 + ... at most
    k, loses at most the sum of S(z) m_z / k, so at most epsilon, in however many slices they lie.
    All records of a user's day, if they are the unit, are bounded together in the same way.

    Sequential composition if k bounds a user in each slice: each of the T releases is (epsilon /
    T)-differentially private for all records of a user in its slice, and the T losses add up
    (McSherry. "Privacy Integrated Queries." SIGMOD 2009, theorems 3 and 4). Epsilon / T is rounded
    down to whole nano-units, so the sum never passes epsilon.

    In rho every slice has all of rho, whatever the scope: points of the proof of
    `psd.curator.curator.Curator` are pairs of a lattice cell and a slice, and the squared
    sensitivity is k cap, with k = T m and cap = m where m records of a user are kept in each slice.
    """
    if counts.slice is None or counts.slice.max(initial=0) >= len(slices):
        raise ParameterError("slices must be those that the tally was counted with")
    # Each slice states what was spent before.
    budgets = slice_budgets(budget, len(slices), unit, scope)
    squared = squared_of(budget, unit, scope, slices)
    releases = []
    for number, part in enumerate(budgets):
        release = draw_release(
            slice_tally(counts, number),
            domain,
            budget=part,
            method=method,
            unit=unit,
            squared_sensitivity=squared,
            **common,
        )
        releases.append(release)
        if on_slice is not None:
            on_slice(len(releases), len(slices))
    # Not `Release.of`, which adds the epsilons: a record is in the tally of one slice only.
    records = tuple(release.index.record for release in releases)
    return Release(SeriesRecord(slices=slices, releases=records, scope=scope))


def squared_of(
    budget: Budget, unit: PrivacyUnit, scope: ContributionScope, slices: TimeSlices | None
) -> int | None:
    """Squared sensitivity of a budget in rho; None of one in epsilon."""
    if budget.measure.is_pure:
        return None
    return squared_sensitivity(unit, scope, 1 if slices is None else len(slices))


def slice_tally(counts: Tally, number: int) -> Tally:
    """Counts of one slice; a tally is sorted by slice."""
    if counts.slice is None:
        raise ParameterError("tally must be counted with time slices, got one without")
    # Rows low to high - 1 of every array of the tally are of this slice.
    low, high = np.searchsorted(counts.slice, [number, number + 1])
    return Tally(
        columns=counts.columns[low:high],
        rows=counts.rows[low:high],
        counts=counts.counts[low:high],
        region=None if counts.region is None else counts.region[low:high],
        values=None if counts.values is None else counts.values[low:high],
        record_weight=counts.record_weight,
        contributions=counts.contributions,
    )


def rows_in_slices(batches: Iterable[Batch], slices: TimeSlices) -> Iterator[Batch]:
    """Coordinates, times and labels of the records that lie in any of the slices."""
    import pyarrow as pa

    for batch in (batch.selected() for batch in batches):
        if batch.time is None:
            raise InputDataError(
                "the input must have times to be counted by time slice; name the column with "
                "time=NAME"
            )
        inside = slices.index(batch.time) >= 0
        label = None if batch.label is None else batch.label.filter(pa.array(inside))
        yield Batch(x=batch.x[inside], y=batch.y[inside], time=batch.time[inside], label=label)
