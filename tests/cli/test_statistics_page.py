"""docs/guide/statistics.md: its commands run as they are written, in their order."""

import re
import shlex
from pathlib import Path

import pytest

from support.cli_runner import passes

ROOT = Path(__file__).resolve().parents[2]


def commands():
    """Lines of the page that begin with psd, continued ones joined."""
    text = (
        (ROOT / "docs" / "guide" / "statistics.md").read_text(encoding="utf-8").replace("\\\n", " ")
    )
    return [shlex.split(line) for line in re.findall(r"^psd .*", text, re.MULTILINE)]


@pytest.mark.nightly
def test_commands_of_the_page_run(tmp_path, monkeypatch):
    pytest.importorskip("rasterio")
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    found = commands()
    assert {line[1] for line in found} == {
        "build", "query", "top", "quantiles", "export", "difference",
    }  # fmt: skip
    for _, *args in found:
        assert passes(*args)
