"""No variable, argument, attribute, function or class of the packages bears a banned name."""

import ast
from pathlib import Path

import psd
import psd_cli

BANNED = {
    "found", "made", "how", "one", "some", "given", "known", "asked", "wanted", "kept", "told",
    "said", "place", "held", "own", "here", "there", "most", "whole",
}  # fmt: skip
"""Names that do not say what they hold."""

NOT_DONE: tuple[str, ...] = ()
"""Packages that still have such names. Empty at the end, and it never grows."""


def assigned_names(tree):
    """Every name that a module assigns or defines, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield node.lineno, name
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                yield node.lineno, name
            case ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
            case ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case _:
                pass


def banned_names():
    """Every banned name as package, file, line and name."""
    for package in (psd, psd_cli):
        folder = Path(package.__file__).parent
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            where = ".".join([package.__name__, *parts[:1]])
            for line, name in assigned_names(ast.parse(path.read_text(encoding="utf-8"))):
                if name.strip("_").lower() in BANNED:
                    yield where, f"{path.relative_to(folder.parent)}:{line}: {name}"


def test_no_banned_name_is_assigned():
    found = [text for package, text in banned_names() if package not in NOT_DONE]
    assert found == []


def test_packages_that_are_done_leave_the_list():
    assert set(NOT_DONE) <= {package for package, _ in banned_names()}


def test_every_kind_of_name_is_seen():
    source = (
        "import os as a\n"
        "def b(c, *d, e=1, **f): ...\n"
        "class g: h = 1\n"
        "for i, (j, *k) in []: a.l = 1\n"
        "with a as m: pass\n"
        "try: ...\n"
        "except OSError as n: o: int = 1\n"
        "p = lambda q: [r for r in (s := q)]\n"
        "match a:\n case [t, *u]: ...\n case v: ...\n"
    )
    names = {name for _, name in assigned_names(ast.parse(source))}
    assert names == set("abcdefghijklmnopqrstuv")
