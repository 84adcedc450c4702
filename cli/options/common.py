"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

__all__ = ["RELEASE", "overwrite"]

RELEASE = click.argument("release", type=click.Path(dir_okay=False, readable=False))


def overwrite(command: Callable[..., Any]) -> Callable[..., Any]:
    """``--overwrite``: every command that writes."""
    return click.option("--overwrite", is_flag=True, help="Replace the output file if it exists.")(
        command
    )
