"""psd info: parameters and guarantee of a release or of a series."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from psd import _apps
from psd.export._catalogue import STANDARDS
from psd.version import __version__

from ..options.command import Command, options_of, refuse_others
from ..options.common import RELEASE, table_or
from ..options.time_slices import SLICE, release_or_series_at
from ..output.tables import print_facts, print_rows
from . import module_of_app

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.release.cube import CubeRecord
    from psd.release.record import ReleaseRecord
    from psd.release.series import SeriesRecord
    from psd.space.categories import CategoryAxis
    from psd.space.domain import Domain
    from psd.space.time_slices import TimeSlices


_sheet = options_of("Sheet of method")
_program = options_of("About the program")


def _print_versions(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    """Print versions of psd, of Python and the libraries that it uses, and the platform; leave."""
    import platform
    import re
    from contextlib import suppress
    from importlib import metadata

    if not value:
        return
    found = {"psd": __version__, "Python": platform.python_version()}
    with suppress(metadata.PackageNotFoundError):  # a copy that was not installed
        for line in metadata.requires("psd-publisher") or ():
            name = re.split(r"[^\w.-]", line)[0]
            is_tool = re.search(r'extra == "(test|deep|lint|fuzz|lab|data|mutation)"', line)
            with suppress(metadata.PackageNotFoundError):
                found |= {} if is_tool else {name: metadata.version(name)}
    print_facts({**found, "platform": platform.platform()})
    ctx.exit()


def _print_completion(ctx: click.Context, param: click.Parameter, shell: str | None) -> None:
    """Print the script that completes words in a shell, and leave."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell) if shell else None
    if kind is not None:
        click.echo(kind(ctx.find_root().command, {}, "psd", "_PSD_COMPLETE").source())
        ctx.exit()


@click.command("info", cls=Command)
@RELEASE
@SLICE
@_sheet(
    "--sheet",
    type=click.Path(),
    metavar="FILE",
    help="Write a page that says what the release protects and how accurate it is; must end in "
    ".html.",
)
@_sheet("--overwrite", is_flag=True, help="Replace the page if it exists.")
@_program(
    "--versions",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="Print the versions of psd, Python and the libraries, and the platform; needs no release.",
)
@_program(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    is_eager=True,
    expose_value=False,
    callback=_print_completion,
    help="Print the script that completes commands and options in a shell; needs no release.",
)
@table_or(
    "json",
    *STANDARDS,
    notes=" stac: an item of STAC, which needs a reference date or slices. dcat: a dataset of "
    "DCAT-AP in JSON-LD. registry: fields of the public registry of deployments of differential "
    "privacy.",
)
def command(
    release: str, slice_name: str | None, sheet: str | None, overwrite: bool, form: str
) -> None:
    """Show title, method, guarantee, domain and levels of a release.

    With --sheet, write a page for a board and for readers: the guarantee, epsilon as odds,
    predicted errors by size, maps, how the release was built, and how to cite it. It is one file,
    which prints well and loads nothing. It is made of the release alone and may be published with
    it. What `psd build --about` stated is on it. Pictures need the extra `plot`.

    \b
    Examples:
      psd info seoul.psd.parquet
      psd info seoul.psd.parquet --format json
      psd info seoul.psd.parquet --format stac
      psd info year.psd.parquet --slice 2024-06
      psd info seoul.psd.parquet --sheet sheet.html
    """  # noqa: D301
    if sheet is not None:
        refuse_others({"slice_name", "sheet", "overwrite", "max_nodes"}, "with --sheet")
        pages = module_of_app(_apps.OPTIONS["info --sheet"], what="psd info --sheet")
        pages.write_sheet(release, slice_name, sheet, overwrite=overwrite)
        return
    if overwrite:
        raise click.UsageError("--overwrite must be given with --sheet")

    loaded = release_or_series_at(release, slice_name)
    from psd.release.cube import WindowRecord
    from psd.release.record import ReleaseRecord

    if form in STANDARDS:
        click.echo(json.dumps(loaded.catalogue(form, file=release), indent=2))  # type: ignore[arg-type]
        return
    if isinstance(loaded.record, WindowRecord):
        raise click.UsageError(
            "--slice must be left out for a cube, whose slices are not counted one by one; "
            "psd query --when answers windows of it"
        )
    if not isinstance(loaded.record, ReleaseRecord):
        print_series(loaded, loaded.record, form)
        return
    if form == "json":
        click.echo(json.dumps({**_release_facts(loaded), "levels": _level_rows(loaded)}, indent=2))
        return
    # Facts and levels as two tables.
    facts = _release_facts(loaded)
    facts.pop("protocols", None)
    print_facts(_as_texts(facts))
    click.echo()
    if loaded.index.record.local is not None:
        print_rows(_local_facts(loaded)["protocols"])
        click.echo()
    print_rows(_level_rows(loaded))
    click.echo(_path_text(loaded))


