"""Self-contained HTML pages: one file, no script, no requests."""

from __future__ import annotations

import base64
import hashlib
import io
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["figure_block", "page", "paragraph", "section", "table_block"]

_STYLE = """
:root { color-scheme: light; --back: #f4f6f9; --card: #fff; --ink: #1d2733; --soft: #5a6675;
  --line: #d8dee6; --mark: #b00020; }
@media screen and (prefers-color-scheme: dark) {
  :root { color-scheme: dark; --back: #12161c; --card: #1b2129; --ink: #e8edf3; --soft: #a3afbd;
    --line: #3a4552; --mark: #ff8a9b; }
  .private { color: #12161c; }
  figure img { background: #fff; border-radius: 6px; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 1rem 1rem 3rem; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 1rem 0 .25rem; }
h2 { font-size: 1.2rem; margin: 0 0 .5rem; }
p { margin: .4rem 0; max-width: 75ch; overflow-wrap: anywhere; }
:lang(ko) { word-break: keep-all; }
.lead { color: var(--soft); }
.private { background: var(--mark); color: #fff; padding: .75rem 1rem; font-weight: 600; }
.private p { max-width: 1088px; margin: 0 auto; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 1rem 1.1rem; margin: 1rem 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 440px), 1fr));
  gap: 1.2rem; margin-top: .6rem; }
figure { margin: 0; min-width: 0; }
figure img { display: block; width: 100%; max-width: 640px; height: auto; }
figcaption { color: var(--soft); font-size: .875rem; margin-top: .3rem; }
figcaption strong { color: var(--mark); }
/* A table that goes on to the right has a shade there, which its end covers. */
.scroll { overflow-x: auto; margin-top: .6rem;
  background: linear-gradient(to left, var(--card) 50%, transparent) right / 3rem 100% no-repeat
    local, linear-gradient(to left, var(--line), transparent) right / 1.1rem 100% no-repeat; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem; }
th, td { padding: .3rem .7rem .3rem 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th:first-child, td:first-child, .words th, .words td { text-align: left; }
.words td { white-space: normal; overflow-wrap: anywhere; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; white-space: normal; }
tbody th { font-weight: 600; }
.big { font-size: 2rem; font-weight: 650; line-height: 1.2; }
@media (max-width: 480px) {
  h1 { font-size: 1.35rem; } main { padding: .6rem .6rem 2rem; } section { padding: .8rem .7rem; }
  table { font-size: .72rem; } th, td { padding: .25rem .3rem .25rem 0; }
  tbody th { overflow-wrap: anywhere; } td { white-space: normal; }
}
@media print {
  @page { margin: 16mm; }
  h2, caption { break-after: avoid; }
  body { background: #fff; font-size: 11pt; } main { max-width: none; padding: 0; }
  section { border: 0; padding: 0; } figure, table, tr { break-inside: avoid; }
  .private { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .figures { grid-template-columns: 1fr 1fr; }
}
"""


def page(
    title: str,
    body: Iterable[str],
    *,
    lead: str = "",
    notice: str = "",
    language: str = "en",
    style: str = "",
    is_indexed: bool = False,
) -> str:
    """Make a page that can request and run nothing; with a notice, the title has PRIVATE first."""
    style = _STYLE + style
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    # Forbids browsers to load or run anything, even if the page named it.
    policy = (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; "
        "form-action 'none'"
    )
    robots = "" if is_indexed else '<meta name="robots" content="noindex, nofollow">\n'
    bar = f'<div class="private" role="note"><p>{escape(notice)}</p></div>' if notice else ""
    named = f"PRIVATE: {title}" if notice else title
    lead = f'<p class="lead">{escape(lead)}</p>' if lead else ""
    return (
        f'<!DOCTYPE html>\n<html lang="{escape(language)}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"{robots}"
        # An icon of its own, so that no browser asks for one.
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(named)}</title>\n<style>{style}</style>\n</head>\n<body>\n{bar}\n"
        f"<main>\n<h1>{escape(named)}</h1>\n{lead}\n" + "\n".join(body) + f"\n</main>\n{bar}\n"
        "</body>\n</html>\n"
    )


def section(heading: str, *parts: str) -> str:
    """Make a section with a heading."""
    return f"<section>\n<h2>{escape(heading)}</h2>\n" + "\n".join(parts) + "\n</section>"


def paragraph(text: str, kind: str = "") -> str:
    """Make a paragraph of plain text."""
    attribute = f' class="{escape(kind)}"' if kind else ""
    return f"<p{attribute}>{escape(text)}</p>"


def table_block(
    caption: str, headings: Sequence[str], rows: Iterable[Sequence[str]], kind: str = ""
) -> str:
    """Make a table that scrolls if it is wide; empty captions and headings take no room."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in headings)
    above = f"<caption>{escape(caption)}</caption>\n" if caption else ""
    above += f"<thead><tr>{head}</tr></thead>\n" if any(headings) else ""
    lines = (
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(text)}</td>" for text in others)
        + "</tr>"
        for first, *others in rows
    )
    return (
        f'<div class="scroll" tabindex="0"><table class="{escape(kind)}">\n'
        f"{above}<tbody>\n" + "\n".join(lines) + "\n</tbody></table></div>"
    )


def figure_block(figures: Iterable[tuple[Figure, str, str]], *, private: bool) -> str:
    """Make figures of a picture, a text for screen readers and a caption, PRIVATE if `private`."""
    from matplotlib import rc_context

    mark = "<strong>PRIVATE</strong> " if private else ""
    blocks = []
    for figure, alt, caption in figures:
        # A data URI: an SVG whose letters are paths, so it needs no font. Its ids come from a salt,
        # so that the same figure gives the same page.
        content = io.BytesIO()
        with rc_context({"svg.hashsalt": "psd"}):
            figure.savefig(content, format="svg", dpi=150, metadata={"Date": None, "Creator": None})
        data = base64.b64encode(content.getvalue()).decode("ascii")
        blocks.append(
            f'<figure><img src="data:image/svg+xml;base64,{data}" alt="{escape(alt)}">'
            f"<figcaption>{mark}{escape(caption)}</figcaption></figure>"
        )
    return '<div class="figures">\n' + "\n".join(blocks) + "\n</div>"
