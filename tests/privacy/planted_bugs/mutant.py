"""What a planted bug is, and how the package is broken for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One bug, planted in the package or in a method, and the check that sees it.

    Parameters
    ----------
    id : str
        Name.
    wrong : str
        What goes wrong, in a sentence.
    like : str
        What it stands for: the class of mistakes, or where one like it was found.
    check : callable of a subject and an empty folder
        Holds of sound code, and raises `caught` where the bug is.
    test : str
        Test of every run that checks the same of sound code.
    plant : callable
        Breaks the package for a while.
    sound, instead : object
        What is checked, and a broken one where the bug is not in the package.
    caught : type or tuple of types
        What the check raises.
    """

    id: str
    wrong: str
    like: str
    check: Callable[[Any, Path], object]
    test: str
    plant: Callable[[], AbstractContextManager[object]] = nullcontext
    sound: object = None
    instead: object = None
    caught: type[Exception] | tuple[type[Exception], ...] = AssertionError

    @property
    def subject(self) -> object:
        """What is checked with the bug."""
        return self.sound if self.instead is None else self.instead


@contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """Replace a member of a class or a module for a while."""
    kept = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, kept)
