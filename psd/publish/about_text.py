"""What a publisher states about a release, as a table of texts: ``[release.about]`` of a recipe."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from psd._util.instances import type_text
from psd._util.suggestions import check_names
from psd._util.toml_values import read_toml
from psd.errors import InputDataError, ParameterError
from psd.publish.option_text import path_within
from psd.release.about import ABOUT_KEYS, About, about_from_mapping

__all__ = ["FILE", "about_files", "about_from_table"]

FILE = "file"
"""Key of a file with the other keys."""

# Texts of all keys together are shorter.
_MAX_BYTES = 2**17


def about_from_table(table: object, folder: Path | None = None) -> About | None:
    """Statements of a table whose keys are those of `ABOUT_KEYS`, or ``file``.

    Parameters
    ----------
    table : mapping
        Texts. ``file`` is a TOML file with other keys; each key stands in the table or in the file.
        Public.
    folder : Path, optional
        Where relative paths begin.

    Raises
    ------
    ParameterError
        If a key does not exist or is repeated, or a value is not valid.
    InputDataError
        If the file cannot be read.

    Examples
    --------
    >>> about_from_table({"title": "Visits"}).texts
    {'title': 'Visits'}
    """
    if not isinstance(table, Mapping):
        return about_from_mapping(table)
    check_names("key of about", table, (*ABOUT_KEYS, "license", FILE))
    texts = {key: value for key, value in table.items() if key != FILE}
    for path in about_files(table, folder):
        for key, value in _read(path).items():
            if key in texts:
                raise ParameterError(f"about {key} must be given once, got it in the file, too")
            texts[key] = value
    return about_from_mapping(texts)


def about_files(table: object, folder: Path | None = None) -> list[str]:
    """File that a table names, in a list."""
    path = table.get(FILE) if isinstance(table, Mapping) else None
    if path is None:
        return []
    if not isinstance(path, str):
        raise ParameterError(f"about file must be a path, got {type_text(path)}", name="about")
    return [path_within(folder, path)]


def _read(path: str) -> dict[str, object]:
    """Keys of a file."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        text = content.decode("utf-8")
    except (OSError, ValueError):
        raise InputDataError(f"about file {path} does not exist or is not UTF-8 text") from None
    if len(content) > _MAX_BYTES:
        raise InputDataError(f"about file {path} must have at most {_MAX_BYTES:,} bytes")
    table = read_toml("about file", text)
    check_names("key of about", table, (*ABOUT_KEYS, "license"))
    return table
