"""Make the generated pages of docs/: `python docs/generate.py`.

Pages of ``MADE`` are not in git. Those of ``KEPT`` are: ``--check`` lists the ones that differ from
what their generators give, writes nothing, and ends with 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

DOCS = Path(__file__).resolve().parent
# Pages are generated from this checkout, and two of them by modules of its tests.
sys.path[:0] = [str(DOCS), str(DOCS.parent / "tests"), str(DOCS.parent)]


def _page_of(module: str) -> Callable[[], str]:
    """Function ``page`` of a module, imported when it is called."""

    def page() -> str:
        text: str = import_module(module).page()
        return text

    return page


from generators.command_line import COMMANDS, command_page  # noqa: E402

MADE: dict[str, Callable[[], str]] = {
    "measured/tables.md": _page_of("generators.tables"),
    "reference/command-line.md": _page_of("generators.command_line"),
    **{f"reference/commands/{name}.md": partial(command_page, name) for name in COMMANDS},
    "reference/fields.md": _page_of("generators.fields"),
    "reference/psd.1": _page_of("generators.man_page"),
    "reference/api.md": _page_of("generators.api"),
    "reference/exit-codes.md": _page_of("generators.exit_codes"),
    "reference/local-numbers.md": _page_of("generators.local_numbers"),
    "reference/local-protocols.md": _page_of("generators.local_protocols"),
    "reference/bad-input.md": _page_of("robustness.bad_input"),
}
KEPT: dict[str, Callable[[], str]] = {
    "reference/file-format.md": _page_of("generators.file_format"),
    "privacy/planted-bugs.md": _page_of("privacy.planted_bugs.table"),
}


def changed_pages(pages: dict[str, Callable[[], str]]) -> dict[str, str]:
    """Pages that are missing or differ from what their generators give, with the new text."""
    texts = {name: page() for name, page in pages.items()}
    return {
        name: text
        for name, text in texts.items()
        if not (DOCS / name).exists() or (DOCS / name).read_text(encoding="utf-8") != text
    }


def main() -> int:
    """Write the pages, or list those of git that differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    help_text = "list the pages of git that differ, and write nothing"
    parser.add_argument("--check", action="store_true", help=help_text)
    check = parser.parse_args().check
    changed = changed_pages(KEPT if check else MADE | KEPT)
    for name, text in changed.items():
        sys.stdout.write(f"{name} {'differs' if check else 'written'}\n")
        if not check:
            (DOCS / name).parent.mkdir(exist_ok=True)
            (DOCS / name).write_text(text, encoding="utf-8")
    return 1 if check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
