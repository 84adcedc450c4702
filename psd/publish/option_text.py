"""Parse and write texts of options and recipes: VALUE:KEY=VALUE,..., time slices and paths."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np

from psd._util.suggestions import check_names
from psd.errors import ParameterError
from psd.space.time_slices import By, TimeSlices

__all__ = [
    "flag_from_text",
    "path_beside",
    "path_within",
    "settings_text",
    "slices_from_text",
    "slices_text",
    "split_settings",
]

_SETTINGS = re.compile(r"[a-z_]+=[^,=]*(,[a-z_]+=[^,=]*)*")

# Names of slices by their length.
_LENGTHS: dict[int, By] = {7: "month", 8: "week", 10: "day", 13: "hour"}


def split_settings(name: str, text: str, keys: tuple[str, ...]) -> tuple[str, dict[str, str]]:
    """Value and settings of a text VALUE:KEY=VALUE,KEY=VALUE.

    The key ``layer``, where it is one of them, remains a part of the value, the name of a file.

    Raises
    ------
    ParameterError
        If a key does not exist or is repeated.

    Examples
    --------
    >>> split_settings("max_contributions", "auto:share=.05,over=250", ("share", "over", "limit"))
    ('auto', {'share': '.05', 'over': '250'})
    >>> split_settings("covariate", "C:/people.tif", ("column", "size"))
    ('C:/people.tif', {})
    >>> split_settings("boundary", "city.gpkg:layer=land,repair=yes", ("repair", "layer"))
    ('city.gpkg:layer=land', {'repair': 'yes'})
    """
    value, colon, end = text.rpartition(":")
    if not (colon and _SETTINGS.fullmatch(end)):
        return text, {}
    settings: dict[str, str] = {}
    for pair in end.split(","):
        key, _, setting = pair.partition("=")
        check_names(f"key of {name}", [key], keys)
        if key in settings:
            raise ParameterError(f"{name} must have each key once, got {key} twice")
        settings[key] = setting
    layer = settings.pop("layer", None)
    return value if layer is None else f"{value}:layer={layer}", settings


def settings_text(value: str, settings: dict[str, object]) -> str:
    """Text VALUE:KEY=VALUE,...; keys without a value are left out.

    Examples
    --------
    >>> settings_text("auto", {"share": "0.05", "over": None})
    'auto:share=0.05'
    """
    pairs = [f"{key}={setting}" for key, setting in settings.items() if setting is not None]
    return f"{value}:{','.join(pairs)}" if pairs else value


def slices_from_text(text: str, time_zone: str) -> TimeSlices:
    """Time slices of a text; its form determines their length.

    Parameters
    ----------
    text : str
        Months 2024-01, weeks 2024-W05, days 2024-01-31 or hours 2024-01-31T17, and ranges
        FIRST..LAST with both ends, separated by commas. Public.
    time_zone : str
        Zone of the wall clock. Public.

    Raises
    ------
    ParameterError
        If the names have no such form, or do not ascend.

    Examples
    --------
    >>> slices_from_text("2024-01..2024-03", "UTC").by
    'month'
    """
    first = re.split(r",|\.\.", text)[0].strip()
    by = _LENGTHS.get(len(first))
    if by is None:
        raise ParameterError(
            "slices must be months, weeks, days or hours such as 2024-01, 2024-W05, 2024-01-31 or "
            f"2024-01-31T17, got {first[:80]!r}"
        )
    return TimeSlices.parse(by, text, time_zone)


def slices_text(slices: TimeSlices) -> str:
    """The shortest text of slices, from which `slices_from_text` reads them back.

    Examples
    --------
    >>> slices_text(slices_from_text("2024-01..2024-03,2024-05", "UTC"))
    '2024-01..2024-03,2024-05'
    """
    breaks = np.flatnonzero(np.diff(slices.numbers) != 1) + 1
    runs = np.split(np.arange(len(slices)), breaks)
    names = slices.names
    parts = [
        names[run[0]] if len(run) == 1 else f"{names[run[0]]}..{names[run[-1]]}" for run in runs
    ]
    return ",".join(parts)


def flag_from_text(name: str, value: object) -> bool:
    """Whether a key is set: true or false in a recipe, yes or no in an option.

    Raises
    ------
    ParameterError
        If the value is another one.

    Examples
    --------
    >>> flag_from_text("repair", "yes"), flag_from_text("repair", False)
    (True, False)
    """
    if isinstance(value, bool) or value in ("yes", "no"):
        return value in (True, "yes")
    raise ParameterError(f"{name} must be yes or no, got {str(value)[:80]!r}")


def path_within(folder: Path | None, text: str) -> str:
    """A path of a recipe, which is relative to the recipe's folder; addresses stay as they are."""
    if folder is None or "://" in text or text == "-":
        return text
    return str(folder / text)


def path_beside(folder: Path | None, path: str) -> str:
    """A path as a recipe in a folder states it: the inverse of `path_within`."""
    if folder is None or "://" in path or path == "-" or os.path.isabs(path):
        return path
    return os.path.relpath(path, folder)
