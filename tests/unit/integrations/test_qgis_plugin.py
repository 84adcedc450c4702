"""The plugin as one file."""

import io
import zipfile

from psd.integrations.qgis_plugin import plugin_archive


def test_the_folder_is_not_named_as_the_library():
    names = zipfile.ZipFile(io.BytesIO(plugin_archive([]))).namelist()
    assert {name.split("/")[0] for name in names} == {"psd_qgis"}
    assert {"psd_qgis/__init__.py", "psd_qgis/metadata.txt", "psd_qgis/icon.svg"} <= set(names)


def test_modules_of_the_plugin_are_whole():
    with zipfile.ZipFile(io.BytesIO(plugin_archive([]))) as archive:
        for name in archive.namelist():
            if name.endswith(".py"):
                compile(archive.read(name), name, "exec")
