"""A release for notebooks and libraries: HTML, interactive maps, xarray."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
import shapely
from pyproj import CRS

from psd._util.extras import needs_extra
from psd.errors import ParameterError
from psd.export._formats import counted_unit, finite_errors
from psd.export._maps import check_kind, classes_of, named_rows, opacities, shown_values
from psd.release.cube import WindowRecord
from psd.space.shape_transforms import transform_table
from psd.statistics.raster import MAX_CELLS, check_size, density_raster

if TYPE_CHECKING:
    import folium
    import geopandas
    import xarray

    from psd._util.arrays import Floats
    from psd.estimation.fit import Fit
    from psd.release.record import ReleaseRecord
    from psd.space.time_slices import TimeSlices


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

_NO_CLASS = "#e9edf2"


def html_of(fit: Fit, *, picture: bool = True) -> str:
    """Small picture and the guarantee, for notebooks; without matplotlib the words alone."""
    about = fit.record.about
    metadata = {
        **({} if about is None or about.title is None else {"title": about.title}),
        "guarantee": fit.record.guarantee_text,
        "method": f"{fit.record.method}, {len(fit.tree):,} cells",
        **(fit.record.shown if isinstance(fit.record, WindowRecord) else {}),
        "counts": fit.record.counted_text,
        "estimated total": f"{fit.total:,.0f}",
        "bounds": " ".join(f"{side:.10g}" for side in fit.domain.bounds)
        + f" ({CRS.from_user_input(fit.domain.crs).name})",
    }
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in metadata.items()
    )
    return (
        '<div style="display:flex;gap:1em;align-items:center;flex-wrap:wrap">'
        f"{_picture(fit) if picture else ''}<table>{rows}</table></div>"
    )


def _picture(fit: Fit) -> str:
    """Density in classes as an image inside the page."""
    try:
        from matplotlib import image
    except ImportError:
        return ""
    density = density_raster(fit, _PICTURE, _PICTURE).density
    colours, norm = classes_of(fit.record, "density", density).colour_map()
    content = io.BytesIO()
    image.imsave(content, colours(norm(density)), format="png")
    text = base64.b64encode(content.getvalue()).decode("ascii")
    return (
        f'<img alt="density of the release" width="{2 * _PICTURE}" '
        f'style="image-rendering:pixelated" src="data:image/png;base64,{text}">'
    )


def explore_release(
    record: ReleaseRecord, cells: geopandas.GeoDataFrame, kind: str, *, tiles: Any
) -> folium.Map:
    """Interactive map of cells or of areas; see `CellTable.explore` and `Answers.explore`."""
    check_kind(record, kind)
    otherwise = ", or open an export (.gpkg) in QGIS"
    with needs_extra("explore", "an interactive map needs folium", otherwise):
        import folium
        from branca.colormap import StepColormap
    values, is_named = shown_values(cells, kind), named_rows(cells)
    areas = shapely.area(cells.geometry.to_numpy())
    quality = cells.get(f"{kind}_quality", pandas.Series("", cells.index))
    classes = classes_of(record, kind, values[is_named], areas[is_named], quality[is_named])
    number = np.digitize(values, classes.edges[1:-1])
    means = [f"mean_{value.name}" for value in record.values]
    of_means = [f"{name}{end}" for name in means for end in ("", "_lower", "_upper", "_quality")]
    names = [name for name in (*_SHOWN, *of_means) if name in cells]
    shown = finite_errors(cells[[*names, cells.geometry.name]])
    shown = transform_table(shown, "EPSG:4326").round(3)
    # Folium takes names and texts as HTML, and those of regions and values are of anyone.
    for name in names:
        if not pandas.api.types.is_numeric_dtype(shown[name].dtype):
            shown[name] = [escape(each) if isinstance(each, str) else each for each in shown[name]]
    shown["colour"] = [
        classes.colours[each] if named else _NO_CLASS
        for each, named in zip(number, is_named, strict=True)
    ]
    opacity = opacities(cells, kind)
    shown["opacity"] = np.round(0.75 * (1.0 if opacity is None else opacity), 3)
    west, south, east, north = (float(side) for side in shown[is_named].total_bounds)
    drawn = folium.Map(tiles=tiles)
    drawn.fit_bounds([[south, west], [north, east]])
    folium.GeoJson(
        shown.to_json(),
        style_function=lambda feature: {
            "fillColor": feature["properties"]["colour"],
            "color": feature["properties"]["colour"],
            "weight": 0.2,
            "fillOpacity": feature["properties"]["opacity"],
        },
        tooltip=folium.GeoJsonTooltip(names, aliases=[escape(name) for name in names]),
    ).add_to(drawn)
    StepColormap(
        list(classes.colours),
        index=list(classes.edges),
        vmin=classes.edges[0],
        vmax=classes.edges[-1],
        caption=f"{classes.label}; {record.guarantee_text}",
    ).add_to(drawn)
    return drawn


def to_xarray(
    fits: Iterable[Fit],
    labels: Sequence[Mapping[str, str]],
    columns: int,
    rows: int,
    *,
    slices: TimeSlices | None,
    metadata: Mapping[str, str],
) -> xarray.Dataset:
    """Rasters as a dataset; see `Release.to_xarray`.

    labels: of each raster, the first name of them varying slowest; all pairs of their texts.
    """
    with needs_extra("xarray", "a dataset needs xarray"):
        import xarray
    texts = {name: list(dict.fromkeys(label[name] for label in labels)) for name in labels[0]}
    shape = tuple(map(len, texts.values()))
    if len(labels) != np.prod(shape, dtype=np.int64):
        raise ParameterError(
            "when must be one window with each='slice', whose slices are a dimension", name="when"
        )
    columns, rows = check_size(columns, rows)
    if columns * rows * len(labels) > MAX_CELLS:
        raise ParameterError(
            f"size must be at most {MAX_CELLS:,} cells of all rasters, got {len(labels):,} of "
            f"{columns:,} x {rows:,}; choose fewer columns or rows, or a shorter window"
        )
    names = ("count", "density", "perturbation_error", "nonuniformity_error", "error")
    bands: dict[str, Floats] = {}
    for number, fit in enumerate(fits):
        raster = density_raster(fit, columns, rows)
        for name in (*names, *raster.values):
            image = raster.values[name] if name in raster.values else getattr(raster, name)
            if not number:
                bands[name] = np.empty((len(labels), rows, columns))
            bands[name][number] = image
    counted = counted_unit(fit.record.counted_text)
    units = dict.fromkeys(names, counted) | {"density": f"{counted} per {raster.unit}"}
    dimensions = ["time" if name == "slice" else name for name in texts]
    west, south, east, north = raster.bounds
    coordinates: dict[str, Any] = {
        **{name: each for name, each in texts.items() if name != "slice"},
        "x": west + (np.arange(columns) + 0.5) * (east - west) / columns,
        "y": north - (np.arange(rows) + 0.5) * (north - south) / rows,
        "spatial_ref": ((), 0, CRS.from_user_input(fit.domain.crs).to_cf()),
    }
    if "slice" in texts and slices is not None:
        at = [slices.names.index(name) for name in texts["slice"]]
        zone = {"time_zone": slices.time_zone}
        for name, ends in (("time", slices.begins), ("time_end", slices.ends)):
            coordinates[name] = ("time", ends[at].astype("datetime64[s]"), zone)
        coordinates["slice"] = ("time", texts["slice"])
    return xarray.Dataset(
        {
            name: (
                (*dimensions, "y", "x"),
                image.reshape(*shape, rows, columns),
                {
                    **({"units": units[name]} if name in units else {}),
                    "grid_mapping": "spatial_ref",
                },
            )
            for name, image in bands.items()
        },
        coords=coordinates,
        attrs=dict(metadata),
    )
