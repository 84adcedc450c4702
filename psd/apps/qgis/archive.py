"""The plugin of QGIS as one file that QGIS installs."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from psd._util.extras import CONTACT, INSTALL, SOURCE
from psd.version import __version__

_SOURCE = "psd.apps.qgis.plugin"
_FOLDER = "psd_qgis"  # its name in QGIS, other than that of the library
_KINDS = (".py", ".txt", ".svg")

# The same plugin is the same file, whenever it is made: the first moment that a zip file can state.
_MOMENT = (1980, 1, 1, 0, 0, 0)


def plugin_archive(forms: Sequence[Mapping[str, Any]]) -> bytes:
    """Pack the plugin of QGIS with a form of each command; equal forms give equal bytes."""
    facts = {"version": __version__, "forms": list(forms)}
    members = {"forms.json": json.dumps(facts, indent=1)}
    # Files of the plugin state the version and where psd is installed from.
    stated = {"VERSION": __version__, "INSTALL": INSTALL, "SOURCE": SOURCE, "CONTACT": CONTACT}
    for path in files(_SOURCE).iterdir():
        if path.name.endswith(_KINDS):
            text = path.read_text(encoding="utf-8")
            for word, value in stated.items():
                text = text.replace(f"@{word}@", value)
            members[path.name] = text
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in sorted(members.items()):
            member = zipfile.ZipInfo(f"{_FOLDER}/{name}", _MOMENT)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            archive.writestr(member, text)
    return target.getvalue()
