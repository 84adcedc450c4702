"""The page of all measured tables: their README, with the rows of each file below its link."""

from __future__ import annotations

import csv
import re
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "measured" / "data"
LINK = re.compile(r"\[([\w-]+\.csv)\]\(\1\)")


def page() -> str:
    """Give the text of the page."""
    text = (DATA / "README.md").read_text(encoding="utf-8")
    head, *sections = re.split(r"^(?=## )", text, flags=re.M)
    pages = [head.replace("[one page of all tables](../tables.md)", "this page")]
    for section in sections:
        tables = "".join(f"\n`{name}`:\n\n{_table(name)}" for name in LINK.findall(section))
        pages.append(f"{section.rstrip()}\n{tables}\n")
    return re.sub(r"\]\((?!#|[a-z]+:)([^)]+)\)", _moved, "".join(pages).rstrip() + "\n")


def _table(name: str) -> str:
    """Rows of a file as a table of Markdown."""
    with (DATA / name).open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _moved(link: re.Match[str]) -> str:
    """A link of the folder as the page one level above it has it."""
    target = link[1]
    return f"]({target.removeprefix('../')})" if target[:3] == "../" else f"](data/{target})"
