"""Questions of `Release.query`: the counts of areas, or ranks, class breaks and differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd._util.instances import shown
from psd.api.answers import Answers, time_text
from psd.errors import ParameterError
from psd.query.answer_table import Threshold
from psd.query.areas import Areas, BoxAreas
from psd.query.cubes import answer_cube
from psd.query.index import CubeWindow, QueryIndex, fitted
from psd.query.windows import answer_windows

if TYPE_CHECKING:
    import pandas

    from psd.api.publication import AskedTime, Publication
    from psd.release.record import ReleaseRecord

# Arguments of each statistic, beside those of every query; `psd query` has them as options.
_TAKES = {
    "top": ("areas", "level", "id", "crs", "by", "size", "draws", "seed"),
    "quantiles": ("classes", "weight", "size", "draws", "seed"),
    "difference": ("areas", "level", "id", "crs", "ratio"),
}


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """What is asked of a release in place of counts: arguments of `Release.query`, or None."""

    top: int | None = None  # number of cells or areas that are ranked
    by: str | None = None  # as in `Release.query`
    size: tuple[int, int] | None = None
    quantiles: bool = False
    classes: int | None = None
    weight: str | None = None
    draws: int | None = None
    seed: int | None = None
    difference: Publication | None = None
    ratio: bool = False

    def __post_init__(self) -> None:
        """Check that flags are flags, and that the arguments go together."""
        for name, flag in (("quantiles", self.quantiles), ("ratio", self.ratio)):
            if not isinstance(flag, bool):
                raise ParameterError(
                    f"{name} must be True or False, got {shown(flag)}"
                    + ("; classes= is the number of classes" if name == "quantiles" else ""),
                    name=name,
                )
        asked = [name for name in _TAKES if self._is_given(name)]
        if len(asked) > 1:
            raise ParameterError(
                f"at most one of top, quantiles and difference must be given, got {asked[0]} and "
                f"{asked[1]}",
                name=asked[1],
            )
        takes = (*asked, *_TAKES.get(self.kind, ()))
        for name in (field.name for field in fields(self)):
            if self._is_given(name) and name not in takes:
                owners = " or ".join(owner for owner in _TAKES if name in _TAKES[owner])
                raise ParameterError(f"{name} must be left out without {owners}", name=name)

    @property
    def kind(self) -> str:
        """``top``, ``quantiles``, ``difference``, or nothing if counts are asked for."""
        return next((name for name in _TAKES if self._is_given(name)), "")

    def _is_given(self, name: str) -> bool:
        """Whether an argument is not its default."""
        return getattr(self, name) is not None and getattr(self, name) is not False

    def check_others(self, *, has_areas: bool, has_levels: bool, **given: Any) -> bool:
        """Refuse arguments of counts without a meaning here, and tell whether areas are asked."""
        for name, value in {**given, "areas": has_areas or None}.items():
            if self.kind and value is not None and name not in _TAKES[self.kind]:
                raise ParameterError(f"{name} must be left out with {self.kind}", name=name)
        if self.kind != "top":
            return self.kind != "quantiles"
        level = given["level"]
        if level is not None and (self.size is not None or not (has_levels or has_areas)):
            raise ParameterError(
                "level must be left out with size, or a release without regions, got "
                f"{str(level)[:80]!r}",
                name="level",
            )
        return has_areas or (has_levels and self.size is None)

    def rank(
        self, asked: QueryIndex | CubeWindow, areas: Areas | None
    ) -> tuple[pandas.DataFrame, NDArray[np.int64] | None]:
        """Rank cells, or areas, and give the numbers of the areas that are in the table."""
        from psd.statistics.top_cells import rank_top

        return rank_top(
            asked,
            self.top,
            size=self.size,
            areas=areas,
            by="count" if self.by is None else self.by,
            draws=2000 if self.draws is None else self.draws,
            seed=0 if self.seed is None else self.seed,
        )

    def break_classes(self, asked: QueryIndex | CubeWindow, confidence: float) -> pandas.DataFrame:
        """Compute the breaks between classes of density, with their errors."""
        from psd.query.cube_views import cells_index
        from psd.statistics.top_cells import class_breaks

        return class_breaks(
            cells_index(asked).fit,
            5 if self.classes is None else self.classes,
            size=(64, 64) if self.size is None else self.size,
            weight="area" if self.weight is None else self.weight,
            confidence=confidence,
            draws=100 if self.draws is None else self.draws,
            seed=0 if self.seed is None else self.seed,
        )

    def subtract(
        self,
        asked: QueryIndex | CubeWindow,
        areas: Areas,
        window: tuple[Any, Any],
        confidence: float,
    ) -> pandas.DataFrame:
        """Subtract counts of the other release from those of this one, or divide them.

        window: time and categories in which the other one is asked too, if it is a cube.
        """
        from psd.statistics.several_areas import count_pair, differences, ratios

        assert self.difference is not None
        other = self.difference._one_window(*window)  # noqa: SLF001 - of the same package
        pair = count_pair(asked, other, areas, confidence=confidence)
        return ratios(pair) if self.ratio else differences(pair)


def answer(
    areas: Areas | None,
    time: AskedTime,
    statistic: Statistic,
    *,
    errors: bool,
    guarantee: str,
    confidence: float,
    threshold: Threshold,
    values: Sequence[tuple[str, int]] = (),
    window: tuple[Any, Any] = (None, None),
) -> Answers:
    """Answer areas, or cells, per window, see `Release.query`; window: as it was given."""
    certainty: dict[str, Any] = {"confidence": confidence, "threshold": threshold}
    stated = {"time": time, "guarantee": guarantee, **certainty}
    if statistic.kind:
        return _answer_statistic(areas, statistic, stated, window)
    assert areas is not None
    if values and not errors:
        raise ParameterError(
            "errors must be True with mean or sum, which are answered with their errors",
            name="errors",
        )
    for name in time.labels[0]:
        if name in getattr(areas.given, "columns", ()):
            raise ParameterError(
                f"areas must not have a column {name}, which the answers add; rename it"
            )
    if time.cube is not None:
        if not errors:
            raise ParameterError("errors must be True of a cube, got False", name="errors")
        blocks = answer_cube(time.cube, time.windows, areas, **certainty)
    elif errors:
        slices = list(time.slices.values())
        blocks = answer_windows(
            slices, time.windows, areas, **certainty, values=values, series=time.series
        )
    else:
        blocks = _estimates_alone(areas, time)
    return Answers(areas=areas, blocks=tuple(blocks), **stated)


def asked_values(
    record: ReleaseRecord, **given: str | Sequence[str] | None
) -> list[tuple[str, int]]:
    """What is asked of values: ``mean`` or ``sum``, and the number of the value."""
    asked = []
    for kind, names in given.items():
        if isinstance(names, str) or not isinstance(names, Iterable):
            names = () if names is None else [names]
        for name in names:
            try:
                asked.append((kind, record.value_named(str(name))))
            except ParameterError as error:
                raise ParameterError(str(error).replace("value", kind, 1), name=kind) from None
    return asked


def _answer_statistic(
    areas: Areas | None, statistic: Statistic, stated: dict[str, Any], window: tuple[Any, Any]
) -> Answers:
    """Ranks, class breaks or differences of one time slice, or of one window of a cube."""
    time, confidence = stated["time"], stated["confidence"]
    if len(time.windows) > 1 and time.cube is not None:
        raise ParameterError(
            f"when must be one window with {statistic.kind}, got {len(time.windows):,}", name="when"
        )
    if len(time.windows) > 1 or len(time.slices) > 1:
        raise ParameterError(
            f"when must be one time slice with {statistic.kind}, such as {next(iter(time.slices))},"
            f" got {time_text(time)}",
            name="when",
        )
    asked: QueryIndex | CubeWindow = next(iter(time.slices.values()))
    if time.cube is not None:
        asked = CubeWindow(index=time.cube, window=time.windows[0])
    rows = None
    if statistic.kind == "quantiles":
        table = statistic.break_classes(asked, confidence)
    elif statistic.kind == "top":
        table, rows = statistic.rank(asked, areas)
    elif areas is not None:
        table = statistic.subtract(asked, areas, window, confidence)
    if areas is None:  # cells
        sides = ["west", "south", "east", "north"]
        boxes = table[sides].to_numpy() if sides[0] in table else np.empty((0, 4))
        areas = BoxAreas(given=table, boxes=boxes, ids=list(range(1, len(boxes) + 1)))
    return Answers(
        areas=areas, blocks=({},), statistic=statistic.kind, _made=table, _rows=rows, **stated
    )


def _estimates_alone(areas: Areas, time: AskedTime) -> list[dict[str, Any]]:
    """Estimates of boxes in windows of one slice each."""
    from psd.query.boxes import box_estimates

    if not isinstance(areas, BoxAreas):
        raise ParameterError("errors must be True unless areas are boxes", name="errors")
    if max(map(len, time.windows)) > 1:
        raise ParameterError(
            "errors must be True for several time slices together; ask with when= for one slice, "
            'or with each="slice"',
            name="errors",
        )
    found = [box_estimates(index, areas.given) for index in fitted(list(time.slices.values()))]
    return [{"estimate": found[number]} for (number,) in time.windows]
