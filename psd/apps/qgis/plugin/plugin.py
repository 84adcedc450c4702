"""The plugin, and the group of algorithms that it adds to Processing while it is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from processing.core.ProcessingConfig import ProcessingConfig, Setting
from qgis.core import QgsApplication, QgsProcessingProvider
from qgis.PyQt.QtGui import QIcon

from .algorithm import CommandAlgorithm, MapAlgorithm

FOLDER = Path(__file__).parent
COMMAND_SETTING = "PSD_COMMAND"


def read_forms() -> dict[str, Any]:
    """The forms that `psd qgis` wrote, with the version of `psd` that wrote them."""
    table: dict[str, Any] = json.loads((FOLDER / "forms.json").read_text(encoding="utf-8"))
    return table


def stated_command() -> str:
    """The command of the setting; empty if it is to be looked for."""
    return str(ProcessingConfig.getSetting(COMMAND_SETTING) or "")


class Provider(QgsProcessingProvider):
    """One algorithm for each form, and one that adds a release to the map."""

    def load(self) -> bool:
        """Add the setting, and fill the list of algorithms."""
        ProcessingConfig.settingIcons[self.name()] = self.icon()
        ProcessingConfig.addSetting(
            Setting(
                self.name(), COMMAND_SETTING, "Command psd, such as /home/ann/venv/bin/psd; "
                "if empty, it is looked for on the path", "", valuetype=Setting.FILE,
            )
        )  # fmt: skip
        ProcessingConfig.readSettings()
        self.refreshAlgorithms()
        return True

    def unload(self) -> None:
        """Remove the setting."""
        ProcessingConfig.removeSetting(COMMAND_SETTING)

    def loadAlgorithms(self) -> None:  # noqa: N802
        """One algorithm for each form, and the map."""
        table = read_forms()
        for form in table["forms"]:
            self.addAlgorithm(CommandAlgorithm(form, table["version"], stated_command))
        self.addAlgorithm(MapAlgorithm(table["version"], stated_command))

    def id(self) -> str:
        """First part of the names of algorithms, as in `psd:build`."""
        return "psd"

    def name(self) -> str:
        """Name in the toolbox."""
        return "psd"

    def longName(self) -> str:  # noqa: N802
        """Name with what it does."""
        return "psd: private counts of places"

    def icon(self) -> QIcon:
        """Icon in the toolbox."""
        return QIcon(str(FOLDER / "icon.svg"))

    def supportedOutputVectorLayerExtensions(self) -> list[str]:  # noqa: N802
        """Endings of files with shapes that `psd` writes and QGIS reads everywhere."""
        return ["gpkg", "fgb", "geojson"]


class Plugin:
    """What QGIS loads and unloads; its window is not used, since all is done in Processing."""

    def __init__(self, interface: Any) -> None:
        self.provider: Provider | None = None

    def initProcessing(self) -> None:  # noqa: N802
        """Add the algorithms; QGIS and `qgis_process` call this."""
        self.provider = Provider()
        QgsApplication.processingRegistry().addProvider(self.provider)

    def initGui(self) -> None:  # noqa: N802
        """Add the algorithms to the toolbox of the window."""
        self.initProcessing()

    def unload(self) -> None:
        """Remove the algorithms."""
        if self.provider is not None:
            QgsApplication.processingRegistry().removeProvider(self.provider)
            self.provider = None
