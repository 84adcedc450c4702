"""The map page of a release: one HTML file that loads nothing, and answers drawn areas."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from psd._util.colours import SEQUENTIAL, class_colours
from psd._util.extras import SOURCE
from psd.api.fits import fitted_slices
from psd.api.release import Release
from psd.apps.web.map_arrays import (
    Means,
    PackedArrays,
    cell_classes,
    cell_counts,
    cut_arrays,
    level_cells,
    node_means,
    pack_arrays,
    region_classes,
    release_arrays,
    release_numbers,
    shown_nodes,
)
from psd.apps.web.map_cube import (
    MAX_CUBE_NODES,
    answers_windows,
    cube_arrays,
    cube_numbers,
    cube_steps,
)
from psd.apps.web.map_outlines import (
    RegionGroup,
    answers_drawn_areas,
    country_outlines,
    given_regions,
    lowest_outlines,
    outline_arrays,
    release_regions,
)
from psd.errors import ParameterError
from psd.estimation.cube import fit_cube
from psd.query.answer_table import (
    QUALITIES,
    Threshold,
    reliability_limits,
    two_sided_quantile,
)
from psd.query.areas import SLIVER
from psd.release.cube import CubeRecord, WindowRecord, shown_records
from psd.space.ground_areas import area_unit, east_west_scale
from psd.space.region_tree import ELSEWHERE, RegionTree
from psd.space.time_slices import TimeWindow
from psd.space.windows import read_windows
from psd.version import __version__

if TYPE_CHECKING:
    import geopandas

    from psd._util.arrays import Floats
    from psd.space.box_tree import Tree


MAX_MAP_CELLS = 200_000
"""Limit of the leaves on a page, all time slices together: larger pages take long to open.

