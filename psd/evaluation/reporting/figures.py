"""Pictures of a report: where, when and why a release is wrong. Private, like what they show.

Each is a small figure of its own, so that a page can put them beside or below each other, and
each says PRIVATE in itself, so that a copy of it does too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from psd._util.arrays import Floats
from psd.evaluation.evaluate import CONFIDENCE
from psd.evaluation.reporting.plots import COLOURS, PARTS, PRIVATE, finish, method_styles

if TYPE_CHECKING:
    import pandas
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from psd.evaluation.compare import Comparison
    from psd.space.domain import Domain

__all__ = [
    "by_epsilon",
    "by_size",
    "coverage",
    "error_by_class",
    "kinds_of",
    "map_of",
    "normalised",
    "parts",
    "predicted_against_true",
    "wilson",
]


_SIZE = (5.4, 4.0)
_UNIFORM, _ON_DATA, _NEUTRAL = "#3b6fb6", "#d1762a", "#33404f"
_TITLES = {"uniform": "Uniform centres", "on data": "Centred on data"}
_BOX_WIDTH = 0.34

# Errors of so many times less than the largest are nothing to look at; fewer records, neither.
_SPAN = 2_000
_LEAST_RECORDS = 0.1

# Standard deviations beyond which a normalised error is shown at the edge.
_FAR = 6


def _figure(title: str, size: tuple[float, float] = _SIZE) -> tuple[Figure, Axes]:
    """An empty figure, marked."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    axes.set_title(title, fontsize=10.5, loc="left")
    figure.text(0.995, 0.995, "PRIVATE", color=PRIVATE, fontsize=8, ha="right", va="top")
    return figure, axes


