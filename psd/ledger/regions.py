"""How the epsilons of several releases of one dataset add up. Private side, reads no points.

If a record is the unit of privacy, releases of regions without a common point cost each record only
the epsilon of the region that contains it. All other charges add up, because code cannot check any
other reason to count less.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BY_FIELDS", "Region", "parse_region", "region_fields", "spent_within"]

Bounds = tuple[float, float, float, float]

BY_FIELDS = "reader=csv"
"""Item among the columns of a region: positions come only from the fields of CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Area of the records on which a release can depend. Public."""

    bounds: Bounds  # west, south, east, north; the edges belong to the region
    crs: str  # CRS of the bounds, in its canonical text
    # Reader, columns and other options that decide the position of a record.
    columns: tuple[str, ...]
    lattice: tuple[int, int] = (1, 1)  # columns and rows of the release; not used for sums

    @property
    def frame(self) -> tuple[str, tuple[str, ...]]:
        """CRS and columns, which two regions must share for their bounds to be comparable."""
        return self.crs, self.columns


def region_fields(region: Region | None) -> dict[str, Any] | None:
    """Return the fields of a region, for the entry of a charge."""
    return None if region is None else asdict(region)


def parse_region(fields: Mapping[str, Any] | None) -> Region | None:
    """Parse the region of the entry of a charge; None if geometries may have placed records."""
    # A geometry may differ from the columns beside it, so such a charge counts everywhere.
    if fields is None or BY_FIELDS not in fields["columns"]:
        return None
    lists = {name: tuple(fields[name]) for name in ("bounds", "columns", "lattice")}
    return Region(crs=fields["crs"], **lists)


def spent_within(charges: Iterable[tuple[Region | None, int]], region: Region | None) -> int:
    """Compute the largest sum of epsilon, in nano-epsilon, over the points of a region.

    P1. A record at a point is charged by every release whose region contains that point. Regions
    that touch have points in common, since the far edges of a domain belong to it.

    P2. Regions in another CRS or of other columns, and releases without a region, are treated as if
    they contained all points.

    Proof. Let record z lie at point p in frame f, and at some point in every other frame. A release
    whose region does not contain the point of z does not depend on z. Any other release loses at
    most its epsilon. So by basic composition [1]_ the loss is at most the sum over the charges
    everywhere plus, for each frame, the sum over its regions that contain the point of z in that
    frame. The latter is at most the largest such sum of the frame, taken within the region for the
    frame of the region. The sum is checked against a budget before every release, so the bound
    holds in every transcript. The choice of releases may depend on earlier answers: with pure
    epsilons the check is a filter [2]_.

    A dataset registers how its records are read. A charge with another rule for positions has no
    region, see `psd.ledger.readings`. So its charges have regions of one frame for each CRS.
    Charges from before the registration may have other frames, which the proof covers.

    References
    ----------
    .. [1] McSherry. "Privacy Integrated Queries." SIGMOD 2009, theorems 3 and 4.
    .. [2] Rogers, Roth, Ullman, Vadhan. "Privacy Odometers and Filters: Pay-as-you-Go
       Composition." NeurIPS 2016.
    """
    everywhere = 0
    frames: dict[object, dict[Bounds, int]] = defaultdict(lambda: defaultdict(int))
    for charged, loss in charges:
        if charged is None:
            everywhere += loss
        else:
            frames[charged.frame][charged.bounds] += loss
    for frame, sums in frames.items():
        is_same = region is not None and region.frame == frame
        everywhere += _largest_sum(sums, region.bounds if is_same and region else None)
    return everywhere


def _largest_sum(charges: dict[Bounds, int], within: Bounds | None) -> int:
    """Largest sum over points of closed boxes; it is reached at a west and a south edge."""
    boxes = np.array(list(charges), np.float64).reshape(-1, 4)
    loss = np.array(list(charges.values()), np.int64)
    if within is not None:
        low, high = np.maximum(boxes[:, :2], within[:2]), np.minimum(boxes[:, 2:], within[2:])
        meets = (low <= high).all(axis=1)
        boxes, loss = np.hstack([low, high])[meets], loss[meets]
    largest = 0
    for west in np.unique(boxes[:, 0]):
        met = (boxes[:, 0] <= west) & (boxes[:, 2] >= west)
        largest = max(largest, _largest_sum_on_line(boxes[met, 1], boxes[met, 3], loss[met]))
    return largest


def _largest_sum_on_line(
    south: NDArray[np.float64], north: NDArray[np.float64], loss: NDArray[np.int64]
) -> int:
    """Largest sum over points of closed intervals: those begun minus those ended before."""
    begun, ended = np.argsort(south), np.argsort(north)
    edges = south[begun]
    sums = np.append(0, np.cumsum(loss[begun])), np.append(0, np.cumsum(loss[ended]))
    at = sums[0][np.searchsorted(edges, edges, side="right")]
    at = at - sums[1][np.searchsorted(north[ended], edges, side="left")]
    return int(at.max(initial=0))
