"""What an app may import: names that the core lists in `__all__`, and apps that the table names."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import psd
import psd_cli
from psd._apps import USES
from support import every_app  # noqa: F401 (apps are named here)

ROOTS = {"psd": Path(psd.__file__).parent, "psd_cli": Path(psd_cli.__file__).parent}

# Modules of the core with an underscore that are open to apps: the tools, and the table of apps.
OPEN = ("psd._util", "psd._apps")

# The only files of the core that may name modules of apps: the table, and what finds commands.
NAMERS = {"psd._apps", "psd_cli.commands"}


def paths_of_modules() -> Iterator[tuple[str, Path]]:
    for package, root in ROOTS.items():
        for path in sorted(root.rglob("*.py")):
            parts = (package, *path.relative_to(root).with_suffix("").parts)
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


PATHS = dict(paths_of_modules())


def app_of(module: str) -> str | None:
    """App of a module; None for the core, and for the packages of all apps."""
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["apps"] and len(parts) > 2 else None


@cache
def source_of(module: str) -> str:
    return PATHS[module].read_text(encoding="utf-8")


@cache
def listed(module: str) -> frozenset[str]:
    """Names in the `__all__` of a module; none if it has none."""
    for node in ast.parse(source_of(module)).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def reached(module: str, text: str) -> Iterator[tuple[str, str | None]]:
    """Modules that a source reaches, and the names that it takes from them.

    By imports in whatever place and spelling, by attributes of modules that it imported, and by
    strings that are the name of a module. ``from psd.x import y`` reaches the module ``psd.x.y`` if
    there is one, and else takes the name ``y``.
    """
    is_package = module in PATHS and PATHS[module].stem == "__init__"
    nodes = list(ast.walk(ast.parse(text)))
    bound: dict[str, str] = {}  # modules by their names in this source
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, None
                first = alias.name.partition(".")[0]
                bound[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom):
            above = module.split(".") if is_package else module.split(".")[:-1]
            above = above[: len(above) + 1 - node.level] if node.level else []
            origin = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                whole = f"{origin}.{alias.name}"
                if whole in PATHS:
                    bound[alias.asname or alias.name] = whole
                yield (whole, None) if whole in PATHS else (origin, alias.name)
        elif isinstance(node, ast.Constant) and node.value in PATHS and "." in node.value:
            yield node.value, None

    for node in nodes:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts, node = [node.attr, *parts], node.value
        if parts and isinstance(node, ast.Name) and node.id in bound:
            found = bound[node.id]
            while parts and f"{found}.{parts[0]}" in PATHS:
                found = f"{found}.{parts.pop(0)}"
            if found in PATHS:
                yield found, parts[0] if parts else None


def faults(module: str, text: str) -> set[str]:
    """What a source of an app reaches and may not."""
    found, app = set(), app_of(module)
    for where, name in reached(module, text):
        other = app_of(where)
        if where.split(".")[0] not in ROOTS or other == app:
            continue
        if other is not None and other not in USES[app]:
            found.add(f"{where}: another app")
        elif where not in OPEN and "._" in where.removeprefix("psd._util"):
            found.add(f"{where}: a module with an underscore")
        elif name is not None and name not in listed(where):
            found.add(f"{where} {name}: not in __all__")
    return found


def test_the_table_names_every_app():
    assert {app for module in PATHS if (app := app_of(module))} <= {*USES}


@pytest.mark.parametrize("app", USES)
def test_an_app_takes_listed_names_of_the_core_and_of_apps_that_it_uses(app, subtests):
    for module in (module for module in PATHS if app_of(module) == app):
        with subtests.test(module):
            assert faults(module, source_of(module)) == set()


def test_the_table_of_apps_imports_them_for_types_alone():
    """So the contracts of `lint-imports` may ignore its imports."""
    for node in ast.parse(source_of("psd._apps")).body:
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            imports = [n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom)]
            assert "psd.apps" not in "".join(map(ast.unparse, imports))


def test_the_core_names_no_app(subtests):
    """Neither in an import nor in a text, so that the folder of an app can be left out."""
    for module in PATHS.keys() - NAMERS - {"psd.apps", "psd_cli.apps"}:
        text = source_of(module)
        if app_of(module) is None and "apps" in text:
            with subtests.test(module):
                assert "psd.apps" not in text
                assert "psd_cli.apps" not in text
                assert [each for each, _ in reached(module, text) if app_of(each)] == []


PLANTED = [
    "from psd.decompositions._base import Curator",
    "import psd.decompositions._base as base",
    "from psd.decompositions import _base",
    "def f():\n    from psd.decompositions._base import Curator",
    "if TYPE_CHECKING:\n    from psd.decompositions._base import Curator",
    "import_module('psd.decompositions._base')",
    "import psd\n\nx = psd.decompositions._base",
    "from psd.space.domain import Domain, np",
    "from psd.space import domain\n\nx = domain.np",
    "import psd.space.domain\n\nx = psd.space.domain.np",
    "from psd._util.plugins import re",
    "from psd.apps.streams.stream import Stream",
    "from psd.apps import streams",
    "import psd.apps.streams",
    "import_module('psd.apps.streams.stream')",
    "from psd_cli.apps.streams import COMMANDS",
    "from psd.apps.evaluation._constants import TIE",
]
HARMLESS = [
    "from psd.space.domain import Domain",
    "from psd.space import domain\n\nx = domain.Domain",
    "from psd._util import arrays\nfrom psd._util.arrays import sum_by\n\narrays.sum_by",
    "from psd import _apps\n\n_apps.load_member('plan')",
    "import psd\n\nx = psd.build",
    "from psd.apps.evaluation.workload import draw_workload",
    "from psd.apps.planning._constants import X\nimport _thread",
]


def test_what_is_planted_in_an_app_is_found(subtests):
    for module in ("psd.apps.planning.planted", "psd_cli.apps.planning"):
        for text in PLANTED:
            with subtests.test(f"{module}: {text}"):
                assert len(faults(module, text)) == 1
        for text in HARMLESS:
            with subtests.test(f"{module}: {text}"):
                assert faults(module, text) == set()
    assert len(faults("psd_cli.apps.web", "from ..output import _table\nfrom .local import x")) == 2
    assert faults("psd.apps.web.planted", "from . import _parts\nfrom ._parts import x") == set()


def test_what_is_planted_in_the_core_is_found(subtests):
    for text in (
        "from psd import apps\n\napps.local",
        "from ..apps import local",
        "from ..apps.local import design",
        "import psd.apps.local as local",
    ):
        with subtests.test(text):
            assert any(app_of(found) for found, _ in reached("psd.space.planted", text))
