"""Styles of a layer in QGIS: one for the estimates, one for their reliability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

import numpy as np
import shapely

if TYPE_CHECKING:
    import geopandas

    from psd._util.arrays import Floats

__all__ = [
    "LINES",
    "RELIABILITY",
    "RELIABILITY_LEVELS",
    "SEQUENTIAL",
    "Style",
    "class_breaks",
    "class_colours",
    "layer_styles",
]

SEQUENTIAL = ("#ffffcc", "#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#0c2c84")
"""Colours from few to many, ColorBrewer's YlGnBu; readers with colour blindness tell them apart."""

RELIABILITY = ("#2c7bb6", "#abd9e9", "#ffffbf", "#fdae61", "#bdbdbd")
"""Colours of relative errors, from reliable to mostly noise: ColorBrewer's RdYlBu from its end, and
grey; readers with colour blindness tell them apart."""

LINES = (
    "#2c7bb6", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b6770", "#8c6d31",
    "#332288", "#882255",
)  # fmt: skip
"""Colours of lines and bars: Okabe and Ito's for readers with colour blindness, and darker ones."""

RELIABILITY_LEVELS = (0.12, 0.2, 0.3, 1.0)
"""Relative errors that divide these colours."""

# What the style takes for the relative error of an estimate of 0, which has no value in the file.
_INFINITE = 10**11

# Shares of what is coloured below the breaks.
_SHARES = (0.1, 0.25, 0.45, 0.65, 0.82, 0.94)

# Round numbers within a decade.
_ROUND = np.array([1.0, 2.0, 5.0, 10.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    """A style of a layer.

    Parameters
    ----------
    name, description : str
        As QGIS lists it.
    qml : str
        The style in the language of QGIS.
    """

    name: str
    description: str
    qml: str


def class_breaks(values: Floats, areas: Floats | None = None) -> list[float]:
    """Round numbers that divide positive values into classes that can be seen on a map.

    Parameters
    ----------
    values : ndarray of float64
        Densities or estimates.
    areas : ndarray of float64, optional
        Area of each value on the map; all have the same by default. Tiny cells of huge densities
        would otherwise take all classes.

    Returns
    -------
    list of float
        At most six rising numbers, each below the largest value.

    Examples
    --------
    >>> class_breaks(np.arange(1.0, 1000.0))
    [200.0, 500.0]
    """
    positive = np.isfinite(values) & (values > 0)
    if not positive.any():
        return []
    order = np.argsort(values[positive], kind="stable")
    rising = values[positive][order]
    # Halfway between the area and the records of each value: by area alone most classes would be
    # of places with hardly a record, by records alone of cells too small to be seen.
    weight = np.sqrt(rising) * (1.0 if areas is None else areas[positive][order])
    share = (np.cumsum(weight) - weight / 2) / weight.sum()
    limits = np.interp(_SHARES, share, rising)
    decade = 10.0 ** np.floor(np.log10(limits))
    nearest = np.abs(np.log(np.outer(limits / decade, 1 / _ROUND))).argmin(axis=1)
    breaks = sorted({float(f"{each:.3g}") for each in decade * _ROUND[nearest]})
    return [each for each in breaks if rising[0] < each < rising[-1]]


def class_colours(classes: int) -> list[str]:
    """Colours of a number of classes, from few to many records."""
    chosen = np.linspace(0, len(SEQUENTIAL) - 1, classes).round().astype(int)
    return [SEQUENTIAL[number] for number in chosen]


def layer_styles(table: geopandas.GeoDataFrame) -> list[Style]:
    """Styles of a table of cells or answers, the one for its numbers first."""
    styles, outlined = [], table.attrs.get("content", "cells") != "cells"
    column, unit = "density", table.attrs.get("density_unit", "")
    if column not in table:
        column, unit = "estimate", _counted(table.attrs)
    if column in table and len(table):
        values = table[column].to_numpy(np.float64)
        breaks = class_breaks(values, shapely.area(table.geometry.to_numpy()))
        top = float(np.nanmax(values, initial=1.0))
        qml = _graduated(
            column, [0.0, *breaks, top], class_colours(len(breaks) + 1), unit, outlined=outlined
        )
        styles.append(Style(name=f"{column} ({unit})"[:30], description=unit, qml=qml))
    if "relative_error" in table:
        edges = [0.0, *RELIABILITY_LEVELS, 1e12]
        shown = f'coalesce("relative_error", {_INFINITE:.0f})'
        qml = _graduated(shown, edges, RELIABILITY, "", outlined=outlined, percent=True)
        text = "relative error; reliable: " + table.attrs.get("reliable", "")
        styles.append(Style(name="reliability", description=text, qml=qml))
    return styles


def _counted(metadata: dict[str, str]) -> str:
    """What is counted."""
    return "users" if metadata.get("counts", "").startswith("users") else "records"


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
        label = _label(low, high, last=last, percent=percent)
        if unit and number == 0:
            label = f"{label} {unit}"
        ranges.append(
            f'<range lower="{lowest:.15g}" upper="{high * (1 + 1e-9) if last else high:.15g}" '
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


def _label(low: float, high: float, *, last: bool, percent: bool) -> str:
    """Text of a class in the legend."""
    if percent:
        return f"above {low:.0%}" if last else f"{low:.0%} to {high:.0%}"
    return f"above {low:,.6g}" if last and low else f"{low:,.6g} to {high:,.6g}"


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
