"""No text tells a user to install psd by a name of an index, where a stranger may hold it."""

import re
import subprocess
import sys

from psd._util.extras import CONTACT, SOURCE
from support.pages import ROOT

NAMED = re.compile(r"pip3? install (?:-\S+ |[\w-]+ |')*psd(-publisher)?\b(?![.\w])")
ONLY = "psd/_util/extras.py"


def texts():
    """Files that users read, or that write what they read."""
    yield ROOT / "README.md"
    yield ROOT / "CONTRIBUTING.md"
    for folder in ("psd", "cli", "docs"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".txt", ".toml", ".html", ".js", ".1"):
                yield path


def test_psd_is_installed_from_its_source_and_one_file_says_where_that_is():
    for bad in ("pip install psd", "pip install 'psd-publisher[plot]'", "pip install x psd"):
        assert NAMED.search(bad)
    for path in texts():
        text = path.read_text(encoding="utf-8")
        assert not NAMED.search(text), path
        if str(path.relative_to(ROOT)) != ONLY:
            assert SOURCE not in text, path
            assert CONTACT not in text, path


def test_the_command_refuses_another_package_of_its_name_in_one_sentence(tmp_path):
    for text in ("from .psd import Series\n", "x = 1\n"):  # the first is that of PyPI
        (tmp_path / "psd").mkdir(exist_ok=True)
        (tmp_path / "psd" / "__init__.py").write_text(text)
        (tmp_path / "psd_cli").exists() or (tmp_path / "psd_cli").symlink_to(ROOT / "cli")
        done = subprocess.run(
            [sys.executable, "-S", "-m", "psd_cli", "--version"],
            cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 7
        assert done.stderr.startswith("psd: error: the package psd of this Python must be that")
        assert done.stderr.count("\n") == 1
