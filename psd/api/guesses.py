"""What is guessed as a member of a release or of answers: words of pandas and GeoPandas. Public.

A name whose meaning is plain is the member that has it; of others a sentence says where it is. The
names are no members, so that `dir`, documents and type checkers have one name for one thing.
"""

from __future__ import annotations

from typing import Any, Final

from psd.query.answer_table import COLUMNS

__all__ = ["guessed_of_answers", "guessed_of_release"]

_OF_RELEASE: Final = {
    **dict.fromkeys(("to_file", "to_csv", "to_excel", "to_gpkg", "to_geojson"), "export"),
    **dict.fromkeys(("to_geotiff", "to_raster", "to_postgis", "to_pmtiles"), "export"),
    **dict.fromkeys(("to_geodataframe", "to_gdf", "to_frame", "to_pandas"), "to_geopandas"),
    **dict.fromkeys(("estimate_counts", "ask", "count", "answer"), "query"),
    "write": "save",
}
_OF_ANSWERS: Final = {
    **dict.fromkeys(("to_geodataframe", "to_gdf"), "to_geopandas"),
}
_TABLE_WRITERS: Final = (
    "to_csv", "to_dict", "to_excel", "to_html", "to_json", "to_markdown", "to_parquet", "to_string",
)  # fmt: skip
_TABLES: Final = ("to_frame", "to_pandas", "to_dataframe")
_SENTENCES: Final = {
    "to_parquet": "save(path) writes the release, and export(path) its cells",
    "columns": "table has the columns of answers, and to_geopandas() those of cells",
    "table": "query(areas).table has answers, and to_geopandas() the cells",
    "geometry": "to_geopandas() has the geometries",
    "error": "query(areas) has the error of each answer",
    "value": "estimate has the counts",
    "values": "estimate has the counts",
    "ci": "lower and upper are the interval",
    "interval": "lower and upper are the interval",
    "confidence_interval": "lower and upper are the interval",
    "std": "error is the standard deviation",
    "save": "to_csv(path) or to_file(path) writes the answers",
}


def guessed_of_release(release: Any, name: str) -> Any:
    """Member of a release that a guessed name means.

    Raises
    ------
    AttributeError
        If it means none, with a sentence where one is known.
    """
    if name in _OF_RELEASE:
        return getattr(release, _OF_RELEASE[name])
    raise _unknown("Release", name)


def guessed_of_answers(answers: Any, name: str) -> Any:
    """Column, writer or member of answers that a guessed name means.

    Raises
    ------
    AttributeError
        If it means none, with a sentence where one is known.
    """
    if name in _OF_ANSWERS:
        return getattr(answers, _OF_ANSWERS[name])
    if name in COLUMNS:
        return answers.table[name]
    if name in _TABLE_WRITERS:
        return getattr(answers.table, name)
    if name in _TABLES:
        return answers.table.copy
    if name == "to_file":
        return answers.to_geopandas().to_file
    raise _unknown("Answers", name)


def _unknown(kind: str, name: str) -> AttributeError:
    """Error as Python has it, with what is meant where that is known."""
    hint = f"; {_SENTENCES[name]}" if name in _SENTENCES else ""
    return AttributeError(f"{kind!r} object has no attribute {name!r}{hint}", name=name)