def _as_texts(facts: dict[str, Any]) -> dict[str, str]:
    """Facts for people, what the publisher states in front."""
    texts = {}
    for name, value in (facts.pop("about") | facts).items():
        shown = ", ".join(f"{k}={v}" for k, v in value.items()) if name == "parameters" else value
        texts[name] = " ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
    return texts


def _release_facts(release: Release) -> dict[str, Any]:
    """Facts about the release as a whole."""
    from psd.privacy.loss import epsilon_text

    record = release.index.record
    covariate, covered = "none", "none"
    if record.covariate is not None:
        columns, rows = record.covariate.columns, record.covariate.rows
        share = f"{record.covariate.covered:.1%}"
        covariate = f"{columns} x {rows} cells, {share} of them not empty"
        if record.boundary:
            covered = f"{share} of the bounds; records outside were dropped"
    return {
        "about": release.record.about_texts,
        "method": release.method,
        "parameters": dict(record.parameters),
        "epsilon": epsilon_text(release.record.epsilon),
        **loss_facts(release.metadata),
        "unit": release.unit.kind,
        "guarantee": release.record.guarantee_text,
        "source": release.record.source,
        **_local_facts(release),
        "counts": release.record.counted_text,
        **_value_facts(record),
        "max_contributions": release.unit.max_contributions,
        "time_zone": release.unit.time_zone or "none",
        **_domain_facts(release.domain),
        "cells": len(release.tree),
        "leaves": int(release.tree.is_leaf.sum()),
        "estimated_total": round(release.total, 1),
        "total_perturbation_error": round(release.index.total_error, 1),
        "estimate": release.record.post_processing.estimate,
        "density": release.record.post_processing.density,
        "covariate": covariate,
        "boundary": covered,
        "library": release.record.library,
        "digest": release.digest,
    }


def _domain_facts(domain: Domain) -> dict[str, Any]:
    """Where a release is, and on which lattice."""
    from psd.space.domain import place_text

    return {
        "bounds": list(domain.bounds),
        "crs": domain.crs,
        "place": place_text(domain) or "none",
        "lattice": list(domain.lattice),
        "coordinate_resolution": domain.coordinate_resolution or "none",
        "min_cell": domain.min_cell or "none",
    }


def _value_facts(record: ReleaseRecord) -> dict[str, Any]:
    """Values of a release and their bounds; of other releases there are none."""
    bounds = (f"{value.name} {value.lower:g} to {value.upper:g}" for value in record.values)
    return {"values": ", ".join(bounds)} if record.values else {}


def loss_facts(metadata: dict[str, str]) -> dict[str, str]:
    """Delta and rho of a release that has them."""
    return {name: metadata[name] for name in ("delta", "rho") if name in metadata}


def _local_facts(release: Release) -> dict[str, Any]:
    """Facts about the reports of a local release; of other releases there are none."""
    local = release.index.record.local
    if local is None:
        return {}
    rows = [
        {
            "level": level.level,
            "protocol": level.protocol,
            "reports": level.reports,
            "p": round(float(level.p), 6),
            "q": round(float(level.q), 6),
        }
        for level in local.levels
    ]
    return {"campaign": local.campaign, "reports": local.reports, "protocols": rows}


def _level_rows(release: Release) -> list[dict[str, Any]]:
    """Cells, measured cells, and largest epsilon and its noise for each level."""
    from psd.estimation.least_squares import measure_record

    measure = release.tree.noise.measure
    rows, noise, measured = [], release.tree.noise, measure_record(release.index.record)
    for depth, level in enumerate(release.tree.levels):
        loss = int(release.tree.loss[level].max())
        unit = release.unit
        deviation = (
            float(noise.variance(np.array([loss]))[0] ** 0.5) / unit.scale
            if release.index.record.local is None
            else float(measured.variance[level].min() ** 0.5)
        )
        rows.append(
            {
                "level": depth,
                "cells": level.stop - level.start,
                "measured": int((release.tree.loss[level] > 0).sum()),
                measure.name: measure.text(loss) or "0",
                "noise_per_cell": round(deviation, 2) if loss else None,
            }
        )
    return rows


