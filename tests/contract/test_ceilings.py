"""No function takes more than 12 parameters, and no command more than 25 options."""

import ast
from importlib import import_module
from pathlib import Path

import click
import pytest

import psd
import psd_cli
from psd_cli.main import COMMANDS

PARAMETERS = 12
OPTIONS = 25


def functions():
    """Every function of the packages: where it stands, and its number of parameters."""
    for package in (psd, psd_cli):
        folder = Path(package.__file__).parent
        for path in sorted(folder.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{path.relative_to(folder.parent)}:{node.name}", parameters(node)


def parameters(node):
    """Number of parameters, without self and cls."""
    given = node.args
    names = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    own = [argument for argument in names if argument.arg not in ("self", "cls")]
    return len(own) + bool(given.vararg) + bool(given.kwarg)


def commands():
    """Every command and every command below one."""
    for name in COMMANDS:
        command = import_module(f"psd_cli.commands.{name.replace('-', '_')}").command
        yield name, command
        if isinstance(command, click.Group):
            yield from ((f"{name} {child}", below) for child, below in command.commands.items())


def test_no_function_takes_too_many_parameters():
    found = {place: count for place, count in functions() if count > PARAMETERS}
    assert found == {}


@pytest.mark.parametrize(("name", "command"), list(commands()))
def test_no_command_has_too_many_options(name, command):
    options = [param for param in command.params if isinstance(param, click.Option)]
    assert len(options) <= OPTIONS


def test_parameters_are_counted():
    source = "def f(self, a, /, b, *c, d=1, **e): ..."
    assert parameters(ast.parse(source).body[0]) == 5
