"""Folders in which commands run."""

from support.command_folders import here, release, wards  # noqa: F401
