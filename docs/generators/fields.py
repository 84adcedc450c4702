"""The page of the fields of a request, from their table."""

from __future__ import annotations

import inspect
from itertools import groupby

import psd
from generators.command_line import cell_text
from psd.publish.fields import FIELDS, Field

HEAD = """\
# Fields of a request

A field has one name: it is the argument of `psd.build`, the key of a [recipe](../guide/recipes.md),
and, with hyphens, the option of [`psd build`](commands/build.md).
`psd tally`, `psd ask`, `psd stream`, `psd plan` and `psd choose` have those that they need. In the
column *argument*, a dash says that Python has no such argument; in *private*, a value that is in no
release, in no public part of a recipe, and in no message.

This page is generated from `psd/publish/fields.py` by `python docs/generate.py`.
"""


def page() -> str:
    """Give the text of the page."""
    parts = [HEAD]
    arguments = inspect.signature(psd.build).parameters
    for group, fields in groupby(FIELDS, key=lambda field: field.group):
        parts.append(f"\n## {group}\n\n| option and form | argument | private | meaning |")
        parts.append("|---|---|---|---|")
        parts += [_row(field, field.name in arguments) for field in fields]
    return "\n".join(parts) + "\n"


def _row(field: Field, is_argument: bool) -> str:
    """Line of the table about one field."""
    form = "|".join(field.choices) or field.form
    option = f"`{cell_text(f'{field.option} {form}'.strip())}`"
    argument = f"`{field.name}`" if is_argument else "-"
    return f"| {option} | {argument} | {'yes' if field.private else ''} | {cell_text(field.help)} |"
