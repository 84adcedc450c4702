"""Answers to queries as text and in files, with what the release states."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

from psd._util.csv_text import csv_text

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.query.reliability import Threshold

__all__ = [
    "answers_metadata",
    "answers_page",
    "answers_text",
    "columns_text",
    "in_degrees",
    "plain_answers",
]


_CAPTION = "Errors are predicted standard deviations."


def answers_metadata(
    loaded: Release, unreliable: str, confidence: float, threshold: Threshold
) -> dict[str, str]:
    """What a file of answers states: the guarantee, and what its columns mean."""
    from psd.query.reliability import reliability_limits

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

    from ..output.answers import column_texts, identifying_columns
    from ..output.terminal import printable

    # What a narrow screen shows without scrolling comes first.
    shown = plain_answers(answers)
    first = [*(name for name in ("slice",) if name in shown), *identifying_columns(shown),
             "quality", "estimate", "error", "lower", "upper"]  # fmt: skip
    shown = shown[[*first, *(name for name in shown if name not in first)]]
    columns = [
        column_texts(str(name), shown.iloc[:, number]) for number, name in enumerate(shown.columns)
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
