"""Pages that are generated are what their generators write now."""

import importlib.util
import re
from pathlib import Path

from psd.publish.recipe import Recipe

DOCS = Path(__file__).resolve().parents[2] / "docs"


def generate():
    """The module docs/generate.py."""
    spec = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = generate().PAGES


def test_page_is_what_the_generator_writes(subtests):
    for name, generated in PAGES.items():
        with subtests.test(name):
            written = (DOCS / name).read_text(encoding="utf-8")
            assert written == generated(), "run: python docs/generate.py"


def test_the_recipe_of_the_help_loads(tmp_path):
    (code,) = re.findall(r"```toml\n(.*?)```", PAGES["reference/command-line.md"](), re.S)
    path = tmp_path / "release.toml"
    path.write_text(code, encoding="utf-8")
    (release,) = Recipe.load(path).releases
    assert Path(release.output).name == "seoul.psd.parquet"
