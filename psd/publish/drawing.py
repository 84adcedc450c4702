"""From exact counts to a release: the method asks the curator, and the answers are recorded."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

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
    from psd.release.post_processing import PostProcessing
    from psd.space.boundary import Boundary
    from psd.space.covariate import Covariate
    from psd.space.domain import Domain

__all__ = ["coarsest_step", "draw_release", "noise_origin"]


def coarsest_step(method: Decomposition, lattice: tuple[int, int]) -> tuple[int, int]:
    """Lattice columns and rows that a method never divides, so that they are counted together.

    Known before any record is read: from the parameters of methods whose cuts do not depend on
    data, ``method.step(lattice)``; one of each for all others.
    """
    step: Callable[[tuple[int, int]], tuple[int, int]] | None = getattr(method, "step", None)
    return (1, 1) if step is None else step(lattice)


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
    post_processing: PostProcessing | None = None,
    covariate: Covariate | None = None,
    boundary: Boundary | None = None,
    sampler: Sampler | None = None,
) -> Release:
    """Draw the release of records that have been tallied: the part of a build after reading.

    Guarantees
    ----------
    - The release is epsilon-differentially private for adding or removing one unit of the
      tally; of several releases of one tally the epsilons add up.
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
    post_processing : PostProcessing, optional
        How estimates are made from the counts; by default as the method defines it. Public.
    covariate : Covariate, optional
        Of the same domain. Public.
    boundary : Boundary, optional
        The tally has no records outside it. Public.
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
    curator = Curator(
        counts,
        domain,
        budget=budget,
        sampler=sampler,
        covariate=inputs.method_covariate,
        boundary=inputs.mask,
    )
    tree = method.build(curator)
    statement = parameters.with_statement(STATEMENTS, budget.statement)
    record = ReleaseRecord(
        tree=tree,
        domain=domain,
        epsilon=budget.total,
        method=method.name,
        parameters=statement.with_picks(curator.declared),
        unit=unit,
        post_processing=inputs.post_processing,
        covariate=inputs.release_covariate,
        boundary=boundary is not None,
        source=noise_origin(sampler),
    )
    return Release(record)


def _check_contributions(counts: Tally, unit: PrivacyUnit) -> None:
    """Refuse a tally that was counted for another unit."""
    if counts.contributions != unit.contributions:
        raise ParameterError(
            f"unit must be that of the tally, {counts.contributions} contributions, got "
            f"{unit.contributions}"
        )
