"""psd plot: a map of a release, or small maps of the slices of a series."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from psd.query.answer_table import Threshold

from ..options.command import INTEGER, LIMITS, Command, cell_level
from ..options.common import RELEASE, overwrite
from ..options.time_slices import CATEGORY, SLICE, VIEWED_EACH, VIEWED_EACH_OF, release_viewed
from ..output.terminal import print_success, show_stage

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_ENDINGS = (".png", ".svg", ".pdf")


@click.command("plot", cls=Command)
@RELEASE
@SLICE
@VIEWED_EACH
@CATEGORY
@VIEWED_EACH_OF
@click.argument("output", type=click.Path(), required=False)
@click.option(
    "--kind",
    default="density",
    show_default=True,
    help="What is shown: density per square kilometre; estimate, the counts; relative_error; "
    "reliable; quality, in three classes; or the mean of a value, such as mean_fare, whose colours "
    "are fainter by its quality, poor ones hatched.",
)
@click.option(
    "--level",
    help="Coarser cells: those of this level, from 0, and leaves above it. Of a release with "
    "regions the name of a level of regions; by default the lowest.",
)
@click.option(
    "--outline", type=click.Path(), metavar="FILE", help="Polygons whose outlines are drawn."
)
@click.option(
    "--threshold",
    type=LIMITS,
    default="0.12,0.3",
    show_default=True,
    help="Largest relative error of a good estimate and of a reliable one, or of a reliable one "
    "alone.",
)
@click.option(
    "--dpi", type=INTEGER, default=150, show_default=True, help="Points per inch of a .png."
)
@overwrite
def command(
    release: str,
    slice_name: str | None,
    when: tuple[str, ...],
    categories: tuple[str, ...],
    each: tuple[str, ...],
    output: str | None,
    kind: str,
    level: str | None,
    outline: str | None,
    threshold: Threshold,
    dpi: int,
    overwrite: bool,
) -> None:
    """Draw a map: classes with their unit, a scale bar, the title and the guarantee.

    The ending of OUTPUT selects the format: .png, .svg or .pdf. A series is drawn as small maps of
    its slices with one key; --slice draws one of them. A cube is drawn in all time, or as small
    maps of windows, slices or categories, at most 48. The colours are told apart by readers with
    colour blindness. Needs the extra `plot`.

    \b
    Examples:
      psd plot seoul.psd.parquet seoul.png
      psd plot seoul.psd.parquet errors.svg --kind relative_error --outline districts.gpkg
      psd plot year.psd.parquet year.pdf --level 5
      psd plot cube.psd.parquet week.png --when 'weekdays 07-09' --when weekends
      psd plot cube.psd.parquet modes.png --when 2024-05 --each category
    """  # noqa: D301
    from psd._util.atomic_write import check_free, write_file
    from psd._util.extras import require_matplotlib

    ending = "" if output is None else Path(output).suffix.lower()
    if output is None or ending not in _ENDINGS:
        got = "" if output is None else f", got {output[:80]!r}"
        raise click.UsageError(
            f"OUTPUT must end in {', '.join(_ENDINGS)}{got}; write psd plot RELEASE map.png"
        )
    if not 20 <= dpi <= 1200:
        raise click.UsageError(f"--dpi must be 20 to 1200, got {dpi}")
    require_matplotlib("psd plot")
    import matplotlib

    from psd.regions.files import read_polygons

    check_free(output, overwrite=overwrite, inputs=[release, *([outline] if outline else [])])
    with show_stage() as stage:
        stage("reading")
        loaded = release_viewed(release, slice_name, when, categories, each)
        shapes = None if outline is None else read_polygons(Path(outline), crs=None)
        stage("drawing")
        matplotlib.use("agg")  # without a screen
        drawn: Any = loaded.plot(
            kind=kind,
            slices=when[0] if len(when) == 1 else when or None,
            category=categories[0] if len(categories) == 1 else categories or None,
            each=each or None,
            level=level if loaded.levels else cell_level(level),
            outline=shapes,
            threshold=threshold,
        )
        figure = drawn if hasattr(drawn, "savefig") else drawn.figure
        content = _content(figure, ending, dpi)
    write_file(output, content, overwrite=overwrite)
    print_success(f"wrote {output}")


def _content(figure: Figure, ending: str, dpi: int) -> bytes:
    """Bytes of a figure; the same figure gives the same bytes."""
    import io

    import matplotlib as mpl
    from matplotlib import pyplot

    content = io.BytesIO()
    undated = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with mpl.rc_context({"svg.hashsalt": "psd"}):
        figure.savefig(content, format=ending[1:], dpi=dpi, metadata=undated[ending])
    pyplot.close(figure)
    return content.getvalue()
