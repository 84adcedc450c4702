"""Commands and options of before version 0.2.0, and what replaces them, until version 1.0.0."""

from __future__ import annotations

from typing import Final

import click

COMMANDS: Final = {
    "account": "ledger account",
    "audit": "check audit",
    "compare": "check compare",
    "difference": "query RELEASE --difference OTHER",
    "evaluate": "check evaluate",
    "keygen": "sign new",
    "merge": "tally TALLIES",
    "methodology": "info RELEASE --sheet FILE",
    "qgis-plugin": "qgis",
    "quantiles": "query RELEASE --quantiles",
    "run": "build RECIPE.toml",
    "sign RELEASE": "sign file RELEASE",
    "top": "query RELEASE --top N",
    "verify": "sign check",
}
"""New words after `psd` by the old ones; what the user writes in their place is in capitals."""

# As text, so that the help of `psd` imports nothing for it.
_READ = (
    "x", "y", "wkt", "geometry", "layer", "delimiter", "decimal", "encoding", "skip_rows",
    "input_crs", "table", "query", "memory", "engine", "time", "time_zone", "user",
    "coordinate_resolution",
)  # fmt: skip
_REGIONS = {
    "id": "--region-id", "parent": "--region-parent", "gaps": "--gaps",
    "tolerance": "--tolerance", "repair": "--repair", "file": "--regions",
    "population": "--population",
}  # fmt: skip

OPTIONS: Final[dict[str, str]] = {
    **{f"--read {key.replace('_', '[_-]')}=": "--" + key.replace("_", "-") for key in _READ},
    **{f"--regions {key}=": option for key, option in _REGIONS.items()},
    "--set min[_-]cell=": "--min-cell",
    "--set estimate=": "--estimate",
    "--set density=": "--density",
    "--private-output report": "--report-private",
    "--private-output tally=": "--keep-tally",
    "--dataset .*:analyst=": "--analyst",
    "--bounds of:": "--bounds FILE",
    "--bounds private:.*": "--bounds private with --bounds-share and --bounds-beyond",
    "--bounds .*:crs=": "--bounds-crs",
    "--max-contributions auto:": "--max-contributions auto with --choice-share and --choice-over",
    "--boundary .*:(.*,)?repair=": "--repair",
    "--covariate .*:(.*,)?column=": "--covariate-column",
    "--covariate .*:(.*,)?size=": "--covariate-size",
    "--table .*:(.*,)?id=": "--table-id",
    "--slices .*:max_per_slice=": "--max-per-slice",
    "--slice ": "--when WINDOW",
    "--slices ": "--when FIRST..LAST",
    "--read ": "options of their own, such as --x, --y, --time and --time-zone",
}
"""The new option by the old one and a pattern of the beginning of its value."""


def refuse_moved(words: str) -> None:
    """Answer old words with the new ones."""
    if words in COMMANDS:
        raise click.UsageError(
            f"psd {words} is now psd {COMMANDS[words]}; it goes with version 1.0.0"
        )
