"""Colours of maps and figures, and round numbers that divide values into the classes of a map."""

from __future__ import annotations

import numpy as np

from psd._util.arrays import Floats

__all__ = ["LINES", "SEQUENTIAL", "class_breaks", "class_colours", "even_breaks"]

SEQUENTIAL = ("#ffffcc", "#c7e9b4", "#7fcdbb", "#41b6c4", "#1d91c0", "#225ea8", "#0c2c84")
"""Colours from few to many, ColorBrewer's YlGnBu; readers with colour blindness tell them apart."""

RELIABILITY = ("#2c7bb6", "#abd9e9", "#ffffbf", "#fdae61", "#bdbdbd")
"""Colours of relative errors, from reliable to mostly noise: ColorBrewer's RdYlBu from its end, and
grey; readers with colour blindness tell them apart."""

LINES = (
    "#2c7bb6", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b6770", "#8c6d31",
    "#332288", "#882255",
)  # fmt: skip
"""Colours of lines and bars: Okabe and Ito's for readers with colour blindness, and darker ones."""

RELIABILITY_LEVELS = (0.12, 0.2, 0.3, 1.0)
"""Relative errors that divide these colours."""

# Shares of what is coloured below the breaks.
_SHARES = (0.1, 0.25, 0.45, 0.65, 0.82, 0.94)

# Round numbers within a decade.
_ROUND = np.array([1.0, 2.0, 5.0, 10.0])


def class_breaks(values: Floats, areas: Floats | None = None) -> list[float]:
    """At most six rising round numbers that divide positive values, weighed by areas on the map."""
    positive = np.isfinite(values) & (values > 0)
    if not positive.any():
        return []
    order = np.argsort(values[positive], kind="stable")
    rising = values[positive][order]
    # Halfway between the area and the records of each value: by area alone most classes would be
    # of places with hardly a record, by records alone of cells too small to be seen.
    weight = np.sqrt(rising) * (1.0 if areas is None else areas[positive][order])
    share = (np.cumsum(weight) - weight / 2) / weight.sum()
    limits = np.interp(_SHARES, share, rising)
    decade = 10.0 ** np.floor(np.log10(limits))
    nearest = np.abs(np.log(np.outer(limits / decade, 1 / _ROUND))).argmin(axis=1)
    breaks = sorted({float(f"{each:.3g}") for each in decade * _ROUND[nearest]})
    return [each for each in breaks if rising[0] < each < rising[-1]]


def even_breaks(values: Floats, areas: Floats) -> list[float]:
    """At most six rising multiples of one step that divide values of any sign, weighed by areas."""
    finite = np.isfinite(values)
    if not finite.any():
        return []
    order = np.argsort(values[finite], kind="stable")
    rising, weight = values[finite][order], areas[finite][order]
    # Share of the area below the middle of each value, and the values at some shares.
    share = (np.cumsum(weight) - weight / 2) / weight.sum()
    limits = np.interp(_SHARES, share, rising)
    span = limits[-1] - limits[0]
    if not span > 0:
        return []
    # The round number that is nearest, as a ratio, to a tenth of the span.
    decade = 10.0 ** np.floor(np.log10(span / 10))
    step = decade * _ROUND[np.abs(np.log(span / 10 / decade / _ROUND)).argmin()]
    breaks = sorted({float(f"{each:.12g}") for each in np.rint(limits / step) * step})
    return [each for each in breaks if rising[0] < each < rising[-1]]


def class_colours(classes: int) -> list[str]:
    """Colours of a number of classes, from few to many records."""
    chosen = np.linspace(0, len(SEQUENTIAL) - 1, classes).round().astype(int)
    return [SEQUENTIAL[number] for number in chosen]
