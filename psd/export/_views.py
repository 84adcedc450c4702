"""A release for notebooks and libraries: HTML, maps, xarray, and tables of synthetic points."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
import shapely
from pyproj import CRS

from psd._util.arrays import Floats, Integers
from psd._util.atomic_write import temporary_target
from psd._util.declared_parameters import integer_between
from psd._util.extras import needs_extra
from psd.errors import ParameterError, WriteError
from psd.export._formats import counted_unit, find_format, finite_errors, point_suffixes
from psd.export._maps import check_kind, classes_of, named_rows, opacities, shown_values
from psd.query.cube_views import WindowCounts
from psd.query.index import fitted
from psd.regions.hierarchy import RegionHierarchy
from psd.release.cube import WindowRecord
from psd.space.crs import parse_crs
from psd.space.region_tree import RegionTree
from psd.space.shape_transforms import transform_table
from psd.statistics.points import draw_points, point_generator, share_out, whole_counts
from psd.statistics.raster import MAX_CELLS, check_size, density_raster

if TYPE_CHECKING:
    import folium
    import geopandas
    import xarray

    from psd._util.arrays import Floats
    from psd.estimation.fit import Fit
    from psd.query.index import QueryIndex
    from psd.release.record import ReleaseRecord
    from psd.space.time_slices import TimeSlices


MOST_HELD, MOST_WRITTEN = 10**7, 10**9
"""Most points of a table in memory, about 2 GB, and of a file."""

_NOTE = (
    "drawn from the estimates of the release, no people and no records; they carry the error of "
    "the release and an error of drawing; intervals come from psd query alone"
)

# Columns that are no level of regions.
_OWN = ("slice", "release_source", "x", "y", "geometry")


def point_tables(
    slices: Mapping[str, QueryIndex],
    number: int | None,
    seed: int | None,
    *,
    most: int,
    metadata: Mapping[str, str],
) -> Iterator[geopandas.GeoDataFrame]:
    """Tables of points of slices, one at least, see `Release.to_points`; without time, no name."""
    import geopandas as gpd
    import pandas as pd
    import shapely

    first = next(iter(slices.values())).record
    regions = first.tree.regions if isinstance(first.tree, RegionTree) else None
    assert regions is None or isinstance(regions, RegionHierarchy)  # as in every release
    levels = () if regions is None else regions.levels
    for level in levels:
        if level.name in _OWN:
            raise ParameterError(
                f"levels must have other names than {', '.join(_OWN)} to be columns of points, "
                f"got {level.name!r}; rename the level before the build"
            )
    if number is not None:
        number = integer_between(1, MOST_WRITTEN)("n", number)
        _check_size(number, most, "n must be")
    if seed is not None:
        seed = integer_between(0, 2**63 - 1)("seed", seed)
    crs = parse_crs(first.domain.crs)

    ids = [pd.array(list(level.ids), dtype="str") for level in levels]
    above = [regions.ancestors(which) for which in range(len(levels))] if regions else []
    facts = {"content": "points", "points": _NOTE, **metadata}

    def table(name: str, region: Integers, x: Floats, y: Floats) -> geopandas.GeoDataFrame:
        columns: dict[str, Any] = {}
        if name:
            columns["slice"] = _same(name, len(x))
        for level, names, of_lowest in zip(levels, ids, above, strict=True):
            columns[level.name] = names.take(of_lowest[region])
        if first.source != "curator":
            columns["release_source"] = _same(first.source, len(x))
        shapes = shapely.points(np.stack([x, y], axis=1))  # in half the time of two arrays
        made = gpd.GeoDataFrame(columns, geometry=shapes, crs=crs)
        made.attrs = facts
        return made

    generator, drawn = point_generator(seed), 0
    parts: list[int | None] = [None] * len(slices)
    if number is not None:
        totals = np.array([index.total for index in slices.values()])
        if not totals.any():
            raise ParameterError(
                f"n must be left out, got {number:,}; the release has an estimate of 0 records, "
                "which are nowhere"
            )
        parts = share_out(number, totals, generator).tolist()
    # Those of a cube are made one after the other.
    is_cube = isinstance(slices, WindowCounts)
    indices = slices.values() if is_cube else fitted(list(slices.values()))
    for name, part, index in zip(slices, parts, indices, strict=True):
        tree, whole = index.record.tree, whole_counts(index.fit, part, generator)
        drawn += int(whole[0])
        _check_size(drawn, most, "n must be given, and")
        for batch in draw_points(index.fit, whole, generator):
            region = tree.region[batch.leaf] if isinstance(tree, RegionTree) else batch.leaf
            yield table(name, region.astype(np.int64), batch.x, batch.y)
    if not drawn:
        yield table(next(iter(slices)), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def _same(text: str, number: int) -> Any:
    """Column of one text."""
    import pandas as pd

    return pd.array([text], dtype="str").take(np.zeros(number, np.int64))


def _check_size(number: int, most: int, subject: str) -> None:
    """Refuse more points than fit."""
    if number <= most:
        return
    room, other = "a table in memory", "; export writes them to a file, batch by batch"
    if most == MOST_WRITTEN:
        room, other = "a file", ""
    raise ParameterError(f"{subject} at most {most:,} for {room}, got {number:,} points{other}")


def export_points(
    tables: Iterable[geopandas.GeoDataFrame],
    path: str | os.PathLike[str],
    *,
    crs: Any,
    overwrite: bool,
) -> int:
    """Write tables of points to a file; number of points. see `Release.export`."""
    suffixes, suffix = point_suffixes(), Path(path).suffix.lower()
    if "://" in str(path) or suffix not in suffixes:
        got = "a database" if "://" in str(path) else f"the ending {suffix!r}"
        raise ParameterError(
            f"output must end in one of {', '.join(suffixes)} to hold points, got {got}"
        )
    writer = find_format(path)
    fixed = getattr(writer, "FIXED_CRS", "release")
    if crs is not None and not (
        fixed == "release" or parse_crs(crs).equals(parse_crs(fixed), ignore_axis_order=True)
    ):
        raise ParameterError(
            f"crs must be {fixed}, or left out, if output ends in {writer.SUFFIX}, got {crs!r}"
        )
    rows = 0

    def moved() -> Iterator[geopandas.GeoDataFrame]:
        nonlocal rows
        for table in tables:
            rows += len(table)
            yield table if crs is None else transform_table(table, crs)

    with temporary_target(path, overwrite=overwrite) as target:
        try:
            writer.write_points(moved(), target)
        except RuntimeError as error:  # what GDAL's writers raise
            raise WriteError(f"cannot write {path}: {error}") from None
    return rows


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
    """Rasters as a dataset, see `Release.to_xarray`; labels: all pairs, the first name slowest."""
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
    # Each band is (labels, rows, columns); which bands there are the first raster says.
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
    # Centres of pixels; rows run from the north.
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
