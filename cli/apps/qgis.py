"""psd qgis: the commands in the toolbox of QGIS."""

from __future__ import annotations

import click

from ..options.command import Command
from ..options.common import overwrite
from ..output.terminal import print_success


@click.command("qgis", cls=Command)
@click.option("-o", "--output", type=click.Path(), required=True, help="Zip file to write.")
@overwrite
def run_qgis(output: str, overwrite: bool) -> None:
    """Write the plugin for QGIS, a zip file.

    In QGIS 3.22 or later choose Plugins > Manage and Install Plugins > Install from ZIP. The
    toolbox of Processing then has the group psd: build a release, count in polygons, export, plan,
    and add a release to the map in a ready style. The plugin runs the command psd where it is
    installed, and shows its messages as they are; its forms have the options of this version.

    \b
    Examples:
      psd qgis -o psd-qgis.zip
    """  # noqa: D301
    from psd._apps import has_command
    from psd._util.atomic_write import check_free, write_file
    from psd.apps.qgis.archive import plugin_archive

    from ..output.command_forms import COMMANDS, command_form

    if not output.lower().endswith(".zip"):
        raise click.UsageError(f"-o must end in .zip, got {output}; QGIS installs a zip file")
    check_free(output, overwrite=overwrite)
    archive = plugin_archive([command_form(name) for name in filter(has_command, COMMANDS)])
    write_file(output, archive, overwrite=overwrite)
    print_success(
        f"wrote {output}; in QGIS: Plugins > Manage and Install Plugins > Install from ZIP"
    )


COMMANDS = {"qgis": run_qgis}
