"""The table of apps: what its names reach, what old names answer, and what a missing app does.

`tests/removal.py` takes apps out for real; here one is only said to be missing.
"""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import psd
from psd import _apps
from psd._apps import COMMANDS, FAMILIES, MEMBERS, MOVED, OPTIONS, USES, VARIANTS
from psd.errors import MissingExtraError
from support.cli_runner import cli, fails, passes, write_points
from support.needed_apps import TESTS, lacks_app, needed_apps
from support.pages import ROOT

MISSING = "must have the app {!r}, which this installation of psd was made without; install all of"


def app_of(module):
    return module.split(".")[2]


@pytest.fixture
def without(monkeypatch):
    """Says that an app is not there."""

    def gone(app):
        real = _apps.find_spec
        found = lambda name: None if name == f"psd.apps.{app}" else real(name)  # noqa: E731
        monkeypatch.setattr(_apps, "find_spec", found)
        _apps.has_app.cache_clear()

    yield gone
    monkeypatch.undo()
    _apps.has_app.cache_clear()


def test_each_name_of_the_table_is_of_an_app():
    variants = [module for family in VARIANTS.values() for module in family.values()]
    assert {*map(app_of, [*MEMBERS.values(), *variants, *FAMILIES])} <= {*USES}
    assert {*COMMANDS.values(), *OPTIONS.values()} <= {*USES}
    assert {used for each in USES.values() for used in each} <= {*USES}
    folders = {path.name for path in Path(psd.apps.__path__[0]).iterdir() if path.is_dir()}
    assert {name for name in USES if _apps.has_app(name)} == folders - {"__pycache__"}
    assert dir(psd.apps) == sorted(USES)


def test_members_are_loaded_by_their_names(subtests):
    for name, module in MEMBERS.items():
        if _apps.has_app(app_of(module)):
            with subtests.test(name):
                assert _apps.load_member(name).__name__ == name.rpartition(".")[2]


OLD_IMPORTS = {
    "import psd.local": "psd.local is psd.apps.local now",
    "from psd import local": "psd.local is psd.apps.local now",
    "from psd.local import design": "psd.local is psd.apps.local now",
    "import psd.local.device": "psd.local is psd.apps.local now",
    "from psd.choosing import select": "psd.choosing is psd.apps.choosing now",
    "import psd.suggest": "psd.suggest is psd.apps.suggest now",
}


def test_members_that_the_core_loads_are_in_the_table():
    asked = {
        name
        for folder in (ROOT / "psd", ROOT / "cli")
        for path in folder.rglob("*.py")
        for name in re.findall(
            r"(?<!plugins\.)\bload_member\(\"([^\"]+)\"\)", path.read_text("utf-8")
        )
    }
    assert "spark.SparkTable" in asked
    assert asked <= {*MEMBERS}


def test_imports_of_old_names_end_in_the_new_one(subtests):
    for code, told in OLD_IMPORTS.items():
        with subtests.test(code), pytest.raises(ModuleNotFoundError) as refused:
            exec(code)
        assert str(refused.value) == told
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'psd\.lokal'"):
        importlib.import_module("psd.lokal")


def test_old_names_are_no_attributes_and_say_the_new_one(subtests):
    for old, new in MOVED.items():
        name = old.removeprefix("psd.")
        with subtests.test(name):
            assert not hasattr(psd, name)
            with pytest.raises(AttributeError, match=f"^{re.escape(f'{old} is {new} now')}$"):
                getattr(psd, name)


def test_old_names_are_answered_once_in_a_process():
    before = [*sys.meta_path]
    _apps.answer_old_names()
    assert sys.meta_path == before


# What needs an app, and the app.
NEEDS = {
    "psd.plan": ("planning", lambda: psd.plan),
    "psd.apps.streams.Stream": ("streams", lambda: psd.apps.streams.Stream),
    "psd.apps.local": ("local", lambda: psd.apps.__getattr__("local")),
    "psd.apps.local.plan": ("planning", lambda: _apps.load_member("local.plan")),
}


@pytest.mark.parametrize("name", NEEDS)
def test_a_missing_app_is_named_where_it_is_needed(name, without):
    app, reach = NEEDS[name]
    without(app)
    with pytest.raises(MissingExtraError) as refused:
        reach()
    assert str(refused.value).startswith(f"{name} {MISSING.format(app)}")


def test_a_command_of_a_missing_app_is_one_sentence_and_not_listed(without):
    shown = passes("--help")
    without("planning")
    told = fails(7, "plan --area 1 --count 1 --epsilon 1")
    assert told == f"psd: error: psd plan {MISSING.format('planning')} psd\n"
    assert {*shown.splitlines()} - {*passes("--help").splitlines()} == {
        line for line in shown.splitlines() if line.startswith("  plan ")
    }
    assert cli("methods --help").code == 0


def test_a_group_shows_what_is_there_of_several_apps_and_goes_with_the_last(without):
    without("evaluation")
    told = f"psd: error: psd check compare {MISSING.format('evaluation')} psd\n"
    assert fails(7, "check compare x.csv") == told
    lines = [line.split()[:1] for line in passes("check").splitlines()]
    assert ["audit"] in lines
    assert ["compare"] not in lines
    without("auditing")
    assert fails(7, "check --help").startswith("psd: error: psd check must have the app 'auditing'")
    assert "  check " not in passes("--help")


def test_an_option_of_a_missing_app_is_one_sentence(without):
    without("web")
    told = f"psd: error: psd info --sheet {MISSING.format('web')} psd\n"
    assert fails(7, "info r.psd.parquet --sheet s.html") == told


def test_an_app_is_missing_with_one_that_it_uses(without):
    without("local")
    assert not _apps.has_app("planning")
    with pytest.raises(MissingExtraError, match=r"psd\.plan must have the app 'planning'"):
        psd.plan  # noqa: B018


def test_an_engine_of_a_missing_app_is_one_sentence(without, tmp_path):
    rows = write_points(tmp_path / "v.csv", [(1, 1)])
    without("spark")
    line = "--epsilon 1 --bounds 0 0 4 4 --engine spark://host:7077"
    assert (
        fails(7, f"build {rows} -o {tmp_path / 'r'} {line}")
        == f"psd: error: engine 'spark' {MISSING.format('spark')} psd\n"
    )
    with pytest.raises(
        MissingExtraError, match=r"^psd\.apps\.spark\.Spark must have the app 'spark'"
    ):
        psd.apps.spark.Spark  # noqa: B018


def test_tests_are_left_out_by_what_they_import_and_none_with_all_apps(without):
    apps = TESTS / "apps"
    files = [*TESTS.rglob("test_*.py")]
    if all(map(_apps.has_app, USES)):
        assert [path for path in files if lacks_app(path)] == []
        assert needed_apps(TESTS / "support" / "every_app.py") == {*USES}
        of_planning = apps / "planning" / "test_local_plan.py"
        assert needed_apps(of_planning) == {"evaluation", "local", "planning"}
        by_helper = apps / "streams" / "test_addition.py"
        without("streams")
        assert lacks_app(by_helper)
        assert not lacks_app(of_planning)
    core = TESTS / "unit" / "space" / "test_domain.py"
    assert needed_apps(core) == set()
    assert not lacks_app(core)


def test_psd_and_its_help_import_no_app():
    code = "import sys, psd, psd_cli.main; psd_cli.main.run(['--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = {*done.stdout.splitlines()[-1].split()}
    assert {name for name in loaded if name.startswith(("psd.apps.", "psd_cli.apps."))} == set()
    assert "numpy" not in loaded
