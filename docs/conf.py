"""The site: `sphinx-build -W -j auto docs build/site`, with the extra ``docs``; offline.

Pages are those that the repository shows as well. Links that leave docs/ lead to their page of the
site where there is one (``ROOT_PAGES``), else to the source.
"""

from __future__ import annotations

import os
import re
import runpy
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from psd import __version__  # noqa: E402
from psd._util.extras import SOURCE  # noqa: E402

project, author, copyright = "psd", "The psd developers", "The psd developers"
version = release = __version__
root_doc = "index"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["README.md", "measured/data/**", "reference/psd.1", "_templates/**"]
templates_path = ["_templates"]

# Options of a command begin with two hyphens, which smart quotes would show as a dash.
smartquotes = False
default_role = "code"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "attrs_inline"]
suppress_warnings = ["myst.header"]  # some pages begin below a heading of the first level

# Notebooks run in a kernel of this environment; outputs are kept, so a second build is fast.
nb_execution_mode = os.environ.get("PSD_NOTEBOOKS", "cache")
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
# A kernel starts in the root of the project, as the commands of the pages do.
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")

autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"  # docstrings name types, in words
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True  # attributes of a dataclass are described once
napoleon_custom_sections = ["Guarantees"]
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = f"psd {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_show_search_summary = False  # it fetches pages, which no browser does from a disk
html_copy_source = False
html_last_updated_fmt = None
html_theme_options = {
    "logo": {"text": "psd"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "search_as_you_type": True,
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

ROOT_PAGES = {
    "CHANGELOG.md": "contributing/changes",
    "CONTRIBUTING.md": "contributing/code",
    "lab/README.md": "contributing/lab",
    "data/seoul/README.md": "contributing/data-seoul",
    "data/hours/README.md": "contributing/data-hours",
    "data/trips/README.md": "contributing/data-trips",
    "data/fares/README.md": "contributing/data-fares",
}
"""Pages elsewhere in the repository, and their names on the site."""

_SAME = {
    "README.md": "index",
    "docs/README.md": "index",
    "docs/measured/data/README.md": "measured/tables",
}
"""Pages whose part another page of the site has."""


def _link(target: str, folder: Path) -> str:
    """Address on the site of a link in a file of a folder."""
    path, hash_, anchor = target.partition("#")
    if not path or re.match(r"[a-z]+:", path):
        return target
    found = Path(os.path.normpath(folder / path))
    name = found.relative_to(ROOT).as_posix() if found.is_relative_to(ROOT) else ""
    if page := _SAME.get(name):
        return f"/{page}.md"
    if page := ROOT_PAGES.get(name):
        return f"/{page}.md{hash_}{anchor}"
    is_page = name.startswith("docs/") and found.suffix in {".md", ".png"}
    if is_page:
        return f"/{name.removeprefix('docs/')}{hash_}{anchor}"
    return f"{SOURCE}/blob/main/{name}"


def _read_source(app: Any, docname: str, source: list[str]) -> None:
    """Take the text of a page of ``ROOT_PAGES`` from its file, and lead its links to the site."""
    origin = {page: name for name, page in ROOT_PAGES.items()}.get(docname)
    path = ROOT / origin if origin else Path(app.env.doc2path(docname))
    text = path.read_text(encoding="utf-8") if origin else source[0]
    if path.suffix != ".md":
        return
    folder = path.parent
    text = re.sub(r"(?<=\]\()[^)\s]+(?=\))", lambda found: _link(found[0], folder), text)
    # A page of the repository says why a block is not run; the site does not show it.
    source[0] = re.sub(r"^<!-- not run: .*? -->\n", "", text, flags=re.M)


def _plain_references(*arguments: Any) -> None:
    """References of a docstring as a list: their numbers are not those of the page."""
    lines: list[str] = arguments[-1]
    for number, line in enumerate(lines):
        line = re.sub(r"\[(\d+)\]_", r"[\1]", line)
        lines[number] = re.sub(r"^\.\. \[(\d+)\] ", r"*  [\1] ", line)


def _generate(*_: Any) -> None:
    """Make the pages that are not in git."""
    pages = runpy.run_path(str(ROOT / "docs" / "generate.py"))
    for name, text in pages["changed_pages"](pages["MADE"]).items():
        path = ROOT / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _spread_notebooks(_: Any, __: Any, names: list[str]) -> None:
    """Put notebooks, whose kernels take longest, apart: processes read runs of neighbours."""
    notebooks = [name for name in names if name.startswith("notebooks/")]
    others = [name for name in names if name not in notebooks]
    share = -(-len(others) // max(len(notebooks), 1))
    for number, name in enumerate(notebooks):
        others.insert(number * (share + 1), name)
    names[:] = others


def setup(app: Any) -> dict[str, bool]:
    """Connect the functions of this file."""
    app.connect("config-inited", _generate, priority=100)
    app.connect("env-before-read-docs", _spread_notebooks)
    app.connect("source-read", _read_source)
    # After napoleon, which runs at 500.
    app.connect("autodoc-process-docstring", _plain_references, priority=600)
    return {"parallel_read_safe": True}
