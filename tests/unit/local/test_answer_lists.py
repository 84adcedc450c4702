"""Files of public lists."""

import pytest

from psd.errors import ParameterError
from psd.local.answer_lists import read_list


def test_lines_are_read_with_or_without_a_mark(tmp_path):
    path = tmp_path / "words"
    for mark in ("", "\ufeff"):
        path.write_text(f"{mark}서울\nbus\n", encoding="utf-8")
        assert read_list(str(path), "words") == ["서울", "bus"]
    path.write_bytes(b"\xff\xfe")
    for name in ("words", "missing"):
        with pytest.raises(ParameterError, match="options must be a file of lines in UTF-8"):
            read_list(str(tmp_path / name), "options")
