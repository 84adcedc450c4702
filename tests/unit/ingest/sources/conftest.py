"""A file of a test, by its content."""

import pytest


@pytest.fixture
def file(tmp_path):
    def write(content, name="points.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
