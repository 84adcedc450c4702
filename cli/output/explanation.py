"""What psd query --explain prints: where an error comes from and what would change it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ..output.terminal import console

if TYPE_CHECKING:
    import pandas

    from psd.query.explain import Explanation

__all__ = ["show", "text"]

# Cut cells that are printed; JSON has all of them.
_SHOWN = 5


def show(answer: Any, found: Explanation) -> None:
    """Print one explanation for people."""
    click.echo()
    click.echo(_headline(answer, found))
    click.echo(_made_of(found))
    if len(found.cut):
        _table(
            f"cells cut, the {min(_SHOWN, len(found.cut))} that matter most",
            found.cut.head(_SHOWN),
        )
    _table("what would change the error", found.remedies)
    click.echo(_advice(found))


def _headline(answer: Any, found: Explanation) -> str:
    """Estimate and error, and which part of it is which."""
    noise, uneven = answer["perturbation_error"], answer["nonuniformity_error"]
    names = [answer[name] for name in ("id", "name", "NAME") if name in answer.index]
    identity = names[0] if names else answer.name
    return (
        f"{identity}: {answer['estimate']:,.1f}, error {answer['error']:,.1f} = noise {noise:,.1f} "
        f"and non-uniformity {uneven:,.1f} ({100 * found.noise_share:.0f} % and "
        f"{100 - 100 * found.noise_share:.0f} % of the variance)"
    )


def _made_of(found: Explanation) -> str:
    """How many cells the answer is made of."""
    levels = ", ".join(
        f"{cells} of level {level}"
        for level, cells in zip(found.whole["level"], found.whole["cells"], strict=True)
    )
    whole = f"{int(found.whole['cells'].sum())} whole" + (f" ({levels})" if levels else "")
    return f"made of {whole} and {len(found.cut)} cut in part"


def _table(title: str, rows: pandas.DataFrame) -> None:
    """A small table."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, title=title, title_justify="left", title_style="bold")
    for name in rows.columns:
        justify: Any = "left" if name == "change" else "right"
        table.add_column(name.replace("_", "\n"), justify=justify, no_wrap=True)
    for row in rows.to_dict("records"):
        table.add_row(*(_cell(str(name), value) for name, value in row.items()))
    console().print(table)


def _cell(name: str, value: Any) -> str:
    """One value as people read it."""
    if name == "covered":
        return f"{100 * value:.0f}%"
    if name in ("west", "south", "east", "north"):
        return f"{value:.8g}"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def _advice(found: Explanation) -> str:
    """Which remedy pays, in a sentence."""
    error = dict(zip(found.remedies["change"], found.remedies["error"], strict=True))
    now, finer = found.remedies["error"].iloc[0], error.get("cells half as wide at its edge")
    if not len(found.cut):
        return "It cuts no cell, so all of the error is noise: more epsilon is what helps."
    if finer is not None and finer < 0.95 * now:
        return "Finer cells help; so does a query drawn along the edges of cells (psd export)."
    if found.noise_share > 0.5:
        return "More epsilon helps; finer cells would not."
    return (
        "Finer cells need more epsilon to pay; a query drawn along the edges of cells "
        "(psd export) has no non-uniformity error."
    )


def text(answers: str, found: list[Explanation]) -> str:
    """Answers as JSON, each with its explanation."""
    rows = json.loads(answers)
    for row, one in zip(rows, found, strict=True):
        row["explanation"] = {
            "noise_share": one.noise_share,
            "whole": one.whole.to_dict("records"),
            "cut": one.cut.to_dict("records"),
            "remedies": one.remedies.to_dict("records"),
        }
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
