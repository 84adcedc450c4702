"""Nested regions: consistent counts of regions and of the rings between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from psd._util.arrays import Floats, Integers, sum_by
from psd.errors import ParameterError
from psd.estimation.least_squares import LEAST_SLOPE, project_families
from psd.query.answer_table import Threshold, two_sided_quantile
from psd.query.cube_covariance import answer_once_jointly
from psd.query.index import CubeWindow, QueryIndex

if TYPE_CHECKING:
    import pandas

    from psd.query.areas import Areas
    from psd.query.joint import Joint


def answer_nested(
    asked: QueryIndex | CubeWindow,
    areas: Areas,
    *,
    parents: ArrayLike | None,
    confidence: float,
    threshold: Threshold,
) -> pandas.DataFrame:
    """Answer nested regions and the rings between them; see `Answers.nested`.

    P1. The count of a region is the sum of its ring and of the regions directly inside it.

    P2. No count and no ring is negative.
    """
    for name in ("ring", "ring_error", "ring_lower", "ring_upper"):
        if name in getattr(areas.given, "columns", ()):
            raise ParameterError(
                f"areas must not have a column {name}, which the answers add; rename it"
            )
    together = answer_once_jointly(asked, areas, confidence=confidence, threshold=threshold)
    parent = _parent_numbers(areas.given, parents, len(areas))
    fit = asked.index.fit.plane if isinstance(asked, CubeWindow) else asked.fit
    _check_nesting(parent, areas.overlaps(fit))
    # Weights of the regions in each ring, (n, n): the region less those directly inside it.
    rings, inner = np.eye(len(parent)), np.flatnonzero(parent >= 0)
    rings[parent[inner], inner] = -1.0
    estimate, ring = _project_regions(together, parent, rings)
    variance = np.einsum("ij,ij->i", rings @ together.covariance, rings)
    error = np.sqrt(np.maximum(variance, 0.0))
    width = two_sided_quantile(confidence) * error
    return together.answers.drop(columns=["joint_lower", "joint_upper"]).assign(
        estimate=estimate,
        ring=ring,
        ring_error=error,
        ring_lower=np.maximum(ring - width, 0.0),
        ring_upper=ring + width,
    )


def _parent_numbers(regions: Any, parents: ArrayLike | None, size: int) -> Integers:
    """Index of the parent of each region; -1 without a parent."""
    if parents is None and "parent" in getattr(regions, "columns", ()):
        import pandas as pd

        if "id" not in regions.columns or regions["id"].duplicated().any():
            raise ParameterError(
                "regions with a column parent must have a column id without duplicates"
            )
        number = {str(name): row for row, name in enumerate(regions["id"])}
        rows = []
        for name in regions["parent"]:
            is_missing = pd.isna(name) or str(name) == ""
            if not is_missing and str(name) not in number:
                raise ParameterError(f"parent must be the id of a region, got {name}")
            rows.append(-1 if is_missing else number[str(name)])
        return np.array(rows, np.int64)
    # By default each region lies in the next one, from the inside out.
    if parents is None:
        return np.append(np.arange(1, size), -1)[:size]
    parent = np.asarray(parents)
    fits = parent.shape == (size,) and parent.dtype.kind in "iu"
    if not fits or (parent < -1).any() or (parent >= size).any():
        raise ParameterError(
            f"parents must be {size} integers from -1 to {size - 1}, one for each region, got "
            f"{str(parents)[:80]}"
        )
    return parent.astype(np.int64)


def _check_nesting(parent: Integers, prepared: Any) -> None:
    """Refuse circles of parents, regions outside their parent, and siblings that overlap."""
    above = parent
    for _ in range(len(parent)):
        if (above < 0).all():
            break
        above = np.where(above >= 0, parent[above], -1)
    if (above >= 0).any():
        raise ParameterError(
            f"parents must not form a circle; region {int((above >= 0).argmax()) + 1} is in one"
        )
    inner = np.flatnonzero(parent >= 0)
    inside = prepared.lie_within(inner, parent[inner])
    if not inside.all():
        child = int(inner[~inside][0])
        raise ParameterError(
            f"region {child + 1} does not lie inside region {int(parent[child]) + 1}; order nested "
            "regions from the inside out, or name their parents"
        )
    for a, b in prepared.overlapping_pairs().tolist():
        if parent[a] == parent[b]:
            raise ParameterError(
                f"regions of one parent must be disjoint, but {a + 1} and {b + 1} overlap"
            )


def _project_regions(joint: Joint, parent: Integers, rings: Floats) -> tuple[Floats, Floats]:
    """Project counts so that no region or ring is negative and a region is the sum of its parts."""
    estimate = joint.answers["estimate"].to_numpy(np.float64).copy()
    ring = rings @ estimate
    size = len(parent)
    variance = np.concatenate(
        [np.diagonal(joint.covariance), np.einsum("ij,ij->i", rings @ joint.covariance, rings)]
    )
    # Number of regions around each one.
    depth, above = np.zeros(size, np.int64), parent
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)

    # Answers add up as they are, unless cells may be negative: then each region's ring and inner
    # regions are projected onto numbers that are not negative and sum to it, the outermost first.
    for level in range(int(depth.max(initial=0)) + 1):
        outer = np.flatnonzero(depth == level)
        inner = np.flatnonzero(np.isin(parent, outer))
        number = np.zeros(size, np.int64)
        number[outer] = np.arange(len(outer))
        # Inner regions, numbered by their outer one, then the ring of each outer region.
        owner = np.concatenate([number[parent[inner]], np.arange(len(outer))])
        values = np.concatenate([estimate[inner], ring[outer]])
        which = np.concatenate([inner, outer + size])
        share = (
            variance[which] / np.maximum(sum_by(owner, variance[which], len(outer)), 1e-300)[owner]
        )
        fixed = project_families(values, np.maximum(share, LEAST_SLOPE), owner, estimate[outer])
        estimate[inner], ring[outer] = fixed[: len(inner)], fixed[len(inner) :]
    return estimate, ring
