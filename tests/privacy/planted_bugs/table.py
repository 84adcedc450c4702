"""Page of the planted bugs, docs/privacy/planted-bugs.md."""

import sys

from privacy.planted_bugs import registry

HEAD = """\
# Planted bugs

A privacy test that never fails proves nothing. So {} bugs are kept beside the tests, each a
small patch of the package or a broken method. Every run plants them one by one: the check that
sound code passes has to fail under each of them (`pytest tests/privacy/test_mutants.py`). The
last column names the test of every run that checks the same of sound code. Where the bug is in the
package and not in a method, that test is run with it too, and has to fail
(`pytest tests/privacy/test_named_tests.py`; all of them with `-m nightly`).

Made by `PYTHONPATH=tests python -m privacy.planted_bugs.table > docs/privacy/planted-bugs.md`.
"""


def table(mutants):
    """Rows of one theme."""
    yield "| bug | what goes wrong | what it stands for | test |"
    yield "|---|---|---|---|"
    for mutant in mutants:
        file, name = mutant.test.removeprefix("tests/").split("::")
        yield f"| `{mutant.id}` | {mutant.wrong} | {mutant.like} | `{file}` {name} |"


def page():
    """The whole page."""
    parts = (f"## {name}\n\n" + "\n".join(table(of)) for name, of in registry.THEMES.items())
    return "\n".join([HEAD.format(len(registry.MUTANTS)), "\n\n".join(parts), ""])


if __name__ == "__main__":
    sys.stdout.write(page())
