"""The first page of a folder of releases, in English and Korean: what is published, which files."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import numpy as np
import shapely

from psd._util.colours import SEQUENTIAL
from psd._util.html import page, paragraph, section
from psd.apps.web.methodology import citation
from psd.apps.web.sheet_words import (
    Language,
    counted_text,
    protected_text,
    source_text,
    values_text,
)
from psd.export import classes_of
from psd.privacy.loss import delta_text, epsilon_text
from psd.release.cube import shown_records
from psd.release.series import SeriesRecord
from psd.space.crs import parse_crs
from psd.space.ground_areas import area_unit, east_west_scale
from psd.space.region_tree import ELSEWHERE
from psd.statistics.raster import density_raster
from psd.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from psd.api.release import Release
    from psd.release.record import ReleaseRecord


_EN: Final = {
    "several": "Differentially private counts of locations",
    "lead": "Estimates of how many are where, under differential privacy.",
    "map": "Open the map", "sheet": "How it was made, and how exact it is",
    "other": "한국어",
    "publisher": "Publisher", "reference_date": "Reference date", "counts": "Counts",
    "values": "Sums and means", "area": "Area", "slices": "Time slices",
    "slices_text": "{n}, from {first} to {last}", "epsilon": "Epsilon", "delta": "Delta",
    "unit": "Unit of privacy", "method": "Method", "method_text": "{method}, {n} cells",
    "source": "Source", "licence": "Licence", "contact": "Contact",
    "files": "Files", "file": "file", "what": "what it is", "opens": "opens with", "size": "size",
    "release": "the release: noisy counts, with which psd answers any area",
    "signature": "signature of the release", "table": "estimates and errors of the cells",
    "regions": "estimates and errors of the regions of level {level}",
    "layer": "the same as GeoPackage, with styles", "tiles": "the same as vector tiles (PMTiles)",
    "map_file": "the map, which answers areas that are drawn on it",
    "sheet_file": "sheet of method",
    "opens_release": "psd query", "opens_signature": "psd sign check",
    "opens_table": "DuckDB, GeoPandas, new QGIS (GeoParquet)", "opens_layer": "QGIS and other GIS",
    "opens_tiles": "maps on the web, new QGIS",
    "opens_page": "browsers",
    "no_map": "It has too many cells for a map page.",
    "picture": "Estimated density, {unit}.", "of_slice": "Time slice {name}.",
    "cite": "How to cite it", "means": "What these numbers are",
    "means_1": "Random noise limits what a reader can learn from these numbers about {unit}. This "
    "is differential privacy. Epsilon is the limit: the smaller it is, the less can be learned. "
    "Each sheet of method states it as odds.",
    "means_2": "Each number is an estimate with an error, which the maps and the tables state. Do "
    "not read single small cells: ask for a larger area, whose relative error is smaller.",
    "programs": "For programs", "programs_1": "{stac} is a catalogue of STAC, {package} a Data "
    "Package, and {sums} lists all files with their SHA-256.",
    "made": "Made by psd {version}. These pages load nothing from other places.",
    "record": "any one record", "user": "any one user", "user-day": "any one user on any one day",
    "user-slice": "any one user in any one time slice", "report": "the answer of any one device",
    "mixed": "any one user or record",
    "records": "records per", "users": "users per", "devices": "devices per",
}  # fmt: skip

_KO: Final = {
    "several": "차분 프라이버시로 보호한 위치 통계",
    "lead": "차분 프라이버시로 보호하며, 어디에 얼마나 있는지를 추정한 값입니다.",
    "map": "지도 열기", "sheet": "만든 방법과 정확도",
    "other": "English",
    "publisher": "공표 기관", "reference_date": "기준 시점", "counts": "세는 것",
    "values": "합계와 평균", "area": "영역", "slices": "시간 구간",
    "slices_text": "{first}부터 {last}까지 {n}개", "epsilon": "엡실론", "delta": "델타",
    "unit": "보호 단위", "method": "방법", "method_text": "{method}, 셀 {n}개",
    "source": "출처", "licence": "이용 허락", "contact": "연락처",
    "files": "파일", "file": "파일", "what": "내용", "opens": "여는 프로그램", "size": "크기",
    "release": "공개 파일: 잡음을 더한 개수. psd가 어떤 영역에도 답합니다",
    "signature": "공개 파일의 서명", "table": "셀마다 추정값과 오차",
    "regions": "{level} 단계 구역마다 추정값과 오차",
    "layer": "같은 내용의 GeoPackage, 스타일 포함", "tiles": "같은 내용의 벡터 타일(PMTiles)",
    "map_file": "그린 영역에 답하는 지도", "sheet_file": "방법 설명서",
    "opens_release": "psd query", "opens_signature": "psd sign check",
    "opens_table": "DuckDB, GeoPandas, 새 QGIS (GeoParquet)", "opens_layer": "QGIS와 다른 GIS",
    "opens_tiles": "웹 지도, 새 QGIS",
    "opens_page": "브라우저",
    "no_map": "셀이 너무 많아 지도 페이지가 없습니다.",
    "picture": "추정 밀도, {unit}.", "of_slice": "시간 구간 {name}.",
    "cite": "인용 방법", "means": "이 숫자는 무엇인가",
    "means_1": "이 숫자에서 {unit}에 대해 알아낼 수 있는 것은 무작위 잡음이 제한합니다. 이것이 "
    "차분 프라이버시입니다. 엡실론이 그 한계이며, 작을수록 알아낼 수 있는 것이 적습니다. 방법 "
    "설명서가 이를 승산으로 설명합니다.",
    "means_2": "모든 숫자는 오차가 있는 추정값이며, 지도와 표에 그 오차가 있습니다. 작은 셀 "
    "하나하나를 읽지 말고, 상대 오차가 더 작은 넓은 영역을 물으십시오.",
    "programs": "프로그램을 위하여", "programs_1": "{stac}은 STAC 카탈로그, {package}은 Data "
    "Package이며, {sums}에 모든 파일의 SHA-256이 있습니다.",
    "made": "psd {version} 제작. 이 페이지들은 다른 곳에서 아무것도 불러오지 않습니다.",
    "record": "기록 하나", "user": "사용자 한 명", "user-day": "사용자 한 명의 하루",
    "user-slice": "사용자 한 명의 시간 구간 하나", "report": "기기 한 대의 응답",
    "mixed": "사용자 한 명이나 기록 하나",
    "records": "건 /", "users": "명 /", "devices": "대 /",
}  # fmt: skip

_WORDS: Final[Mapping[Language, Mapping[str, str]]] = {"en": _EN, "ko": _KO}

# Longer side of a picture in pixels, the largest of the raster that it is cut from, and the rim
# around named regions in their longer side.
_PIXELS, _LARGEST, _RIM = 480, 1200, 0.03

_STYLE = (
    "".join(f".c{n} {{ background: {c}; }}\n" for n, c in enumerate(SEQUENTIAL))
    + """
