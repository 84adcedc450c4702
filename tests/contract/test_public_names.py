"""The names of `psd`: each is what it should be, whatever was imported before."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys

import pytest

import psd
from psd._apps import MEMBERS, USES, has_app

MODULES = {
    "apps", "decompositions", "errors", "ledger", "regions", "signing", "sources", "testing",
}  # fmt: skip
FUNCTIONS = {"ask", "build", "load", "merge", "methods", "plan", "tally"}
CLASSES = {
    "Answers", "Columns", "Covariate", "Domain", "Ledger", "PrivacyUnit", "Release", "TimeSlices",
}  # fmt: skip
PACKAGES = ["psd", *(f"psd.{name}" for name in MODULES), *(f"psd.apps.{name}" for name in USES)]
LOOK = """
import importlib, pkgutil
import psd
for module in pkgutil.walk_packages(psd.__path__, "psd."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ImportError:  # of an extra that is not installed
            pass
for package in {packages}:
    try:
        package = importlib.import_module(package)
    except ModuleNotFoundError:  # an app that is not there
        continue
    for name in getattr(package, "__all__", ()):
        print(f"{{package.__name__}}.{{name}}", type(getattr(package, name)).__name__)
"""


def is_there(name):
    """Whether a name is of the core, or of an app that is there."""
    return name not in MEMBERS or has_app(MEMBERS[name].split(".")[2])


@pytest.mark.deep
def test_imports_of_submodules_shadow_no_public_name():
    look = LOOK.format(packages=PACKAGES)
    done = subprocess.run([sys.executable, "-c", look], check=True, capture_output=True, text=True)
    kinds = dict(line.split() for line in done.stdout.splitlines())
    assert {f"psd.{name}" for name in psd.__all__} <= {*kinds}
    for name, kind in kinds.items():
        own = name.rpartition(".")[2]
        assert (kind == "module") == (name in PACKAGES), name
        if own[0].isupper() and not own.isupper():
            assert kind not in ("function", "module"), name


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
        if inspect.isroutine(function):
            with subtests.test(name):
                found = set(re.findall(r"^(\w+)\n-{3,}$", inspect.getdoc(function), re.M))
                assert "Examples" in found
                assert "Raises" in found or not inspect.signature(function).parameters


def test_classes_of_decompositions_are_methods():
    decompositions = importlib.import_module("psd.decompositions")
    assert {"Grid", "Quadtree"} <= set(dir(decompositions))
    assert psd.decompositions.Quadtree(height=2).name == "quadtree"
