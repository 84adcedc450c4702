"""The page of errors and exit codes, from `psd.errors` and the command line."""

from __future__ import annotations

import inspect

from psd import errors
from psd_cli.main import EXIT_CODES, INTERNAL, INTERRUPTED

HEAD = """\
# Errors and exit codes

Every error is one line on standard error, `psd: error: MESSAGE`. A message names columns, options
and parameters, and never a value, a record or a count of the data. [Bad input](bad-input.md) lists
what each kind of bad input leads to.

This page is generated from `psd/errors.py` by `python docs/generate.py`.

| exit code | error in Python | also a | meaning |
|---|---|---|---|
| 0 | | | done |
"""

TAIL = """\

Every class is a subclass of `psd.errors.PsdError`, so `except psd.errors.PsdError` catches all of
them. A usage error of the command line, such as an unknown option, has exit code 2 as well.
`ResourceError` is an `InputDataError` with the same exit code: memory, disk or an engine gave out
while the input was read.

With a ledger (`psd build` and `psd ask` with `--ledger`, `account=` in Python), every
fault of the input that shows after reading began has exit code 8 and one fixed sentence, without a
reason. [What a refused build reveals](../privacy/guarantee.md#what-a-refused-build-reveals) says
why.
"""


def page() -> str:
    """Give the text of the page."""
    classes = sorted(EXIT_CODES, key=lambda error: (EXIT_CODES[error], error.__name__))
    rows = [_row(error) for error in classes if EXIT_CODES[error] != INTERNAL]
    rows += [_row(error) for error in classes if EXIT_CODES[error] == INTERNAL]
    rows.append(
        f"| {INTERNAL} | | | any unexpected error; `psd --debug COMMAND` shows its origin |"
    )
    rows.append(f"| {INTERRUPTED} | `KeyboardInterrupt` | | interrupted by Ctrl-C or SIGTERM |")
    return HEAD + "\n".join(rows) + "\n" + TAIL


def _row(error: type[errors.PsdError]) -> str:
    """Line of the table about one class."""
    also = ", ".join(
        f"`{base.__name__}`" for base in error.__bases__ if base is not errors.PsdError
    )
    text = " ".join((inspect.getdoc(error) or "").partition("\n\n")[0].split())
    return f"| {EXIT_CODES[error]} | `{error.__name__}` | {also} | {text} |"
