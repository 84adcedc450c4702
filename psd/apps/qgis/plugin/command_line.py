"""Words of a command line from a form, and the run of the command. Standard library alone."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from typing import Any

# What QGIS sets for its own Python and libraries, and what would lead another Python astray.
_FOREIGN = re.compile(r"PYTHON|PROJ_|GDAL_|GEOTIFF_|LD_|DYLD_|QT_|QGIS_|O4W_|VIRTUAL_ENV")

_SECONDS_BETWEEN_LOOKS = 0.2

# `psd qgis` writes here how psd is installed, as `psd/_util/extras.py` has it.
_INSTALL = "@INSTALL@"


class CommandError(Exception):
    """The command is not there, of another version, stopped, or refused; the text says which."""


def words_of(form: Mapping[str, Any], values: Mapping[str, Any]) -> list[str]:
    """Words after `psd` for the values of a form; None, False and empty ones are left out."""
    options: list[str] = [form["command"]]
    arguments: list[str] = []
    # A field has a name, a kind, and an option, which is empty for arguments.
    for field in form["fields"]:
        value = values.get(field["name"])
        if value in (None, "", False, []):
            continue
        if field["option"]:
            options += _option_words(field, value)
        else:
            arguments += value if isinstance(value, list) else [str(value)]
    return [*options, "--", *arguments] if arguments else options


def _option_words(field: Mapping[str, Any], value: Any) -> Iterator[str]:
    """An option with each of its values."""
    if value is True:
        yield field["option"]
        return
    for text in value if isinstance(value, list) else [str(value)]:
        if field["kind"] == "bounds":
            edges, _, crs = text.partition(":crs=")  # of an extent on the map
            yield from (field["option"], edges)
            yield from (f"--bounds-crs={crs}",) if crs else ()
            continue
        if field["size"] == 1:
            # A value that begins with - would be read as an option if it stood apart.
            yield f"{field['option']}={text}"
            continue
        try:
            parts = shlex.split(text.replace(",", " "))  # a name with spaces stands in quotes
        except ValueError:
            parts = []
        if len(parts) != field["size"]:
            is_value = field["name"] == "values"
            words = "a column and two bounds" if is_value else f"{field['size']} numbers"
            raise CommandError(
                f"{field['option']} must be {words}, got {text!r}; put each value on a line of its "
                "own"
            )
        yield from (field["option"], *parts)


def find_command(stated: str) -> str:
    """Path of the command `psd`, as the setting of the plugin states it, or else on the path."""
    path = shutil.which(stated or "psd")
    if path is None:
        raise CommandError(
            f"the command {stated or 'psd'} was not found; {_INSTALL}, in an environment of its "
            "own, and state its path in Settings > Options > Processing > Providers > psd"
        )
    return path


def check_version(command: str, version: str) -> None:
    """Refuse a command of another minor version than the plugin, whose forms are of its own."""
    try:
        text = run_command([command, "--version"])[0]
    except CommandError as error:  # the `psd` of PyPI, for one, has no --version
        text = str(error)
    match = re.fullmatch(r"psd, version (\S+)", text.strip())
    if match is None:
        raise CommandError(
            f"{command} must be the command psd of this plugin, got a program that answers "
            f"{text.strip()[-80:]!r} to --version; the psd of PyPI is another program: {_INSTALL}, "
            "in an environment of its own"
        )
    minor, found = (".".join(text.split(".")[:2]) for text in (version, match[1]))
    if found != minor:
        raise CommandError(
            f"{command} must be of version {minor} as the plugin, got {match[1]}; install that "
            "version, or make the plugin again by its `psd qgis`"
        )


def run_command(words: list[str], stopped: Callable[[], bool] = lambda: False) -> tuple[str, str]:
    """Output and messages of a command; if `stopped`, it ends as after Ctrl-C."""
    try:
        # Variables of QGIS without those of its own Python and libraries.
        variables = {name: text for name, text in os.environ.items() if not _FOREIGN.match(name)}
        variables |= {"COLUMNS": "100", "PYTHONIOENCODING": "utf-8"}
        process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, encoding="utf-8", errors="replace", env=variables,
        )  # fmt: skip
    except OSError as error:
        raise CommandError(f"cannot run {words[0]}: {error.strerror}") from None
    while True:
        try:
            output, messages = process.communicate(timeout=_SECONDS_BETWEEN_LOOKS)
            break
        except subprocess.TimeoutExpired:
            if stopped():  # the user asked for an end
                process.terminate()
    if process.returncode:
        raise CommandError(messages.strip() or f"{words[0]} ended with code {process.returncode}")
    return output, messages
