"""Variants are found by the names of their files."""

import sys

import pytest

from psd._util import plugins as registry
from psd.errors import ParameterError


@pytest.fixture
def family(tmp_path, monkeypatch):
    """A package with two public variants and a private module."""
    folder = tmp_path / "psd_example_family"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "plain.py").write_text("value = 1\n")
    (folder / "two_words.py").write_text("value = 2\n")
    (folder / "_shared.py").write_text("raise RuntimeError('not to be imported')\n")
    (folder / "broken.py").write_text("raise RuntimeError('imported before it was asked for')\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry.names.cache_clear()
    yield folder.name
    for module in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[module]
    registry.names.cache_clear()


def test_names_are_files_with_hyphens_and_nothing_is_imported(family):
    assert registry.names(family) == ("broken", "plain", "two-words")
    assert f"{family}.plain" not in sys.modules


@pytest.mark.parametrize(("name", "value"), [("plain", 1), ("two-words", 2)])
def test_a_variant_is_imported_by_name(family, name, value):
    assert registry.load(family, "thing", name).value == value


@pytest.mark.parametrize("name", ["two_words", "_shared", "PLAIN", "", "os", "plain.value"])
def test_other_names_are_refused_with_those_that_exist(family, name):
    with pytest.raises(ParameterError, match=r"thing '.*' is none of broken, plain, two-words"):
        registry.load(family, "thing", name)


def test_the_families_of_the_library():
    assert {"grid", "quadtree"} <= set(registry.names("psd.decompositions"))
    assert registry.names("psd.export") == (
        "csv",
        "geojson",
        "geopackage",
        "geoparquet",
        "geotiff",
        "npy",
        "postgis",
    )
