"""Fields of a form as parameters of Processing, and their values as texts of a command line."""

from __future__ import annotations

from collections.abc import Callable
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

__all__ = ["parameters_of", "value_of"]

Field = dict[str, Any]
Parameter: TypeAlias = QgsProcessingParameterDefinition

# Second parameter of fields that take a choice on the map, or a text in its place.
_TEXT = "_TEXT"


def parameters_of(field: Field) -> list[Parameter]:
    """Parameters of a field, with its help."""
    parameters = _MAKERS[field["kind"]](field)
    for parameter in parameters:
        parameter.setHelp(field["help"])
        if not field["required"] and field["advanced"]:
            parameter.setFlags(parameter.flags() | Parameter.FlagAdvanced)
    return parameters


def _names(field: Field) -> tuple[str, str]:
    """Name and label of the parameter of a field."""
    return field["name"].upper(), field["label"]


def _text(field: Field) -> list[Parameter]:
    return [
        QgsProcessingParameterString(
            *_names(field), field["default"], optional=not field["required"],
            multiLine=field["multiple"],
        )
    ]  # fmt: skip


def _flag(field: Field) -> list[Parameter]:
    return [QgsProcessingParameterBoolean(*_names(field), False, optional=True)]


def _choice(field: Field) -> list[Parameter]:
    return [
        QgsProcessingParameterEnum(
            *_names(field), options=field["choices"], defaultValue=field["default"],
            optional=not field["required"], usesStaticStrings=True,
        )
    ]  # fmt: skip


def _number(field: Field) -> list[Parameter]:
    kinds = QgsProcessingParameterNumber
    kind = kinds.Integer if field["kind"] == "integer" else kinds.Double
    return [kinds(*_names(field), kind, field["default"], optional=not field["required"])]


def _file(field: Field) -> list[Parameter]:
    return [QgsProcessingParameterFile(*_names(field), optional=not field["required"])]


def _files(field: Field) -> list[Parameter]:
    name, label = _names(field)
    return [
        QgsProcessingParameterMultipleLayers(name, label, QgsProcessing.TypeFile, optional=True),
        QgsProcessingParameterString(
            name + _TEXT, "Addresses and patterns of inputs, one on each line", optional=True,
            multiLine=True,
        ),
    ]  # fmt: skip


def _crs(field: Field) -> list[Parameter]:
    return [QgsProcessingParameterCrs(*_names(field), field["default"], optional=True)]


def _bounds(field: Field) -> list[Parameter]:
    name, label = _names(field)
    return [
        QgsProcessingParameterExtent(name, label, optional=True),
        QgsProcessingParameterString(name + _TEXT, f"{label}, as text", optional=True),
    ]


def _polygons(field: Field) -> list[Parameter]:
    kinds = [QgsProcessing.TypeVectorPolygon]
    return [QgsProcessingParameterVectorLayer(*_names(field), kinds, optional=True)]


def _written_file(field: Field) -> list[Parameter]:
    return [
        QgsProcessingParameterFileDestination(
            *_names(field), fileFilter=field["files"], optional=not field["required"],
            createByDefault=field["required"],
        )
    ]  # fmt: skip


def _written_layer(field: Field) -> list[Parameter]:
    return [QgsProcessingParameterVectorDestination(*_names(field))]


_MAKERS: dict[str, Callable[[Field], list[Parameter]]] = {
    "text": _text,
    "flag": _flag,
    "choice": _choice,
    "integer": _number,
    "number": _number,
    "file": _file,
    "files": _files,
    "crs": _crs,
    "bounds": _bounds,
    "polygons": _polygons,
    "written-file": _written_file,
    "written-layer": _written_layer,
}


def value_of(
    algorithm: QgsProcessingAlgorithm,
    field: Field,
    values: dict[str, Any],
    context: QgsProcessingContext,
    feedback: Any,
) -> Any:
    """Text, list of texts or flag of a field, as `command_line.words_of` takes it.

    Raises
    ------
    CommandError
        If bounds are given both on the map and as a text.
    """
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
        return _bounds_text(algorithm, values, name, context)
    if kind == "polygons":
        return _polygons_path(algorithm, values, name, context, feedback)
    if kind in ("written-file", "written-layer"):
        return algorithm.parameterAsOutputLayer(values, name, context)
    return _lines(values, name) if field["multiple"] else str(values[name]).strip()


def _lines(values: dict[str, Any], name: str) -> list[str]:
    """Lines of a text that are not empty."""
    return [line.strip() for line in str(values.get(name) or "").splitlines() if line.strip()]


def _bounds_text(
    algorithm: QgsProcessingAlgorithm,
    values: dict[str, Any],
    name: str,
    context: QgsProcessingContext,
) -> str:
    """Bounds in one word, with the CRS of the map if they were chosen there."""
    text = str(values.get(name + _TEXT) or "").strip()
    if not values.get(name):
        return text
    if text:
        raise CommandError("bounds must be given on the map or as a text, got both")
    extent = algorithm.parameterAsExtent(values, name, context)
    crs = algorithm.parameterAsExtentCrs(values, name, context).authid()
    edges = (extent.xMinimum(), extent.yMinimum(), extent.xMaximum(), extent.yMaximum())
    return ",".join(map(repr, edges)) + (f":crs={crs}" if crs else "")


def _polygons_path(
    algorithm: QgsProcessingAlgorithm,
    values: dict[str, Any],
    name: str,
    context: QgsProcessingContext,
    feedback: Any,
) -> str | None:
    """A GeoPackage of the layer alone, with the filter and the edits that it has in QGIS."""
    layer = algorithm.parameterAsVectorLayer(values, name, context)
    if layer is None:
        return None
    # No format is taken as it is: a file may hold several layers, or other rows than those shown.
    path = QgsProcessingUtils.convertToCompatibleFormat(
        layer, False, name.lower(), ["none"], "gpkg", context, feedback
    )
    return str(path)
