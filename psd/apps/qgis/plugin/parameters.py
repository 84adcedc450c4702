"""Fields of a form as parameters of Processing, and their values as texts of a command line."""

from __future__ import annotations

from typing import Any, TypeAlias

from qgis.core import (
    QgsProcessing,
    QgsProcessingAlgorithm,
    QgsProcessingContext,
    QgsProcessingParameterBoolean,
    QgsProcessingParameterCrs,
    QgsProcessingParameterDefinition,
    QgsProcessingParameterEnum,
    QgsProcessingParameterExtent,
    QgsProcessingParameterFile,
    QgsProcessingParameterFileDestination,
    QgsProcessingParameterMultipleLayers,
    QgsProcessingParameterNumber,
    QgsProcessingParameterString,
    QgsProcessingParameterVectorDestination,
    QgsProcessingParameterVectorLayer,
    QgsProcessingUtils,
)

from .command_line import CommandError

Field = dict[str, Any]
Parameter: TypeAlias = QgsProcessingParameterDefinition

# Second parameter of fields that take a choice on the map, or a text in its place.
_TEXT = "_TEXT"


def parameters_of(field: Field) -> list[Parameter]:
    """Parameters of a field, with its help."""
    parameters = _new_parameters(field)
    for parameter in parameters:
        parameter.setHelp(field["help"])
        if not field["required"] and field["advanced"]:
            parameter.setFlags(parameter.flags() | Parameter.FlagAdvanced)
    return parameters


def _new_parameters(field: Field) -> list[Parameter]:
    """Parameters of the kind of a field, by their names, labels and values."""
    name, label, kind = field["name"].upper(), field["label"], field["kind"]
    default, optional = field["default"], not field["required"]
    numbers = QgsProcessingParameterNumber
    if kind == "flag":
        return [QgsProcessingParameterBoolean(name, label, False, optional=True)]
    if kind == "choice":
        return [
            QgsProcessingParameterEnum(
                name, label, options=field["choices"], defaultValue=default, optional=optional,
                usesStaticStrings=True,
            )
        ]  # fmt: skip
    if kind in ("integer", "number"):
        of_kind = numbers.Integer if kind == "integer" else numbers.Double
        return [numbers(name, label, of_kind, default, optional=optional)]
    if kind == "file":
        return [QgsProcessingParameterFile(name, label, optional=optional)]
    if kind == "files":
        return [
            QgsProcessingParameterMultipleLayers(
                name, label, QgsProcessing.TypeFile, optional=True
            ),
            QgsProcessingParameterString(
                name + _TEXT, "Addresses and patterns of inputs, one on each line", optional=True,
                multiLine=True,
            ),
        ]  # fmt: skip
    if kind == "crs":
        return [QgsProcessingParameterCrs(name, label, default, optional=True)]
    if kind == "bounds":
        return [
            QgsProcessingParameterExtent(name, label, optional=True),
            QgsProcessingParameterString(name + _TEXT, f"{label}, as text", optional=True),
        ]
    if kind == "polygons":
        polygons = [QgsProcessing.TypeVectorPolygon]
        return [QgsProcessingParameterVectorLayer(name, label, polygons, optional=True)]
    if kind == "written-file":
        return [
            QgsProcessingParameterFileDestination(
                name, label, fileFilter=field["files"], optional=optional,
                createByDefault=field["required"],
            )
        ]  # fmt: skip
    if kind == "written-layer":
        return [QgsProcessingParameterVectorDestination(name, label)]
    is_long = field["multiple"]
    return [
        QgsProcessingParameterString(name, label, default, optional=optional, multiLine=is_long)
    ]


def value_of(
    algorithm: QgsProcessingAlgorithm,
    field: Field,
    values: dict[str, Any],
    context: QgsProcessingContext,
    feedback: Any,
) -> Any:
    """Text, list of texts or flag of a field, as `command_line.words_of` takes it."""
    name, kind = field["name"].upper(), field["kind"]
    if values.get(name) is None and values.get(name + _TEXT) is None:
        return None
    if kind == "flag":
        return algorithm.parameterAsBool(values, name, context)
    if kind == "choice":
        return algorithm.parameterAsEnumString(values, name, context)
    if kind in ("integer", "number"):
        return str(values[name])
    if kind == "files":
        return [
            *algorithm.parameterAsFileList(values, name, context),
            *_lines(values, name + _TEXT),
        ]
    if kind == "crs":
        return algorithm.parameterAsCrs(values, name, context).authid()
    if kind == "bounds":
        # Bounds in one word, with the CRS of the map if they were chosen there.
        text = str(values.get(name + _TEXT) or "").strip()
        if not values.get(name):
            return text
        if text:
            raise CommandError("bounds must be given on the map or as a text, got both")
        extent = algorithm.parameterAsExtent(values, name, context)
        crs = algorithm.parameterAsExtentCrs(values, name, context).authid()
        edges = (extent.xMinimum(), extent.yMinimum(), extent.xMaximum(), extent.yMaximum())
        return ",".join(map(repr, edges)) + (f":crs={crs}" if crs else "")
    if kind == "polygons":
        # A GeoPackage of the layer alone, with the filter and the edits that it has in QGIS.
        layer = algorithm.parameterAsVectorLayer(values, name, context)
        if layer is None:
            return None
        # No format is taken as it is: a file may hold several layers, or rows that are not shown.
        path = QgsProcessingUtils.convertToCompatibleFormat(
            layer, False, name.lower(), ["none"], "gpkg", context, feedback
        )
        return str(path)
    if kind in ("written-file", "written-layer"):
        return algorithm.parameterAsOutputLayer(values, name, context)
    return _lines(values, name) if field["multiple"] else str(values[name]).strip()


def _lines(values: dict[str, Any], name: str) -> list[str]:
    """Lines of a text that are not empty."""
    return [line.strip() for line in str(values.get(name) or "").splitlines() if line.strip()]
