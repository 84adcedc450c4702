"""Draws of tests repeat, those of everything else are the system's."""

import os

import pytest

from psd.local.bulk import system_words
from psd.local.device import Words
from psd.mechanisms.random_words import random_words
from support.seeded_system import seeded_system


@pytest.mark.parametrize(
    "draw",
    [
        lambda: random_words(4).tolist(),
        lambda: system_words(2, 2).ravel().tolist(),
        lambda: [Words().word() for _ in range(4)],
    ],
    ids=["noise", "bulk", "device"],
)
def test_draws_repeat_with_their_seed(draw):
    with seeded_system(3):
        first, more = draw(), draw()
    with seeded_system(3):
        assert draw() == first
    with seeded_system(4):
        assert draw() != first
    assert draw() != first
    assert len({*first, *more}) == 8


def test_identifiers_and_forked_processes_draw_from_the_system():
    with seeded_system(3):
        assert os.urandom(16) != os.urandom(16)
        assert in_child(random_words) != in_child(random_words)


def in_child(draw):
    """A word that a forked process draws."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.write(writer, draw(1).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with open(reader, "rb") as words:
        return words.read()
