"""An algorithm of the toolbox that runs one command."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qgis.core import (
    QgsProcessingAlgorithm,
    QgsProcessingContext,
    QgsProcessingException,
    QgsProcessingFeedback,
    QgsProcessingParameterBoolean,
)

from .command_line import CommandError, check_version, find_command, run_command, words_of
from .parameters import parameters_of, value_of

__all__ = ["CommandAlgorithm", "run_psd"]

_LAYERS = (".gpkg", ".fgb", ".geojson", ".tif")
_LOAD = "LOAD_LAYER"


def run_psd(
    stated: str, version: str, words: list[str], feedback: QgsProcessingFeedback
) -> tuple[str, str]:
    """Run `psd` with these words, and show what it says.

    Raises
    ------
    QgsProcessingException
        With the message of the command.
    """
    try:
        command = find_command(stated)
        check_version(command, version)
        feedback.pushCommandInfo(shlex.join(["psd", *words]))
        output, messages = run_command([command, *words], feedback.isCanceled)
    except CommandError as error:
        raise QgsProcessingException(str(error)) from None
    for line in messages.splitlines():
        feedback.pushWarning(line) if line.startswith("warning") else feedback.pushInfo(line)
    if output.strip():
        feedback.pushConsoleInfo(output)
    return output, messages


class CommandAlgorithm(QgsProcessingAlgorithm):
    """A command of `psd` as a form.

    Parameters
    ----------
    form : dict
        As `psd qgis` writes it.
    version : str
        Version of the plugin; `psd` must be of the same minor version.
    stated_command : callable
        The setting of the plugin.
    """

    def __init__(
        self, form: dict[str, Any], version: str, stated_command: Callable[[], str]
    ) -> None:
        super().__init__()
        self.form = form
        self.version = version
        self.stated_command = stated_command

    def createInstance(self) -> CommandAlgorithm:  # noqa: N802
        """A new algorithm of the same form."""
        return CommandAlgorithm(self.form, self.version, self.stated_command)

    def name(self) -> str:
        """Second part of the name, as in `psd:build`."""
        return str(self.form["command"])

    def displayName(self) -> str:  # noqa: N802
        """Line in the toolbox."""
        return str(self.form["title"])

    def shortHelpString(self) -> str:  # noqa: N802
        """Help beside the form: that of the command."""
        return str(self.form["text"])

    def initAlgorithm(self, configuration: Any = None) -> None:  # noqa: N802
        """One parameter for each field, and whether the written file is opened."""
        for field in self.form["fields"]:
            for parameter in parameters_of(field):
                self.addParameter(parameter)
        if self.form["loads"]:
            self.addParameter(
                QgsProcessingParameterBoolean(_LOAD, "Open the file in the map", True)
            )

    def processAlgorithm(  # noqa: N802
        self,
        parameters: dict[str, Any],
        context: QgsProcessingContext,
        feedback: QgsProcessingFeedback,
    ) -> dict[str, Any]:
        """Run the command; its files are the results."""
        try:
            values = {
                field["name"]: value_of(self, field, parameters, context, feedback)
                for field in self.form["fields"]
            }
            words = words_of(self.form, values)
        except CommandError as error:
            raise QgsProcessingException(str(error)) from None
        output, _ = run_psd(self.stated_command(), self.version, words, feedback)
        written = {
            field["name"].upper(): values[field["name"]]
            for field in self.form["fields"]
            if field["kind"].startswith("written") and values[field["name"]]
        }
        self._open(written, parameters, context)
        return {**written, "TEXT": output}

    def _open(
        self, written: dict[str, str], parameters: dict[str, Any], context: QgsProcessingContext
    ) -> None:
        """Open the written file as a layer where the user asks for it."""
        if not self.form["loads"] or not self.parameterAsBool(parameters, _LOAD, context):
            return
        path = written.get("OUTPUT", "")
        if path.endswith(_LAYERS) and context.project() is not None:
            details = QgsProcessingContext.LayerDetails(Path(path).stem, context.project(), path)
            context.addLayerToLoadOnCompletion(path, details)
