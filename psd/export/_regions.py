"""Named regions of a release as a table with their polygons, and its files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from psd.errors import ParameterError
from psd.export._answers import write_answers
from psd.export._formats import find_format, is_database, is_raster
from psd.export._reliability import check_treatment, treat_unreliable
from psd.query.areas import answer_areas, read_areas
from psd.query.index import QueryIndex
from psd.query.reliability import Threshold
from psd.space.ground_areas import area_unit, ground_densities, shape_ground_areas
from psd.space.shape_transforms import transform_table

if TYPE_CHECKING:
    import geopandas

    from psd.release.record import ReleaseRecord

__all__ = ["export_regions", "named_regions_table"]


def named_regions_table(
    index: QueryIndex,
    level: int | str | None,
    *,
    confidence: float,
    threshold: Threshold,
) -> geopandas.GeoDataFrame:
    """Regions of a level with estimates and polygons; see `Release.to_geopandas`."""
    import geopandas as gpd

    domain, source = index.record.domain, index.record.source
    regions = read_areas(None, domain, index.record.tree, level=level)
    answers = regions.table(
        answer_areas([index], regions, confidence=confidence, threshold=threshold)
    )
    shapes = regions.shapes(domain)
    areas = shape_ground_areas(domain, shapes)
    answers.insert(2, "density", ground_densities(answers["estimate"].to_numpy(), areas))
    if source != "curator":
        answers["release_source"] = source
    return gpd.GeoDataFrame(answers, geometry=shapes, crs=domain.crs)


def export_regions(
    record: ReleaseRecord,
    regions: geopandas.GeoDataFrame,
    path: str | os.PathLike[str],
    *,
    metadata: Mapping[str, str],
    crs: Any,
    unreliable: str,
    threshold: Threshold,
    overwrite: bool,
) -> int:
    """Write the table of a level; number of rows left out; see `Release.export`."""
    limits = check_treatment(unreliable, threshold)
    writer = find_format(path)
    if is_raster(writer) or is_database(writer):
        raise ParameterError(
            f"output must be a file of a table for a release with regions, got {path}; such as "
            ".gpkg, .parquet or .csv"
        )
    table = treat_unreliable(regions, unreliable, threshold)
    if crs is not None:
        table = transform_table(table, crs)
    counted = "users" if record.unit.weight else "records"
    stated = {
        **metadata,
        **limits.texts,
        "unreliable": unreliable,
        "density_unit": f"{counted} per {area_unit(record.domain)}",
    }
    write_answers(
        table,
        path,
        suffix=writer.SUFFIX,
        content="regions",
        metadata=stated,
        overwrite=overwrite,
    )
    return len(regions) - len(table)
