"""psd methodology: a page beside the release, and refusals before anything is written."""

import pytest

from support.cli_runner import fails, passes, three_by_three

pytest.importorskip("matplotlib")


@pytest.fixture
def release(tmp_path):
    path = tmp_path / "r.psd.parquet"
    three_by_three().save(path)
    return path


def test_the_page_is_written_once(release, tmp_path):
    page = tmp_path / "sheet of the method ü.html"
    assert passes("methodology", release, "-o", page) == f"wrote {page}\n"
    text = page.read_text(encoding="utf-8")
    assert "epsilon 1 per record" in text
    assert str(tmp_path) not in text
    assert "--overwrite" in fails(6, "methodology", release, "-o", page)
    passes("methodology", release, "-o", page, "--overwrite")


def test_other_endings_and_the_release_itself_are_refused(release, tmp_path):
    assert "must end in .html" in fails(2, "methodology", release, "-o", tmp_path / "sheet.pdf")
    fails(5, "methodology", tmp_path / "none.psd.parquet", "-o", tmp_path / "x.html")
    assert not (tmp_path / "x.html").exists()
