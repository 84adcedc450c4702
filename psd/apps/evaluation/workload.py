"""The usual workload of the field: rectangles of four sizes, uniform and centred on the data.

Half of the rectangles are centred on true points. Use it in evaluations, never in a release.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from psd.apps.evaluation._constants import AREAS, MAX_ASPECT, PER_CLASS
from psd.decompositions import Decomposition, as_method
from psd.errors import ParameterError
from psd.privacy.budget import method_parameters
from psd.privacy.loss import epsilon_text, parse_epsilon

__all__ = [
    "AREAS",
    "Epsilon",
    "check_distinct",
    "draw_workload",
    "listed",
    "parse_epsilons",
    "resolve_methods",
]


_KINDS = ("uniform", "on data")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Workload:
    """Query boxes, (n, 4) float64 west, south, east, north, or regions, and the class of each."""

    boxes: NDArray[np.float64]
    classes: NDArray[np.str_]
    ids: Sequence[str] | None = None

    @property
    def places(self) -> dict[str, Any]:
        """Columns that say where the queries are."""
        if self.ids is not None:
            return {"id": list(self.ids)}
        return dict(zip(("west", "south", "east", "north"), self.boxes.T, strict=True))


def draw_workload(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    bounds: tuple[float, float, float, float],
    *,
    seed: int = 2024,
    areas: Sequence[float] = AREAS,
    per_class: int = PER_CLASS,
) -> Workload:
    """Draw eight classes of 500 rectangles: four areas, uniform centres and centres on points [1]_.

    x, y: (n,) float64, private, inside the bounds; a seed and points give the same rectangles.

    .. [1] Qardaji, Yang, Li. ICDE 2013, section V; Zhang, Xiao, Xie. "PrivTree." SIGMOD 2016.
    """
    random = np.random.RandomState(seed)
    west, south, east, north = bounds
    unit = np.stack([(x - west) / (east - west), (y - south) / (north - south)])
    boxes, classes = [], []
    # Without points there are no classes centred on data.
    for kind in _KINDS[: 2 if len(x) else 1]:
        for area in areas:
            # Sides of the area in the unit square, (rectangles,); their ratio is log-uniform in
            # [1/4, 4].
            aspect = np.exp(random.uniform(-np.log(MAX_ASPECT), np.log(MAX_ASPECT), per_class))
            # A side that does not fit is cut, and the other one is longer for it.
            width = np.minimum(np.sqrt(area * aspect), 1.0)
            height = np.minimum(area / width, 1.0)
            width = area / height
            if kind == "on data":
                centre_x, centre_y = unit[:, random.randint(0, len(x), per_class)]
            else:
                centre_x, centre_y = (random.uniform(0, 1, per_class) for _ in range(2))
            # A rectangle that leaves the unit square is moved into it.
            right, up = width / 2, height / 2
            x_in, y_in = np.clip(centre_x, right, 1 - right), np.clip(centre_y, up, 1 - up)
            boxes.append(np.stack([x_in - right, y_in - up, x_in + right, y_in + up], axis=1))
            classes += [f"{kind} {100 * area:g} %"] * per_class
    size = np.array([east - west, north - south] * 2)
    scaled = np.array([west, south] * 2) + np.concatenate(boxes) * size
    return Workload(boxes=scaled, classes=np.array(classes))


T = TypeVar("T")

Epsilon: TypeAlias = str | int | float | Decimal
"""An epsilon, as `psd.privacy.loss.parse_epsilon` takes it."""


def listed(value: Any) -> list[Any]:
    """Values of a list; a value alone is a list of one."""
    is_list = isinstance(value, Iterable) and not isinstance(value, str)
    return list(value) if is_list else [value]


def parse_epsilons(epsilon: Epsilon | Sequence[Epsilon]) -> tuple[int, ...]:
    """Return nano-epsilons of one value or several, each once."""
    nano = [parse_epsilon(value) for value in listed(epsilon)]
    return check_distinct("epsilon", nano, [epsilon_text(value) for value in nano])


def check_distinct(argument: str, values: Sequence[T], names: Sequence[str]) -> tuple[T, ...]:
    """Return the values of a list that is not empty and has each value once, by its text."""
    if not names:
        raise ParameterError(f"{argument} must have at least one value, got none")
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(
                f"{argument} must have each value once, got {name} {names.count(name)} times"
            )
    return tuple(values)


def resolve_methods(
    methods: str | Decomposition | Sequence[str | Decomposition],
) -> tuple[Decomposition, ...]:
    """Return methods by name or value, each once."""
    resolved = []
    for item in listed(methods):
        try:
            resolved.append(as_method(item))
        except ParameterError as error:
            if error.name != "method":
                raise
            # The argument is a list, and the error names it.
            text = str(error).replace("method must", "methods must", 1)
            raise ParameterError(text, name="methods", value=error.value) from None
    for each in resolved:
        method_parameters(each)
    return check_distinct("methods", resolved, [each.name for each in resolved])
