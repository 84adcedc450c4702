"""The names of `psd`: each is what it should be, whatever was imported before."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from operator import attrgetter
from pathlib import Path

import pytest

import psd

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"apps", "decompositions", "errors", "testing"}
APPS = {"choosing", "local", "suggest"}
PUBLIC = {"psd", *(f"psd.{name}" for name in MODULES), *(f"psd.apps.{name}" for name in APPS)}
FUNCTIONS = {
    "ask", "audit", "build", "compare", "difference", "evaluate", "load", "merge", "method",
    "methods", "plan", "tally",
}  # fmt: skip
CLASSES = {
    "Columns", "Covariate", "Domain", "Ledger", "PrivacyUnit", "Release", "SeriesRelease",
    "Stream", "TimeSlices",
}  # fmt: skip
PAGES = sorted(
    [ROOT / "README.md"]
    + [page for page in (ROOT / "docs").rglob("*.md") if "contributing" not in page.parts]
)
LOOK = """
import importlib, pkgutil
import psd
for module in pkgutil.walk_packages(psd.__path__, "psd."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:  # of an extra that is not installed
            pass
for name in psd.__all__:
    print(name, type(getattr(psd, name)).__name__)
"""


def kind_of(name):
    """Kind of a public name, as its spelling says."""
    if name in MODULES:
        return "module"
    if name == "__version__":
        return "str"
    return "type" if name[0].isupper() else "function"


@pytest.mark.deep
def test_imports_of_submodules_shadow_no_public_name():
    done = subprocess.run([sys.executable, "-c", LOOK], check=True, capture_output=True, text=True)
    kinds = dict(line.split() for line in done.stdout.splitlines())
    assert list(kinds) == sorted(psd.__all__)
    for name, kind in kinds.items():
        classes = ("type", "_ProtocolMeta", "ABCMeta")
        assert kind == kind_of(name) or (kind_of(name) == "type" and kind in classes), name


def test_public_names():
    """They are listed in their order, and no other module has the name of one."""
    submodules = {module.name for module in pkgutil.iter_modules(psd.__path__)}
    assert set(psd.__all__) >= FUNCTIONS | CLASSES
    assert submodules & set(psd.__all__) == MODULES
    assert dir(psd) == psd.__all__ == sorted(psd.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Quadtre'"):
        psd.Quadtre  # noqa: B018


def test_public_functions_state_arguments_errors_and_an_example(subtests):
    for name in psd.__all__:
        function = getattr(psd, name)
        if inspect.isfunction(function):
            with subtests.test(name):
                found = set(re.findall(r"^(\w+)\n-{3,}$", inspect.getdoc(function), re.M))
                assert "Examples" in found
                assert "Raises" in found or not inspect.signature(function).parameters


def test_pages_import_public_modules_and_name_what_exists(subtests):
    for page in PAGES:
        blocks = re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
        code = "\n".join(blocks)
        with subtests.test(str(page.relative_to(ROOT))):
            assert set(re.findall(r"^\s*(?:from|import) +(psd[\w.]*)", code, re.M)) <= PUBLIC
            for name in re.findall(r"^\s*from psd import (.*)$", code, re.M):
                assert {part.strip() for part in name.split(",")} <= set(psd.__all__)
            for dotted in set(re.findall(r"\bpsd\.[A-Za-z_.]*[A-Za-z_]", code)) - {"psd.parquet"}:
                assert attrgetter(dotted.partition(".")[2])(psd) is not None


def test_classes_of_decompositions_are_methods():
    decompositions = importlib.import_module("psd.decompositions")
    assert {"Grid", "Quadtree"} <= set(dir(decompositions))
    assert psd.decompositions.Quadtree(height=2).name == "quadtree"
