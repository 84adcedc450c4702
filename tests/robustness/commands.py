"""Commands of which a table says what comes of each: campaigns, streams, suggestions, choices."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Command:
    """A command, what is changed before it, and its outcome: files that it makes, charges."""

    name: str
    given: str
    args: str
    told: str = ""
    setup: Callable[[], object] = lambda: None
    code: int = 0
    makes: tuple[str, ...] = ()
    charges: int = 0
    deep: bool = False

    @property
    def id(self):
        return self.name.split("-")[0]


def taken(*what, **more):
    return Command(*what, **more)


def refused(*what, code=2, **more):
    return Command(*what, code=code, **more)


def later(function):
    """A change that is described with its last arguments, and made with its first ones."""
    return lambda *last, **named: lambda *first: function(*first, *last, **named)


def file(path, content):
    """A file with other content."""
    content = content.encode() if isinstance(content, str) else content
    return lambda: Path(path).write_bytes(content)


def grouped(cases, *before, size=8):
    """Parameters of a test: cases of an id, no more than a few together; those that last apart."""
    groups = {}
    for case in cases:
        groups.setdefault((case.id, case.deep), []).append(case)
    return [
        pytest.param(
            *before,
            group[start : start + size],
            id=f"{id_}-{start}" if start else id_,
            marks=[pytest.mark.deep] if deep else [],
        )
        for (id_, deep), group in groups.items()
        for start in range(0, len(group), size)
    ]
