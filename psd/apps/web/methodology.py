"""The sheet of method: a public page on what a release protects and how accurate it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import shapely

from psd._util.extras import SOURCE, require_matplotlib
from psd._util.html import figure_block, page, paragraph, section, table_block
from psd.api.release import Release
from psd.decompositions import method_class, methods
from psd.privacy.loss import delta_text
from psd.query.answer_table import QUALITIES, relative_text, reliability_limits
from psd.space.ground_areas import area_unit, east_west_scale, ground_areas, shape_ground_areas
from psd.space.region_tree import ELSEWHERE
from psd.version import __version__

if TYPE_CHECKING:
    import pandas

    from psd._util.arrays import Floats

__all__ = [
    "SQUARES",
    "citation",
    "errors_by_size",
    "methodology_page",
]


SQUARES = 200
"""Squares of each size."""

# Areas in km2, or shares of the domain where the CRS is local.
_AREAS = (0.01, 0.1, 1.0, 10.0, 100.0, 1_000.0, 10_000.0)
_SHARES = (1e-4, 1e-3, 1e-2, 1e-1)

# Digits of the digest that choose the centres of the squares.
_DIGITS = 16

# Side of the small square, of the height of the domain, whose ground area sets the scale; and the
# largest width of a square in degrees over its height, for centres beside a pole.
_START, _MAX_STRETCH = 1e-3, 1e3


def errors_by_size(release: Release) -> pandas.DataFrame:
    """Predicted errors of squares, whose centres are where the release estimates records.

    Guarantees
    ----------
    - Made of the release alone, so it costs no epsilon; the same release gives the same table.

    Parameters
    ----------
    release : Release
        Of one moment; of a series, one slice.

    Returns
    -------
    DataFrame
        One row for each size that fits the domain at least four times: ``size`` in words; medians
        ``estimate``, ``error`` (predicted standard deviations) and ``relative_error``; and the
        share of squares in each class of quality, ``good``, ``use with care`` and ``poor``.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 4000, 4000), crs="EPSG:3857")
    >>> tree = psd.decompositions.grid_tree(domain, 1)
    >>> release = psd.Release.from_counts(tree, [800], 1.0, domain=domain)
    >>> errors_by_size(release)["size"].tolist()
    ['0.01 km²', '0.1 km²', '1 km²']
    """
    import pandas as pd

    domain = release.domain
    total = float(ground_areas(domain, np.array([[0.0, 0, *domain.lattice]]))[0])
    in_km2 = area_unit(domain) == "km2"
    areas = np.array(_AREAS if in_km2 else [share * total for share in _SHARES])
    rows = []
    for area in areas[areas <= total / 4]:
        size = f"{area:,g} km²" if in_km2 else f"{100 * area / total:g}% of the area"
        rows.append(_error_row(size, release.query(_squares(release, float(area))).table))
    return pd.DataFrame(rows, columns=["size", "estimate", "error", "relative_error", *QUALITIES])


def _error_row(size: str, answers: pandas.DataFrame) -> dict[str, Any]:
    """Medians of answers, and the share of each class of quality."""
    median = answers[["estimate", "error", "relative_error"]].median()
    shares = answers["quality"].value_counts(normalize=True)
    return {"size": size, **median, **{name: shares.get(name, 0.0) for name in QUALITIES}}


def _squares(release: Release, area: float) -> Floats:
    """Squares of an area whose centres follow the published counts, inside the bounds."""
    domain = release.domain
    random = np.random.default_rng(int(release.digest[:_DIGITS], 16))
    # A leaf is drawn by its published count, and a centre evenly inside it.
    leaves = np.flatnonzero(release.tree.is_leaf)
    count = np.maximum(release.index.fit.estimates.count[leaves], 0.0)
    weight = count if count.sum() > 0 else np.ones(len(leaves))
    chosen = random.choice(leaves, SQUARES, p=weight / weight.sum())
    boxes = domain.from_lattice(release.tree.boxes[chosen])
    centre = boxes[:, :2] + random.random((SQUARES, 2)) * (boxes[:, 2:] - boxes[:, :2])
    # A square on the ground is wider in degrees the farther it is from the equator.
    stretch = 1 / east_west_scale(domain, centre[:, 1])
    half = np.column_stack([np.minimum(stretch, _MAX_STRETCH), np.ones(SQUARES)]) * domain.height
    # The ground area of a small square at each centre says by how much its sides must grow.
    half *= _START / 2
    start = shape_ground_areas(domain, shapely.box(*(centre - half).T, *(centre + half).T))
    half *= np.sqrt(area / start)[:, None]
    # A square that leaves the bounds is moved into them.
    low, high = np.array(domain.bounds[:2]), np.array(domain.bounds[2:])
    corner = np.clip(centre - half, low, np.maximum(high - 2 * half, low))
    return np.hstack([corner, np.minimum(corner + 2 * half, high)])


# Probabilities of a suspicion before the release.
_PRIORS = (0.001, 0.01, 0.1, 0.5)

_THRESHOLD = 0.3

# Larger factors are printed as powers of ten, and smaller probabilities as below this one.
_LARGEST_PLAIN = 10**9
_LEAST_SHARE = 1e-5

_PROTECTED = {
    "record": "one record: adding or removing any one record of the data",
    "user": "one user: adding or removing all records of any one user",
    "user-day": "the records of one user on one day",
    "user-slice": "the records of one user in one time slice",
    "report": "the whole answer of one device, which randomised it before it was sent",
}

# One unit of privacy in words.
_SUSPECTED = {
    "record": "a certain record",
    "user": "a certain person",
    "user-day": "a certain person on a certain day",
    "user-slice": "a certain person in a certain time slice",
    "report": "a certain place, and not another one, is the true answer of a device",
}


def methodology_page(release: Release) -> str:
    """Make the sheet of method of a release or a series as an HTML text.

    Guarantees
    ----------
    - Made of the release alone: it costs no epsilon and states no number about records that the
      release does not state. One file without scripts and without requests.

    Parameters
    ----------
    release : Release
        Errors and the map of a series are those of its middle slice.

    Raises
    ------
    MissingExtraError
        If matplotlib is not installed.

    Examples
    --------
    >>> from psd.testing.data import release_from_counts
    >>> "What epsilon means" in methodology_page(release_from_counts([[500, 100], [0, 200]]))
    True
    """
    require_matplotlib("a sheet of method")
    shown = release
    if release.slices is not None:
        shown = release[release.slices.names[len(release.slices) // 2]]
    body = [
        _summary_section(release),
        _protection_section(release),
        _odds_section(release),
        _accuracy_section(release, shown),
        _map_section(release, shown),
        _method_section(release, shown),
        _reading_section(release),
        _citation_section(release),
    ]
    title = release.record.about_texts.get("title", "Differentially private counts of locations")
    return page(title, body, lead="Sheet of method: what is published, how, and how exactly.")


def _shown_text(release: Release) -> str:
    """Which slice of a series a section is about; empty for a single release."""
    if release.slices is None:
        return ""
    names = release.slices.names
    return f" Of the {len(names)} time slices, {names[len(names) // 2]} is shown."


def _summary_section(release: Release) -> str:
    """What the publisher states, and the guarantee."""
    labels = {
        "publisher": "Publisher",
        "description": "Description",
        "reference_date": "Reference date",
        "licence": "Licence",
        "contact": "Contact",
        "language": "Language",
    }
    about = release.record.about_texts
    stated = [(label, about[key]) for key, label in labels.items() if key in about]
    from psd.space.crs import parse_crs

    crs, slices = release.domain.crs, release.slices
    if len(crs) > 40:  # text of many lines
        crs = str(parse_crs(crs).name)
    bounds = ", ".join(f"{side:.9g}" for side in release.domain.bounds)
    rows = [*stated, ("Counts", release.record.counted_text), ("Area", f"{bounds} ({crs})")]
    if "values" in release.metadata:
        rows.insert(-1, ("Sums and means", release.metadata["values"]))
    if slices is not None:
        first, last = slices.names[0], slices.names[-1]
        text = f"{len(slices.names)} by {slices.by}, from {first} to {last}"
        rows.append(("Time slices", text))
    rows.append(("Guarantee", release.record.guarantee_text))
    return section("In short", table_block("", ("", ""), rows, "words"))


def _protection_section(release: Release) -> str:
    """What the guarantee says, and what it does not."""
    unit = release.unit
    local = unit.kind == "report"
    source = (
        "The publisher never had the locations. Each device changed its answer at random before it "
        "sent it."
        if local
        else "The exact counts stayed with the publisher. Random noise was added to each count "
        "before it was published."
    )
    reason = release.record.about_texts.get("justification")
    return section(
        "What is protected",
        paragraph(
            f"The release protects {_PROTECTED[unit.kind]}. With or without it, each possible "
            "release is almost equally likely. This is differential privacy with "
            f"{release.record.loss_text} {release.record.unit_text}.{_delta_text(release)}"
        ),
        paragraph(source),
        paragraph(
            "The guarantee holds against any reader, whatever the reader knows or can compute, now "
            "or later. Tables, maps and statistics that are made of the release have the same "
            "guarantee."
        ),
        paragraph(
            "It does not hide what is true of the population: a reader learns how many people are "
            "where, with the errors stated below. Several releases of the same people add their "
            "epsilons up."
        ),
        *([] if reason is None else [paragraph(f"Why this epsilon: {reason}")]),
    )


def _delta_text(release: Release) -> str:
    """What may happen with probability delta; nothing without a delta."""
    delta = release.record.delta
    if delta is None:
        return ""
    return (
        f" With a probability of at most {delta_text(delta)} the release may tell more than "
        "epsilon allows."
    )


def _odds_section(release: Release) -> str:
    """Epsilon as a factor of odds and as probabilities after the release."""
    epsilon = float(release.epsilon)
    factor = Decimal(release.epsilon).exp()
    form = ",.0f" if 1000 <= factor < _LARGEST_PLAIN else ".3g"
    rows = [
        (
            f"{100 * prior:g}%",
            _probability(_after(prior, -epsilon)),
            _probability(_after(prior, epsilon)),
        )
        for prior in _PRIORS
    ]
    return section(
        "What epsilon means in odds",
        paragraph(
            f"Suppose that a reader suspects that {_SUSPECTED[release.unit.kind]} is in the data. "
            f"The release changes the odds of this by a factor of at most {factor:{form}}, up or "
            f"down, even if the reader knows everything else.{_delta_text(release)}"
        ),
        table_block(
            "Probability of the suspicion before the release, and the limits after it.",
            ("before", "after, at least", "after, at most"),
            rows,
        ),
    )


def _after(prior: float, epsilon: float) -> float:
    """Probability whose odds are those of the prior times e^epsilon."""
    lowered = math.exp(-abs(epsilon))
    if epsilon < 0:
        return prior * lowered / (prior * lowered + 1 - prior)
    return prior / (prior + (1 - prior) * lowered)


def _probability(share: float) -> str:
    """Probability in per cent, with three digits, and never rounded to certainty."""
    if share < _LEAST_SHARE:
        return f"below {100 * _LEAST_SHARE:g}%"
    return "above 99.9%" if share > 0.999 else f"{100 * share:.3g}%"


def _relative(error: float) -> str:
    """Relative error in per cent, or a dash for none."""
    return "-" if math.isinf(error) else relative_text(error)


def _accuracy_section(release: Release, shown: Release) -> str:
    """Predicted errors by size, or by level of regions."""
    limits = reliability_limits(_THRESHOLD)
    blocks = [
        paragraph(
            "The error of each answer is predicted from the release. It has two parts: "
            "perturbation error, from the noise, and non-uniformity error, from cells that an area "
            f"covers in part.{_shown_text(release)}"
        )
    ]
    if shown.levels:
        by_level = {
            level: shown.query(level=level, threshold=_THRESHOLD).table for level in shown.levels
        }
        rows = [_error_row(f"{level} ({len(t):,})", t) for level, t in by_level.items()]
        blocks.append(_error_table("Regions, by level.", "level", rows))
    blocks.append(
        _error_table(
            f"Squares, {SQUARES} of each size, at random where the release estimates "
            f"{'users' if shown.unit.weight else 'records'}.",
            "square",
            errors_by_size(shown).to_dict("records"),
        )
    )
    words = {"relative_error": "Relative error", "reliable": "Reliable", "quality": "Quality"}
    blocks += [paragraph(f"{words[name]}: {text}.") for name, text in limits.texts.items()]
    return section("How accurate it is", *blocks)


def _error_table(caption: str, first: str, errors: Sequence[Mapping[Any, Any]]) -> str:
    """Table of medians and shares of classes."""
    rows = [
        (
            row["size"],
            f"{row['estimate']:,.0f}",
            f"{row['error']:,.3g}",
            _relative(row["relative_error"]),
            *(f"{100 * row[name]:.0f}%" for name in QUALITIES),
        )
        for row in errors
    ]
    headings = (first, "median estimate", "median error", "median relative error", *QUALITIES)
    return table_block(caption, headings, rows)


def _map_section(release: Release, shown: Release) -> str:
    """Maps of the density and of the quality."""
    from matplotlib.figure import Figure

    figures = []
    what = "region" if shown.levels else "cell"
    note = "." if shown.levels else "; small cells are where records are many."
    if shown.levels and ELSEWHERE in shown.query(level=shown.levels[-1]).table["id"].tolist():
        note = f". What lies in no region is counted as {ELSEWHERE}, and not drawn."
    captions: dict[Literal["density", "quality"], str] = {
        "density": f"Estimated density of each {what}{note}",
        "quality": f"Quality of the estimate of each {what}. Larger areas have better estimates.",
    }
    for kind, caption in captions.items():
        figure = Figure(figsize=(7, 5.5), layout="compressed")
        axes = figure.subplots()
        shown.plot(kind, ax=axes)
        # The page has the stated title, whose letters the font of the picture may lack.
        axes.set_title("\n".join(axes.get_title().splitlines()[-2:]), fontsize=10)
        figures.append((figure, f"Map of the {kind} of the {what}s.", caption))
    return section(
        "The map",
        *([] if release.slices is None else [paragraph(_shown_text(release).strip())]),
        figure_block(figures, private=False),
    )


def _method_section(release: Release, shown: Release) -> str:
    """How the release was built."""
    record, domain = shown.index.record, release.domain
    measure = shown.tree.noise.measure.name
    paper = f" ({method_class(release.method).paper})" if release.method in methods() else ""
    steps = ", ".join(f"{key} {value}" for key, value in dict(record.parameters).items() if value)
    rows = [
        ("Method", f"{release.method}{paper}"),
        ("Parameters", steps or "none"),
        ("Cells", f"{len(shown.tree):,}, of which {int(shown.tree.is_leaf.sum()):,} are not cut"),
        ("Loss of all levels", record.loss_text),
        ("Source of the counts", record.source),
        ("Smallest cell", "none" if domain.min_cell is None else f"{domain.min_cell} m"),
        ("Coordinate resolution", str(domain.coordinate_resolution or "none")),
        (
            "Boundary",
            "records outside a public boundary were left out" if record.boundary else "none",
        ),
        (
            "Covariate",
            "none" if record.covariate is None else "a public raster inside cells",
        ),
        (
            "Estimates",
            f"{record.post_processing.estimate}, density {record.post_processing.density}",
        ),
        ("Library", f"psd {record.library}"),
    ]
    return section(
        "How it was built",
        paragraph(
            "The area was divided into a tree of cells. The records of each cell were counted, and "
            "noise was added to each count. Counts of a cell and of its parts were then made "
            f"consistent, which uses no data. No place is in cells whose {measure}s sum to more "
            f"than the {measure} of the release."
        ),
        table_block("", ("", ""), rows, "words"),
    )


def _reading_section(release: Release) -> str:
    """How to use the numbers."""
    limited = release.unit.kind != "record" and not release.unit.weight
    limit = (
        f" At most {release.unit.max_contributions} records of each user were counted, so that the "
        "counts are smaller than those of all records."
        if limited and release.unit.kind != "report"
        else ""
    )
    return section(
        "How to read the numbers",
        paragraph(
            "Each answer is an estimate with an interval that covers the true count in 95 of 100 "
            f"releases, by our tests ({SOURCE}/docs/measured/coverage.md).{limit}"
        ),
        paragraph(
            "Do not read single small cells: an estimate of a few records may be noise alone. Add "
            "cells up, or ask for a larger area; the relative error falls. Do not compare two "
            "estimates whose intervals overlap without psd query --difference, which states the "
            "error of the difference."
        ),
    )


def citation(release: Release) -> str:
    """How to cite a release: who, what, when, its loss and its digest."""
    about = release.record.about_texts
    parts = [
        about.get("publisher"),
        about.get("title", "Differentially private counts of locations"),
        about.get("reference_date"),
        f"Differentially private release, {release.record.loss_text}",
        f"SHA-256 {release.digest}",
    ]
    return ". ".join(part.rstrip(".") for part in parts if part) + "."


def _citation_section(release: Release) -> str:
    """How to cite the release, and its digest."""
    return section(
        "How to cite it",
        paragraph(citation(release)),
        paragraph(
            "psd sign check compares a file with this digest. This sheet was made by psd "
            f"{__version__}."
        ),
    )
