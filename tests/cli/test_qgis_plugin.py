"""psd qgis-plugin: the forms have the options of the commands."""

import importlib
import zipfile

import pytest

from psd_cli.output.command_forms import COMMANDS, command_form
from support.cli_runner import fails, passes

# PRIVATE numbers on the screen, the form of what is printed, and the limit for unknown senders.
NOT_IN_FORMS = {"private_output", "form", "max_nodes"}
# Keys of options that have a field of their own.
OF_KEYS = {"build": {"coordinate_resolution", "min_cell", "keep_tally"}}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_form_has_every_option_of_its_command(name):
    command = importlib.import_module(f"psd_cli.commands.{name}").command
    options = {parameter.name for parameter in command.params} - NOT_IN_FORMS
    fields = {field["name"] for field in command_form(name)["fields"]}
    assert fields == options | OF_KEYS.get(name, set())


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_form_shows_no_command_line(name):
    form = command_form(name)
    assert form["text"]
    assert "Examples:" not in form["text"]
    assert all(field["help"] for field in form["fields"] if field["option"])


def test_the_plugin_is_written_once(tmp_path):
    path = tmp_path / "psd é.zip"
    assert "Install from ZIP" in passes("qgis-plugin", "-o", path)
    assert zipfile.ZipFile(path).testzip() is None
    assert "--overwrite" in fails(6, "qgis-plugin", "-o", path)
    passes("qgis-plugin", "-o", path, "--overwrite")
    assert "-o must end in .zip" in fails(2, "qgis-plugin", "-o", tmp_path / "psd.qgz")
