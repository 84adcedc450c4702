"""The plugin as one file."""

import io
import zipfile

from psd.integrations.qgis_plugin import plugin_archive


def test_the_folder_is_not_named_as_the_library_and_its_modules_are_whole():
    with zipfile.ZipFile(io.BytesIO(plugin_archive([]))) as archive:
        names = archive.namelist()
        assert {name.split("/")[0] for name in names} == {"psd_qgis"}
        wanted = {f"psd_qgis/{name}" for name in ("__init__.py", "metadata.txt", "icon.svg")}
        assert wanted <= set(names)
        for name in names:
            if name.endswith(".py"):
                compile(archive.read(name), name, "exec")
