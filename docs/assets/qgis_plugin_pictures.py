"""Draw the forms of the plugin: `/usr/bin/python3 docs/assets/qgis_plugin_pictures.py FOLDER OUT`.

FOLDER holds the plugin as QGIS installs it (`psd_qgis/`). Each algorithm of `psd` becomes a picture
OUT/qgis-form-NAME.png. It runs in the Python of QGIS (Debian: `apt-get install qgis python3-qgis`),
without a screen.
"""

import os
import sys
import tempfile
from pathlib import Path

# Before QGIS is imported: no screen, and a folder that other users cannot read.
os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp())
os.environ.setdefault("QGIS_CUSTOM_CONFIG_PATH", tempfile.mkdtemp())

sys.path[:0] = ["/usr/share/qgis/python/plugins", "/usr/share/qgis/python", sys.argv[1]]

import qgis.utils
from qgis.core import QgsApplication
from qgis.gui import QgsMapCanvas
from qgis.PyQt.QtCore import QSize
from qgis.PyQt.QtWidgets import QMainWindow


class Window:
    """The part of the window of QGIS that dialogs look at."""

    def __init__(self) -> None:
        self.window, self.canvas = QMainWindow(), QgsMapCanvas()

    def mainWindow(self) -> QMainWindow:  # noqa: N802
        """The window."""
        return self.window

    def mapCanvas(self) -> QgsMapCanvas:  # noqa: N802
        """The map."""
        return self.canvas

    def activeLayer(self) -> None:  # noqa: N802
        """The layer that is selected: there are no layers."""

    def __getattr__(self, name: str) -> object:
        """Anything else, which the pictures do not show."""
        return lambda *_, **__: None


def draw_form(algorithm: object, target: Path) -> None:
    """Draw the form of an algorithm."""
    from processing.gui.AlgorithmDialog import AlgorithmDialog

    dialog = AlgorithmDialog(algorithm.create(), False, qgis.utils.iface.mainWindow())
    dialog.resize(QSize(900, 640))
    dialog.show()
    QgsApplication.processEvents()
    if not dialog.grab().save(str(target)):
        sys.exit(f"cannot write {target}")


def main() -> None:
    """Draw all forms."""
    QgsApplication.setPrefixPath("/usr", True)
    application = QgsApplication([], True)
    application.initQgis()
    qgis.utils.iface = Window()
    from processing.core.Processing import Processing

    Processing.initialize()
    from psd_qgis.provider import Provider

    provider = Provider()
    QgsApplication.processingRegistry().addProvider(provider)
    for algorithm in provider.algorithms():
        draw_form(algorithm, Path(sys.argv[2]) / f"qgis-form-{algorithm.name()}.png")
    sys.stdout.flush()
    os._exit(0)  # QGIS may crash when its parts are destroyed in another order


if __name__ == "__main__":
    main()
