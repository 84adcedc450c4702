"""Commands of which a table says what comes of each: campaigns, streams, suggestions, choices."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


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

    @property
    def id(self):
        return self.name.split("-")[0]


def taken(*what, **more):
    return Command(*what, **more)


def refused(*what, code=2, **more):
    return Command(*what, code=code, **more)


def file(path, content):
    """A file with other content."""
    content = content.encode() if isinstance(content, str) else content
    return lambda: Path(path).write_bytes(content)


def grouped(cases, size=8):
    """Cases by their ids, and no more than a few together; the name of each group."""
    groups = {}
    for case in cases:
        groups.setdefault(case.id, []).append(case)
    for id_, group in groups.items():
        for number, start in enumerate(range(0, len(group), size)):
            yield f"{id_}-{number}" if number else id_, group[start : start + size]
