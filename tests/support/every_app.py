"""Imports every app: a test file that imports this needs them all, and is left out without one."""

from psd.apps import spark  # noqa: F401
from psd_cli.apps import (  # noqa: F401
    auditing,
    choosing,
    evaluation,
    local,
    planning,
    qgis,
    streams,
    suggest,
    web,
)
