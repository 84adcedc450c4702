"""The same regions in two releases: how much more, and how many times as much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Floats
from psd.errors import DomainError, ParameterError
from psd.query import answer
from psd.query.derived import fieller, reach
from psd.space.regions import attach_crs

if TYPE_CHECKING:
    import pandas

    from psd.query.index import QueryIndex

__all__ = ["difference", "ratio"]


_ANSWERS = (
    "estimate", "perturbation_error", "nonuniformity_error", "error", "lower", "upper",
    "relative_perturbation_error", "relative_nonuniformity_error", "relative_error", "reliable",
)  # fmt: skip


def difference(
    first: QueryIndex,
    second: QueryIndex,
    regions: Any,
    *,
    crs: Any = None,
    confidence: float = 0.95,
) -> pandas.DataFrame:
    """Counts of a first release minus those of a second; see `psd.difference`."""
    table, x, y, noise, spread = _pair(
        first, second, attach_crs(regions, crs, first.model.domain), confidence
    )
    error = np.sqrt(noise.sum(axis=0) + spread.sum(axis=0))
    found: pandas.DataFrame = table.assign(
        difference=x - y,
        perturbation_error=np.sqrt(noise.sum(axis=0)),
        nonuniformity_error=np.sqrt(spread.sum(axis=0)),
        error=error,
        lower=x - y - reach(confidence) * error,
        upper=x - y + reach(confidence) * error,
    )
    return found


def ratio(
    first: QueryIndex,
    second: QueryIndex,
    regions: Any,
    *,
    crs: Any = None,
    confidence: float = 0.95,
) -> pandas.DataFrame:
    """Counts of a first release divided by those of a second; see `psd.ratio`."""
    table, x, y, noise, spread = _pair(
        first, second, attach_crs(regions, crs, first.model.domain), confidence
    )
    positive = y > 0
    below = np.where(positive, y, 1.0)
    value = np.where(positive, x / below, np.nan)
    slope = np.stack([1 / below, np.where(positive, value, 0.0) / below])

    def deviation(variances: Floats) -> Floats:
        return np.where(positive, np.sqrt((slope**2 * variances).sum(axis=0)), np.inf)

    total = noise + spread
    lower, upper = fieller(x, y, total[0], total[1], np.zeros(len(x)), confidence)
    found: pandas.DataFrame = table.assign(
        ratio=value,
        perturbation_error=deviation(noise),
        nonuniformity_error=deviation(spread),
        error=deviation(total),
        lower=lower,
        upper=upper,
    )
    return found


def _pair(
    first: QueryIndex, second: QueryIndex, regions: Any, confidence: float
) -> tuple[Any, Floats, Floats, Floats, Floats]:
    """Table of both counts, the counts, and their variances by kind, shape (2, n) each."""
    _check_pair(first, second)
    answers = [
        answer(index, regions, confidence=confidence, threshold=0.3) for index in (first, second)
    ]
    x, y = (table["estimate"].to_numpy(np.float64) for table in answers)
    noise, spread = (
        np.stack([table[name].to_numpy(np.float64) ** 2 for table in answers])
        for name in ("perturbation_error", "nonuniformity_error")
    )
    table = answers[0].drop(columns=list(_ANSWERS))
    clash = [name for name in ("first", "second", "difference", "ratio") if name in table.columns]
    if clash:
        raise ParameterError(f"regions have a column {clash[0]} already; rename it first")
    return table.assign(first=x, second=y), x, y, noise, spread


def _check_pair(first: QueryIndex, second: QueryIndex) -> None:
    """Refuse releases whose cells are not comparable, or whose noise is the same."""
    a, b = first.model.domain, second.model.domain
    for name in ("bounds", "crs", "lattice"):
        if getattr(a, name) != getattr(b, name):
            raise DomainError(
                f"the releases have different {name}, {getattr(a, name)} and {getattr(b, name)}; "
                "only releases of one domain can be compared"
            )
    if (first.model.record.unit.scale == 1) != (second.model.record.unit.scale == 1):
        raise ParameterError(
            "one of the releases counts users and the other rows; compare what counts the same"
        )
    names = ("boxes", "parent", "count", "epsilon")
    trees = first.model.tree, second.model.tree
    if all(np.array_equal(getattr(trees[0], n), getattr(trees[1], n)) for n in names):
        raise ParameterError("both releases are one and the same, whose noise is not independent")