a { color: var(--link); }
:root { --link: #0b5cad; }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
.top { display: flex; justify-content: flex-end; margin: 0; max-width: none; }
.open { display: flex; flex-wrap: wrap; gap: .6rem; margin: .8rem 0; }
.open a { border: 1px solid var(--link); border-radius: 6px; padding: .45rem .9rem;
  text-decoration: none; }
.open a:first-child { background: var(--link); color: var(--card); }
.two { display: grid; grid-template-columns: minmax(0, 440px) minmax(0, 1fr); gap: 1.5rem;
  align-items: start; margin-top: .8rem; }
.two .scroll { margin-top: 0; }
.two table, .files { width: 100%; }
.two th { white-space: normal; padding-right: 1rem; vertical-align: top; }
.contents { columns: 22rem; padding-left: 1.2rem; }
.two figure img { background: none; border: 1px solid var(--line); border-radius: 4px;
  image-rendering: pixelated; }
.two td { white-space: normal; overflow-wrap: anywhere; }
.key { list-style: none; display: flex; flex-wrap: wrap; gap: .15rem .9rem; margin: .4rem 0 0;
  padding: 0; font-size: .875rem; font-variant-numeric: tabular-nums; }
.key i { display: inline-block; width: 1.5em; height: .8em; margin-right: .35em;
  border: 1px solid var(--line); print-color-adjust: exact; -webkit-print-color-adjust: exact; }
.files td:last-child, .files th:last-child { text-align: right; white-space: nowrap; }
.digest { font-size: .875rem; color: var(--soft); }
@media screen and (prefers-color-scheme: dark) { :root { --link: #7cc0ff; } }
@media (max-width: 760px) { .two { grid-template-columns: 1fr; }
  .files td:nth-child(3), .files th:nth-child(3) { display: none; } }
@media print { .open, .top { display: none; } a { color: inherit; text-decoration: none; }
  .two { grid-template-columns: 200px 1fr; } h3 { break-after: avoid; } }
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteFile:
    """A file of a release in the folder."""

    kind: str  # release, signature, table, layer, tiles, map or sheet
    path: str  # from the first page, with ``/``
    size: int  # bytes
    digest: str  # SHA-256
    level: str = ""  # of the regions of a table
    language: Language | None = None  # of a page in one language
    columns: dict[str, str] = field(default_factory=dict)  # types of the columns of a table

    def title(self, language: Language) -> str:
        """What the file is."""
        words = _WORDS[language]
        if self.kind in ("map", "sheet"):
            return words[f"{self.kind}_file"]
        if self.kind == "table" and self.level:
            return words["regions"].format(level=self.level)
        return words[self.kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A release of a folder."""

    name: str  # of its folder and its files
    release: Release
    path: Path | None = None  # release file, which is copied with its signature
    files: tuple[SiteFile, ...] = ()  # what was written for it

    @property
    def records(self) -> tuple[ReleaseRecord, ...]:
        """Published fields of each slice, or of the release."""
        return shown_records(self.release.record)


def index_page(releases: Sequence[Published], language: Language, other: str) -> str:
    """Make the first page in a language; `other` is the page in the other one."""
    words = _WORDS[language]
    alone = releases[0] if len(releases) == 1 else None
    title = words["several"] if alone is None else _title(alone)
    kinds = dict.fromkeys(each.release.unit.kind for each in releases)
    unit = next(iter(kinds)) if len(kinds) == 1 else "mixed"
    publishers = {each.release.metadata.get("publisher") for each in releases}
    lead = publishers.pop() if len(publishers) == 1 else None
    names = {"stac": "catalog.json", "package": "datapackage.json", "sums": "SHA256SUMS"}
    links = {key: _link(name, name) for key, name in names.items()}
    sections = "".join(f"<li>{_link(f'#{each.name}', _title(each))}</li>" for each in releases)
    contents = "" if alone else f'<ul class="contents">{sections}</ul>'
    body = [
        f'<p class="top">{_link(other, words["other"])}</p>\n{contents}',
        *(_release_section(each, language, is_alone=alone is not None) for each in releases),
        section(
            words["means"],
            paragraph(words["means_1"].format(unit=words[unit])),
            paragraph(words["means_2"]),
        ),
        section(words["programs"], f"<p>{words['programs_1'].format(**links)}</p>"),
        paragraph(words["made"].format(version=__version__), "lead"),
    ]
    return page(
        title,
        body,
        lead=lead or words["lead"],
        language=language,
        style=_STYLE,
        is_indexed=True,
    )


def _title(each: Published) -> str:
    """Title of a release; without one, its name."""
    return each.release.metadata.get("title", each.name)


def _link(address: str, text: str) -> str:
    """Link to a file of the folder."""
    return f'<a href="{escape(quote(address, safe="/#"))}">{escape(text)}</a>'


def _outside(text: str) -> str:
    """Text of a publisher, which is a link if it is the address of a page."""
    if not re.fullmatch(r"https?://[^\s<>\"{}|\\^`]+", text):
        return escape(text)
    return f'<a href="{escape(text)}" rel="noreferrer">{escape(text)}</a>'


def _release_section(each: Published, language: Language, *, is_alone: bool) -> str:
    """What one release is: words, picture, facts, files, citation."""
    words, release = _WORDS[language], each.release
    shown = [file for file in each.files if file.language in (None, language)]
    about, files = release.record.about_texts, {file.kind: file for file in shown}
    spoken = f' lang="{escape(about["language"])}"' if "language" in about else ""
    heading = "" if is_alone else f"<h2{spoken}>{escape(_title(each))}</h2>"
    described = about.get("description")
    opens = [_link(files["sheet"].path, words["sheet"])]
    if "map" in files:
        opens.insert(0, _link(f"{files['map'].path}#{language}", words["map"]))
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{text}</td></tr>'
        for name, text in _facts(each, language).items()
    )
    described_files = [
        f'<tr><th scope="row">{_link(file.path, PurePosixPath(file.path).name)}</th>'
        f"<td>{escape(file.title(language))}</td>"
        f"<td>{escape(words['opens_' + _OPENS.get(file.kind, file.kind)])}</td>"
        f"<td>{_size(file.size)}</td></tr>"
        for file in shown
    ]
    head = "".join(
        f'<th scope="col">{words[key]}</th>' for key in ("file", "what", "opens", "size")
    )
    return "\n".join(
        [
            f'<section id="{escape(each.name)}">\n{heading}',
            "" if described is None else f"<p{spoken}>{escape(described)}</p>",
            f'<nav class="open">{"".join(opens)}</nav>',
            "" if "map" in files else paragraph(words["no_map"]),
            f'<div class="two">\n{_picture(each, language)}',
            f'<div class="scroll"><table class="words"><tbody>{rows}</tbody></table></div></div>',
            f"<h3>{words['files']}</h3>",
            '<div class="scroll" tabindex="0"><table class="words files">'
            f"<thead><tr>{head}</tr></thead>\n<tbody>",
            *described_files,
            f"</tbody></table></div>\n<h3>{words['cite']}</h3>",
            paragraph(citation(release, language)),
            "</section>",
        ]
    )


_OPENS = {"map": "page", "sheet": "page"}


def _size(number: int) -> str:
    """Bytes in words."""
    for unit, size in (("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return (
                f"{number / size:,.3g} {unit}" if number < 1e9 else f"{number / size:,.0f} {unit}"
            )
    return f"{number} B"


def _facts(each: Published, language: Language) -> dict[str, str]:
    """Facts of a release by their names, as HTML."""
    words, release = _WORDS[language], each.release
    record, metadata, domain = release.record, release.metadata, release.domain
    facts = {
        words[key]: _outside(metadata[key])
        for key in ("publisher", "reference_date")
        if key in metadata
    }
    facts[words["counts"]] = escape(counted_text(release, language))
    if values := values_text(release, language):
        facts[words["values"]] = escape(values)
    crs = domain.crs if len(domain.crs) <= 40 else str(parse_crs(domain.crs).name)
    bounds = ", ".join(f"{side:.9g}" for side in domain.bounds)
    facts[words["area"]] = escape(f"{bounds} ({crs})")
    if release.slices is not None:
        names = release.slices.names
        facts[words["slices"]] = escape(
            words["slices_text"].format(n=f"{len(names):,}", first=names[0], last=names[-1])
        )
    facts[words["epsilon"]] = escape(epsilon_text(record.epsilon))
    if record.delta is not None:
        facts[words["delta"]] = escape(delta_text(record.delta))
    facts[words["unit"]] = escape(protected_text(release, language))
    if each.records[0].source == "given":
        facts[words["source"]] = escape(source_text(release, language))
    cells = sum(int(one.tree.is_leaf.sum()) for one in each.records)
    facts[words["method"]] = escape(
        words["method_text"].format(method=release.method, n=f"{cells:,}")
    )
    for key in ("licence", "contact"):
        if key in metadata:
            facts[words[key]] = _outside(metadata[key])
    return facts


def _picture(each: Published, language: Language) -> str:
    """Density of a release, or of the middle slice of a series, without what is in no region."""
    from matplotlib import image

    words, release, name = _WORDS[language], each.release, ""
    shown = release
    if isinstance(release.record, SeriesRecord):
        slices = release.record.slices
        name = slices.names[len(slices) // 2]
        shown = release[name]
    west, south, east, north = view = np.array(shown.domain.bounds)
    # With regions, the view is what they cover with a rim around it, in the bounds.
    named = None
    if shown.levels:
        table = shown.to_geopandas(level=shown.levels[-1])
        shapes = table.geometry[table["id"] != ELSEWHERE].to_numpy()
        if len(shapes):
            named = shapely.union_all(shapes)
            ends = np.array(named.bounds)
            rim = _RIM * (ends[2:] - ends[:2]).max() * np.array([-1, -1, 1, 1])
            view = np.clip(ends + rim, [west, south, west, south], [east, north, east, north])
    # Degrees of longitude are shorter than those of latitude: sides as on the ground.
    stretch = max(float(east_west_scale(shown.domain, (south + north) / 2)), 0.2)
    sides = np.array([(east - west) * stretch, north - south])
    # The view has `_PIXELS` along its longer side, the whole raster at most `_LARGEST`.
    scale = _PIXELS / max((view[2] - view[0]) * stretch, view[3] - view[1])
    scale = min(scale, _LARGEST / sides.max())
    columns, rows = np.maximum(sides * scale, 1).astype(int).tolist()
    density = density_raster(shown.index.fit, columns, rows).density
    if named is not None:
        # Pixels of the view, and of these only those whose centre is in a region.
        x = west + (np.arange(columns) + 0.5) * (east - west) / columns
        y = north - (np.arange(rows) + 0.5) * (north - south) / rows
        across, down = (x > view[0]) & (x < view[2]), (y > view[1]) & (y < view[3])
        shapely.prepare(named)
        inside = shapely.contains_xy(named, *np.meshgrid(x[across], y[down]))
        density = np.where(inside, density[down][:, across], np.nan)
    classes = classes_of(shown.index.record, "density", density[np.isfinite(density)])
    colours, norm = classes.colour_map()
    content = io.BytesIO()
    pixels = colours(norm(np.ma.masked_invalid(density)), bytes=True)
    pixels[~np.isfinite(density), 3] = 0
    image.imsave(content, pixels, format="png")
    data = base64.b64encode(content.getvalue()).decode("ascii")
    counted = "users" if shown.unit.weight else "records"
    counted = "devices" if shown.unit.kind == "report" else counted
    area = area_unit(shown.domain).replace("km2", "km²")
    caption = words["picture"].format(unit=f"{words[counted]} {area}")
    if name:
        caption = f"{caption} {words['of_slice'].format(name=name)}"
    # A number between two classes is of the upper one.
    edges = [f"{edge:,.4g}" for edge in classes.edges]
    ranges = [f"{low} \u2013 {high}" for low, high in pairwise(edges[:-1])]
    ranges.append(f"≥ {edges[-2]}")
    key = "".join(
        f'<li><i class="c{SEQUENTIAL.index(colour)}"></i>{text}</li>'
        for colour, text in zip(classes.colours, ranges, strict=True)
    )
    high, wide = density.shape
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{escape(caption)}" '
        f'width="{wide}" height="{high}"><figcaption>{escape(caption)}</figcaption>'
        f'<ul class="key">{key}</ul></figure>'
    )
