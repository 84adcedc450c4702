"""Styles of a layer in QGIS: for the estimates, their reliability, and means of values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import quoteattr

import numpy as np
import shapely

from psd._util.arrays import Floats
from psd._util.colours import (
    RELIABILITY,
    RELIABILITY_LEVELS,
    class_breaks,
    class_colours,
    even_breaks,
)
from psd.export._formats import counted_unit
from psd.export._maps import OPACITY, named_rows
from psd.query.answer_table import QUALITIES
from psd.space.region_tree import ELSEWHERE

if TYPE_CHECKING:
    import geopandas


# What the style takes for the relative error of an estimate of 0, which has no value in the file.
_INFINITE = 10**11


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """A style of a layer."""

    name: str  # as QGIS lists it, and so is the description
    description: str
    qml: str  # the style in the language of QGIS


def mean_names(columns: Iterable[str]) -> list[str]:
    """Columns of means, which have a quality beside them."""
    every = list(map(str, columns))
    return [name for name in every if f"{name}_quality" in every]


def cell_styles(columns: Mapping[str, Any], areas: Floats, facts: Mapping[str, str]) -> list[Style]:
    """Styles of cells, with their areas on the map: ``density``, and means with their quality."""
    styles, density = [], columns["density"]
    if len(density):
        styles.append(_classes("density", density, areas, facts.get("density_unit", "")))
    means = [
        _means(name, columns[name], columns[f"{name}_quality"], areas)
        for name in mean_names(columns)
        if len(density)
    ]
    return [*styles, _reliability(facts), *means]


def layer_styles(table: geopandas.GeoDataFrame) -> list[Style]:
    """Styles of a table of cells or answers, the one for its numbers first."""
    styles, outlined = [], table.attrs.get("content", "cells") != "cells"
    column, unit = "density", table.attrs.get("density_unit", "")
    if column not in table:
        column, unit = "estimate", counted_unit(table.attrs.get("counts", ""))
    if column in table and len(table):
        named = table[named_rows(table)]
        values, areas = named[column].to_numpy(np.float64), shapely.area(named.geometry.to_numpy())
        # What has no value has no symbol.
        is_named = f"\"id\" = '{ELSEWHERE}'"
        shown = column if len(named) == len(table) else f'if({is_named}, NULL, "{column}")'
        styles.append(_classes(column, values, areas, unit, shown=shown, outlined=outlined))
    if "relative_error" in table:
        styles.append(_reliability(table.attrs, outlined=outlined))
    for name in mean_names(table.columns) if len(table) else ():
        # What lies in no region has no weight in the classes.
        areas = shapely.area(table.geometry.to_numpy()) * named_rows(table)
        mean, quality = table[name].to_numpy(np.float64), table[f"{name}_quality"].to_numpy()
        styles.append(_means(name, mean, quality, areas, outlined=outlined))
    return styles


def _means(
    name: str, mean: Floats, quality: Any, areas: Floats, *, outlined: bool = False
) -> Style:
    """Style of the means of a value, fainter by their quality; poor ones set no classes."""
    exact = quality != QUALITIES[-1]
    exact = exact if exact.any() else ~exact
    breaks = even_breaks(mean[exact], areas[exact])
    edges = [float(np.nanmin(mean)), *breaks, float(np.nanmax(mean))]
    opaque, faint, faintest = (f"{100 * share:g}" for share in OPACITY)
    column = f"{name}_quality".replace('"', '""')
    by_quality = (
        f"CASE WHEN \"{column}\" = '{QUALITIES[0]}' THEN {opaque} "
        f"WHEN \"{column}\" = '{QUALITIES[1]}' THEN {faint} ELSE {faintest} END"
    )
    colours = class_colours(len(breaks) + 1)
    qml = _graduated(name, edges, colours, "", outlined=outlined, opacity=by_quality)
    text = "mean; fainter: use with care; faintest: poor"
    return Style(name=name[:30], description=text, qml=qml)


def _classes(
    column: str,
    values: Floats,
    areas: Floats,
    unit: str,
    *,
    shown: str | None = None,
    outlined: bool = False,
) -> Style:
    """Style of the numbers of a column; `shown` is what QGIS computes of it."""
    breaks = class_breaks(values, areas)
    top = float(np.nanmax(values, initial=1.0))
    edges, colours = [0.0, *breaks, top], class_colours(len(breaks) + 1)
    qml = _graduated(shown or column, edges, colours, unit, outlined=outlined)
    return Style(name=f"{column} ({unit})"[:30], description=unit, qml=qml)


def _reliability(facts: Mapping[str, str], *, outlined: bool = False) -> Style:
    """Style of relative errors."""
    edges = [0.0, *RELIABILITY_LEVELS, 1e12]
    shown = f'coalesce("relative_error", {_INFINITE:.0f})'
    qml = _graduated(shown, edges, RELIABILITY, "", outlined=outlined, percent=True)
    text = "relative error; reliable: " + facts.get("reliable", "")
    return Style(name="reliability", description=text, qml=qml)


def _graduated(
    column: str,
    edges: Sequence[float],
    colours: Sequence[str],
    unit: str,
    *,
    outlined: bool,
    percent: bool = False,
    opacity: str = "",
) -> str:
    """Style that fills polygons by the class of a number, with an opacity that QGIS computes."""
    ranges, symbols = [], []
    for number, (low, high, colour) in enumerate(zip(edges, edges[1:], colours, strict=False)):
        lowest = min(low, -1e12) if number == 0 else low
        last = number == len(edges) - 2
        begin, end = (f"{edge:.0%}" if percent else f"{edge:,.6g}" for edge in (low, high))
        is_open = last and not opacity and (percent or low)
        label = f"above {begin}" if is_open else f"{begin} to {end}"
        if unit and number == 0:
            label = f"{label} {unit}"
        # QGIS takes the first class that holds a number. One between two classes belongs to the
        # upper one, as on other maps; a relative error to the lower one, of which it is the limit.
        beyond = 1e-9 if last else 0.0 if percent else -1e-12
        ranges.append(
            f'<range lower="{lowest:.15g}" upper="{high + abs(high) * beyond:.15g}" '
            f'label={quoteattr(label)} symbol="{number}" render="true"/>'
        )
        symbols.append(_symbol(number, colour, outlined=outlined, opacity=opacity))
    return (
        "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"
        '<qgis version="3.22.0" styleCategories="Symbology">\n'
        f'<renderer-v2 type="graduatedSymbol" attr={quoteattr(column)} symbollevels="0" '
        'graduatedMethod="GraduatedColor" forceraster="0" enableorderby="0">\n'
        f"<ranges>{''.join(ranges)}</ranges>\n<symbols>{''.join(symbols)}</symbols>\n"
        "</renderer-v2>\n<layerOpacity>1</layerOpacity>\n</qgis>\n"
    )


def _symbol(number: int, colour: str, *, outlined: bool, opacity: str) -> str:
    """Polygon filled to its edge, or with a grey outline, for QGIS before and after 3.26."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    values = {
        "color": f"{red},{green},{blue},255",
        "style": "solid",
        # In the colour of the fill: without it, gaps between cells shine through.
        "outline_color": "90,90,90,255" if outlined else f"{red},{green},{blue},255",
        "outline_style": "solid",
        "outline_width": "0.1",
        "joinstyle": "miter",
    }
    older = "".join(f'<prop k="{key}" v="{value}"/>' for key, value in values.items())
    newer = "".join(
        f'<Option name="{key}" type="QString" value="{value}"/>' for key, value in values.items()
    )
    computed = ""
    if opacity:
        computed = (
            '<data_defined_properties><Option type="Map">'
            '<Option name="name" type="QString" value=""/>'
            '<Option name="properties" type="Map"><Option name="alpha" type="Map">'
            '<Option name="active" type="bool" value="true"/>'
            f'<Option name="expression" type="QString" value={quoteattr(opacity)}/>'
            '<Option name="type" type="int" value="3"/></Option></Option>'
            '<Option name="type" type="QString" value="collection"/>'
            "</Option></data_defined_properties>"
        )
    return (
        f'<symbol name="{number}" type="fill" alpha="1" clip_to_extent="1" force_rhr="0">'
        f'{computed}<layer class="SimpleFill" enabled="1" locked="0" pass="0">{older}'
        f'<Option type="Map">{newer}</Option></layer></symbol>'
    )
