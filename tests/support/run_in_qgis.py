"""Run algorithms of the plugin in QGIS: `/usr/bin/python3 run_in_qgis.py FOLDER STEPS.json`.

FOLDER holds the plugin. STEPS are [name, parameters] pairs. Prints a list with the results of each
step, or its error as a text; layers are described by their renderer.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["XDG_RUNTIME_DIR"] = tempfile.mkdtemp()
os.environ["QGIS_CUSTOM_CONFIG_PATH"] = tempfile.mkdtemp()
sys.path[:0] = ["/usr/share/qgis/python/plugins", "/usr/share/qgis/python", sys.argv[1]]

from qgis.core import (
    QgsApplication,
    QgsProcessingContext,
    QgsProcessingFeedback,
    QgsProcessingUtils,
    QgsProject,
    QgsVectorLayer,
)


def run_step(name, parameters):
    """Results of an algorithm, and how QGIS draws the layer that it adds."""
    context, feedback = QgsProcessingContext(), QgsProcessingFeedback()
    context.setProject(QgsProject.instance())
    algorithm = QgsApplication.processingRegistry().algorithmById(name).create()
    ready, reason = algorithm.checkParameterValues(parameters, context)
    if not ready:
        return reason
    if name == "psd:addtomap":
        details = QgsProcessingContext.LayerDetails("cells", QgsProject.instance(), "OUTPUT")
        context.addLayerToLoadOnCompletion(parameters["OUTPUT"], details)
    results, passed = algorithm.run(parameters, context, feedback)
    if not passed:
        return feedback.textLog()
    return {**results, "layers": [describe(path, context, feedback) for path in opened(context)]}


def opened(context):
    """Paths of layers that QGIS opens when the algorithm has ended."""
    return list(context.layersToLoadOnCompletion())


def describe(path, context, feedback):
    """Column that a layer is coloured by, after the algorithm has styled it."""
    layer = QgsProcessingUtils.mapLayerFromString(path, context)
    processor = context.layerToLoadOnCompletionDetails(path).postProcessor()
    if processor is not None:
        processor.postProcessLayer(layer, context, feedback)
    if not isinstance(layer, QgsVectorLayer):
        return "raster"
    renderer = layer.renderer()
    return renderer.classAttribute() if renderer.type() == "graduatedSymbol" else renderer.type()


def main():
    """Run the steps of the file."""
    QgsApplication.setPrefixPath("/usr", True)
    application = QgsApplication([], False)
    application.initQgis()
    from processing.core.Processing import Processing

    Processing.initialize()
    import psd_qgis

    plugin = psd_qgis.classFactory(None)
    plugin.initProcessing()
    steps = json.loads(Path(sys.argv[2]).read_text())
    print(json.dumps([run_step(*step) for step in steps]))
    sys.stdout.flush()
    os._exit(0)  # QGIS may crash when its parts are destroyed in another order


if __name__ == "__main__":
    main()
