"""psd map, psd info --sheet and psd export --site: pages of releases for their readers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from psd.query.answer_table import Threshold

from ..options.command import INTEGER, LIMITS, Command
from ..options.common import RELEASE, overwrite
from ..options.time_slices import (
    SLICE,
    VIEWED_CATEGORY,
    VIEWED_EACH,
    release_or_series_at,
    release_viewed,
)
from ..output.terminal import print_success, show_stage


@click.command("map", cls=Command)
@RELEASE
@SLICE
@VIEWED_EACH
@VIEWED_CATEGORY
@click.option("-o", "--output", type=click.Path(), required=True, help="HTML file to write.")
@click.option(
    "--regions",
    type=click.Path(),
    help="Public polygons to choose from on the page: GeoPackage, GeoJSON, ... Of its columns id "
    "and name are read alone.",
)
@click.option("--regions-crs", metavar="CRS", help="CRS of --regions, where the file states none.")
@click.option("--title", help="Title of the page; by default that of the release.")
@click.option(
    "--level",
    type=INTEGER,
    help="Show cells down to this level alone, 0 for the whole area: for releases of very many "
    "cells. Drawn areas have no answer then.",
)
@click.option(
    "--threshold",
    type=LIMITS,
    default="0.12,0.3",
    show_default=True,
    help="Largest relative error of a good estimate and of a reliable one, or of a reliable one "
    "alone.",
)
@overwrite
def run_map(
    release: str,
    slice_name: str | None,
    when: tuple[str, ...],
    category: str | None,
    output: str,
    regions: str | None,
    regions_crs: str | None,
    title: str | None,
    level: int | None,
    threshold: Threshold,
    overwrite: bool,
) -> None:
    """Write a page with a map of a release that answers drawn areas.

    The page is one file, which loads nothing and works without a network. It shows density, count
    and reliability of the cells, their estimates and intervals, and the joint answer to boxes and
    polygons that a reader draws, or to regions that a reader chooses: the answers of psd query. It
    is made of the release alone, and of public regions, and may be published with it. A series has
    a slider for its slices. A cube has one for the windows --when, by default all time and each
    slice; a reader chooses other spans of time, and the category.

    \b
    Examples:
      psd map seoul.psd.parquet -o map.html
      psd map seoul.psd.parquet -o map.html --regions wards.gpkg --title "Visits in Seoul"
      psd map year.psd.parquet -o map.html --overwrite
      psd map cube.psd.parquet -o map.html --when 'weekdays 07-09' --when weekends
    """  # noqa: D301
    from psd._util.atomic_write import check_free, write_file
    from psd.apps.web.map_page import map_page
    from psd.regions.files import read_polygons

    if not output.lower().endswith((".html", ".htm")):
        raise click.UsageError(f"-o must end in .html, got {output}; the map is a page")
    if regions_crs is not None and regions is None:
        raise click.UsageError("--regions-crs must be given with --regions")
    check_free(output, overwrite=overwrite, inputs=(release,))
    with show_stage() as stage:
        stage("reading")
        loaded = release_viewed(release, slice_name, when, category)
        table = None
        if regions is not None:
            table = read_polygons(Path(regions), "regions", crs=regions_crs)
        stage("drawing")
        shown: dict[str, Any] = {"title": title, "level": level, "threshold": threshold}
        page = map_page(loaded, regions=table, when=list(when) or None, category=category, **shown)
    write_file(output, page.encode("utf-8"), overwrite=overwrite)
    print_success(f"wrote {output}")


def write_sheet(release: str, slice_name: str | None, output: str, *, overwrite: bool) -> None:
    """Write the sheet of method of a release or a series."""
    from psd._util.atomic_write import check_free, write_file
    from psd.apps.web.methodology import methodology_page

    if not output.lower().endswith((".html", ".htm")):
        raise click.UsageError(f"--sheet must end in .html, got {output}; the sheet is a page")
    check_free(output, overwrite=overwrite, inputs=(release,))
    with show_stage() as stage:
        stage("reading")
        loaded = release_or_series_at(release, slice_name)
        stage("drawing")
        page = methodology_page(loaded)
    write_file(output, page.encode("utf-8"), overwrite=overwrite)
    print_success(f"wrote {output}")


def write_site(releases: Sequence[str], folder: str, *, overwrite: bool) -> None:
    """Write the folder of releases, whose counts are noted where they were given."""
    from psd.apps.web.site import folder_name, write_folder
    from psd.apps.web.site_page import Published

    with show_stage() as stage:
        stage("reading")
        published = [
            Published(
                name=folder_name(path), release=release_or_series_at(path, None), path=Path(path)
            )
            for path in releases
        ]
        stage("drawing")
        write_folder(published, folder, overwrite=overwrite)
    print_success(f"wrote {folder}")


COMMANDS = {"map": run_map}
