"""Answers to queries as text and in files, with what the release states."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from psd._util.csv_text import csv_text

if TYPE_CHECKING:
    import pandas

    from psd.api.release import Release
    from psd.api.series import SeriesRelease
    from psd.query.reliability import Threshold

__all__ = [
    "add_geometry",
    "answers_metadata",
    "answers_page",
    "answers_text",
    "in_degrees",
    "treat_answers",
]


_CAPTION = "Errors are predicted standard deviations."


def answers_metadata(
    loaded: Release | SeriesRelease, unreliable: str, confidence: float, threshold: Threshold
) -> dict[str, str]:
    """What a file of answers states: the guarantee, and what its columns mean."""
    from psd.query.reliability import reliability_limits

    return {
        **loaded.metadata,
        "confidence": f"{confidence:g} for lower to upper",
        **reliability_limits(threshold).texts,
        "unreliable": unreliable,
    }


def treat_answers(
    answers: Any,
    regions: Any,
    loaded: Release | SeriesRelease,
    unreliable: str,
    threshold: Threshold,
) -> Any:
    """Answers with their geometry, marked or without those that are not reliable."""
    from psd.export import treat_unreliable

    shapes = add_geometry(answers, regions, loaded.domain.crs)
    return treat_unreliable(shapes, unreliable, threshold)


def answers_text(answers: Any, form: str, metadata: dict[str, str] | None = None) -> str:
    """Answers as CSV, JSON or GeoJSON text."""
    if form == "geojson":
        from psd.export import finite_errors

        text: str = finite_errors(answers).to_json(drop_id=True, default=str)
        stated = json.dumps(metadata or {}, ensure_ascii=False)
        return text.replace(', "features"', f', "metadata": {stated}, "features"', 1) + "\n"
    plain = _plain(answers)
    if form == "csv":
        return csv_text(plain)
    return str(plain.to_json(orient="records", indent=1, date_format="iso")) + "\n"


def add_geometry(answers: pandas.DataFrame, regions: Any, crs: str) -> Any:
    """Answers with the polygon in its CRS, or the box in that of the release, as geometry."""
    import geopandas as gpd
    import numpy as np
    import shapely

    from psd.query.boxes import parse_boxes

    if isinstance(answers, gpd.GeoDataFrame):
        return answers
    shapes = shapely.box(*parse_boxes(regions)[0].T)
    shapes = np.resize(shapes, len(answers))  # again for every slice of a series
    return gpd.GeoDataFrame(answers, geometry=shapes, crs=crs)


def in_degrees(answers: Any) -> Any:
    """Answers with their geometry in longitude and latitude."""
    from psd.space.crs import explain_proj_errors

    with explain_proj_errors("the answers", "EPSG:4326"):
        return answers.to_crs("EPSG:4326")


def answers_page(answers: Any, metadata: dict[str, str]) -> str:
    """Answers as an HTML page of its own: no script and no request."""
    from psd._util.html import page, section, table_block

    from ..output.answers import value_text
    from ..output.terminal import printable

    shown = _plain(answers)
    records = shown.to_dict(orient="records")
    rows = [[value_text(str(name), value) for name, value in row.items()] for row in records]
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


def _plain(answers: Any) -> Any:
    """Columns but the geometries."""
    return answers[[name for name, kind in answers.dtypes.items() if str(kind) != "geometry"]]
