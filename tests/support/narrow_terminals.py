"""Tables of commands on terminals that are too narrow for them."""

import re

from rich.console import Console

from support.cli_runner import cli

NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*\.?\d*%?(?![\w.])")
# How lines begin that hold a sentence, which may be long.
SENTENCES = ("- ", "Expected", "Each", "median", "for queries")


def printed(line, width, monkeypatch):
    """Output of a command on a terminal of this width."""
    monkeypatch.setattr(
        "psd_cli.output.tables.open_console",
        lambda: Console(width=width, markup=False, highlight=False),
    )
    outcome = cli(line)
    assert outcome.code == 0
    assert "…" not in outcome.out
    return outcome


def headings(text):
    """Words above the first row of a table."""
    lines = [line for line in text.splitlines() if not line.startswith("Expected")]
    first = next(number for number, line in enumerate(lines) if re.search(r"\d[.,]\d", line))
    return set(" ".join(lines[:first]).split())


def letters(text):
    """All letters and digits, wherever lines are broken."""
    return sorted("".join(text.split()))


def check_narrow(line, monkeypatch, subtests, *, extra=frozenset(), may_leave_out=False):
    """Nothing is cut: narrow tables have the numbers, headings and letters of a wide one.

    Names, which are extra words, may stand above a table; some tables may leave columns out.
    """
    wide = printed(line, 1_000, monkeypatch)
    for width in (40, 80, 100):
        with subtests.test(width=width):
            narrow = printed(line, width, monkeypatch)
            assert set(NUMBER.findall(narrow.out)) <= set(NUMBER.findall(wide.out))
            if "too narrow" in narrow.err:
                assert may_leave_out
                assert headings(narrow.out) - extra <= headings(wide.out)
            else:
                assert letters(narrow.out) == letters(wide.out)
