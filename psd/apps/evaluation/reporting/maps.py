"""Maps of errors over the domain of a release. Private."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psd._util.arrays import Floats
from psd.apps.evaluation.reporting.axes import frequency_colours, private_figure
from psd.space.crs import axis_labels
from psd.space.ground_areas import east_west_scale

if TYPE_CHECKING:
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    from psd.space.domain import Domain

__all__ = ["draw_map"]


def draw_map(
    values: Floats, domain: Domain, title: str, *, label: str, limit: float, signed: bool = False
) -> Figure:
    """Draw a raster, (rows, columns) float64, over the domain; the first row is in the south."""
    west, south, east, north = domain.bounds
    aspect = _aspect_ratio(domain)
    height = float(np.clip(aspect * (north - south) / (east - west), 0.45, 1.6))
    figure, axes = private_figure(title, (5.4, 0.9 + 4.0 * height))
    image = axes.imshow(
        values if signed else np.maximum(values, limit / 1_000),
        origin="lower",
        extent=(west, east, south, north),
        aspect=aspect,
        cmap="PuOr_r" if signed else frequency_colours(),
        norm=_colour_scale(limit, signed=signed),
        interpolation="nearest",
    )
    xlabel, ylabel = axis_labels(domain.crs)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.locator_params(nbins=5)
    figure.colorbar(image, ax=axes, label=label, shrink=0.8)
    return figure


def _aspect_ratio(domain: Domain) -> float:
    """Length of a unit of y over that of a unit of x, at the middle of the domain."""
    return 1 / max(float(east_west_scale(domain, sum(domain.bounds[1::2]) / 2)), 0.05)


def _colour_scale(limit: float, *, signed: bool) -> Normalize:
    """Logarithmic scale of colours; linear for small signed values."""
    from matplotlib.colors import LogNorm, Normalize, SymLogNorm

    scale: Normalize = LogNorm(limit / 1_000, limit, clip=True)
    if signed and limit < 10:
        scale = Normalize(-limit, limit, clip=True)
    elif signed:
        scale = SymLogNorm(limit / 100, vmin=-limit, vmax=limit, clip=True)
    return scale
