"""Draw a file as QGIS opens it: `/usr/bin/python3 docs/assets/qgis_picture.py FILE OUTPUT.png`.

A third argument is the name of a style in a GeoPackage. It runs in the Python of QGIS (Debian:
`apt-get install qgis python3-qgis`), without a screen, and prints how QGIS draws the file as JSON.
"""

import json
import os
import sys
import tempfile

# Before QGIS is imported: no screen, and a folder that other users cannot read.
os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp())

from qgis.core import (
    QgsApplication,
    QgsMapLayer,
    QgsMapRendererParallelJob,
    QgsMapSettings,
    QgsRasterLayer,
    QgsVectorLayer,
)
from qgis.PyQt.QtCore import QSize
from qgis.PyQt.QtGui import QColor
from qgis.PyQt.QtXml import QDomDocument


def open_layer(path: str) -> QgsMapLayer:
    """The first layer of a file, in the style in which QGIS opens it."""
    if path.endswith(".tif"):
        layer = QgsRasterLayer(path, "raster")
    else:
        layer = QgsVectorLayer(path, "layer", "ogr")
    if not layer.isValid():
        sys.exit(f"QGIS cannot open {path}")
    return layer


def use_style(layer: QgsMapLayer, name: str) -> None:
    """Use another style of the database of the layer."""
    _, ids, names, *_ = layer.listStylesInDatabase()
    document = QDomDocument()
    document.setContent(layer.getStyleFromDatabase(ids[names.index(name)])[0])
    layer.importNamedStyle(document)


def draw(layer: QgsMapLayer, output: str) -> None:
    """Draw the extent of a layer."""
    extent = layer.extent()
    extent.scale(1.03)
    settings = QgsMapSettings()
    settings.setLayers([layer])
    settings.setBackgroundColor(QColor("white"))
    settings.setOutputSize(QSize(560, 450))
    settings.setDestinationCrs(layer.crs())
    settings.setExtent(extent)
    job = QgsMapRendererParallelJob(settings)
    job.start()
    job.waitForFinished()
    if not job.renderedImage().save(output):
        sys.exit(f"cannot write {output}")


def main() -> None:
    """Open, draw and describe a file."""
    QgsApplication.setPrefixPath("/usr", True)
    application = QgsApplication([], False)
    application.initQgis()
    layer = open_layer(sys.argv[1])
    if len(sys.argv) > 3:
        use_style(layer, sys.argv[3])
    draw(layer, sys.argv[2])
    renderer = layer.renderer()
    facts = {"renderer": renderer.type(), "crs": layer.crs().authid()}
    if hasattr(renderer, "ranges"):
        facts["column"] = renderer.classAttribute()
        facts["classes"] = [each.label() for each in renderer.ranges()]
    print(json.dumps(facts))  # noqa: T201
    sys.stdout.flush()
    os._exit(0)  # QGIS may crash when its parts are destroyed in another order


if __name__ == "__main__":
    main()
