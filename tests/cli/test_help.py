"""Help texts, the list of methods, and the forms of QGIS: every command and every option."""

import dataclasses
import re
import shlex
import zipfile
from importlib import import_module

import click

from psd.decompositions import method_class, methods
from psd_cli.main import COMMANDS
from psd_cli.output import command_forms
from support.cli_runner import fails, passes

# PRIVATE numbers on the screen, the form of what is printed, and the limit for unknown senders.
NOT_IN_FORMS = {"private_output", "form", "max_nodes"}
# Keys of options that have a field of their own.
OF_KEYS = {"build": {"coordinate_resolution", "min_cell", "keep_tally"}}


def command(name):
    return import_module(f"psd_cli.commands.{name.replace('-', '_')}").command


def examples(text):
    """Command lines of a help text, continued lines joined."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.strip().startswith("psd ")]


def test_help_of_every_command(subtests):
    for name, sentence in COMMANDS.items():
        with subtests.test(name):
            text = passes(name, "--help")
            assert text == passes(name, "-h")
            for parameter in command(name).params:
                is_option = isinstance(parameter, click.Option)
                names = parameter.opts if is_option else [parameter.human_readable_name]
                assert all(spelling in text for spelling in names)
                if is_option:
                    assert (parameter.help or "").strip().endswith("."), parameter.opts
            # Defaults are texts that may be typed.
            assert not re.search(r"\[default: \(|\[default: [^]]*, ", " ".join(text.split()))
            assert sentence in passes("--help")
            assert sentence.endswith(".")


def test_examples_are_command_lines_that_parse(subtests):
    for name in COMMANDS:
        with subtests.test(name):
            found = examples(passes(name, "--help"))
            assert found
            for prog, sub, *args in found:
                assert (prog, sub) == ("psd", name)
                command(name).make_context(name, args)
    found = [line for line in examples(passes("--help")) if "COMMAND" not in line]
    assert [line[1] for line in found] == ["build", "query"]
    for _, sub, *args in found:
        command(sub).make_context(sub, args)


def test_each_method_with_its_parameters(subtests):
    text = passes("methods")
    for name in methods():
        with subtests.test(name):
            kind = method_class(name)
            assert f"\n{name} " in text
            assert kind.paper in text
            mine = text[text.index(f"\n{name} ") :].splitlines()
            for field in dataclasses.fields(kind):
                line = next(line for line in mine if line.split()[:1] == [field.name])
                assert field.metadata["doc"] in line
                assert field.default is None or str(field.default) in line


def test_a_form_has_every_option_of_its_command_and_no_command_line(subtests):
    for name in command_forms.COMMANDS:
        with subtests.test(name):
            form = command_forms.command_form(name)
            options = {parameter.name for parameter in command(name).params} - NOT_IN_FORMS
            fields = {field["name"] for field in form["fields"]}
            assert fields == options | OF_KEYS.get(name, set())
            assert form["text"]
            assert "Examples:" not in form["text"]
            assert all(field["help"] for field in form["fields"] if field["option"])


def test_the_plugin_of_qgis_is_written_once(here):
    assert "Install from ZIP" in passes("qgis-plugin -o psd-é.zip")
    assert zipfile.ZipFile("psd-é.zip").testzip() is None
    assert "--overwrite" in fails(6, "qgis-plugin -o psd-é.zip")
    passes("qgis-plugin -o psd-é.zip --overwrite")
    assert "-o must end in .zip" in fails(2, "qgis-plugin -o psd.qgz")
