"""The names of `psd`: each is what it should be, whatever was imported before."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest

import psd
from psd._apps import MEMBERS, has_app

MODULES = {"apps", "decompositions", "errors", "testing"}
FUNCTIONS = {
    "ask", "audit", "build", "compare", "difference", "evaluate", "load", "merge", "method",
    "methods", "plan", "tally",
}  # fmt: skip
CLASSES = {
    "Columns", "Covariate", "Domain", "Ledger", "PrivacyUnit", "Release", "Stream", "TimeSlices",
}  # fmt: skip
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


def is_there(name):
    """Whether a name is of the core, or of an app that is there."""
    return name not in MEMBERS or has_app(MEMBERS[name].split(".")[2])


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
    for name in filter(is_there, psd.__all__):
        function = getattr(psd, name)
        if inspect.isfunction(function):
            with subtests.test(name):
                found = set(re.findall(r"^(\w+)\n-{3,}$", inspect.getdoc(function), re.M))
                assert "Examples" in found
                assert "Raises" in found or not inspect.signature(function).parameters


def test_classes_of_decompositions_are_methods():
    decompositions = importlib.import_module("psd.decompositions")
    assert {"Grid", "Quadtree"} <= set(dir(decompositions))
    assert psd.decompositions.Quadtree(height=2).name == "quadtree"
