"""Joint answers on the screen and in files: the covariance, and the total of all regions."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from psd._util.csv_text import csv_text

from ..output.columns import Column, print_columns
from ..output.terminal import printable

if TYPE_CHECKING:
    from psd.query.joint import Joint

__all__ = ["EXTRA", "joint_text", "print_joint"]

EXTRA = {
    "joint": ("joint_lower", "joint_upper"),
    "nested": ("ring", "ring_error", "ring_lower", "ring_upper"),
}
"""Columns beside those of `psd query`, by kind of answer."""

# A larger matrix does not fit a screen.
_WIDEST = 12


def print_joint(joint: Joint) -> None:
    """Correlations as a second table, and the total, on the screen."""
    ids = [printable(name) for name in _region_names(joint)]
    if 1 < len(joint) <= _WIDEST:
        # Adding 0.0 removes the minus sign of a rounded -0.0.
        texts = [[f"{round(value, 2) + 0.0:.2f}" for value in row] for row in joint.correlation]
        columns = [Column(heading="correlation", values=ids, left=True, folds=True)]
        columns += [
            Column(heading=name, values=text) for name, text in zip(ids, texts, strict=True)
        ]
        click.echo()
        print_columns(columns)
    elif len(joint) > _WIDEST:
        click.echo("(too many regions for a table of correlations; see --format csv)", err=True)
    if joint.overlap is None and len(joint):
        total = joint.total()
        click.echo(
            f"\ntotal {total.estimate:,.1f}, error {total.error:,.1f}, "
            f"{total.lower:,.1f} to {total.upper:,.1f}"
        )
    elif joint.overlap is not None:
        a, b = (ids[number] for number in joint.overlap)
        click.echo(f"(no total: {a} and {b} overlap, and would be counted twice)", err=True)


def joint_text(joint: Joint, form: str) -> str:
    """Joint answers as CSV, with columns covariance_ID, or as a JSON object."""
    import pandas as pd

    from psd._util.column_kinds import json_text
    from psd.export import finite_errors

    from ..output.answer_files import plain_answers

    plain = plain_answers(joint.answers)
    if form == "csv":
        names = [f"covariance_{name}" for name in _region_names(joint)]
        columns = pd.DataFrame(joint.covariance, columns=names, index=plain.index)
        return csv_text(pd.concat([plain, columns], axis=1))
    content = {
        "answers": json.loads(json_text(finite_errors(plain))),
        "covariance": joint.covariance.tolist(),
        "total": asdict(joint.total()) if joint.overlap is None else None,
        "joint_confidence_level": joint.level,
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _region_names(joint: Joint) -> list[str]:
    """Names of the regions: what tells them apart, else numbers."""
    from ..output.answers import column_texts, identifying_columns

    answers: Any = joint.answers
    for name in identifying_columns(answers):
        if answers[name].is_unique:
            return column_texts(name, answers[name])
    return [str(number) for number in range(1, len(answers) + 1)]
