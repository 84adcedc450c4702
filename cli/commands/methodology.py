"""psd methodology: the sheet of method of a release, a page for readers."""

from __future__ import annotations

import click

from ..options.command import Command
from ..options.common import RELEASE, overwrite
from ..options.time_slices import SLICE, release_or_series_at
from ..output.terminal import show_stage

__all__ = ["command"]


@click.command("methodology", cls=Command)
@RELEASE
@SLICE
@click.option("-o", "--output", type=click.Path(), required=True, help="HTML file to write.")
@overwrite
def command(release: str, slice_name: str | None, output: str, overwrite: bool) -> None:
    """Write a page that says what a release protects, and how accurate it is.

    The page is for a board and for readers: the guarantee, epsilon as odds, predicted errors by
    size, maps, how the release was built, and how to cite it. It is one file, which prints well and
    loads nothing. It is made of the release alone and may be published with it. What `psd build
    --about` stated is on it. Pictures need the extra `plot`.

    \b
    Examples:
      psd methodology seoul.psd.parquet -o sheet.html
      psd methodology year.psd.parquet -o sheet.html --overwrite
    """  # noqa: D301
    from psd._util.atomic_write import check_free, write_file
    from psd.web.methodology import methodology_page

    if not output.lower().endswith((".html", ".htm")):
        raise click.UsageError(f"-o must end in .html, got {output}; the sheet is a page")
    check_free(output, overwrite=overwrite, inputs=(release,))
    with show_stage() as stage:
        stage("reading")
        loaded = release_or_series_at(release, slice_name)
        stage("drawing")
        page = methodology_page(loaded)
    write_file(output, page.encode("utf-8"), overwrite=overwrite)
    click.echo(f"wrote {output}")
