"""Output of psd query --explain: the parts of an error, and what would reduce it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from ..output.columns import Column, print_columns
from ..output.terminal import printable

if TYPE_CHECKING:
    import pandas

    from psd.query.explain import Explanation

__all__ = ["explanations_json", "print_explanations"]

# Cut cells that are printed; JSON has all of them.
_SHOWN = 5


def print_explanations(answers: pandas.DataFrame, explanations: list[Explanation]) -> None:
    """Print the explanation of each answer for people."""
    from psd.query.answer_table import COLUMNS

    named = answers.columns.isin(["id", "name", "NAME", *COLUMNS])
    if explanations:
        rows = answers.loc[:, named].iterrows()
        for (_, answer), explanation in zip(rows, explanations, strict=True):
            _print_explanation(answer, explanation)


def _print_explanation(answer: Any, explanation: Explanation) -> None:
    """Print one explanation for people."""
    click.echo()
    click.echo(_headline(answer, explanation))
    click.echo(_cells_text(explanation))
    if len(explanation.cut):
        _print_table(
            f"cells covered in part: the {min(_SHOWN, len(explanation.cut))} that contribute most",
            explanation.cut.head(_SHOWN),
        )
    _print_table("effect of other parameters on the error", explanation.remedies)
    click.echo(_advice_text(explanation))


def _headline(answer: Any, explanation: Explanation) -> str:
    """Estimate, error, and the shares of noise and non-uniformity."""
    noise, uneven = answer["perturbation_error"], answer["nonuniformity_error"]
    names = [answer[name] for name in ("id", "name", "NAME") if name in answer.index]
    identity = printable(str(names[0] if names else answer.name))
    return (
        f"{identity}: {answer['estimate']:,.1f}, error {answer['error']:,.1f} = noise {noise:,.1f} "
        f"and non-uniformity {uneven:,.1f} ({100 * explanation.noise_share:.0f} % and "
        f"{100 - 100 * explanation.noise_share:.0f} % of the variance)"
    )


def _cells_text(explanation: Explanation) -> str:
    """Numbers of cells that the region covers."""
    levels = ", ".join(
        f"{cells} of level {level}"
        for level, cells in zip(
            explanation.inside["level"], explanation.inside["cells"], strict=True
        )
    )
    fully_covered = f"{int(explanation.inside['cells'].sum())} cells entirely" + (
        f" ({levels})" if levels else ""
    )
    return f"the region covers {fully_covered} and {len(explanation.cut)} in part"


def _print_table(title: str, rows: pandas.DataFrame) -> None:
    """A small table."""
    columns = [
        Column(
            heading=str(name),
            values=[_value_text(str(name), value) for value in rows[name]],
            left=name == "change",
            folds=name == "change",
        )
        for name in rows.columns
    ]
    print_columns(columns, title=title)


def _value_text(name: str, value: Any) -> str:
    """One value as people read it."""
    if name == "covered":
        return f"{100 * value:.0f}%"
    if name in ("west", "south", "east", "north"):
        return f"{value:.10g}"
    return f"{value:,.1f}" if isinstance(value, float) else str(value)


def _advice_text(explanation: Explanation) -> str:
    """The remedy that reduces the error most, in a sentence."""
    error = dict(zip(explanation.remedies["change"], explanation.remedies["error"], strict=True))
    now = explanation.remedies["error"].iloc[0]
    finer = error.get("cells half as wide at its edge")
    if not len(explanation.cut):
        return (
            "The region covers no cell in part, so all of the error is noise; a larger epsilon "
            "reduces it."
        )
    if finer is not None and finer < 0.95 * now:
        return (
            "Smaller cells would reduce the error, and so would a region along the edges of cells "
            "(psd export)."
        )
    if explanation.noise_share > 0.5:
        return "A larger epsilon would reduce the error; smaller cells would hardly do so."
    return (
        "Smaller cells would need a larger epsilon; a region along the edges of cells (psd export) "
        "has no non-uniformity error."
    )


def explanations_json(answers: str, explanations: list[Explanation]) -> str:
    """Answers as JSON, each with its explanation."""
    rows = json.loads(answers)
    for row, explanation in zip(rows, explanations, strict=True):
        row["explanation"] = {
            "noise_share": explanation.noise_share,
            "whole": explanation.inside.to_dict("records"),
            "cut": explanation.cut.to_dict("records"),
            "remedies": explanation.remedies.to_dict("records"),
        }
    return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
