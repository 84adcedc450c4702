"""The plugin: it adds the provider to Processing while it is loaded."""

from __future__ import annotations

from typing import Any

from qgis.core import QgsApplication

from .provider import Provider


class Plugin:
    """What QGIS loads and unloads.

    Parameters
    ----------
    interface : qgis.gui.QgisInterface or None
        Window of QGIS, which is not used: all is done in Processing.
    """

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
