"""Regions that a command asks about: boxes of options or files, and polygons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

__all__ = ["read_regions"]


def read_regions(
    box: tuple[Any, ...],
    boxes: str | None,
    polygons: str | None,
    polygons_crs: str | None,
    repair: bool = False,
) -> Any:
    """Boxes or polygons, from exactly one of the three options.

    Raises
    ------
    UsageError
        If not exactly one of the options is present.
    InputDataError, ParameterError
        If the file cannot be read as regions.
    """
    from psd.regions import files as region_files
    from psd.space import region_repair

    if sum(map(bool, (box, boxes, polygons))) != 1:
        raise click.UsageError("exactly one of --box, --boxes and --polygons must be given")
    if repair and not polygons:
        raise click.UsageError("--repair must be given with --polygons; boxes need no repair")
    if polygons_crs is not None and not polygons:
        raise click.UsageError(
            "--polygons-crs must be given with --polygons; boxes are in the CRS of the release"
        )
    if box:
        return list(box)
    if boxes:
        return region_files.read_boxes(Path(boxes))
    table = region_files.read_polygons(Path(polygons or ""), crs=polygons_crs)
    return region_repair.repair_polygons(table, "polygons") if repair else table
