"""Words, bits and uniform integers of the operating system."""

import os
from itertools import product

import numpy as np
import pytest

from psd.mechanisms.random_words import bytes_from, random_bits, random_words, uniform_below
from support.noise_paths import Tape

LAST = 2**64 - 1


def test_words_are_those_of_the_operating_system(monkeypatch):
    Tape(monkeypatch, 1, LAST, 2**63)
    assert random_words(3).tolist() == [1, LAST, 2**63]
    Tape(monkeypatch, 5)
    asked = []

    def source(size):
        asked.append(size)
        return bytes([255] * size)

    with bytes_from(source):
        assert random_words(1).tolist() == [LAST]
        with bytes_from(bytes):
            assert random_words(1).tolist() == [0]
        assert random_bits(8).all()
    assert asked == [8, 1]
    assert random_words(1).tolist() == [5]


def test_bits_use_every_bit_once(monkeypatch):
    for size in (0, 1, 7, 8, 9):
        assert random_words(size).shape == random_bits(size).shape == (size,)
    assert random_bits(9).dtype == np.bool_
    Tape(monkeypatch, int.from_bytes(bytes([0b10110000, 0b1, 0, 0, 0, 0, 0, 255]), "little"))
    bits = random_bits(64).astype(int).tolist()
    assert bits == [1, 0, 1, 1, *[0] * 11, 1, *[0] * 40, *[1] * 8]
    for draw, error in product((random_words, random_bits), (OSError, NotImplementedError)):

        def fail(size, error=error):
            raise error("no entropy")

        monkeypatch.setattr(os, "urandom", fail)
        with pytest.raises(OSError, match="gives no random numbers"):
            draw(1)


def test_exactly_the_whole_blocks_are_accepted(monkeypatch):
    for bound in (1, 2, 3, 10, 2**16, 10**9, 2**53 + 1, 2**62, 2**63 - 1, 2**63):
        blocks_end = 2**64 // bound * bound  # so every value has 2**64 // bound words
        cases = [
            (0, 0),  # first word of the first block
            (bound - 1, bound - 1),  # last word of it
            (bound, 0),  # first word of the second; for 2**63, the last block
            (blocks_end - 1, bound - 1),  # last word that is accepted
            (LAST, bound - 1 if blocks_end == 2**64 else None),
            (blocks_end, None),  # first word that is not
        ]
        for word, expected in cases:
            if word <= LAST:
                # Where a word is not accepted the next one, 0, must be asked for.
                tape = Tape(monkeypatch, word, *[0] * (expected is None))
                drawn = uniform_below(np.array([bound], dtype=np.uint64)).tolist()
                assert drawn == [expected or 0]
                assert not tape.left
    # 2**64 is 1 modulo 3 and 2 modulo 7, so both refuse the last word
    tape = Tape(monkeypatch, 5, LAST, 8, LAST, *[4, LAST], 9)
    assert uniform_below(np.array([3, 3, 7, 7])).tolist() == [2, 1, 1, 2]
    assert not tape.left


def test_uniform_keeps_range_and_shape():
    for dtype in (np.int64, np.uint64):
        bounds = np.array([1, 2, 3, 1000, 2**62], dtype=dtype).repeat(200)
        draws = uniform_below(bounds)
        assert draws.dtype == np.int64
        assert draws.shape == bounds.shape
        assert (draws >= 0).all()
        assert (draws.astype(np.uint64) < bounds.astype(np.uint64)).all()
        assert set(draws[200:600].tolist()) == {0, 1, 2}
    assert uniform_below(np.array([], dtype=np.int64)).shape == (0,)
    for wrong in (np.array([3, 0]), np.array([-1]), np.array([2**63 + 1], dtype=np.uint64)):
        with pytest.raises(ValueError, match="bound"):
            uniform_below(wrong)
