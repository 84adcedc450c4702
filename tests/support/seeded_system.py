"""Draws that repeat: a seed in place of the operating system's randomness, for tests.

Most tests compare what a build gives with what is right, and not the draws with their law. With
draws that repeat, such a test has the same outcome in every run, so that a failure is one of the
change at hand. `PSD_TEST_RANDOMNESS=system` gives all tests the randomness of the system.
"""

import hashlib
import os
import secrets
import sys
from contextlib import ExitStack, contextmanager
from itertools import count

import pytest

# Modules that draw noise and reports, and those that draw the key of a choice of records.
# Identifiers, and the keys and nonces of others, stay the system's.
DRAWING = ("psd.mechanisms.random_words", "psd.apps.local.randomization", "psd.apps.local.device")
CHOOSING = (
    "psd.ingest.tally_builder",
    "psd.apps.spark.engine",
    "psd.publish.tally_parts",
    "psd.apps.suggest.training",
)


def seeded_bytes(seed):
    """A function like `os.urandom`: SHAKE-128 of a seed and the number of the call."""
    calls = count()
    return lambda size: hashlib.shake_128(f"{seed} {next(calls)}".encode()).digest(size)


class SeededBytes:
    """Stands for a function of random bytes, for the modules that draw, where a seed is set.

    Processes that are forked from the one of the tests draw from the system.
    """

    def __init__(self, system, modules):
        self.system, self.modules = system, modules
        self.process, self.source = os.getpid(), None

    def __call__(self, *size):
        seeded = self.source is not None and os.getpid() == self.process
        if seeded and sys._getframe(1).f_globals.get("__name__") in self.modules:
            return self.source(*size)
        return self.system(*size)

    @contextmanager
    def seeded(self, seed):
        """Draw from a seed for a while."""
        before, self.source = self.source, seeded_bytes(seed)
        try:
            yield
        finally:
            self.source = before


def replacements():
    """What is replaced, and by what: an owner, a name and a function."""
    yield os, "urandom", SeededBytes(os.urandom, DRAWING)
    yield secrets, "token_bytes", SeededBytes(secrets.token_bytes, CHOOSING)


@contextmanager
def repeated(seed):
    """Draw from a seed for a while, where `replacements` are in place."""
    with ExitStack() as stack:
        for function in (os.urandom, secrets.token_bytes):
            if isinstance(function, SeededBytes):
                stack.enter_context(function.seeded(seed))
        yield


@contextmanager
def seeded_system(seed=1):
    """Draw from a seed for a while, also where all other tests draw from the system."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, function in replacements():
            patch.setattr(owner, name, function)
        with repeated(seed):
            yield


@pytest.fixture(autouse=True)
def same_draws():
    """Draws that repeat in a module that has this name: what is tested there is no law of them."""
    with seeded_system():
        yield


def check_repeated(draw):
    """Draws repeat with their seed, and with no other; each draw differs from the one before."""
    with seeded_system(3):
        first, more = draw(), draw()
    with seeded_system(3):
        assert draw() == first
    with seeded_system(4):
        assert draw() != first
    assert draw() != first
    assert more != first
