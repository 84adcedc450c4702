"""Which apps a file of the tests needs, by what it imports and what its helpers import."""

import ast
from functools import cache
from pathlib import Path

from psd._apps import USES, has_app

TESTS = Path(__file__).resolve().parents[1]


@cache
def imported(path):
    """Full names of all modules and members that a file imports, wherever it does so."""
    names = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def needed_apps(path):
    """Apps that a file imports, itself or by helpers that stand in the folder of the tests."""
    apps, seen, waiting = set(), set(), [path]
    while waiting:
        file = waiting.pop()
        seen.add(file)
        for name in imported(file):
            parts = name.split(".")
            if parts[0] in ("psd", "psd_cli") and parts[1:2] == ["apps"]:
                apps |= {*parts[2:3]} & {*USES}
            helpers = (TESTS.joinpath(*parts[:end]) for end in range(1, len(parts) + 1))
            waiting += {
                each.with_suffix(".py") for each in helpers if each.with_suffix(".py").is_file()
            } - seen
    return apps


def lacks_app(path):
    """Whether a file needs an app that is not there, or has gone with one.

    Where all apps are there, no file is read, and none lacks one.
    """
    if all(map(has_app, USES)):
        return False
    return not path.is_file() or not all(map(has_app, needed_apps(path)))
