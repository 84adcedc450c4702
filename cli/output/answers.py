"""Answers to queries: a table on the screen, files, joint answers, and what a table omits."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from psd._util.column_kinds import csv_text

from .tables import Column, print_columns
from .terminal import is_quiet, printable

if TYPE_CHECKING:
    import pandas

    from psd.api.answers import Answers
    from psd.api.release import Release
    from psd.privacy.values import Value
    from psd.query.answer_table import Threshold
    from psd.query.joint import Joint


# Columns of the answers on the screen; --details, files and programs have all.
_MAIN = ("estimate", "error", "lower", "upper", "quality")

# Columns that a narrow terminal leaves out, in this order, so that no number is cut.
_DISPENSABLE = ("relative_perturbation_error", "relative_nonuniformity_error")

# Columns that it leaves out only where they do not fit below what identifies a region.
_ESSENTIAL = ("perturbation_error", "nonuniformity_error", "error")

# Letters of texts that are shown beside an id.
_LONGEST_NAME = 40

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
    answers: pandas.DataFrame,
    extra: tuple[str, ...],
    values: Mapping[str, Sequence[str]],
    *,
    has_details: bool = False,
) -> None:
    """Print answers as a table: counts rounded, relative errors in percent.

    values: names of values by ``mean`` and ``sum``, whose columns stand last.
    """
    names = [
        *_window_columns(answers),
        *identifying_columns(answers),
        *(name for name in ("flag",) if name in answers.columns),
    ]
    errors = ("_perturbation_error", "_nonuniformity_error", "_error") if has_details else ()
    asked = [f"{kind}_{name}" for kind, given in values.items() for name in given]
    of_values = (f"{name}{end}" for name in asked for end in ("", *errors, "_lower", "_upper"))
    print_answer_columns(answers, names, (*extra, *of_values), has_details=has_details)


def print_answer_columns(
    answers: Any, names: list[str], extra: tuple[str, ...] = (), *, has_details: bool = False
) -> None:
    """Print identifying columns, then those of answers, the main ones or all, then extra ones."""
    from psd.query.answer_table import COLUMNS

    columns = [
        Column(
            heading=printable(name),
            values=column_texts(name, answers[name], mean_decimals(answers, name)),
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


def note_intervals(table: pandas.DataFrame, values: Iterable[Value], means: Iterable[str]) -> None:
    """Say which means have no interval, so that its ends are the bounds of the value."""
    named = {value.name: value for value in values}
    for name in means:
        value = named[name]
        ends = table[f"mean_{name}_lower"], table[f"mean_{name}_upper"]
        number = int(((ends[0] <= value.lower) & (ends[1] >= value.upper)).sum())
        if number:
            means_text = "1 mean has" if number == 1 else f"{number:,} means have"
            click.echo(
                f"({means_text} no interval: the noise allows that there is no record, so it goes "
                f"from {value.lower:g} to {value.upper:g}, the bounds of {printable(name)})",
                err=True,
            )


def identifying_columns(answers: pandas.DataFrame) -> list[str]:
    """At most two columns of the caller that tell regions apart: ids and names, else numbers."""
    from psd._util.column_kinds import kind_of

    # They are an ``id`` and short texts whose values differ; else a number, else the first texts.
    callers = list(answers.columns[: list(answers.columns).index("estimate")])
    rows, of_windows = answers, _window_columns(answers)
    if of_windows and len(answers):  # those of the first window
        is_first = (answers[of_windows] == answers[of_windows].iloc[0]).all(axis=1)
        rows = answers[is_first]
    callers = [name for name in callers if name not in of_windows]
    texts = [name for name in callers if kind_of(answers[name]) == "text"]
    numbers = [name for name in callers if kind_of(answers[name]) == "integer"]
    differing = {name for name in (*texts, *numbers) if rows[name].is_unique}
    ids = [name for name in (*texts, *numbers) if name.lower() == "id" and name in differing]
    unique = [name for name in texts if name in differing]
    others = [name for name in unique if name not in ids]
    short = [n for n in others if (answers[n].astype(str).str.len() <= _LONGEST_NAME).all()]
    # An id that numbers the rows, as boxes without ids get it, says less than a name.
    if short and all(_numbers_rows(rows[name]) for name in ids):
        ids = []
    names = [*ids, *short][:2] or unique[:1]
    return names or [name for name in numbers if name in differing][:1] or texts[:2]


def _window_columns(answers: Any) -> list[str]:
    """Columns in front that name the windows of time of answers."""
    columns = [name for name in answers.columns[: len(WINDOWS)] if name in WINDOWS]
    return columns if columns == list(answers.columns[: len(columns)]) else []


def _numbers_rows(column: pandas.Series) -> bool:
    """Whether a column is 1, 2, 3 and so on, as numbers."""
    return column.dtype.kind in "iu" and column.tolist() == list(range(1, len(column) + 1))


# What names of columns add to that of a mean.
_OF_MEANS = ("", "_error", "_perturbation_error", "_nonuniformity_error", "_lower", "_upper")


def mean_decimals(answers: Any, name: str) -> int | None:
    """Decimals at which the narrowest interval of a mean has two digits; None of other columns."""
    import numpy as np

    bases = (name.removesuffix(ending) for ending in _OF_MEANS)
    base = next((base for base in bases if f"{base}_lower" in answers), None)
    if base is None or not name.startswith("mean_"):
        return None
    width = np.asarray(answers[f"{base}_upper"]) - np.asarray(answers[f"{base}_lower"])
    narrowest = width[width > 0].min(initial=np.inf)
    return int(np.clip(1 - np.floor(np.log10(narrowest)), 0, 6))


def column_texts(name: str, column: Any, decimals: int | None = None) -> list[str]:
    """Values of a column as people read them; a missing one is empty."""
    from psd._util.column_kinds import kind_of, plain_values, value_texts

    if not hasattr(column, "isna"):  # of answers to boxes, which are no table
        return [_value_text(name, value, decimals) for value in column]
    if name == "reliable" or kind_of(column) == "number":
        return [_value_text(name, value, decimals) for value in plain_values(column)]
    return [printable(text or "") for text in value_texts(column)]


def _value_text(name: str, value: Any, decimals: int | None) -> str:
    """One value as people read it."""
    if value is None:
        return ""
    if name == "reliable":
        return "yes" if value else "no"
    if name.startswith("relative"):
        from psd.query.answer_table import relative_text

        return relative_text(value) if value > 10 else f"{100 * value:.1f}%"
    if decimals is not None:
        return f"{value:,.{decimals}f}"
    return f"{value:,.1f}" if isinstance(value, float) and name != "id" else printable(str(value))


def note_slow_boxes(answers: Answers) -> None:
    """Say which extra answers many boxes faster, where it is not installed."""
    from importlib.util import find_spec

    from psd._util.extras import install_text
    from psd.query.areas import BoxAreas
    from psd.query.constants import NOTED_FROM

    boxes = len(answers.areas) if isinstance(answers.areas, BoxAreas) else 0
    if boxes >= NOTED_FROM and not is_quiet() and find_spec("numba") is None:
        click.echo(
            f"({boxes:,} boxes were answered by NumPy; compiled code needs about a tenth of its "
            f"time: {install_text('fast')})",
            err=True,
        )


WINDOWS = ("when", "slice", "category")
"""Columns that name the window of time of an answer, in front of all others."""

EXTRA = {
    "joint": ("joint_lower", "joint_upper"),
    "nested": ("ring", "ring_error", "ring_lower", "ring_upper"),
}
"""Columns beside those of `psd query`, by kind of answer."""

# A larger matrix does not fit a screen.
_WIDEST = 12


def print_joint(joint: Joint, *, is_cube: bool) -> None:
    """Correlations as a second table, and the total, on the screen."""
    ids = [printable(name) for name in _region_names(joint)]
    if 1 < len(joint) <= _WIDEST:
        # Adding 0.0 removes the minus sign of a rounded -0.0.
        texts = [[f"{round(value, 2) + 0.0:.2f}" for value in row] for row in joint.correlation]
        columns = [Column(heading="correlation", values=ids, left=True, folds=True)]
        columns += [
            Column(heading=name, values=text) for name, text in zip(ids, texts, strict=True)
        ]
        click.echo()
        print_columns(columns)
    elif len(joint) > _WIDEST:
        click.echo("(too many regions for a table of correlations; see --format csv)", err=True)
    if not joint.adds_up:
        return
    if joint.overlap is None and len(joint):
        total = joint.total()
        click.echo(
            f"\ntotal {total.estimate:,.1f}, error {total.error:,.1f}, "
            f"{total.lower:,.1f} to {total.upper:,.1f}"
        )
        if is_cube and _window_columns(joint.answers):
            click.echo(
                "(a total of windows adds up their unevenness in full; as one --when it may have a "
                "smaller error)",
                err=True,
            )
    elif joint.overlap is not None:
        a, b = (ids[number] for number in joint.overlap)
        click.echo(f"(no total: {a} and {b} overlap, and would be counted twice)", err=True)


def joint_text(joint: Joint, form: str) -> str:
    """Joint answers as CSV, with columns covariance_ID, or as a JSON object."""
    import pandas as pd

    from psd._util.column_kinds import json_text
    from psd.export import finite_errors

    plain = plain_answers(joint.answers)
    if form == "csv":
        names = [f"covariance_{name}" for name in _region_names(joint)]
        columns = pd.DataFrame(joint.covariance, columns=names, index=plain.index)
        return csv_text(pd.concat([plain, columns], axis=1))
    content = {
        "answers": json.loads(json_text(finite_errors(plain))),
        "covariance": joint.covariance.tolist(),
        "total": asdict(joint.total()) if joint.overlap is None and joint.adds_up else None,
        "joint_confidence_level": joint.level,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _region_names(joint: Joint) -> list[str]:
    """Names of the answers: what tells them apart, in space and time, else numbers."""
    answers: Any = joint.answers
    of_windows = [
        column_texts(name, answers[name])
        for name in _window_columns(answers)
        if answers[name].nunique() > 1
    ]
    of_areas = [column_texts(name, answers[name]) for name in identifying_columns(answers)]
    for columns in (of_windows, *([*of_windows, each] for each in of_areas)):
        names = [" ".join(row) for row in zip(*columns, strict=True)]
        if names and len({*names}) == len(names):
            return names
    return [str(number) for number in range(1, len(answers) + 1)]


_CAPTION = "Errors are predicted standard deviations."


def answers_metadata(
    loaded: Release, unreliable: str, confidence: float, threshold: Threshold
) -> dict[str, str]:
    """What a file of answers states: the guarantee, and what its columns mean."""
    from psd.query.answer_table import reliability_limits

    return {
        **loaded.metadata,
        "confidence": f"{confidence:g} for lower to upper",
        **reliability_limits(threshold).texts,
        "unreliable": unreliable,
    }


def answers_text(answers: Any, form: str, metadata: dict[str, str] | None = None) -> str:
    """Answers as CSV, JSON or GeoJSON text."""
    from psd._util.column_kinds import held_columns, json_text
    from psd.export import finite_errors

    if form == "geojson":
        held = held_columns(finite_errors(answers), form)
        text: str = held.to_json(drop_id=True)
        stated = json.dumps(metadata or {}, ensure_ascii=False)
        return text.replace(', "features"', f', "metadata": {stated}, "features"', 1) + "\n"
    plain = plain_answers(answers)
    return csv_text(plain) if form == "csv" else json_text(finite_errors(plain))


def columns_text(columns: dict[str, Any]) -> str:
    """Columns as CSV text, without pandas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    lists = [values if isinstance(values, list) else values.tolist() for values in columns.values()]
    writer.writerows(zip(*lists, strict=True))
    return text.getvalue()


