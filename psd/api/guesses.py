"""Names that are no members of a release: words of pandas and GeoPandas, and members that moved.

A name whose meaning is plain is the member that has it; of others a sentence says where it is. So
`dir`, documents and type checkers have one name for one thing.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any, Final

MOVED: Final = {
    "about": "release.record.about_texts",
    "boundary": "release.record.boundary",
    "bounds": "release.domain.bounds",
    "covariate": "release.record.covariate",
    "crs": "release.domain.crs",
    "estimate": "release.query(boxes, errors=False)",
    "estimates": "release.index.fit.estimates",
    "explain": "release.query(areas).explain()",
    "explore": "release.to_geopandas().explore()",
    "guarantee_text": "release.record.guarantee_text",
    "inference": "release.record.inference",
    "joint": "release.query(areas).joint()",
    "library": "release.record.library",
    "model": "release.index.fit",
    "nested": "release.query(areas).nested()",
    "parameters": "release.record.parameters",
    "post_processing": "release.record.post_processing",
    "quantiles": "release.query(quantiles=True, classes=5)",
    "query_regions": "release.query(names, level=level)",
    "query_table": "release.query(table, id=column)",
    "raster": "release.to_xarray(columns, rows)",
    "regions_tree": "release.tree",
    "releases": "release[name]",
    "source": "release.record.source",
    "top": "release.query(top=10)",
    "total_regions": "release.query(names, level=level)",
    "total_table": "release.query(table, id=column)",
    "with_about": "release.replace(about=texts)",
    "with_cache": "psd.api.fits.with_cache(release)",
    "with_near_fit": "release",
    "with_post_processing": "release.replace(post_processing=other)",
}
"""What stands for an old member, as code; answered until version 1.0.0."""


_OF_RELEASE: Final = {
    **dict.fromkeys(("to_file", "to_csv", "to_excel", "to_gpkg", "to_geojson"), "export"),
    **dict.fromkeys(("to_geotiff", "to_raster", "to_postgis", "to_pmtiles"), "export"),
    **dict.fromkeys(("to_geodataframe", "to_gdf", "to_frame"), "to_geopandas"),
    **dict.fromkeys(("to_dataframe", "to_pandas"), "to_geopandas"),
    **dict.fromkeys(("estimate_counts", "ask", "count", "answer"), "query"),
    "write": "save",
}
_SAID_OF_RELEASE: Final = {
    "to_parquet": "save(path) writes the release, and export(path) its cells",
    **dict.fromkeys(("table", "columns"), "to_geopandas() has cells, query(areas).table answers"),
    "geometry": "to_geopandas() has the geometries of cells",
    **dict.fromkeys(("error", "lower", "upper"), "query(areas) has it for each answer"),
    **dict.fromkeys(("summary", "info", "describe"), "print it, or run `psd info FILE`"),
    **dict.fromkeys(("regions", "ids"), "query(level=NAME) answers the regions of a level"),
    "guarantee": "record.guarantee_text is the guarantee in words",
    **dict.fromkeys(
        ("report", "methodology"), "sheet(path) writes the methods and errors, map(path) a map"
    ),
    **dict.fromkeys(("difference", "diff"), "query(areas, difference=other) subtracts a release"),
    "to_numpy": "to_xarray() is a raster of the estimates",
}
_TABLE_WRITERS: Final = (
    "to_csv", "to_dict", "to_excel", "to_html", "to_json", "to_markdown", "to_parquet", "to_string",
)  # fmt: skip
_SAID_OF_ANSWERS: Final = {
    "geometry": "to_geopandas() has the geometries",
    **dict.fromkeys(("value", "values", "count"), "estimate has the counts"),
    **dict.fromkeys(("ci", "interval", "confidence_interval"), "lower and upper are the interval"),
    "std": "error is the standard deviation",
    "sum": "total() adds up areas, and joint() has the covariances of their errors",
    **dict.fromkeys(
        ("save", "export", "write"),
        "to_csv(path), to_parquet(path) or to_excel(path) writes the table, to_file(path) a map "
        "such as .gpkg or .geojson",
    ),
    "to_xarray": "release.to_xarray() is a raster of the release",
    **dict.fromkeys(("map", "sheet"), "release has it; explore() is a map of the answers"),
}


def guessed_of_release(release: Any, name: str) -> Any:
    """Member of a release that a guessed name means."""
    if name in _OF_RELEASE:
        return getattr(release, _OF_RELEASE[name])
    if name in MOVED:
        raise AttributeError(f"Release.{name} is {MOVED[name]} now", name=name)
    if hasattr(type(release), name):  # a member, inside of which an attribute is missing
        return object.__getattribute__(release, name)
    raise _unknown("Release", name, _SAID_OF_RELEASE.get(name))


def guessed_of_answers(answers: Any, name: str) -> Any:
    """Column, writer or member of answers that a guessed name means."""
    from psd.query.answer_table import COLUMNS  # answers have loaded it; a build needs no scipy

    if name in COLUMNS:
        return answers.table[name]
    if name in _TABLE_WRITERS:
        return getattr(answers.table, name)
    match name:
        case "to_geodataframe" | "to_gdf":
            return answers.to_geopandas
        case "to_file":
            return partial(_write_map, answers)
        case "to_frame" | "to_pandas" | "to_dataframe":
            return answers.table.copy
    if hasattr(type(answers), name):  # as of a release
        return object.__getattribute__(answers, name)
    said = _SAID_OF_ANSWERS.get(name)
    if said is None and not name.startswith("_"):
        import pandas as pd

        said = f"table.{name} is that of the table" if hasattr(pd.DataFrame, name) else None
    raise _unknown("Answers", name, said)


_OF_GEOPANDAS: Final = (".gpkg", ".geojson", ".fgb", ".shp", ".json")
_OTHER_FILES: Final = (".parquet", ".xlsx", ".csv", ".pmtiles")


def _write_map(answers: Any, path: Any, **options: Any) -> None:
    """Write answers with shapes over a file, as GeoPandas; not as a folder of unknown ending."""
    ending = Path(path).suffix.lower()
    if ending in _OF_GEOPANDAS or "driver" in options:
        answers.to_geopandas().to_file(path, **options)
        return
    from psd.errors import ParameterError

    if ending not in _OTHER_FILES:
        known = ", ".join((*_OF_GEOPANDAS, *_OTHER_FILES))
        raise ParameterError(
            f"path must end in one of {known}, or driver= name one of GDAL, got {path}"
        )
    if options:
        raise ParameterError(
            f"{next(iter(options))} must be left out with a path that ends in {ending}"
        )
    from psd.export import write_answers
    from psd.query.answer_table import reliability_limits

    stated = {"guarantee": answers.guarantee, "confidence": f"{answers.confidence:g}"}
    stated |= reliability_limits(answers.threshold).texts
    table = answers.to_geopandas()
    write_answers(table, path, suffix=ending, metadata=stated, overwrite=True)


def _unknown(kind: str, name: str, said: str | None) -> AttributeError:
    """Error as Python has it, with what is meant where that is known."""
    hint = "" if said is None else f"; {said}"
    return AttributeError(f"{kind!r} object has no attribute {name!r}{hint}", name=name)
