"""Page of the planted bugs, docs/privacy/planted-bugs.md."""

from privacy.planted_bugs import registry

HEAD = """\
# Planted bugs

A privacy test that never fails proves nothing. So {} bugs are stored beside the tests: each is a
small patch of the package and the name of the test that catches it. The test is run with the patch
in the package, and must fail: with twelve of the bugs in the deep tier, and with all of them in the
nightly run (`pytest -m deep tests/privacy/test_planted_bugs.py`, `pytest -m nightly` of the same
file). Nearly all of these tests are of the fast tier.

Made by `python docs/generate.py`.
"""


def table(bugs):
    """Rows of one theme."""
    yield "| bug | what goes wrong | what it stands for | test |"
    yield "|---|---|---|---|"
    for bug in bugs:
        file, name = bug.test.removeprefix("tests/").split("::")
        yield f"| `{bug.id}` | {bug.wrong} | {bug.like} | `{file}` {name} |"


def page():
    """The whole page."""
    themes = registry.THEMES
    parts = (f"## {name}\n\n" + "\n".join(table(bugs)) for name, bugs in themes.items())
    return "\n".join([HEAD.format(sum(map(len, themes.values()))), "\n\n".join(parts), ""])
