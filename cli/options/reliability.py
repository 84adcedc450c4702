"""What is done with unreliable estimates."""

from __future__ import annotations

import click

from ..options.command import LIMITS, chain_options

__all__ = ["unreliable_options"]

unreliable_options = chain_options(
    click.option(
        "--unreliable",
        type=click.Choice(["keep", "mark", "drop"]),
        default="keep",
        show_default=True,
        help="Estimates that are not reliable: keep them as they are, mark them by u in a column "
        "flag, or drop them.",
    ),
    click.option(
        "--threshold",
        type=LIMITS,
        default="0.12,0.3",
        show_default=True,
        help="Largest relative error of a good estimate and of a reliable one, or of a reliable "
        "one alone, such as 0.3 or 30%. The file states them.",
    ),
)
"""``--unreliable`` and ``--threshold``, of commands that write estimates."""
