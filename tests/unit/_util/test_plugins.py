"""Variants are found by the names of their files, and by entry points of other packages."""

import sys
from types import SimpleNamespace

import pytest

from psd._util import plugins
from psd._util.extras import install_text
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
    plugins.refresh()
    yield folder.name
    for module in [name for name in sys.modules if name.startswith(folder.name)]:
        del sys.modules[module]
    plugins.refresh()


def test_names_are_files_with_hyphens_and_a_variant_is_imported_by_name(family):
    assert plugins.names(family) == ("broken", "plain", "two-words")
    assert f"{family}.plain" not in sys.modules
    assert plugins.load(family, "thing", "plain").value == 1
    assert plugins.load(family, "thing", "two-words").value == 2
    for name in ("two_words", "_shared", "PLAIN", "", "os", "plain.value"):
        with pytest.raises(ParameterError, match="thing must be one of broken, plain, two-words"):
            plugins.load(family, "thing", name)
    with pytest.raises(ParameterError, match=r"got 'plaine'; did you mean 'plain'\?"):
        plugins.load(family, "thing", "plaine")
    assert {"grid", "quadtree"} <= set(plugins.names("psd.decompositions"))
    exports = "csv flatgeobuf geojson geopackage geoparquet geotiff npy pmtiles postgis xlsx"
    assert plugins.names("psd.export") == tuple(exports.split())


@pytest.fixture
def installed(tmp_path, monkeypatch, family):
    """Install packages whose entry points add to the family, as pip would."""
    monkeypatch.setitem(plugins.GROUPS, family, "psd.examples")

    def install(package, module, *entries):
        folder = tmp_path / f"{package}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = "\n".join(f"{name} = psd_example_{package}" for name in entries)
        (folder / "entry_points.txt").write_text(f"[psd.examples]\n{lines}\n")
        (tmp_path / f"psd_example_{package}.py").write_text(module)
        plugins.refresh()

    yield install
    for module in [name for name in sys.modules if name.startswith("psd_example_")]:
        del sys.modules[module]


def test_a_variant_of_another_package_stands_behind_those_of_this_one(family, installed):
    installed("stripes", "value = 3\n", "a-stripe")
    assert plugins.names(family) == ("broken", "plain", "two-words", "a-stripe")
    assert "psd_example_stripes" not in sys.modules
    assert plugins.load(family, "thing", "a-stripe").value == 3
    assert plugins.problems(family, "thing") == ()
    wrong = ["Stripe", "two words", "x" * 41, "1st", "a_b"]
    installed("other", "value = 4\n", "plain", *wrong)
    assert plugins.load(family, "thing", "plain").value == 1
    assert not set(wrong) & set(plugins.names(family))
    problems = set(plugins.problems(family, "thing"))
    taken = "thing 'plain' of other 1.0 is left out: psd has one of that name; it must be renamed"
    assert taken in problems
    assert len(problems) == 1 + len(wrong)
    spelled = "its name must be small letters, digits and hyphens"
    assert all(spelled in each for each in problems - {taken})


def test_broken_packages_and_two_with_one_name_are_told(family, installed):
    installed("broken", "raise RuntimeError('half installed')\n", "stripe")
    assert "stripe" in plugins.names(family)
    assert plugins.load(family, "thing", "plain").value == 1
    with pytest.raises(ParameterError, match=r"broken 1\.0 cannot be loaded: RuntimeError: half"):
        plugins.load(family, "thing", "stripe")
    installed("first", "value = 5\n", "stripe")
    installed("second", "value = 6\n", "stripe")
    with pytest.raises(ParameterError, match=r"registered by .*1\.0 and .*1\.0; uninstall"):
        plugins.load(family, "thing", "stripe")


def test_a_variant_can_be_registered_in_a_running_process(family, monkeypatch):
    monkeypatch.setattr(plugins, "_registered", {})
    for value in (7, 8):
        plugins.register(family, "thing", "stripe", SimpleNamespace(value=value))
        assert plugins.load(family, "thing", "stripe").value == value
    assert plugins.names(family)[-1] == "stripe"
    with pytest.raises(ParameterError, match="thing 'plain' is one of psd"):
        plugins.register(family, "thing", "plain", SimpleNamespace(value=1))
    with pytest.raises(ParameterError, match="must be small letters"):
        plugins.register(family, "thing", "Two", SimpleNamespace(value=1))


def test_an_extra_is_installed_from_the_source():
    assert install_text("plot") == "run pip install '.[plot]' in the folder of the source of psd"
