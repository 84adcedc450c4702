"""Draws of tests repeat, those of everything else are the system's."""

import os

import numpy as np
import pandas as pd

import psd
from psd.mechanisms.random_words import random_words
from psd.publish.observer import Observer
from psd.space.domain import Domain
from support.seeded_system import check_repeated, seeded_system

DOMAIN = Domain(bounds=(0, 0, 64, 1), crs="EPSG:3857")
ROWS = pd.DataFrame({"lon": np.arange(64.0), "lat": 0.5, "id": "one"})


def kept():
    """Places of the records of a user that a bound keeps: their key is drawn."""
    tallies = []
    observer = Observer(private_tally=tallies.append)
    how = {"user": "id", "max_contributions": 4, "epsilon": 1, "method": "grid"}
    psd.build(ROWS, domain=DOMAIN, observer=observer, **how)
    return tallies[0].columns.tolist()


def test_draws_repeat_with_their_seed():
    check_repeated(lambda: random_words(4).tolist())
    check_repeated(kept)


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
