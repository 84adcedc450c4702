"""The names of `psd`: each is what it should be, whatever was imported before."""

import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import psd

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = (
    "psd",
    "psd.choosing",
    "psd.decompositions",
    "psd.errors",
    "psd.local",
    "psd.suggest",
    "psd.testing",
)
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
    if name in ("choosing", "decompositions", "errors", "local", "suggest", "testing"):
        return "module"
    if name == "__version__":
        return "str"
    return "type" if name[0].isupper() else "function"


def test_the_names_of_the_plan_are_public():
    assert set(psd.__all__) >= FUNCTIONS | CLASSES


def test_imports_of_submodules_shadow_no_public_name():
    done = subprocess.run([sys.executable, "-c", LOOK], check=True, capture_output=True, text=True)
    kinds = dict(line.split() for line in done.stdout.splitlines())
    assert list(kinds) == sorted(psd.__all__)
    for name, kind in kinds.items():
        classes = ("type", "_ProtocolMeta", "ABCMeta")
        assert kind == kind_of(name) or (kind_of(name) == "type" and kind in classes), name


def test_no_public_name_is_that_of_a_submodule():
    submodules = {module.name for module in pkgutil.iter_modules(psd.__path__)}
    assert submodules & set(psd.__all__) == {
        *("choosing", "decompositions", "errors", "local", "suggest", "testing"),
    }


def test_names_are_listed_in_their_order():
    assert psd.__all__ == sorted(psd.__all__)
    assert dir(psd) == psd.__all__


def test_an_unknown_name_is_refused():
    with pytest.raises(AttributeError, match="no attribute 'Quadtre'"):
        psd.Quadtre  # noqa: B018


@pytest.mark.parametrize("name", [n for n in psd.__all__ if inspect.isfunction(getattr(psd, n))])
def test_public_functions_state_arguments_errors_and_an_example(name):
    function = getattr(psd, name)
    sections = set(re.findall(r"^(\w+)\n-{3,}$", inspect.getdoc(function), re.M))
    assert "Examples" in sections
    if inspect.signature(function).parameters:
        assert "Raises" in sections


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_pages_import_public_modules_only(page):
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S))
    imported = re.findall(r"^\s*(?:from|import) +(psd[\w.]*)", code, re.M)
    assert set(imported) <= set(PUBLIC)
    for name in re.findall(r"^\s*from psd import (.*)$", code, re.M):
        assert {part.strip() for part in name.split(",")} <= set(psd.__all__)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_of_psd_on_pages_exist(page):
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.M | re.S))
    for dotted in set(re.findall(r"\bpsd\.[A-Za-z_.]*[A-Za-z_]", code)) - {"psd.parquet"}:
        value = psd
        for part in dotted.split(".")[1:]:
            value = getattr(value, part)
        assert value is not None


def test_classes_of_decompositions_are_methods():
    decompositions = importlib.import_module("psd.decompositions")
    assert {"Grid", "Quadtree"} <= set(dir(decompositions))
    assert psd.decompositions.Quadtree(height=2).name == "quadtree"
