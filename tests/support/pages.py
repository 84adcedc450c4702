"""Pages of the documentation: which are made, their blocks of code, and a run of them."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from support import every_app  # noqa: F401 (pages speak of all)
from support.postgres import rows

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_GENERATE = runpy.run_path(str(DOCS / "generate.py"))
# Functions that give the text of a page, by its path: of pages that are not in git, and of others.
MADE = {DOCS / name: page for name, page in _GENERATE["MADE"].items()}
KEPT = {DOCS / name: page for name, page in _GENERATE["KEPT"].items()}
# Pages that only the site has: lists of pages, notebooks, and the places of pages of elsewhere.
OF_SITE = {
    *DOCS.rglob("index.md"),
    *(DOCS / "notebooks").glob("*.md"),
    *(
        page
        for page in (DOCS / "contributing").glob("*.md")
        if "The site shows" in page.read_text()
    ),
}
BLOCK = re.compile(r"^(?:<!-- not run: (.*?) -->\n)?```(\w*|\{[\w-]+\}.*?)\n(.*?)^```", re.M | re.S)
INSTALLS = "python3 -m venv"


@dataclass(frozen=True)
class Block:
    """A block of code of a page, and the reason why it is not run, or an empty text."""

    language: str
    text: str
    reason: str


def blocks(page):
    """Blocks of a page in their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [Block(language, code, reason) for reason, language, code in BLOCK.findall(text)]


def command_lines(block):
    """Words of every psd command of a block of the shell, without redirections and pipes."""
    for line in block.text.replace("\\\n", " ").splitlines():
        if not re.search(r"(^|[|&]) *psd ", line):
            continue
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&<>")
        lexer.whitespace_split = True
        words = list(lexer)
        starts = [i for i, word in enumerate(words) if word == "psd"]
        for start in starts:
            rest = words[start + 1 :]
            ends = [i for i, word in enumerate(rest) if set(word) <= set("|&<>")]
            yield rest[: ends[0]] if ends else rest


def run_shell(text):
    """Run a text of the shell with this Python; give what it prints."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
    )
    assert done.returncode == 0, f"{text}\n{done.stderr}"
    return done.stdout


def run_page(page, replace=("", ""), ready=""):
    """Run the examples of a page in their order, also those that wait for what is ready."""
    names = {}
    for block in blocks(page):
        code = block.text.replace(*replace) if replace[0] else block.text
        if (block.reason and block.reason != ready) or INSTALLS in code:
            continue
        if block.language == "python":
            exec(code, names)
        elif block.language == "sql":
            assert rows(replace[1], code.strip().removesuffix(";"))
        elif block.language == "sh":
            run_shell(code)
        elif name := re.match(r"# (\S+\.toml)\n", code):
            Path(name[1]).write_text(code, encoding="utf-8")
