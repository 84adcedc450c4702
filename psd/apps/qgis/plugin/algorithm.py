"""Algorithms of the toolbox: one that runs a command, and one that adds a release to the map."""

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
    QgsProcessingLayerPostProcessorInterface,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterEnum,
    QgsProcessingParameterFile,
    QgsProcessingParameterString,
    QgsProcessingParameterVectorDestination,
    QgsVectorLayer,
)
from qgis.PyQt.QtXml import QDomDocument

from .command_line import CommandError, check_version, find_command, run_command, words_of
from .parameters import parameters_of, value_of

_LAYERS = (".gpkg", ".fgb", ".geojson", ".tif")
_LOAD = "LOAD_LAYER"


def run_psd(
    stated: str, version: str, words: list[str], feedback: QgsProcessingFeedback
) -> tuple[str, str]:
    """Run `psd` with these words, and show what it says."""
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
    """A command of `psd` as a form, as `psd qgis` writes it."""

    def __init__(
        self, form: dict[str, Any], version: str, stated_command: Callable[[], str]
    ) -> None:
        super().__init__()
        self.form = form
        # The command that the setting of the plugin states must be of this minor version.
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
        path, is_opened = written.get("OUTPUT", ""), self.form["loads"]
        is_opened = is_opened and self.parameterAsBool(parameters, _LOAD, context)
        if is_opened and path.endswith(_LAYERS) and context.project() is not None:
            details = QgsProcessingContext.LayerDetails(Path(path).stem, context.project(), path)
            context.addLayerToLoadOnCompletion(path, details)
        return {**written, "TEXT": output}


_STYLES = ["density", "reliability"]

# Letters of the name of a style in a file.
_LONGEST = 30


class Style(QgsProcessingLayerPostProcessorInterface):
    """Gives a layer the style of a name in its `layer_styles` once it is in the project."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def postProcessLayer(  # noqa: N802
        self, layer: Any, context: QgsProcessingContext, feedback: QgsProcessingFeedback
    ) -> None:
        """Read the style from the file of the layer."""
        if isinstance(layer, QgsVectorLayer):
            use_style(layer, self.name)


def style_names(path: str) -> list[str]:
    """Names of the styles in a file."""
    layer = QgsVectorLayer(path, "cells", "ogr")
    return [str(name) for name in layer.listStylesInDatabase()[2]]


def use_style(layer: QgsVectorLayer, name: str) -> None:
    """Draw a layer in a style of its own file."""
    _, ids, names, *_ = layer.listStylesInDatabase()
    if name in names:
        document = QDomDocument()
        document.setContent(layer.getStyleFromDatabase(ids[names.index(name)])[0])
        layer.importNamedStyle(document)
        layer.triggerRepaint()


# QGIS keeps no reference of its own, and the algorithm is gone by the time it needs them.
_POST_PROCESSORS: dict[str, Style] = {}


class MapAlgorithm(QgsProcessingAlgorithm):
    """Writes the cells of a release to a GeoPackage, and opens it in a ready style."""

    def __init__(self, version: str, stated_command: Callable[[], str]) -> None:
        super().__init__()
        self.version = version
        self.stated_command = stated_command

    def createInstance(self) -> MapAlgorithm:  # noqa: N802
        """A new algorithm."""
        return MapAlgorithm(self.version, self.stated_command)

    def name(self) -> str:
        """Second part of the name, as in `psd:addtomap`."""
        return "addtomap"

    def displayName(self) -> str:  # noqa: N802
        """Line in the toolbox."""
        return "Add a release to the map"

    def shortHelpString(self) -> str:  # noqa: N802
        """Help beside the form."""
        return (
            "Adds the cells of a release as a layer with a ready style: people per square "
            "kilometre, how reliable the count of each cell is, or the mean of a value, which is "
            "fainter where it is less reliable. The layer has errors, and intervals of means, as "
            "columns. Of a release with regions the layer has the regions. It is a GeoPackage, and "
            "other programs open it in the same style."
        )

    def initAlgorithm(self, configuration: Any = None) -> None:  # noqa: N802
        """Release, slice or window, level, style, value and file."""
        self.addParameter(QgsProcessingParameterFile("RELEASE", "Release"))
        labels = {"SLICE": "Time slice of a series", "LEVEL": "Level of cells"}
        labels["WHEN"] = "Window of a cube, such as weekdays 07-09; all time by default"
        labels["CATEGORY"] = "Category of a cube, such as work; all of them by default"
        for name, label in labels.items():
            self.addParameter(QgsProcessingParameterString(name, label, optional=True))
        self.addParameter(
            QgsProcessingParameterEnum(
                "STYLE", "Style", options=_STYLES, defaultValue=_STYLES[0], usesStaticStrings=True
            )
        )
        label = "Mean of a value in place of the style, such as fare"
        self.addParameter(QgsProcessingParameterString("VALUE", label, optional=True))
        self.addParameter(QgsProcessingParameterVectorDestination("OUTPUT", "Cells"))

    def processAlgorithm(  # noqa: N802
        self,
        parameters: dict[str, Any],
        context: QgsProcessingContext,
        feedback: QgsProcessingFeedback,
    ) -> dict[str, Any]:
        """Export the cells; the style follows when the layer is in the project."""
        output = self.parameterAsOutputLayer(parameters, "OUTPUT", context)
        if not output.endswith(".gpkg"):
            raise QgsProcessingException(
                f"the file must end in .gpkg, got {output}; it holds styles"
            )
        words = ["export", "--overwrite"]
        for option in ("SLICE", "WHEN", "CATEGORY", "LEVEL"):
            if text := self.parameterAsString(parameters, option, context).strip():
                words.append(f"--{option.lower()}={text}")
        release = self.parameterAsFile(parameters, "RELEASE", context)
        run_psd(self.stated_command(), self.version, [*words, "--", release, output], feedback)
        style = self.parameterAsEnumString(parameters, "STYLE", context)
        if value := self.parameterAsString(parameters, "VALUE", context).strip():
            style = f"mean_{value}"[:_LONGEST]
            if style not in style_names(output):
                raise QgsProcessingException(
                    f"the value must be one of the release, got {value}; psd info lists them"
                )
        # The first style is the one in which QGIS opens the file.
        if style != _STYLES[0] and context.willLoadLayerOnCompletion(output):
            processor = _POST_PROCESSORS.setdefault(style, Style(style))
            context.layerToLoadOnCompletionDetails(output).setPostProcessor(processor)
        return {"OUTPUT": output}
