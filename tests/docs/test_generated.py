"""Pages that are generated are what their generators write now."""

import importlib.util
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def generate():
    """The module docs/generate.py."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = generate().PAGES


@pytest.mark.parametrize("name", sorted(PAGES))
def test_page_is_what_the_generator_writes(name):
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), "run: python docs/generate.py"
