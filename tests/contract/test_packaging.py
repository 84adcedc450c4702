"""What is installed and published: every package, and every file in them that is no module."""

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from psd import __version__
from psd._util.extras import SOURCE

TOP = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
FOLDERS = {"psd": TOP / "psd", "psd_cli": TOP / "cli"}


def package_of(name, path):
    """Dotted name of the folder of a file."""
    return ".".join([name, *path.parent.relative_to(FOLDERS[name]).parts])


def test_every_package_is_installed():
    modules = [(name, path) for name, folder in FOLDERS.items() for path in folder.rglob("*.py")]
    assert {package_of(*each) for each in modules} == set(SETTINGS["packages"])


def test_every_other_file_is_installed():
    files = {
        (package_of(name, path), path.name)
        for name, folder in FOLDERS.items()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".py" and path.parent.name != "__pycache__"
    }
    stated = SETTINGS["package-data"].items()
    assert files == {(name, file) for name, each in stated for file in each}


@pytest.mark.deep
def test_the_recipe_of_conda_asks_for_what_the_package_asks_for():
    import jinja2  # both come with the extra `docs`
    import yaml

    text = (TOP / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    recipe = yaml.safe_load(jinja2.Template(text).render())
    stated = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert recipe["package"] == {"name": stated["name"], "version": __version__}
    wanted = [Requirement(each) for each in stated["dependencies"]]
    names = {"duckdb": "python-duckdb"}  # as conda names it
    assert recipe["requirements"]["run"] == [
        f"python {stated['requires-python']}",
        *(f"{names.get(each.name, each.name)} {each.specifier}" for each in wanted),
    ]
    assert recipe["build"]["entry_points"] == [
        f"{name} = {target}" for name, target in stated["scripts"].items()
    ]
    assert recipe["about"]["summary"] == stated["description"]
    assert {recipe["about"]["home"], *stated["urls"].values()} == {SOURCE}


@pytest.mark.deep
def test_the_files_that_are_published_hold_the_package_alone(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", tmp_path, TOP], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    [wheel], [source] = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    stem = f"psd_publisher-{__version__}"
    with zipfile.ZipFile(wheel) as opened:
        tops = {name.partition("/")[0] for name in opened.namelist()}
    assert tops == {"psd", "psd_cli", f"{stem}.dist-info"}
    with tarfile.open(source) as opened:
        names = {name.removeprefix(f"{stem}/").partition("/")[0] for name in opened.getnames()}
    assert names - {stem} == {
        "LICENSE", "PKG-INFO", "README.md", "cli", "psd", "psd_publisher.egg-info",
        "pyproject.toml", "setup.cfg",
    }  # fmt: skip
    assert max(wheel.stat().st_size, source.stat().st_size) < 3_000_000
