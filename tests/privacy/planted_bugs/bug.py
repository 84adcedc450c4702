"""What a planted bug is: a patch of the package, and the name of the test that fails with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

Patch = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantedBug:
    """One bug.

    Parameters
    ----------
    id : str
        Name.
    wrong : str
        What goes wrong, in a sentence.
    like : str
        What it stands for: the class of mistakes, or where one like it was found.
    test : str
        Test that fails with it, as pytest names tests.
    plant : callable
        Patches the package for a while.
    """

    id: str
    wrong: str
    like: str
    test: str
    plant: Patch


BUGS: list[PlantedBug] = []


def planted(*, test: str, like: str) -> Callable[[Patch], Patch]:
    """Register a patch as a bug; its name and its docstring are those of the bug."""

    def register(plant: Patch) -> Patch:
        wrong = " ".join((plant.__doc__ or "").split()).removesuffix(".")
        name = plant.__name__.replace("_", "-")
        BUGS.append(PlantedBug(id=name, wrong=wrong, like=like, test=test, plant=plant))
        return plant

    return register


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """Replace a member of a class or a module for a while."""
    original = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)