With V values it is divided by 1 + 2 V.
"""

_CONFIDENCE = 0.95

# Where it is shown how often intervals cover the true count.
_TESTS = "docs/measured/coverage.md"

ENGINE_SCRIPTS = (
    "map_arrays.js",
    "map_axes.js",
    "map_shapes.js",
    "map_densities.js",
    "map_areas.js",
    "map_trees.js",
    "map_walk.js",
    "map_intervals.js",
    "map_values.js",
    "map_squares.js",
    "map_cubes.js",
    "map_engine.js",
)
"""Scripts that compute the answers of a page, each after those it names."""

_SCRIPTS = ("maplibre-gl.js", *ENGINE_SCRIPTS, "map_words.js", "map_classes.js", "map_page.js")
_STYLES = ("maplibre-gl.css", "map_page.css")

_ANSWERS = ("estimate", "perturbation_error", "nonuniformity_error", "lower", "upper")

# Of a mean and of a sum.
_OF_VALUES = ("", "_perturbation_error", "_nonuniformity_error", "_error", "_lower", "_upper")


def map_page(
    release: Release,
    *,
    regions: geopandas.GeoDataFrame | None = None,
    title: str | None = None,
    level: int | None = None,
    threshold: Threshold = 0.3,
    when: Any = None,
    category: str | None = None,
) -> str:
    """Make the map page of a release or a series as an HTML text; see `Release.map`.

    P1. Made of the release and of public regions alone: it costs no epsilon.
    P2. One file. Its policy forbids every request; scripts and styles run by their hashes alone.
    P3. Of a table of regions it holds ids, names and outlines, and no other column.
    P4. Answers on the page are those of `Release.query` and of the total of `Answers.joint`, to
    rounding. What the page cannot answer exactly it does not answer: of a cube above
    `MAX_CUBE_NODES`, and with a level, cells and given regions have answers in the windows of the
    slider alone.

    >>> from psd.testing.data import release_from_counts
    >>> page = map_page(release_from_counts([[500, 100], [0, 200]]), title="Visits <2024>")
    >>> "<title>Visits &lt;2024&gt;</title>" in page
    True
    """
    record = release.record
    is_cube = isinstance(record, CubeRecord | WindowRecord)
    if not isinstance(record, CubeRecord):
        for name, value in (("when", when), ("category", category)):
            if value is not None:
                got = str(value)[:80]
                raise ParameterError(f"{name} must be left out, got {got}; the release is no cube")
    if isinstance(record, CubeRecord | WindowRecord) and level is None:
        cube = record.cube if isinstance(record, WindowRecord) else record
        if answers_windows(cube):
            windows = [] if when is None else _windows(cube, when, None)
            if isinstance(record, CubeRecord):
                for each in windows or [None]:
                    release[each, category]  # checks what is asked
            choices = cube_steps(record, windows, category)
            return _cube_page(release, cube, choices, regions, title, threshold)
    names: list[str] = [""] if release.slices is None else list(release)
    if isinstance(release.record, CubeRecord):
        of_steps = _windows(release.record, when, level)
        first = release[of_steps[0], category]
        axis, label = release.record.category, ""
        if axis is not None and category is not None:
            label = f"{axis.column}={axis.label_named(category)}"
        times = ["" if window is None else window.name for window in of_steps]
        names = [", ".join(filter(None, [time, label])) for time in times]
        trees = [first.tree] * len(of_steps)
        views = (release[window, category] for window in of_steps)
        steps: Iterable[Release] = [first] if len(of_steps) == 1 else views
    else:
        if isinstance(record, WindowRecord):
            names = [", ".join(record.shown.values())]  # the page names a view
        first = release if release.slices is None else release[names[0]]
        trees = [each.tree for each in shown_records(release.record)]
        steps = fitted_slices(release)
    _check(first, regions, level)
    _check_size(trees, level, "when names windows" if is_cube else "--slice shows one time slice")
    groups = _groups(first, regions)
    deepest = max(int(tree.level.max()) for tree in trees) if level is None else level
    # One slice after another; of each the page keeps what is packed, and what classes are made of.
    packed, numbers, cells = [], [], []
    of_groups: list[list[Floats]] = [[] for _ in groups]
    means: list[list[Means]] = [[] for _ in groups]
    for shown in steps:
        arrays = _slice_arrays(shown, groups, level, threshold)
        packed.append(pack_arrays(arrays))
        numbers.append(release_numbers(shown, threshold, level=level, confidence=_CONFIDENCE))
        if not first.levels:
            cells.append(level_cells(shown, deepest, threshold))
        for number, (group, estimates) in enumerate(zip(groups, of_groups, strict=True)):
            count = cell_counts(shown.index.fit)
            given = arrays.get(f"answers{number}")
            estimates.append(count[group.nodes] if given is None else given[: len(group.ids)])
            if first.index.record.values:
                means[number].append(_means_of(shown, group, given, threshold))
    classes = {
        "cells": cell_classes(cells),
        "groups": list(map(region_classes, groups, of_groups, means)),
    }
    slices = [
        {"name": name, "directory": each.directory, "meta": meta}
        for name, each, meta in zip(names, packed, numbers, strict=True)
    ]
    of_page = {
        "drawing": level is None and not is_cube and answers_drawn_areas(first),
        "cut": level,
        "most": MAX_CUBE_NODES if is_cube else None,
        "classes": classes,
        "slices": slices,
    }
    return _page(release, first, groups, title, threshold, of_page, packed)


def _cube_page(
    release: Release,
    cube: CubeRecord,
    choices: dict[str, Any],
    regions: geopandas.GeoDataFrame | None,
    title: str | None,
    threshold: Threshold,
) -> str:
    """Page of a cube, or of a view of one, that answers any window."""
    first = Release(cube.plane)
    _check(first, regions, None)
    groups = _groups(first, regions)
    fit = fit_cube(cube)
    packed, meta = pack_arrays(cube_arrays(fit)), cube_numbers(fit, threshold)
    # Classes are made on the page, of the windows that are shown.
    of_page = {
        "drawing": answers_drawn_areas(first),
        "cut": None,
        "classes": None,
        "cube": choices,
        "slices": [{"name": "", "directory": packed.directory, "meta": meta}],
    }
    return _page(release, first, groups, title, threshold, of_page, [packed])


def _page(
    release: Release,
    first: Release,
    groups: list[RegionGroup],
    title: str | None,
    threshold: Threshold,
    of_page: dict[str, Any],
    packed: list[PackedArrays],
) -> str:
    """Page of packed arrays, and of facts that depend on what they are."""
    shapes = None
    if groups:
        outlines = outline_arrays(groups)
        if first.levels and answers_drawn_areas(first):  # all digits, to clip cells
            outlines |= lowest_outlines(first)
        shapes = pack_arrays(outlines)
    regions: Any = first.tree.regions if isinstance(first.tree, RegionTree) else None
    data = {
        **_facts(release, first, title, threshold),
        **of_page,
        "hasCells": not first.levels,
        "outlines": country_outlines(first.domain),
        # Share of a shape above which its part in no region is named; None without such a part.
        "gaps": None if regions is None or regions.gap is None else SLIVER,
        "groups": [group.to_json() for group in groups],
        "view": _view(first, groups),
        "colours": list(SEQUENTIAL),
        # Which of the colours each number of classes has, as on other maps.
        "scales": [
            [SEQUENTIAL.index(colour) for colour in class_colours(number + 1)]
            for number in range(len(SEQUENTIAL))
        ],
        "shapes": {"directory": None if shapes is None else shapes.directory},
    }
    return _document(data, packed, shapes)


def _windows(cube: CubeRecord, when: Any, level: int | None) -> list[TimeWindow | None]:
    """Windows of a cube that are steps of the slider; None without time."""
    slices = cube.slices
    if slices is None:
        if when is not None:
            raise ParameterError("when must be left out for a release without time", name="when")
        return [None]
    if when is not None:
        return [*read_windows(when, slices)[0]]
    every, numbers = TimeWindow(name="all time", numbers=np.arange(len(slices))), range(len(slices))
    if (len(numbers) + 1) * _cells(cube.cells, level) > MAX_MAP_CELLS:
        return [every]
    return [every, *(TimeWindow(name=slices.names[n], numbers=np.array([n])) for n in numbers)]


def _check(first: Release, regions: Any, level: int | None) -> None:
    """Refuse arguments that do not fit the release."""
    if first.levels and (regions is not None or level is not None):
        name = "regions" if regions is not None else "level"
        raise ParameterError(f"{name} must be left out for a release that has regions of its own")
    if level is None:
        return
    if regions is not None:
        raise ParameterError("regions must be left out with level; they cut cells below the level")
    deepest = int(first.tree.level.max())
    if type(level) is not int or not 0 <= level <= deepest:
        raise ParameterError(f"level must be an integer from 0 to {deepest}, got {level}")


def _check_size(trees: list[Tree], level: int | None, fewer: str) -> None:
    """Refuse more cells than a page can have."""
    shown = sum(_cells(each, level) for each in trees)
    if shown <= _most_cells(trees):
        return
    fits = fitting_levels(trees)
    advice = f"--level {fits[-1]} shows larger cells" if fits else "build fewer cells"
    slices = f"; {fewer}" if len(trees) > 1 else ""
    raise ParameterError(
        f"release must have at most {_most_cells(trees):,} cells on a map page, got {shown:,}; "
        f"{advice}{slices}"
    )


def fitting_levels(trees: Sequence[Tree]) -> list[int | None]:
    """Levels whose cells a page can show in all slices, the finest last; None for the leaves."""
    tried: list[int | None] = [None]
    if not isinstance(trees[0], RegionTree):
        tried = [*range(int(trees[0].level.max())), None]
    return [at for at in tried if sum(_cells(each, at) for each in trees) <= _most_cells(trees)]


def _most_cells(trees: Sequence[Tree]) -> int:
    """Limit of the cells: a page has the weights of a value as those of two more releases."""
    sums = trees[0].sums
    return MAX_MAP_CELLS // (1 + 2 * (0 if sums is None else sums.shape[1]))


def _cells(tree: Tree, level: int | None) -> int:
    """Number of cells that tile the area."""
    return int(tree.is_leaf.sum()) if level is None else len(shown_nodes(tree, level))


def _groups(first: Release, regions: geopandas.GeoDataFrame | None) -> list[RegionGroup]:
    """Regions to choose from."""
    if first.levels:
        return release_regions(first)
    return [] if regions is None else [given_regions(first, regions)]


def _view(first: Release, groups: list[RegionGroup]) -> list[float]:
    """What the page shows first: the bounds, or the regions without what lies in no other one."""
    bounds = np.array(first.domain.bounds)
    if not groups or not first.levels or ELSEWHERE not in groups[0].ids:
        return [float(side) for side in bounds]
    group = groups[0]
    named = group.shapes[[text != ELSEWHERE for text in group.ids]]
    sides = shapely.total_bounds(named) if len(named) else bounds
    low, high = np.maximum(sides[:2], bounds[:2]), np.minimum(sides[2:], bounds[2:])
    return [float(side) for side in (*low, *high)]


def _slice_arrays(
    release: Release, groups: list[RegionGroup], level: int | None, threshold: Threshold
) -> dict[str, Any]:
    """Arrays of one slice, with the answers of given regions."""
    if level is not None:
        return cut_arrays(release, level)
    arrays = release_arrays(release)
    for number, group in enumerate(groups):
        if group.nodes is None:
            arrays[f"answers{number}"] = _given_answers(release, group, threshold)
    return arrays


def _given_answers(release: Release, group: RegionGroup, threshold: Threshold) -> Floats:
    """Answers of given regions, one column after another; of values mean, quality and sum."""
    import geopandas as gpd

    shapes = gpd.GeoDataFrame({"id": group.ids}, geometry=group.shapes, crs=release.domain.crs)
    names = [value.name for value in release.index.record.values]
    asked = release.query(shapes, threshold=threshold, mean=names, sum=names)
    answers = asked.table
    columns = [answers[name].to_numpy(np.float64) for name in _ANSWERS]
    for name in names:
        columns += [answers[f"mean_{name}{end}"].to_numpy(np.float64) for end in _OF_VALUES]
        ranks = [float(QUALITIES.index(each)) for each in answers[f"mean_{name}_quality"]]
        columns.append(np.array(ranks))
        columns += [answers[f"sum_{name}{end}"].to_numpy(np.float64) for end in _OF_VALUES]
    return np.concatenate(columns)


def _means_of(
    release: Release, group: RegionGroup, given: Floats | None, threshold: Threshold
) -> Means:
    """Means of the values in the regions of a group, by their nodes or by given answers."""
    if given is None:
        return node_means(release, np.array(group.nodes, np.int64), threshold)
    columns = given.reshape(-1, len(group.ids))[len(_ANSWERS) :]
    rank, width = len(_OF_VALUES), 2 * len(_OF_VALUES) + 1
    starts = range(0, len(columns), width)
    return [(columns[at], columns[at + rank] < len(QUALITIES) - 1) for at in starts]


def _facts(
    release: Release, first: Release, title: str | None, threshold: Threshold
) -> dict[str, Any]:
    """What the page states, and the numbers of its plane."""
    domain, limits = first.domain, reliability_limits(threshold)
    stated = release.record.about_texts.get("title", "Differentially private counts of locations")
    record = release.record.cube if isinstance(release.record, WindowRecord) else release.record
    slices = getattr(record, "slices", None)
    counted = "users" if first.unit.weight else "records"
    middle = (domain.bounds[1] + domain.bounds[3]) / 2
    return {
        "title": stated if title is None else title,
        "guarantee": release.record.guarantee_text,
        "unit": first.unit.kind,
        "counted": "devices" if first.unit.kind == "report" else counted,
        "method": first.method,
        "zone": None if slices is None else slices.time_zone,
        "digest": release.digest,
        "publisher": release.record.about_texts.get("publisher", ""),
        "version": __version__,
        "bounds": list(domain.bounds),
        # Width of a unit of x on the map over that of y: less than 1 for longitudes.
        "stretch": max(float(east_west_scale(domain, middle)), 0.2),
        "areaUnit": {"km2": "km²"}.get(area_unit(domain), area_unit(domain)),
        "z": two_sided_quantile(_CONFIDENCE),
        "values": [
            {"name": value.name, "lower": value.lower, "upper": value.upper}
            for value in first.index.record.values
        ],
        "good": limits.good,
        "reliable": limits.reliable,
    }


# --- document -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asset:
    """Text of a file of the package, and its hash for the policy."""

    text: str

    @property
    def source(self) -> str:
        """Hash as it stands in a policy."""
        digest = hashlib.sha256(self.text.encode("utf-8")).digest()
        return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _asset(name: str) -> _Asset:
    """Script or style of the package; what would end its element is refused."""
    text = files("psd.apps.web.assets").joinpath(name).read_text(encoding="utf-8")
    return _Asset(text=text.replace("\r\n", "\n"))


def _policy(scripts: Iterable[_Asset], styles: Iterable[_Asset]) -> str:
    """Policy of the page: no request, and no script or style but those of the package."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(each.source for each in scripts)}",
            f"style-src {' '.join(each.source for each in styles)}",
            # MapLibre cuts lines into tiles in a worker, whose script is a part of its own.
            "worker-src blob:",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _json(value: object) -> str:
    """JSON that cannot end the element that it stands in."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _document(data: dict[str, Any], packed: list[PackedArrays], shapes: PackedArrays | None) -> str:
    """HTML of the page."""
    scripts, styles = ([_asset(name) for name in names] for names in (_SCRIPTS, _STYLES))
    body = files("psd.apps.web.assets").joinpath("map_body.html").read_text(encoding="utf-8")
    facts = {key: escape(str(data[key])) for key in ("title", "guarantee", "method", "digest")}
    others = {"publisher": escape(data["publisher"]), "tests": f"{SOURCE}/{_TESTS}"}
    for key, text in {**facts, **others}.items():
        body = body.replace("{{" + key + "}}", text)
    texts = [
        f'<script type="text/plain" id="psd-slice-{number}">{each.text}</script>'
        for number, each in enumerate(packed)
    ]
    if shapes is not None:
        texts.append(f'<script type="text/plain" id="psd-shapes">{shapes.text}</script>')
    return "\n".join(
        [
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" '
            f'content="{escape(_policy(scripts, styles))}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="referrer" content="no-referrer">\n<link rel="icon" href="data:,">',
            f"<title>{facts['title']}</title>",
            *(f"<style>{each.text}</style>" for each in styles),
            f"</head>\n<body>\n{body}",
            *texts,
            f'<script type="application/json" id="psd-data">{_json(data)}</script>',
            *(f"<script>{each.text}</script>" for each in scripts),
            "</body>\n</html>\n",
        ]
    )
