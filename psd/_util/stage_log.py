"""Stages of a build in the log ``psd``, for programs that use this library."""

from __future__ import annotations

import logging

_LOG = logging.getLogger("psd")


def log_stage(stage: str) -> None:
    """Log the name of a stage, such as ``reading``, at the level INFO.

    P1. Names of stages depend on no data. Nothing else is logged.
    """
    _LOG.info("%s", stage)
