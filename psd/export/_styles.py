"""Styles of a layer in QGIS: one for the estimates, one for their reliability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

import numpy as np
import shapely

from psd._util.arrays import Floats
from psd._util.colours import RELIABILITY, RELIABILITY_LEVELS, class_breaks, class_colours
from psd.export._formats import counted_unit
from psd.export._maps import named_rows
from psd.space.region_tree import ELSEWHERE

if TYPE_CHECKING:
    import geopandas

__all__ = ["Style", "cell_styles", "layer_styles"]

# What the style takes for the relative error of an estimate of 0, which has no value in the file.
_INFINITE = 10**11


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """A style of a layer."""

    name: str  # as QGIS lists it, and so is the description
    description: str
    qml: str  # the style in the language of QGIS


def cell_styles(density: Floats, areas: Floats, facts: Mapping[str, str]) -> list[Style]:
    """Styles of a layer of cells with their densities and areas on the map, as `layer_styles`."""
    styles = []
    if len(density):
        styles.append(_classes("density", density, areas, facts.get("density_unit", "")))
    return [*styles, _reliability(facts)]


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
    return styles


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
) -> str:
    """Style that fills polygons by the class of a number."""
    ranges, symbols = [], []
    for number, (low, high, colour) in enumerate(zip(edges, edges[1:], colours, strict=False)):
        lowest = min(low, -1e12) if number == 0 else low
        last = number == len(edges) - 2
        begin, end = (f"{edge:.0%}" if percent else f"{edge:,.6g}" for edge in (low, high))
        label = f"above {begin}" if last and (percent or low) else f"{begin} to {end}"
        if unit and number == 0:
            label = f"{label} {unit}"
        # QGIS takes the first class that holds a number. One between two classes belongs to the
        # upper one, as on other maps; a relative error to the lower one, of which it is the limit.
        beyond = 1e-9 if last else 0.0 if percent else -1e-12
        ranges.append(
            f'<range lower="{lowest:.15g}" upper="{high * (1 + beyond):.15g}" '
            f'label={quoteattr(label)} symbol="{number}" render="true"/>'
        )
        symbols.append(_symbol(number, colour, outlined=outlined))
    return (
        "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"
        '<qgis version="3.22.0" styleCategories="Symbology">\n'
        f'<renderer-v2 type="graduatedSymbol" attr={quoteattr(column)} symbollevels="0" '
        'graduatedMethod="GraduatedColor" forceraster="0" enableorderby="0">\n'
        f"<ranges>{''.join(ranges)}</ranges>\n<symbols>{''.join(symbols)}</symbols>\n"
        "</renderer-v2>\n<layerOpacity>1</layerOpacity>\n</qgis>\n"
    )


def _symbol(number: int, colour: str, *, outlined: bool) -> str:
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
    return (
        f'<symbol name="{number}" type="fill" alpha="1" clip_to_extent="1" force_rhr="0">'
        f'<layer class="SimpleFill" enabled="1" locked="0" pass="0">{older}'
        f'<Option type="Map">{newer}</Option></layer></symbol>'
    )
