"""The sheet of method: a public page on what a release protects and how accurate it is."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import shapely

from psd._util.extras import SOURCE, require_matplotlib
from psd._util.html import figure_block, page, paragraph, section, table_block
from psd.api.release import Release
from psd.apps.web.sheet_words import (
    SHEET,
    Language,
    counted_text,
    limits_texts,
    loss_text,
    page_language,
    protected_text,
    source_text,
    values_text,
)
from psd.decompositions import method_class, methods
from psd.privacy.loss import delta_text
from psd.query.answer_table import QUALITIES, relative_text, reliability_limits
from psd.release.series import SeriesRecord
from psd.space.ground_areas import area_unit, east_west_scale, ground_areas, shape_ground_areas
from psd.space.region_tree import ELSEWHERE, RegionTree
from psd.version import __version__

if TYPE_CHECKING:
    import pandas

    from psd._util.arrays import Floats


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

    P1. Made of the release alone: it costs no epsilon, and the same release gives the same table.

    One row for each size that fits the domain at least four times: medians ``estimate``, ``error``
    (predicted deviations), ``relative_error``; shares ``good``, ``use with care`` and ``poor``.
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


def methodology_page(release: Release, language: Language | None = None) -> str:
    """Make the sheet of method of a release or a series as an HTML text.

    P1. Made of the release alone: it costs no epsilon and states no number about records that the
    release does not state. One file without scripts and without requests.
    """
    require_matplotlib("a sheet of method")
    if language is None:
        language = page_language(release)
    # Errors and map of a series are those of its middle slice, those of a cube of all time.
    shown = release
    if isinstance(release.record, SeriesRecord):
        slices = release.record.slices
        shown = release[slices.names[len(slices) // 2]]
    body = [
        _summary_section(release, language),
        _protection_section(release, language),
        _odds_section(release, language),
        _accuracy_section(release, shown, language),
        _map_section(release, shown, language),
        _method_section(release, shown, language),
        _reading_section(release, language),
        _citation_section(release, language),
    ]
    words = SHEET[language]
    title = release.record.about_texts.get("title", words["title"])
    return page(title, body, lead=words["lead"], language=language)


def _shown_text(release: Release, language: Language) -> str:
    """Which slices of a release a section is about; empty for one without time."""
    if release.slices is None:
        return ""
    names = release.slices.names
    if not isinstance(release.record, SeriesRecord):
        return SHEET[language]["all_time"].format(n=len(names))
    return SHEET[language]["shown"].format(n=len(names), name=names[len(names) // 2])


def _summary_section(release: Release, language: Language) -> str:
    """What the publisher states, and the guarantee."""
    words, about = SHEET[language], release.record.about_texts
    labels = ("publisher", "description", "reference_date", "licence", "contact", "language")
    stated = [(words[key], about[key]) for key in labels if key in about]
    from psd.space.crs import parse_crs

    crs, slices = release.domain.crs, release.slices
    if len(crs) > 40:  # text of many lines
        crs = str(parse_crs(crs).name)
    bounds = ", ".join(f"{side:.9g}" for side in release.domain.bounds)
    rows = [*stated, (words["counts"], counted_text(release, language))]
    if values := values_text(release, language):
        rows.append((words["values"], values))
    rows.append((words["area"], f"{bounds} ({crs})"))
    if slices is not None:
        text = words["slices_text"].format(
            n=len(slices.names), by=words[slices.by], first=slices.names[0], last=slices.names[-1]
        )
        rows.append((words["slices"], text))
    guarantee = release.record.guarantee_text
    if language != "en":
        guarantee = f"{loss_text(release, language)}, {protected_text(release, language)}"
        if release.record.source != "curator":
            guarantee += f"; {source_text(release, language)}"
    rows.append((words["guarantee"], guarantee))
    return section(words["in_short"], table_block("", ("", ""), rows, "words"))


def _protection_section(release: Release, language: Language) -> str:
    """What the guarantee says, and what it does not."""
    words, unit = SHEET[language], release.unit
    reason = release.record.about_texts.get("justification")
    said = words["protects"].format(
        what=words[f"of_{unit.kind}"],
        loss=loss_text(release, language),
        unit=release.record.unit_text if language == "en" else protected_text(release, language),
    )
    return section(
        words["protected"],
        paragraph(_with_delta(said, release, language)),
        paragraph(words["local" if unit.kind == "report" else "central"]),
        paragraph(words["readers"]),
        paragraph(words["population"]),
        *([] if reason is None else [paragraph(words["why"].format(reason=reason))]),
    )


def _with_delta(text: str, release: Release, language: Language) -> str:
    """Text, and what may happen with probability delta, if there is one."""
    delta = release.record.delta
    said = () if delta is None else (SHEET[language]["delta"].format(delta=delta_text(delta)),)
    return " ".join((text, *said))


def _odds_section(release: Release, language: Language) -> str:
    """Epsilon as a factor of odds and as probabilities after the release."""
    words, epsilon = SHEET[language], float(release.epsilon)
    factor = Decimal(release.epsilon).exp()
    form = ",.0f" if 1000 <= factor < _LARGEST_PLAIN else ".3g"
    rows = [
        (
            f"{100 * prior:g}%",
            _probability(_after(prior, -epsilon), language),
            _probability(_after(prior, epsilon), language),
        )
        for prior in _PRIORS
    ]
    said = words["odds_text"].format(
        what=words[f"that_{release.unit.kind}"], factor=f"{factor:{form}}"
    )
    return section(
        words["odds"],
        paragraph(_with_delta(said, release, language)),
        table_block(words["odds_caption"], (words["before"], words["least"], words["most"]), rows),
    )


def _after(prior: float, epsilon: float) -> float:
    """Probability whose odds are those of the prior times e^epsilon."""
    lowered = math.exp(-abs(epsilon))
    if epsilon < 0:
        return prior * lowered / (prior * lowered + 1 - prior)
    return prior / (prior + (1 - prior) * lowered)


def _probability(share: float, language: Language = "en") -> str:
    """Probability in per cent, with three digits, and never rounded to certainty."""
    if share < _LEAST_SHARE:
        return SHEET[language]["below"].format(f"{100 * _LEAST_SHARE:g}%")
    return SHEET[language]["above"].format("99.9%") if share > 0.999 else f"{100 * share:.3g}%"


def _relative(error: float, language: Language = "en") -> str:
    """Relative error in per cent, or a dash for none."""
    text = "-" if math.isinf(error) else relative_text(error)
    return SHEET[language]["above"].format(text[6:]) if text.startswith("above ") else text


def _accuracy_section(release: Release, shown: Release, language: Language) -> str:
    """Predicted errors by size, or by level of regions."""
    words = SHEET[language]
    said = (words["errors"], _shown_text(release, language))
    blocks = [paragraph(" ".join(filter(None, said)))]
    if shown.levels:
        by_level = {
            level: shown.query(level=level, threshold=_THRESHOLD).table for level in shown.levels
        }
        rows = [_error_row(f"{level} ({len(t):,})", t) for level, t in by_level.items()]
        blocks.append(_error_table(words["regions"], words["level"], rows, language))
    squares = errors_by_size(shown).to_dict("records")
    for row in squares:
        share = re.fullmatch(r"(\S+) of the area", row["size"])
        row["size"] = row["size"] if share is None else words["part"].format(share[1])
    counted = words["users" if shown.unit.weight else "records"]
    caption = words["squares"].format(n=SQUARES, counted=counted)
    blocks.append(_error_table(caption, words["square"], squares, language))
    texts = limits_texts(reliability_limits(_THRESHOLD), language)
    return section(words["accuracy"], *blocks, *map(paragraph, texts))


def _error_table(
    caption: str, first: str, errors: Sequence[Mapping[Any, Any]], language: Language
) -> str:
    """Table of medians and shares of classes."""
    rows = [
        (
            row["size"],
            f"{row['estimate']:,.0f}",
            f"{row['error']:,.3g}",
            _relative(row["relative_error"], language),
            *(f"{100 * row[name]:.0f}%" for name in QUALITIES),
        )
        for row in errors
    ]
    names = ("estimate", "error", "relative_error", *QUALITIES)
    return table_block(caption, (first, *(SHEET[language][name] for name in names)), rows)


def _map_section(release: Release, shown: Release, language: Language) -> str:
    """Maps of the density and of the quality."""
    from matplotlib.figure import Figure

    words, figures = SHEET[language], []
    what = "region" if shown.levels else "cell"
    notes = [words[f"density_{what}"]]
    if isinstance(shown.tree, RegionTree):
        regions: Any = shown.tree.regions
        if ELSEWHERE in shown.query(level=shown.levels[-1]).table["id"].tolist():
            notes.append(words["elsewhere"].format(ELSEWHERE))
        elif regions.gap is not None:
            notes.append(words["gap"])
    captions: dict[Literal["density", "quality"], str] = {
        "density": " ".join(notes),
        "quality": words["quality_of"].format(what=words[what]),
    }
    for kind, caption in captions.items():
        figure = Figure(figsize=(7, 5.5), layout="compressed")
        axes = figure.subplots()
        shown.plot(kind, ax=axes)
        # The page has the stated title, whose letters the font of the picture may lack.
        axes.set_title("\n".join(axes.get_title().splitlines()[-2:]), fontsize=10)
        alt = words["map_alt"].format(kind=words[kind], what=words[what])
        figures.append((figure, alt, caption))
    slice_text = _shown_text(release, language)
    return section(
        words["map"],
        *([paragraph(slice_text)] if slice_text else []),
        figure_block(figures, private=False),
    )


def _method_section(release: Release, shown: Release, language: Language) -> str:
    """How the release was built."""
    words, record, domain = SHEET[language], shown.index.record, release.domain
    measure, none = words[shown.tree.noise.measure.name], words["none"]
    paper = f" ({method_class(release.method).paper})" if release.method in methods() else ""
    steps = ", ".join(f"{key} {value}" for key, value in dict(record.parameters).items() if value)
    cells = words["cells_text"].format(
        n=f"{len(shown.tree):,}", leaves=f"{int(shown.tree.is_leaf.sum()):,}"
    )
    choices = {
        "estimate": record.post_processing.estimate, "density": record.post_processing.density,
    }  # fmt: skip
    rows = {
        "method": f"{release.method}{paper}",
        "parameters": steps or none,
        "cells": cells,
        "loss": record.loss_text if language == "en" else loss_text(shown, language),
        "source": record.source if language == "en" else source_text(release, language),
        "min_cell": none if domain.min_cell is None else f"{domain.min_cell} m",
        "resolution": str(domain.coordinate_resolution or none),
        "boundary": words["has_boundary"] if record.boundary else none,
        "covariate": none if record.covariate is None else words["has_covariate"],
        "estimates": words["estimates_text"].format(**choices),
        "library": f"psd {record.library}",
    }
    return section(
        words["built"],
        paragraph(words["built_text"].format(measure=measure)),
        table_block("", ("", ""), [(words[key], text) for key, text in rows.items()], "words"),
    )


def _reading_section(release: Release, language: Language) -> str:
    """How to use the numbers."""
    words, unit = SHEET[language], release.unit
    said = [words["intervals"].format(tests=f"{SOURCE}/docs/measured/coverage.md")]
    if unit.kind not in ("record", "report") and not unit.weight:
        said.append(words["bounded"].format(n=unit.max_contributions))
    return section(words["reading"], paragraph(" ".join(said)), paragraph(words["advice"]))


def citation(release: Release, language: Language = "en") -> str:
    """How to cite a release: who, what, when, its loss and its digest."""
    about, words = release.record.about_texts, SHEET[language]
    parts = [
        about.get("publisher"),
        about.get("title", words["title"]),
        about.get("reference_date"),
        words["citation"].format(loss=loss_text(release, language)),
        f"SHA-256 {release.digest}",
    ]
    return ". ".join(part.rstrip(".") for part in parts if part) + "."


def _citation_section(release: Release, language: Language) -> str:
    """How to cite the release, and its digest."""
    words = SHEET[language]
    return section(
        words["cite"],
        paragraph(citation(release, language)),
        paragraph(words["digest"].format(version=__version__)),
    )
