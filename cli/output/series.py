"""psd info of a series: its slices, and the guarantee for all of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ..output.columns import print_facts, print_rows

if TYPE_CHECKING:
    from psd.api.release import Release
    from psd.release.series import SeriesRecord

__all__ = ["print_series"]


def print_series(series: Release, record: SeriesRecord, form: str) -> None:
    """Facts of the series and one line per slice, for people or for programs."""
    facts, rows = _series_facts(series, record), _slice_rows(series)
    if form == "json":
        click.echo(json.dumps({**facts, "slices": rows}, indent=2))
        return
    print_facts(
        {
            name: " ".join(map(str, value)) if isinstance(value, list) else str(value)
            for name, value in (facts.pop("about") | facts).items()
        }
    )
    click.echo()
    print_rows(rows)


def _series_facts(series: Release, record: SeriesRecord) -> dict[str, Any]:
    """Facts about all slices together."""
    from psd.privacy.loss import epsilon_text
    from psd.space.place_text import place_text

    first = record.releases[0]
    return {
        "about": series.record.about_texts,
        "method": first.method,
        "epsilon": epsilon_text(record.epsilon),
        **{name: series.metadata[name] for name in ("delta", "rho") if name in series.metadata},
        "unit": series.unit.kind,
        "guarantee": series.record.guarantee_text,
        "source": series.record.source,
        "counts": record.counted_text,
        "max_contributions": series.unit.max_contributions,
        "max_per_slice": series.unit.max_per_slice or "none",
        "bound_per": record.scope,
        "slices_by": record.slices.by,
        "time_zone": record.slices.time_zone,
        "bounds": list(series.domain.bounds),
        "crs": series.domain.crs,
        "place": place_text(series.domain) or "none",
        "lattice": list(series.domain.lattice),
        "coordinate_resolution": series.domain.coordinate_resolution or "none",
        "min_cell": series.domain.min_cell or "none",
        "estimate": first.post_processing.estimate,
        "density": first.post_processing.density,
        "library": first.library,
        "digest": series.digest,
    }


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
            "total_perturbation_error": round(
                float(series[name].index.fit.estimates.variance[0]) ** 0.5, 1
            ),
        }
        for name in series
    ]
