"""Help texts: every command, every option, and examples that are real command lines."""

import re
import shlex
from importlib import import_module

import click
import pytest

from psd_cli.main import COMMANDS
from support.cli_runner import passes

every_command = pytest.mark.parametrize("name", COMMANDS)


def command(name):
    return import_module(f"psd_cli.commands.{name.replace('-', '_')}").command


def examples(text):
    """Command lines of a help text, continued lines joined."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.strip().startswith("psd ")]


@every_command
def test_help_names_every_option_and_argument(name):
    text = passes(name, "--help")
    assert text == passes(name, "-h")
    for parameter in command(name).params:
        is_option = isinstance(parameter, click.Option)
        names = parameter.opts if is_option else [parameter.human_readable_name]
        assert all(spelling in text for spelling in names)


@every_command
def test_every_option_says_what_it_does(name):
    for parameter in command(name).params:
        if isinstance(parameter, click.Option):
            assert (parameter.help or "").strip().endswith("."), parameter.opts


@every_command
def test_defaults_are_texts_that_may_be_typed(name):
    text = " ".join(passes(name, "--help").split())
    assert re.search(r"\[default: \(|\[default: [^]]*, ", text) is None


@every_command
def test_one_line_in_the_list_of_commands(name):
    assert COMMANDS[name] in passes("--help")
    assert COMMANDS[name].endswith(".")


@every_command
def test_examples_are_command_lines_that_parse(name):
    found = examples(passes(name, "--help"))
    assert found
    for prog, sub, *args in found:
        assert (prog, sub) == ("psd", name)
        command(name).make_context(name, args)


def test_examples_of_the_program_parse():
    found = [line for line in examples(passes("--help")) if "COMMAND" not in line]
    assert [line[1] for line in found] == ["build", "query"]
    for _, sub, *args in found:
        command(sub).make_context(sub, args)