def kinds_of(answers: pandas.DataFrame) -> dict[str, list[str]]:
    """Classes by the kind of their centres, in order; those of given boxes are of no kind."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(answers["class"]):
        kind = next((k for k in ("uniform", "on data") if name.startswith(k)), "")
        found.setdefault(kind, []).append(name)
    return found


def _colour(kind: str) -> str:
    """Colour of a kind of centres."""
    return {"uniform": _UNIFORM, "on data": _ON_DATA}.get(kind, _NEUTRAL)


def _places(answers: pandas.DataFrame) -> tuple[list[tuple[str, str, float]], list[str]]:
    """Kind, class and place on the axis of each class, those of one size together; the sizes."""
    kinds = kinds_of(answers)
    sizes = list(dict.fromkeys(n.removeprefix(k).strip() for k, ns in kinds.items() for n in ns))
    shift = {kind: (i - (len(kinds) - 1) / 2) * 0.4 for i, kind in enumerate(kinds)}
    placed = [
        (kind, name, sizes.index(name.removeprefix(kind).strip()) + shift[kind])
        for kind, names in kinds.items()
        for name in names
    ]
    return placed, sizes


def _legend(axes: Axes, kinds: list[str]) -> None:
    """What the colours are."""
    from matplotlib.patches import Patch

    shown: Any = [Patch(color=_colour(kind), label=_TITLES[kind]) for kind in kinds if kind]
    if shown:
        axes.legend(handles=shown, frameon=False, fontsize=9)


def _top(errors: pandas.Series[float]) -> float:
    """Largest of some errors, or 1 where all are 0."""
    return float(errors.max()) or 1.0


def error_by_class(answers: pandas.DataFrame) -> Figure:
    """Quantiles of the relative error by size of query: 10, 25, 50, 75 and 90 %."""
    figure, axes = _figure("True relative error by size of query")
    placed, sizes = _places(answers)
    top = _top(100 * answers["true_relative_error"])
    for kind, name, place in placed:
        errors = 100 * answers.loc[answers["class"] == name, "true_relative_error"]
        errors = errors.clip(lower=top / _SPAN)
        low, first, middle, third, high = np.quantile(errors, [0.1, 0.25, 0.5, 0.75, 0.9])
        box = {"med": middle, "q1": first, "q3": third, "whislo": low, "whishi": high}
        drawn = {"facecolor": _colour(kind), "alpha": 0.55}
        axes.bxp(
            [{**box, "mean": errors.mean()}],
            positions=[place],
            widths=_BOX_WIDTH,
            showfliers=False,
            showmeans=True,
            patch_artist=True,
            boxprops=drawn,
            medianprops={"color": "black"},
            meanprops={"marker": "D", "markersize": 4, "markerfacecolor": "white"}
            | {"markeredgecolor": "black"},
            manage_ticks=False,
        )
    axes.set_xticks(range(len(sizes)), sizes)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(max(low, top / _SPAN), high)
    finish(axes, "area of the query", "relative error (%)")
    _legend(axes, list(kinds_of(answers)))
    return figure


def predicted_against_true(answers: pandas.DataFrame) -> Figure:
    """True absolute errors over predicted standard deviations, by how many queries have them."""
    from matplotlib.ticker import StrMethodFormatter

    figure, axes = _figure("True error against predicted error")
    predicted = answers["error"].to_numpy()
    true = answers["true_error"].abs().to_numpy()
    least = _LEAST_RECORDS
    predicted, true = np.maximum(predicted, least), np.maximum(true, least)
    some = (predicted > least) | (true > least) | ~(max(predicted.max(), true.max()) > least)
    drawn = axes.hexbin(
        predicted[some],
        true[some],
        xscale="log",
        yscale="log",
        gridsize=34,
        mincnt=1,
        bins="log",
        cmap="cividis_r",
    )
    ends = np.array([least, 1.3 * max(predicted.max(), true.max())])
    axes.plot(ends, ends, color=PRIVATE, linewidth=1.2, label="true = predicted")
    axes.plot(
        ends, 1.96 * ends, color=PRIVATE, linewidth=1, linestyle=":", label="1.96 x predicted"
    )
    axes.set_xlim(least / 1.2, float(predicted.max()) * 1.3)
    axes.set_ylim(least / 1.2, float(ends[1]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.set_xlabel("predicted standard deviation (records)")
    axes.set_ylabel("|estimate - true| (records)")
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    figure.colorbar(drawn, ax=axes, label="queries")
    return figure


def normalised(answers: pandas.DataFrame) -> Figure:
    """True errors in units of the predicted one, beside the normal curve they should follow.

    Of queries with a predicted error of a record or more: the others are empty places.
    """
    figure, axes = _figure("Error over its predicted standard deviation")
    bins = np.linspace(-_FAR, _FAR, 49)
    for kind, names in kinds_of(answers).items():
        rows = answers[answers["class"].isin(names) & (answers["error"] >= 1)]
        ratio = np.clip(rows["true_error"] / rows["error"], -_FAR, _FAR)
        if len(ratio):
            axes.hist(ratio, bins.tolist(), density=True, color=_colour(kind), alpha=0.5)
    x = np.linspace(-_FAR, _FAR, 241)
    axes.plot(x, np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi), "k-", linewidth=1.2)
    axes.set_xlabel(f"(estimate - true) / predicted; beyond {_FAR} at the edge")
    axes.set_ylabel("density (line: normal)")
    axes.grid(alpha=0.3)
    _legend(axes, list(kinds_of(answers)))
    return figure


def wilson(hits: ArrayLike, trials: ArrayLike, z: float = 1.96) -> tuple[Floats, Floats]:
    """Interval of Wilson for a binomial proportion.

    References
    ----------
    .. [1] Wilson. "Probable Inference, the Law of Succession, and Statistical Inference." JASA 22,
       1927. https://doi.org/10.1080/01621459.1927.10502953

    Examples
    --------
    >>> low, high = wilson(95, 100)
    >>> f"{low:.3f} {high:.3f}"
    '0.888 0.978'
    """
    hits, trials = np.asarray(hits, float), np.asarray(trials, float)
    share = hits / trials
    middle = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    spread = np.sqrt(share * (1 - share) / trials + z**2 / (4 * trials**2))
    half = z * spread / (1 + z**2 / trials)
    return middle - half, middle + half


def coverage(answers: pandas.DataFrame) -> Figure:
    """Share of the intervals that hold the truth, by size of query, beside what they promise."""
    figure, axes = _figure(f"Coverage of the {CONFIDENCE:.0%} intervals")
    placed, sizes = _places(answers)
    for kind, name, place in placed:
        covers = answers.loc[answers["class"] == name, "covers"]
        low, high = wilson(covers.sum(), len(covers))
        mean = 100 * covers.mean()
        reach = [[max(mean - 100 * float(low), 0)], [max(100 * float(high) - mean, 0)]]
        marker = "o" if kind != "on data" else "s"
        axes.errorbar([place], [mean], reach, color=_colour(kind), marker=marker, capsize=4)
    axes.axhline(100 * CONFIDENCE, color=PRIVATE, linestyle="--", linewidth=1)
    axes.set_xticks(range(len(sizes)), sizes)
    axes.set_xlim(-0.6, len(sizes) - 0.4)
    axes.set_ylim(top=100.5)
    axes.set_xlabel("area of the query")
    axes.set_ylabel("intervals that hold the truth (%)")
    axes.grid(alpha=0.3)
    _legend(axes, list(kinds_of(answers)))
    return figure


def parts(summary: pandas.DataFrame) -> Figure:
    """Mean size of each part of the error, by class."""
    figure, axes = _figure("What the error is made of", (5.4, 4.4))
    place = np.arange(len(summary))
    shown = [part for part in PARTS if summary[f"true_relative_{part}_error"].any()]
    width = 0.75 / max(len(shown), 1)
    floor = _top(100 * summary["true_relative_error"]) / _SPAN
    for number, part in enumerate(shown):
        left = place + (number - (len(shown) - 1) / 2) * width
        values = (100 * summary[f"true_relative_{part}_error"]).clip(lower=floor)
        axes.bar(left, values, width, label=part.replace("nonuni", "non-uni"), color=COLOURS[part])
    total = (100 * summary["true_relative_error"]).clip(lower=floor)
    axes.plot(place, total, "k_", markersize=20, markeredgewidth=2, label="whole error")
    axes.set_yscale("log")
    finish(axes, "", "mean relative error (%)")
    axes.set_xticks(place, summary["class"], rotation=40, ha="right")
    axes.legend(frameon=False, fontsize=9)
    return figure


def map_of(
    values: Floats, domain: Domain, title: str, *, label: str, limit: float, signed: bool = False
) -> Figure:
    """A raster over the domain, in coordinates of its CRS.

    Parameters
    ----------
    values : ndarray, shape (rows, columns), float64
        Rows from the south.
    domain : Domain
        Whose bounds the raster covers.
    title, label : str
        Of the picture, and of its colours.
    limit : float
        Largest value that has a colour of its own, above 0.
    signed : bool
        Whether values have a sign, and 0 the middle colour.
    """
    from matplotlib.colors import LogNorm, Normalize, SymLogNorm

    west, south, east, north = domain.bounds
    middle = np.radians((south + north) / 2) if domain.geographic else 0.0
    aspect = 1 / max(float(np.cos(middle)), 0.05)
    high = float(np.clip(aspect * (north - south) / (east - west), 0.45, 1.6))
    figure, axes = _figure(title, (5.4, 0.9 + 4.0 * high))
    norm: Any = LogNorm(limit / 1_000, limit, clip=True)
    if signed:
        norm = SymLogNorm(limit / 100, vmin=-limit, vmax=limit, clip=True)
    if signed and limit < 10:
        norm = Normalize(-limit, limit, clip=True)
    drawn = axes.imshow(
        values if signed else np.maximum(values, limit / 1_000),
        origin="lower",
        extent=(west, east, south, north),
        aspect=aspect,
        cmap="PuOr_r" if signed else "cividis",
        norm=norm,
        interpolation="nearest",
    )
    axes.set_xlabel("longitude (degrees)" if domain.geographic else "x")
    axes.set_ylabel("latitude (degrees)" if domain.geographic else "y")
    axes.locator_params(nbins=5)
    figure.colorbar(drawn, ax=axes, label=label, shrink=0.8)
    return figure


def by_epsilon(found: Comparison) -> Figure:
    """Score of each method against epsilon, with its standard error."""
    figure, axes = _figure("Score by epsilon")
    for name, style in method_styles(found).items():
        rows = found.table[found.table["method"] == name]
        rows = rows.assign(epsilon=rows["epsilon"].astype(float)).sort_values("epsilon")
        spread = rows["score_error"].fillna(0)
        axes.errorbar(rows["epsilon"], rows["score"], spread, label=name, capsize=3, **style)
    ticks = found.table["epsilon"].drop_duplicates()
    axes.set_xscale("log")
    axes.set_xticks(ticks.astype(float), ticks)
    axes.set_xticks([], minor=True)
    axes.margins(x=0.1)
    finish(axes, "epsilon", "score")
    axes.legend(frameon=False, fontsize=9, ncols=2)
    return figure


def by_size(found: Comparison, epsilon: str, kind: str) -> Figure:
    """Error of each method by size of query, at one epsilon, for one kind of centres."""
    figure, axes = _figure(f"{_TITLES[kind]}, epsilon {epsilon}")
    table = found.table[found.table["epsilon"] == epsilon].set_index("method")
    classes = [name for name in found.classes if name.startswith(kind)]
    for name, style in method_styles(found).items():
        axes.plot(100 * table.loc[name, classes].to_numpy(float), label=name, **style)
    axes.set_xticks(range(len(classes)), [name.removeprefix(kind).strip() for name in classes])
    finish(axes, "area of the query", "mean relative error (%)")
    axes.legend(frameon=False, fontsize=9, ncols=2)
    return figure
