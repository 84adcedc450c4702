"""psd info: parameters and guarantee of a release."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from psd.export._catalogue import STANDARDS

from ..options.command import Command
from ..options.common import RELEASE
from ..options.table import table_or
from ..options.time_slices import SLICE, release_or_series_at
from ..output.columns import print_facts, print_rows

if TYPE_CHECKING:
    from psd.api.release import Release

__all__ = ["command"]


@click.command("info", cls=Command)
@RELEASE
@SLICE
@table_or(
    "json",
    *STANDARDS,
    notes=" stac: an item of STAC, which needs a reference date or slices. dcat: a dataset of "
    "DCAT-AP in JSON-LD. registry: fields of the public registry of deployments of differential "
    "privacy.",
)
def command(release: str, slice_name: str | None, form: str) -> None:
    """Show title, method, guarantee, domain and levels of a release.

    \b
    Examples:
      psd info seoul.psd.parquet
      psd info seoul.psd.parquet --format json
      psd info seoul.psd.parquet --format stac
      psd info year.psd.parquet --slice 2024-06
    """  # noqa: D301
    from psd.api.release import Release

    from ..output import series as series_info

    loaded = release_or_series_at(release, slice_name)
    if form in STANDARDS:
        click.echo(json.dumps(loaded.catalogue(form, file=release), indent=2))  # type: ignore[arg-type]
        return
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

    return {
        "about": release.about,
        "method": release.method,
        "parameters": dict(release.parameters),
        "epsilon": epsilon_text(release.record.epsilon),
        **loss_facts(release.metadata),
        "unit": release.unit.kind,
        "guarantee": release.guarantee_text,
        "source": release.source,
        **_local_facts(release),
        "counts": release.record.counted_text,
        "max_contributions": release.unit.max_contributions,
        "time_zone": release.unit.time_zone or "none",
        "bounds": list(release.domain.bounds),
        "crs": release.domain.crs,
        "lattice": list(release.domain.lattice),
        "coordinate_resolution": release.domain.coordinate_resolution or "none",
        "min_cell": release.domain.min_cell or "none",
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


def loss_facts(metadata: dict[str, str]) -> dict[str, str]:
    """Delta and rho of a release that has them."""
    return {name: metadata[name] for name in ("delta", "rho") if name in metadata}


def _local_facts(release: Release) -> dict[str, Any]:
    """Facts about the reports of a local release; of other releases there are none."""
    local = release.record.local
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
    from psd.estimation.local_measurements import measure_record

    currency = release.tree.noise.currency
    rows, noise, measured = [], release.tree.noise, measure_record(release.record)
    for depth, level in enumerate(release.tree.levels):
        nano = int(release.tree.epsilon[level].max())
        unit = release.unit
        deviation = (
            float(noise.variance(np.array([nano]))[0] ** 0.5) / unit.scale
            if release.record.local is None
            else float(measured.variance[level].min() ** 0.5)
        )
        rows.append(
            {
                "level": depth,
                "cells": level.stop - level.start,
                "measured": int((release.tree.epsilon[level] > 0).sum()),
                currency.name: currency.text(nano) or "0",
                "noise_per_cell": round(deviation, 2) if nano else None,
            }
        )
    return rows


def _print_facts(release: Release) -> None:
    """Facts and levels as two tables."""
    facts = {}
    release_facts = _release_facts(release)
    for name, value in (release_facts.pop("about") | release_facts).items():
        if name == "protocols":
            continue
        shown = ", ".join(f"{k}={v}" for k, v in value.items()) if name == "parameters" else value
        facts[name] = " ".join(map(str, shown)) if isinstance(shown, list) else str(shown)
    print_facts(facts)
    click.echo()
    if release.record.local is not None:
        print_rows(_local_facts(release)["protocols"])
        click.echo()
    print_rows(_level_rows(release))
    click.echo(_path_text(release))


def _path_text(release: Release) -> str:
    """Why the epsilons of the levels may have a larger sum than that of the release."""
    from psd.privacy.epsilon import epsilon_text

    record = release.record
    if record.local is not None:
        text = epsilon_text(record.epsilon)
        return f"Each device is in one level, and a report costs epsilon {text}."
    currency = release.tree.noise.currency
    total = currency.text(record.epsilon if record.rho is None else record.rho)
    return (
        f"Column {currency.name} is the largest of each level. On every path from the root\n"
        f"to a leaf, {currency.name} adds up to at most {total}."
    )
