"""A release for notebooks and libraries: HTML, interactive maps, xarray."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from pyproj import CRS

from psd._util.fields import choice
from psd.errors import MissingExtraError
from psd.export._gdal import finite_errors
from psd.export._maps import KINDS, classes_of, shown_values
from psd.space.shape_transforms import transform_table
from psd.statistics.raster import density_raster

if TYPE_CHECKING:
    import folium
    import geopandas
    import xarray

    from psd.estimation.model import CountModel

__all__ = ["explore_release", "html_of", "to_xarray"]

_PICTURE = 96
"""Columns and rows of the small picture in a notebook."""


_SHOWN = (
    "id",
    "estimate",
    "perturbation_error",
    "density",
    "relative_error",
    "reliable",
    "quality",
)
"""What an interactive map says of a cell or an area."""


def html_of(model: CountModel, *, picture: bool = True) -> str:
    """Small picture and the guarantee, for notebooks; without matplotlib the words alone."""
    about = model.record.about
    facts = {
        **({} if about is None or about.title is None else {"title": about.title}),
        "guarantee": model.record.guarantee_text,
        "method": f"{model.record.method}, {len(model.tree):,} cells",
        "counts": model.record.counted_text,
        "estimated total": f"{model.total:,.0f}",
        "bounds": " ".join(f"{side:.10g}" for side in model.domain.bounds)
        + f" ({CRS.from_user_input(model.domain.crs).name})",
    }
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in facts.items()
    )
    return (
        '<div style="display:flex;gap:1em;align-items:center;flex-wrap:wrap">'
        f"{_picture(model) if picture else ''}<table>{rows}</table></div>"
    )


def _picture(model: CountModel) -> str:
    """Density in classes as an image inside the page."""
    try:
        from matplotlib import image
    except ImportError:
        return ""
    density = density_raster(model, _PICTURE, _PICTURE).density
    colours, norm = classes_of(model, "density", density).colour_map()
    content = io.BytesIO()
    image.imsave(content, colours(norm(density)), format="png")
    text = base64.b64encode(content.getvalue()).decode("ascii")
    return (
        f'<img alt="density of the release" width="{2 * _PICTURE}" '
        f'style="image-rendering:pixelated" src="data:image/png;base64,{text}">'
    )


def explore_release(
    model: CountModel, cells: geopandas.GeoDataFrame, kind: str, *, tiles: Any
) -> folium.Map:
    """Interactive map of cells or of areas; see `CellTable.explore` and `Answers.explore`."""
    choice(*KINDS)("kind", kind)
    try:
        import folium
        from branca.colormap import StepColormap
    except ImportError:
        raise MissingExtraError(
            "an interactive map needs folium; install it with pip install "
            "'psd-publisher[explore]', or open an export (.gpkg) in QGIS",
            extra="explore",
        ) from None
    values = shown_values(cells, kind)
    areas = shapely.area(cells.geometry.to_numpy())
    classes = classes_of(model, kind, values, areas)
    number = np.digitize(values, classes.edges[1:-1])
    names = [name for name in _SHOWN if name in cells]
    shown = finite_errors(cells[[*names, cells.geometry.name]])
    shown = transform_table(shown, "EPSG:4326").round(3)
    shown["colour"] = [classes.colours[each] for each in number]
    west, south, east, north = (float(side) for side in shown.total_bounds)
    drawn = folium.Map(tiles=tiles)
    drawn.fit_bounds([[south, west], [north, east]])
    folium.GeoJson(
        shown.to_json(),
        style_function=_style,
        tooltip=folium.GeoJsonTooltip(names),
    ).add_to(drawn)
    StepColormap(
        list(classes.colours),
        index=list(classes.edges),
        vmin=classes.edges[0],
        vmax=classes.edges[-1],
        caption=f"{classes.label}; {model.record.guarantee_text}",
    ).add_to(drawn)
    return drawn


def _style(feature: dict[str, Any]) -> dict[str, Any]:
    """Fill of a cell."""
    colour = feature["properties"]["colour"]
    return {"fillColor": colour, "color": colour, "weight": 0.2, "fillOpacity": 0.75}


def to_xarray(
    model: CountModel, columns: int, rows: int, *, metadata: Mapping[str, str]
) -> xarray.Dataset:
    """Raster as a dataset; see `Release.to_xarray`."""
    try:
        import xarray
    except ImportError:
        raise MissingExtraError(
            "a dataset needs xarray; install it with pip install 'psd-publisher[xarray]'",
            extra="xarray",
        ) from None
    raster = density_raster(model, columns, rows)
    west, south, east, north = raster.bounds
    x = west + (np.arange(columns) + 0.5) * (east - west) / columns
    y = north - (np.arange(rows) + 0.5) * (north - south) / rows
    counted = "users" if model.record.unit.weight else "records"
    units = {
        "count": counted,
        "density": f"{counted} per {raster.unit}",
        "perturbation_error": counted,
        "nonuniformity_error": counted,
        "error": counted,
    }
    bands = {
        name: (("y", "x"), getattr(raster, name), {"units": unit, "grid_mapping": "spatial_ref"})
        for name, unit in units.items()
    }
    return xarray.Dataset(
        bands,
        coords={
            "x": x,
            "y": y,
            "spatial_ref": ((), 0, CRS.from_user_input(model.domain.crs).to_cf()),
        },
        attrs=dict(metadata),
    )
