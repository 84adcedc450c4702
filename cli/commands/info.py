"""psd info: parameters and guarantee of a release."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from ..options.command import Command
from ..options.common import RELEASE
from ..options.time_slices import SLICE, release_or_series_at
from ..output.columns import print_facts, print_rows

if TYPE_CHECKING:
    from psd.api.release import Release

__all__ = ["command"]


@click.command("info", cls=Command)
@RELEASE
@SLICE
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="Format of the output.",
)
def command(release: str, slice_name: str | None, form: str) -> None:
    """Show method, guarantee, domain and levels of a release.

    \b
    Examples:
      psd info seoul.psd.parquet
      psd info seoul.psd.parquet --format json
    """  # noqa: D301
    from psd.api.release import Release

    from ..output import series as series_info

    loaded = release_or_series_at(release, slice_name)
    if not isinstance(loaded, Release):
        series_info.print_series(loaded, form)
        return
    if form == "json":
        click.echo(json.dumps({**_release_facts(loaded), "levels": _level_rows(loaded)}, indent=2))
        return
    _print_facts(loaded)


def _release_facts(release: Release) -> dict[str, Any]:
    """Facts about the release as a whole."""
    from psd.privacy.epsilon import epsilon_text

    unit = release.unit
    return {
        "method": release.method,
        "parameters": dict(release.parameters),
        "epsilon": epsilon_text(release.record.epsilon),
        "unit": release.unit.kind,
        "guarantee": release.guarantee_text,
        "source": release.source,
        "counts": unit.counted_text,
        "max_contributions": release.unit.max_contributions,
        "time_zone": release.unit.time_zone or "none",
        "bounds": list(release.domain.bounds),
        "crs": release.domain.crs,
        "lattice": list(release.domain.lattice),
        "coordinate_resolution": release.domain.coordinate_resolution or "none",
        "cells": len(release.tree),
        "leaves": int(release.tree.is_leaf.sum()),
        "estimated_total": round(release.total, 1),
        "total_perturbation_error": round(float(np.sqrt(release.estimates.variance[0])), 1),
        "estimate": release.post_processing.estimate,
        "density": release.post_processing.density,
        "covariate": _covariate_text(release),
        "boundary": _boundary_text(release),
        "library": release.library,
        "digest": release.digest,
    }


def _covariate_text(release: Release) -> str:
    """Size of the covariate, and the share of its cells where people can be."""
    covariate = release.covariate
    if covariate is None:
        return "none"
    return (
        f"{covariate.columns} x {covariate.rows} cells, {covariate.covered:.1%} of them not empty"
    )


def _boundary_text(release: Release) -> str:
    """How much of the domain is inside the boundary."""
    if not release.boundary or release.covariate is None:
        return "none"
    return f"{release.covariate.covered:.1%} of the bounds; records outside were dropped"


def _level_rows(release: Release) -> list[dict[str, Any]]:
    """Cells, measured cells, and largest epsilon and its noise for each level."""
    from psd.privacy.epsilon import epsilon_text
    from psd.privacy.noise_variance import noise_variance

    rows, law = [], release.tree.noise_law
    for depth, level in enumerate(release.tree.levels):
        nano = int(release.tree.epsilon[level].max())
        unit = release.unit
        noise = (
            float(noise_variance(np.array([nano]), unit.contributions, law)[0] ** 0.5) / unit.scale
        )
        rows.append(
            {
                "level": depth,
                "cells": level.stop - level.start,
                "measured": int((release.tree.epsilon[level] > 0).sum()),
                "epsilon": epsilon_text(nano) or "0",
                "noise_per_cell": round(noise, 2) if nano else None,
            }
        )
    return rows


def _print_facts(release: Release) -> None:
    """Facts and levels as two tables."""
    facts = {}
    for name, value in _release_facts(release).items():
        shown = ", ".join(f"{k}={v}" for k, v in value.items()) if name == "parameters" else value
        facts[name] = " ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
    print_facts(facts)
    click.echo()
    print_rows(_level_rows(release))
    click.echo(_path_text(release))


def _path_text(release: Release) -> str:
    """Why the epsilons of the levels may have a larger sum than that of the release."""
    from psd.privacy.epsilon import epsilon_text

    return (
        "Column epsilon is the largest of each level. On every path from the root\n"
        f"to a leaf, epsilon adds up to at most {epsilon_text(release.record.epsilon)}."
    )
