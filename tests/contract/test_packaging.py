"""What is installed: every package, and every file in them that is no module."""

import tomllib
from pathlib import Path

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
