"""Recipes: TOML files of releases, in tables ``[release]``, which are public.

``[private]`` has the inputs, the ledger and the keys; no part of it enters a request or a release.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psd._util.instances import check_names
from psd._util.json_toml import check_texts, read_toml, texts_of, toml_text
from psd.errors import InputDataError, ParameterError
from psd.publish.fields import (
    check_known,
    field_names,
    path_beside,
    path_within,
    values_of_request,
)
from psd.publish.request import BuildTerms
from psd.publish.request_values import terms_from_values
from psd.space.domain import Domain

PRIVATE_KEYS = ("inputs", *field_names(private=True), "sign_key")
"""Keys of ``[private]``."""

_KEYS = ("output", "export", *field_names(private=False))

PER_RECORD = "record"
"""Word for the unit of a release without users, which no request needs to state."""

_FILES = ("ledger", "sign_key", "keep_tally")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PrivateInputs:
    """Inputs of releases, and the ledger that is charged. Private."""

    inputs: tuple[str, ...]  # files, folders, patterns and addresses
    table: str | None = None  # table or query of a database, or table of Spark
    query: str | None = None
    memory: str | None = None  # limit on the memory that reading takes
    engine: str | None = None  # where records are read and counted, such as ``spark://node1:7077``
    ledger: str | None = None  # budget that is charged
    dataset: str | None = None
    analyst: str | None = None
    sign_key: str | None = None  # file of the private key that signs the releases
    keep_tally: str | None = None  # file for the exact tally
    report_private: bool = False  # whether the private numbers of records are printed

    def __repr__(self) -> str:
        return "<PrivateInputs: private>"

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, folder: Path | None = None) -> PrivateInputs:
        """Private part of a recipe."""
        table = {key: value for key, value in table.items() if value is not None}
        check_known("key of private", table, PRIVATE_KEYS)
        inputs = table.pop("inputs", ())
        check_texts("private", table, ("engine", "dataset", "analyst", "table", "query"))
        for key in _FILES:
            if key in table:
                table[key] = path_within(folder, str(table[key]))
        return cls(
            inputs=tuple(path_within(folder, item) for item in texts_of("inputs", inputs)),
            **table,
        )

    def to_table(self, *, folder: Path | None = None) -> dict[str, Any]:
        """The table ``[private]``."""
        return {
            "inputs": [path_beside(folder, item) for item in self.inputs],
            **{key: getattr(self, key) for key in ("table", "query", "memory", "engine")},
            **{
                key: None if getattr(self, key) is None else path_beside(folder, getattr(self, key))
                for key in _FILES
            },
            "dataset": self.dataset,
            "analyst": self.analyst,
            "report_private": self.report_private or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRelease:
    """One release of a recipe. Public."""

    output: str  # release file
    table: Mapping[str, Any]  # the keys of its request
    # Files that its cells are exported to; the ending of each names the format.
    export: tuple[str, ...] = ()
    folder: Path | None = None  # where relative paths begin

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, folder: Path | None = None) -> PlannedRelease:
        """A table ``[release]``."""
        check_known("key of release", table, _KEYS)
        if "output" not in table:
            raise ParameterError(
                "output must be given for every release; it names the release file"
            )
        if "epsilon" not in table:
            raise ParameterError("epsilon must be given for every release, such as 0.5")
        exports = texts_of("export", table.get("export", ()))
        return cls(
            output=path_within(folder, str(table["output"])),
            table={key: value for key, value in table.items() if key in field_names()},
            export=tuple(path_within(folder, path) for path in exports),
            folder=folder,
        )

    def terms(self, domain: Domain | None = None) -> BuildTerms:
        """Return the terms of this release; `domain` is that of the tallies that are built from."""
        return terms_from_values(self.table, folder=self.folder, tallied=domain)

    def to_table(self, request: BuildTerms, *, folder: Path | None = None) -> dict[str, Any]:
        """The table ``[release]``, with every field that the request states."""
        return {
            "output": path_beside(folder, self.output),
            "export": [path_beside(folder, path) for path in self.export] or None,
            **values_of_request(request, folder=folder),
            **({"per": PER_RECORD} if self.table.get("per") == PER_RECORD else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Releases and their private inputs."""

    private: PrivateInputs  # inputs, ledger and keys
    releases: tuple[PlannedRelease, ...]  # at least one

    def __post_init__(self) -> None:
        """Check that the parts are consistent."""
        if not self.releases:
            raise ParameterError("a recipe must have at least one table [release], got none")
        outputs = [release.output for release in self.releases]
        for output in outputs:
            if outputs.count(output) > 1:
                raise ParameterError(f"output must differ for each release, got {output} twice")
        if self.private.keep_tally is not None and len(self.releases) > 1:
            raise ParameterError(
                "keep_tally must be left out for several releases; it belongs to one of them"
            )

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Recipe of a file; its relative paths begin at the folder of the file."""
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise InputDataError(f"recipe {path} does not exist or is not UTF-8 text") from None
        return cls.from_toml(text, folder=path.parent)

    @classmethod
    def from_toml(cls, text: str, *, folder: Path | None = None) -> Recipe:
        """Recipe of a TOML text."""
        table = read_toml("recipe", text)
        check_names("table", table, ("private", "release"))
        releases = table.get("release", [])
        releases = releases if isinstance(releases, list) else [releases]
        tables = [table.get("private", {}), *releases]
        if not all(isinstance(item, Mapping) for item in tables):
            raise ParameterError("private and release must be tables, [private] and [release]")
        return cls(
            private=PrivateInputs.from_table(tables[0], folder=folder),
            releases=tuple(PlannedRelease.from_table(item, folder=folder) for item in releases),
        )

    def to_toml(self, *, folder: Path | None = None) -> str:
        """TOML text of the recipe, for a file in a folder."""
        releases = [release.to_table(release.terms(), folder=folder) for release in self.releases]
        return toml_text(
            {
                "private": self.private.to_table(folder=folder),
                "release": releases[0] if len(releases) == 1 else releases,
            }
        )
