"""From exact counts to a release: the method asks the curator, and the answers are recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from psd.api.release import Release
from psd.curator.curator import Curator
from psd.decompositions import Decomposition
from psd.errors import ParameterError
from psd.ingest.tally import Tally
from psd.mechanisms.base import Sampler
from psd.mechanisms.sampler import SecureSampler
from psd.privacy.budget import Budget
from psd.privacy.statements import STATEMENTS, method_parameters
from psd.privacy.unit import PrivacyUnit
from psd.publish.insecure import SeededSampler
from psd.publish.public_inputs import PublicInputs, default_post_processing
from psd.release.record import CountSource, ReleaseRecord

if TYPE_CHECKING:
    from psd.regions.hierarchy import RegionHierarchy
    from psd.release.about import About
    from psd.release.post_processing import PostProcessing
    from psd.space.boundary import Boundary
    from psd.space.box_tree import Tree
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain
    from psd.space.smallest_cell import Blocks

__all__ = ["coarsest_step", "draw_release", "noise_origin"]


def coarsest_step(method: Decomposition, domain: Domain) -> tuple[int, int]:
    """Lattice columns and rows that a method never divides, so that they are counted together.

    A function of public values, before any record is read: ``method.step(lattice)`` of a method
    that limits its own cells; else the method is adaptive, and it is the smallest cell of the
    domain, ``domain.cell_step``.
    """
    step: Callable[[tuple[int, int]], tuple[int, int]] | None = getattr(method, "step", None)
    return domain.cell_step if step is None else step(domain.lattice)


def noise_origin(sampler: Sampler) -> CountSource:
    """Source of the noise that a release states; only `SecureSampler` is secure."""
    if type(sampler) is SecureSampler:
        return "curator"
    return "insecure" if isinstance(sampler, SeededSampler) else "replay"


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
    sampler: Sampler | None = None,
) -> Release:
    """Draw the release of records that have been tallied: the part of a build after reading.

    Guarantees
    ----------
    - The release is epsilon-differentially private for adding or removing one unit of the
      tally; of several releases of one tally the epsilons add up. With a budget in rho it is
      rho-zCDP, and (epsilon, delta)-differentially private.
    - It holds the noisy answers, public parameters and nothing else.

    Parameters
    ----------
    counts : Tally
        Exact counts. Private.
    domain : Domain
        Of the tally. Public.
    budget : Budget
        Of the release. The method gets what is left of it, and all of it is spent. Public.
    method : Decomposition
        How space is divided. Public.
    unit : PrivacyUnit
        Of the tally. Public.
    squared_sensitivity : int, optional
        Of a budget in rho, see `psd.curator.curator.Curator`. Public.
    post_processing : PostProcessing, optional
        How estimates are made from the counts; by default as the method defines it. Public.
    covariate : Covariate, optional
        Of the same domain. Public.
    boundary : Boundary, optional
        The tally has no records outside it. Public.
    regions : RegionHierarchy, optional
        The tally was counted by them, and the method counts them. Public.
    about : About, optional
        What the publisher states about the release. Public.
    sampler : Sampler, optional
        For tests only; a release of another sampler than `SecureSampler` cannot be saved.

    Returns
    -------
    Release

    Raises
    ------
    ParameterError
        If the tally was counted for another unit, or a parameter of the method was not declared.
    """
    _check_contributions(counts, unit)
    parameters = method_parameters(method)
    inputs = PublicInputs(
        post_processing=post_processing or default_post_processing(method),
        covariate=covariate,
        boundary=boundary,
    )
    sampler = SecureSampler() if sampler is None else sampler
    blocks = _blocks_of(method, domain)
    curator = Curator(
        counts if blocks is None else counts.in_blocks(blocks),
        domain if blocks is None else domain.in_blocks(blocks),
        budget=budget,
        sampler=sampler,
        squared_sensitivity=squared_sensitivity,
        covariate=_covariate_in_blocks(inputs.method_covariate, blocks),
        boundary=_covariate_in_blocks(inputs.mask, blocks),
        regions=regions,
    )
    tree = method.build(curator)
    if blocks is not None:
        tree = replace(tree, boxes=blocks.to_fine(tree.boxes).astype(np.int32))
    statement = parameters.with_statement(STATEMENTS, budget.statement)
    record = ReleaseRecord(
        tree=tree,
        domain=_stated_domain(domain, tree),
        **_loss_fields(budget),
        method=method.name,
        parameters=statement.with_picks(curator.declared),
        unit=unit,
        post_processing=inputs.post_processing,
        covariate=inputs.release_covariate,
        boundary=boundary is not None,
        source=noise_origin(sampler),
        about=about,
    )
    return Release(record)


def _loss_fields(budget: Budget) -> dict[str, Any]:
    """Epsilon of the record of a release; in rho, that of the whole release, with delta and rho."""
    if budget.measure.is_pure:
        return {"epsilon": budget.total}
    return {"epsilon": budget.loss.epsilon, "delta": budget.loss.delta, "rho": budget.loss.rho}


def _blocks_of(method: Decomposition, domain: Domain) -> Blocks | None:
    """Blocks of the smallest cell, which an adaptive method does not divide; else None."""
    if hasattr(method, "step") or domain.cell_step == (1, 1):
        return None
    return domain.blocks


def _covariate_in_blocks(covariate: Covariate | None, blocks: Blocks | None) -> Covariate | None:
    """A covariate for boxes in lines of blocks."""
    return covariate if covariate is None or blocks is None else replace(covariate, blocks=blocks)


def _stated_domain(domain: Domain, tree: Tree) -> Domain:
    """Domain that a release states: without a smallest cell if the caller chose smaller cells.

    A method with explicit sizes, such as a quadtree of a height, divides as it was told to.
    """
    return domain if domain.blocks.keeps(tree.boxes) else replace(domain, min_cell=None)


def _check_contributions(counts: Tally, unit: PrivacyUnit) -> None:
    """Refuse a tally that was counted for another unit."""
    if counts.contributions != unit.contributions:
        raise ParameterError(
            f"unit must be that of the tally, {counts.contributions} contributions, got "
            f"{unit.contributions}"
        )
