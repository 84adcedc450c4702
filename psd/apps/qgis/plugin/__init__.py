"""Plugin of QGIS: the commands of `psd` in the Processing toolbox.

`psd qgis` packs this folder. QGIS runs it in its own Python, so it imports nothing of the
library: it fills in forms, and runs the command `psd` in the environment where that is installed.
"""

from __future__ import annotations

from typing import Any


def classFactory(interface: Any) -> Any:  # noqa: N802
    """The plugin, by the name under which QGIS looks for it; no interface in `qgis_process`."""
    from .plugin import Plugin

    return Plugin(interface)