def _path_text(release: Release) -> str:
    """Why the epsilons of the levels may have a larger sum than that of the release."""
    from psd.privacy.loss import epsilon_text

    record = release.index.record
    if record.local is not None:
        text = epsilon_text(record.epsilon)
        return f"Each device is in one level, and a report costs epsilon {text}."
    measure = release.tree.noise.measure
    total = measure.text(record.epsilon if record.rho is None else record.rho)
    return (
        f"Column {measure.name} is the largest of each level. On every path from the root\n"
        f"to a leaf, {measure.name} adds up to at most {total}."
    )


def print_series(series: Release, record: SeriesRecord | CubeRecord, form: str) -> None:
    """Facts of the series and one line per slice, or layer, for people or for programs."""
    from psd.release.series import SeriesRecord

    is_cube = not isinstance(record, SeriesRecord)
    facts = _series_facts(series, record)
    rows = _slice_rows(series) if isinstance(record, SeriesRecord) else _layer_rows(record)
    if form == "json":
        click.echo(json.dumps({**facts, "layers" if is_cube else "slices": rows}, indent=2))
        return
    print_facts(_as_texts(facts))
    click.echo()
    print_rows(rows)


def _series_facts(series: Release, record: SeriesRecord | CubeRecord) -> dict[str, Any]:
    """Facts about all slices together."""
    from psd.privacy.loss import epsilon_text
    from psd.release.series import SeriesRecord

    is_series = isinstance(record, SeriesRecord)
    first = record.releases[0] if isinstance(record, SeriesRecord) else record.plane
    return {
        "about": series.record.about_texts,
        "method": first.method,
        **({} if is_series else {"parameters": dict(first.parameters)}),
        "epsilon": epsilon_text(record.epsilon),
        **loss_facts(series.metadata),
        "unit": series.unit.kind,
        "guarantee": series.record.guarantee_text,
        "source": series.record.source,
        "counts": record.counted_text,
        **_value_facts(first),
        "max_contributions": series.unit.max_contributions,
        "max_per_slice": series.unit.max_per_slice or "none",
        "bound_per": record.scope,
        **_time_facts(record.slices, is_series=is_series),
        **({} if isinstance(record, SeriesRecord) else _category_facts(record.category)),
        **_domain_facts(series.domain),
        "estimate": first.post_processing.estimate,
        "density": first.post_processing.density,
        "library": first.library,
        "digest": series.digest,
    }


def _time_facts(slices: TimeSlices | None, *, is_series: bool) -> dict[str, Any]:
    """Slices of a series, or of a cube, if it has any."""
    from psd.space.time_slices import slices_text

    if slices is None:
        return {}
    facts = {"slices_by": slices.by, "time_zone": slices.time_zone}
    return facts if is_series else {**facts, "slices": slices_text(slices)}


def _category_facts(category: CategoryAxis | None) -> dict[str, Any]:
    """Column and labels of a category, if there is one; a label below others stands behind them."""
    if category is None:
        return {}
    above = [category.labels[each] if each >= 0 else "" for each in category.parents]
    labels = [
        f"{label} (in {parent})" if parent else label
        for label, parent in zip(category.labels, above, strict=True)
    ]
    other = "counted" if category.has_other else "dropped"
    return {"category": category.column, "labels": ", ".join(labels), "other_labels": other}


def _layer_rows(cube: CubeRecord) -> list[dict[str, Any]]:
    """Cells of each layer of a cube, and the largest loss of a path."""
    measure = cube.plane.tree.noise.measure
    axes = ["space", *(axis.name for axis in cube.axes)]
    joint = " and ".join([", ".join(axes[:-1]), axes[-1]])
    layers = {
        "space": cube.plane,
        "space and category": cube.labels,
        " and ".join(axes[1:]): cube.times,
        joint: cube.joint,
    }
    return [
        {
            "layer": name,
            "cells": len(record.tree),
            f"largest_{measure.name}": measure.text(record.tree.max_path_loss),
        }
        for name, record in layers.items()
        if record is not None
    ]


def _slice_rows(series: Release) -> list[dict[str, Any]]:
    """Name, size, epsilon and total of every slice; with a delta, epsilon is of all together."""
    from psd.privacy.loss import epsilon_text

    is_pure = "delta" not in series.metadata
    return [
        {
            "slice": name,
            "cells": len(series[name].tree),
            **({"epsilon": epsilon_text(series[name].record.epsilon)} if is_pure else {}),
            "estimated_total": round(series[name].total, 1),
            "total_perturbation_error": round(series[name].index.total_error, 1),
        }
        for name in series
    ]
