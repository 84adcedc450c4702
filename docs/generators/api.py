"""The page of public names, from the docstrings of `psd.__all__`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from operator import attrgetter
from types import ModuleType
from typing import Any

import psd

HEAD = """\
# Python API

`import psd` gives the names of this page: the everyday ones, and modules with the others. What is
not listed here is internal and may change.

This page is generated from the docstrings by `python docs/generate.py`.
"""

# Sections of numpydoc whose entries are "name : type" and an indented text.
FIELDS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns")


def page() -> str:
    """Give the text of the page."""
    names = [name for name in psd.__all__ if not name.startswith("_") and name != "apps"]
    names += [f"apps.{name}" for name in psd.apps.__all__]
    listed = {name: attrgetter(name)(psd) for name in names}
    parts = [HEAD]
    for title, chosen in (
        ("Functions", inspect.isroutine),
        ("Classes", inspect.isclass),
        ("Modules", inspect.ismodule),
    ):
        group = {name: value for name, value in listed.items() if chosen(value)}
        if group:
            parts.append(f"\n**{title}**\n")
            parts += [
                f"- [`psd.{name}`](#psd{_anchor(name)}): {_summary(group[name])}" for name in group
            ]
    for name, value in listed.items():
        parts += _entry(f"psd.{name}", value)
    return "\n".join(parts).rstrip() + "\n"


def _anchor(name: str) -> str:
    """Anchor of a name after the dot, as GitHub makes it."""
    return name.lower().replace(".", "")


def _summary(value: Any) -> str:
    """First paragraph of a docstring on one line."""
    return _inline(" ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split()))


def _entry(name: str, value: Any) -> Iterator[str]:
    """Text of a public name, and of the methods of a class or the names of a module."""
    yield f"\n## {name}\n"
    if isinstance(value, ModuleType):
        yield from _module(name, value)
        return
    yield f"```text\n{_call(name, value)}\n```\n"
    yield _markdown(inspect.getdoc(value) or "")
    if inspect.isclass(value):
        for method, member in _methods(value):
            yield f"\n### {name}.{method}\n"
            function = member.fget if isinstance(member, property) else getattr(value, method)
            if not isinstance(member, property):
                yield f"```text\n{_call(method, function)}\n```\n"
            yield _markdown(inspect.getdoc(function) or "")


def _module(name: str, module: ModuleType) -> Iterator[str]:
    """Text of a public module, and of each of its functions and classes."""
    yield _markdown(inspect.getdoc(module) or "")
    for child in dir(module) if module is psd.decompositions else sorted(module.__all__):
        value = getattr(module, child)
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        yield f"\n### {name}.{child}\n"
        if not (inspect.isclass(value) and issubclass(value, BaseException)):
            yield f"```text\n{_call(f'{name}.{child}', value)}\n```\n"
        yield _markdown(inspect.getdoc(value) or "")


def _methods(value: type) -> list[tuple[str, Any]]:
    """Public methods and properties that a class of this package defines, in their order."""
    members: dict[str, Any] = {}
    for base in reversed(value.__mro__):
        if base.__module__.startswith("psd"):
            members |= vars(base)
    return [
        (name, member)
        for name, member in members.items()
        if not name.startswith("_")
        and (
            inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)
        )
    ]


def _call(name: str, value: Any) -> str:
    """Name and parameters, one on a line where they do not fit on one."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    parts, marked = [], False
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not marked:
            parts.append("*")
            marked = True
        marked |= parameter.kind is parameter.VAR_POSITIONAL
        parts.append(_parameter(parameter))
    short = f"{name}({', '.join(parts)})"
    return short if len(short) <= 90 else f"{name}(\n    " + ",\n    ".join(parts) + ",\n)"


def _parameter(parameter: inspect.Parameter) -> str:
    """A parameter with its default; one that is a function or an object is left open."""
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    if parameter.default is parameter.empty:
        return stars + parameter.name
    default = repr(parameter.default)
    return f"{parameter.name}={'...' if '<' in default else default}"


def _markdown(docstring: str) -> str:
    """Text of numpydoc as Markdown."""
    sections = re.split(r"^(\w[\w ]*)\n-{3,}\n", docstring, flags=re.M)
    text = [_paragraphs(sections[0])]
    for title, body in zip(sections[1::2], sections[2::2], strict=True):
        text.append(f"**{title}**\n")
        if title in FIELDS:
            text += _fields(body)
        elif title == "Examples":
            text.append(f"```pycon\n{body.strip()}\n```")
        else:
            text.append(_paragraphs(body).rstrip())
        text.append("")
    return "\n".join(text)


def _paragraphs(text: str) -> str:
    """Paragraphs and lists, with the literals of Markdown."""
    return _inline(text.strip()) + "\n"


def _fields(body: str) -> list[str]:
    """Entries of a section of parameters as a list."""
    entries: list[list[str]] = []
    for line in body.strip().splitlines():
        if line and not line.startswith(" "):
            entries.append([line])
        elif line.strip() and entries:
            entries[-1].append(line.strip())
    return [_field(head, " ".join(text)) for head, *text in entries]


def _field(head: str, text: str) -> str:
    """One entry: a name, its type and its text."""
    name, colon, kind = head.partition(" : ")
    title = f"`{name}`" + (f" ({_inline(kind)})" if colon else "")
    return f"- {title}: {_inline(text)}" if text else f"- {title}"


def _inline(text: str) -> str:
    """Literals of reStructuredText as those of Markdown, and no markup by accident."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text).replace("``", "`")
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if index % 2 else re.sub(r"([*<>])", r"\\\1", part) for index, part in enumerate(parts)
    )
