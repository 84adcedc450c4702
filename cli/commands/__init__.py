"""The commands of the core, a file for each, imported when it is called; and all by name."""

from __future__ import annotations

import importlib
from typing import cast

import click

from psd import _apps

__all__ = ["find_command"]


def find_command(name: str) -> click.Command:
    """Import a command, of the core or of an app.

    Raises
    ------
    MissingExtraError
        If it is of an app that is not there.
    """
    if name not in _apps.COMMANDS:
        module = importlib.import_module(f"psd_cli.commands.{name.replace('-', '_')}")
        return cast(click.Command, module.command)
    app = _apps.COMMANDS[name]
    _apps.check_app(app, what=f"psd {name}")
    return cast(click.Command, importlib.import_module(f"psd_cli.apps.{app}").COMMANDS[name])