def in_degrees(answers: Any) -> Any:
    """Answers with their geometry in longitude and latitude."""
    from psd.space.shape_transforms import transform_table

    return transform_table(answers, "EPSG:4326", "the answers")


def answers_page(answers: Any, metadata: dict[str, str]) -> str:
    """Answers as an HTML page of its own: no script and no request."""
    from psd._util.html import page, section, table_block

    # What a narrow screen shows without scrolling comes first.
    shown = plain_answers(answers)
    first = [*_window_columns(shown), *identifying_columns(shown),
             "quality", "estimate", "error", "lower", "upper"]  # fmt: skip
    shown = shown[[*first, *(name for name in shown if name not in first)]]
    columns = [
        column_texts(str(name), shown.iloc[:, number], mean_decimals(shown, str(name)))
        for number, name in enumerate(shown.columns)
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    headings = [printable(str(name)).replace("_", " ") for name in shown.columns]
    guarantee = f"epsilon {metadata['epsilon']} {metadata['unit_of_privacy']}"
    facts = [[key.replace("_", " "), value] for key, value in metadata.items()]
    return page(
        "Answers to queries",
        [
            section("Answers", table_block(_CAPTION, headings, rows)),
            section("About these numbers", table_block("", ["fact", "value"], facts, "words")),
        ],
        lead=f"{metadata['counts']}, with differential privacy: {guarantee}",
    )


def plain_answers(answers: Any) -> Any:
    """Columns but the geometry of the regions."""
    import geopandas as gpd
    import pandas as pd

    is_plain = not isinstance(answers, gpd.GeoDataFrame)
    return answers if is_plain else pd.DataFrame(answers.drop(columns=answers.geometry.name))
