"""The commands of the core, a file for each, imported when it is called; and all by name."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import cast

import click

from psd import _apps

__all__ = ["find_command", "module_of_app"]


def find_command(name: str) -> click.Command:
    """Import a command, of the core or of an app."""
    if not _apps.has_command(name):
        _apps.check_app(_apps.apps_of(name)[0], what=f"psd {name}")
    if name in _apps.COMMANDS:
        module = module_of_app(_apps.COMMANDS[name], what=f"psd {name}")
        return cast(click.Command, module.COMMANDS[name])
    return cast(click.Command, importlib.import_module(f"psd_cli.commands.{name}").command)


def module_of_app(app: str, *, what: str) -> ModuleType:
    """Import what an app has on the command line."""
    _apps.check_app(app, what=what)
    return importlib.import_module(f"psd_cli.apps.{app}")
