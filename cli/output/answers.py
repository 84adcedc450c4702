"""Answers to queries as a table on the screen, and the warning about what they omit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from ..output.columns import Column, print_columns
from ..output.terminal import print_warning, printable

if TYPE_CHECKING:
    import pandas

    from psd.query.areas import Areas
    from psd.space.domain import Domain

__all__ = [
    "column_texts",
    "identifying_columns",
    "print_answer_columns",
    "print_answers",
    "warn_of_areas_beyond",
]

# Columns of the answers on the screen; --details, files and programs have all.
_MAIN = ("estimate", "error", "lower", "upper", "quality")

# Columns that a narrow terminal leaves out, in this order, so that no number is cut.
_DISPENSABLE = ("relative_perturbation_error", "relative_nonuniformity_error")

# Columns that it leaves out only where they do not fit below what identifies a region.
_ESSENTIAL = ("perturbation_error", "nonuniformity_error", "error")

# Letters of texts that are shown beside an id.
_LONGEST_NAME = 40

# Share of a length or an area that rounding may put beyond the bounds.
_SLACK = 1e-9

# Columns that stand in the second line of an answer, below others, before any is left out.
_PAIRS = {
    "estimate": "perturbation_error",
    "lower": "nonuniformity_error",
    "upper": "error",
    "reliable": "quality",
    "relative_perturbation_error": "relative_nonuniformity_error",
    "joint_lower": "joint_upper",
    "ring": "ring_error",
    "ring_lower": "ring_upper",
}


def print_answers(
    answers: pandas.DataFrame, extra: tuple[str, ...], *, has_details: bool = False
) -> None:
    """Print answers as a table: counts rounded, relative errors in percent."""
    names = [
        *(name for name in ("slice",) if name in answers.columns),
        *identifying_columns(answers),
        *(name for name in ("flag",) if name in answers.columns),
    ]
    print_answer_columns(answers, names, extra, has_details=has_details)


def print_answer_columns(
    answers: Any, names: list[str], extra: tuple[str, ...] = (), *, has_details: bool = False
) -> None:
    """Print answers as a table: columns that identify regions, then those of the answers.

    Parameters
    ----------
    answers : DataFrame or dict of str to array
        Columns.
    names : list of str
        Identifying columns.
    extra : tuple of str
        Columns after those of the answers.
    has_details : bool
        Whether all columns of the answers are printed, or the main ones.
    """
    from psd.query.answer_table import COLUMNS

    columns = [
        Column(
            heading=printable(name),
            values=column_texts(name, answers[name]),
            left=name in names,
            folds=name in names,
        )
        for name in (*names, *(COLUMNS if has_details else _MAIN), *extra)
    ]
    if not names:
        numbers = [str(number) for number in range(1, len(answers["estimate"]) + 1)]
        columns.insert(0, Column(heading="region", values=numbers))
    left_out = print_columns(
        columns,
        dispensable=_DISPENSABLE if has_details else (),
        pairs=_PAIRS,
        identifying=[printable(name) for name in names],
        essential=_ESSENTIAL if has_details else (),
    )
    if left_out:
        click.echo(f"(too narrow for {', '.join(left_out)}; see --format csv)", err=True)


def identifying_columns(answers: pandas.DataFrame) -> list[str]:
    """The caller's columns that tell regions apart: ids and names, else whole numbers.

    Parameters
    ----------
    answers : DataFrame
        Columns of the caller, then those of the answers; with a column ``slice`` for each slice.

    Returns
    -------
    list of str
        At most two names: an ``id`` whose values differ, and short texts whose values differ; else
        a number, else the first texts whatever they are. An ``id`` that numbers the rows, as
        boxes without ids get it, is left out where there are such texts.
    """
    from psd._util.column_kinds import kind_of

    callers = list(answers.columns[: list(answers.columns).index("estimate")])
    rows = answers
    if "slice" in callers and len(answers):
        rows = answers[answers["slice"] == answers["slice"].iloc[0]]
    callers = [name for name in callers if name != "slice"]
    texts = [name for name in callers if kind_of(answers[name]) == "text"]
    numbers = [name for name in callers if kind_of(answers[name]) == "integer"]
    differing = {name for name in (*texts, *numbers) if rows[name].is_unique}
    ids = [name for name in (*texts, *numbers) if name.lower() == "id" and name in differing]
    unique = [name for name in texts if name in differing]
    short = [name for name in unique if name not in ids and _is_short(answers[name])]
    if short and all(_numbers_rows(rows[name]) for name in ids):
        ids = []
    names = [*ids, *short][:2] or unique[:1]
    return names or [name for name in numbers if name in differing][:1] or texts[:2]


def _numbers_rows(column: pandas.Series) -> bool:
    """Whether a column is 1, 2, 3 and so on, as numbers."""
    return column.dtype.kind in "iu" and column.tolist() == list(range(1, len(column) + 1))


def _is_short(texts: pandas.Series) -> bool:
    """Whether all texts are as short as names are."""
    return bool((texts.astype(str).str.len() <= _LONGEST_NAME).all())


def column_texts(name: str, column: Any) -> list[str]:
    """Values of a column as people read them; a missing one is empty."""
    from psd._util.column_kinds import kind_of, plain_values, value_texts

    if not hasattr(column, "isna"):  # of answers to boxes, which are no table
        return [_value_text(name, value) for value in column]
    if name == "reliable" or kind_of(column) == "number":
        return [_value_text(name, value) for value in plain_values(column)]
    return [printable(text or "") for text in value_texts(column)]


def _value_text(name: str, value: Any) -> str:
    """One value as people read it."""
    if value is None:
        return ""
    if name == "reliable":
        return "yes" if value else "no"
    if name.startswith("relative"):
        from psd.query.reliability import relative_text

        return relative_text(value) if value > 10 else f"{100 * value:.1f}%"
    return f"{value:,.1f}" if isinstance(value, float) and name != "id" else printable(str(value))


def warn_of_areas_beyond(areas: Areas, domain: Domain) -> None:
    """Warn that an answer leaves out the parts of areas beyond the bounds."""
    beyond = _count_beyond(areas, domain)
    if beyond:
        regions_text = "1 region reaches" if beyond == 1 else f"{beyond:,} regions reach"
        print_warning(
            f"{regions_text} beyond the bounds of the release; the part outside was never counted "
            "and is not in the answer"
        )


def _count_beyond(areas: Areas, domain: Domain) -> int:
    """Number of areas, or of the lowest regions, that are not entirely inside the bounds."""
    import numpy as np

    from psd.query.areas import BoxAreas, NamedAreas

    if isinstance(areas, NamedAreas):
        regions: Any = areas.tree.regions
        return int((regions.part_outside > _SLACK).sum())
    if isinstance(areas, BoxAreas):
        sides = areas.boxes
    else:
        import shapely

        sides = shapely.bounds(areas.shapes(domain))
    low, high = np.array(domain.bounds[:2]), np.array(domain.bounds[2:])
    slack = _SLACK * (high - low)
    outside = (sides[:, :2] < low - slack).any(axis=1) | (sides[:, 2:] > high + slack).any(axis=1)
    return int(outside.sum())
