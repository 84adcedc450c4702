"""Answers beside what the caller gave: columns, index and geometry of regions are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd._util.instances import type_text
from psd.errors import ParameterError
from psd.query.answer_table import COLUMNS
from psd.regions.ids import id_texts
from psd.space.crs import parse_crs

if TYPE_CHECKING:
    import pandas

__all__ = ["join_answers", "region_ids", "with_columns_of"]


def with_columns_of(regions: Any, answers: pandas.DataFrame, crs: Any) -> Any:
    """Answers with the index and columns of the caller's table or series.

    Parameters
    ----------
    regions : Any
        What was asked about.
    answers : DataFrame
        Answers in the order of the regions; those of a GeoDataFrame have its columns already.
    crs : any CRS that pyproj understands, optional
        Of a series that states none.

    Returns
    -------
    DataFrame or GeoDataFrame
        For a GeoSeries the answers with its index and geometry; for a DataFrame of boxes with its
        index and columns, without those that have the name of a column of the answers.
    """
    import geopandas as gpd
    import pandas as pd

    if isinstance(regions, gpd.GeoSeries):
        shapes = regions if regions.crs is not None else regions.set_crs(parse_crs(crs))
        table = gpd.GeoDataFrame(
            {"id": answers["id"].to_numpy()}, geometry=shapes.array, index=regions.index
        )
        return _beside(table, answers)
    if isinstance(regions, pd.DataFrame) and not isinstance(regions, gpd.GeoDataFrame):
        names = [name for name in regions if name == "id" or name not in answers]
        table = regions[names]
        if "id" not in names:
            table = table.assign(id=answers["id"].to_numpy())[["id", *names]]
        return _beside(table, answers)
    return answers


def region_ids(table: Any, column: str) -> list[str]:
    """Ids of regions in a column of the caller's table.

    Raises
    ------
    ParameterError
        If it is not a table, has no such column, or an id is missing.
    """
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        raise ParameterError(f"table must be a DataFrame, got {type_text(table)}", name="table")
    columns = [str(name) for name in table.columns]
    if column not in table.columns:
        raise ParameterError(
            f"column must be one of the table ({', '.join(columns)[:200] or 'none'}), got "
            f"{str(column)[:80]!r}",
            name="column",
        )
    return id_texts(table[column], column)


def join_answers(table: Any, answers: pandas.DataFrame) -> Any:
    """Answers beside the rows of the caller's table.

    Raises
    ------
    ParameterError
        If a column of the table has the name of one of the answers.
    """
    for name in COLUMNS:
        if name in table.columns:
            raise ParameterError(
                f"table must not have a column {name}, which the answers add; rename it",
                name="table",
            )
    return _beside(table, answers)


def _beside(table: Any, answers: pandas.DataFrame) -> Any:
    """Columns of the answers, without their ids, beside a table of the same rows."""
    return table.assign(**{str(name): answers[name].to_numpy() for name in answers if name != "id"})
