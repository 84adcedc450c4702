"""What a planted bug is: a patch of the package, and the name of the test that fails with it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, wraps
from pkgutil import resolve_name
from typing import Any

Patch = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug:
    """What goes wrong, what it stands for, and the test that fails while the bug is planted."""

    id: str
    wrong: str
    like: str
    test: str
    plant: Patch


# Members that are more than their function: what makes them, and where they have it.
WRAPPERS: dict[type, tuple[Any, str]] = {
    property: (property, "fget"),
    cached_property: (property, "func"),
    classmethod: (classmethod, "__func__"),
    staticmethod: (staticmethod, "__func__"),
}

BUGS: list[PlantedBug] = []


def planted(*, test: str, like: str = "") -> Callable[[Patch], Patch]:
    """Register a patch as a bug; its name and its docstring are those of the bug."""

    def register(plant: Patch) -> Patch:
        wrong = " ".join((plant.__doc__ or "").split()).removesuffix(".")
        known = {"id": plant.__name__.replace("_", "-"), "wrong": wrong, "test": test}
        BUGS.append(PlantedBug(**known, like=like or vars(plant)["like"], plant=plant))
        return plant

    return register


def like(text: str) -> Callable[[Patch], Patch]:
    """Say what a bug stands for, where the line of `planted` has no room for it."""

    def said(plant: Patch) -> Patch:
        vars(plant)["like"] = text
        return plant

    return said


@contextmanager
def replaced(target: str, value: object) -> Iterator[None]:
    """Replace a member of a class or a module for a while, by its full name."""
    owner, name = _member(target)
    original = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextmanager
def together(*patches: AbstractContextManager[object]) -> Iterator[None]:
    """Several patches, for a while."""
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        yield


def around(target: str) -> Callable[[Callable[..., Any]], Patch]:
    """Make a patch of a function: it takes the place of another, which it is first given."""

    def of(function: Callable[..., Any]) -> Patch:
        @wraps(function)
        def patch() -> AbstractContextManager[object]:
            owner, name = _member(target)
            member = owner.__dict__[name]
            kind, bare = WRAPPERS.get(type(member), (lambda made: made, None))
            original = getattr(member, bare) if bare else member
            made = kind(lambda *given, **named: function(original, *given, **named))
            return replaced(target, made)

        return patch

    return of


def instead(target: str) -> Callable[[Callable[..., Any]], Patch]:
    """Make the same patch of a function that does without what it replaces."""

    def of(function: Callable[..., Any]) -> Patch:
        return around(target)(wraps(function)(lambda _, *given, **named: function(*given, **named)))

    return of


def _member(target: str) -> tuple[Any, str]:
    owner, _, name = target.rpartition(".")
    return resolve_name(owner), name
