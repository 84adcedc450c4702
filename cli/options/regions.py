"""Regions that a command asks about: boxes, polygons, or named regions of a release."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from .command import chain_options


def read_regions(
    box: tuple[Any, ...],
    boxes: str | None,
    polygons: str | None,
    polygons_crs: str | None,
    repair: bool = False,
) -> Any:
    """Boxes or polygons, from exactly one of the three options."""
    from psd.regions import files as region_files
    from psd.space import regions

    if sum(map(bool, (box, boxes, polygons))) != 1:
        advice = "" if box or boxes or polygons else "; of all, give the bounds that psd info shows"
        raise click.UsageError(
            f"exactly one of --box, --boxes and --polygons must be given{advice}"
        )
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
    return regions.repair_polygons(table, "polygons") if repair else table


def region_name_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--all-regions``, ``--region``, ``--table`` and ``--level``."""
    return chain_options(
        click.option(
            "--all-regions",
            is_flag=True,
            help="Answer all regions of a level of a release that counts regions by name.",
        ),
        click.option(
            "--region",
            multiple=True,
            metavar="ID",
            help="Answer the region of this id; may be repeated.",
        ),
        click.option(
            "--table",
            metavar="FILE",
            help="Answer the region of each row of a table: CSV, XLSX, Parquet, or any vector "
            "format. The answers have the columns and the order of the table.",
        ),
        click.option(
            "--table-id", metavar="COLUMN", help="Column of the ids in --table; by default id."
        ),
        click.option(
            "--level", metavar="NAME", help="Level of these regions; by default the lowest."
        ),
    )(command)


def named_regions(
    *,
    all_regions: bool,
    region: tuple[str, ...],
    table: str | None,
    table_id: str | None,
    level: str | None,
) -> dict[str, Any] | None:
    """Arguments of `Release.query` for the regions of the options; None without any."""
    from psd.regions.files import read_table

    if table_id is not None and table is None:
        raise click.UsageError("--table-id must be given with --table")
    chosen = sum(map(bool, (all_regions, region, table)))
    if not chosen:
        if level is not None:
            raise click.UsageError("--level must be given with --all-regions, --region or --table")
        return None
    if chosen > 1:
        raise click.UsageError(
            "at most one of --all-regions, --region and --table must be given; they answer regions "
            "of one level"
        )
    if table is None:
        return {"areas": [[name] for name in region] or None, "level": level}
    return {"areas": read_table(Path(table)), "id": table_id or "id", "level": level}
