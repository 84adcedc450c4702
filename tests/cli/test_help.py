"""Help texts: every command, every option, and examples that are real command lines."""

import re
import shlex
from importlib import import_module

import click

from psd_cli.main import COMMANDS
from support.cli_runner import passes


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
