"""Words become draws: certain words at once, ties after more of their expansion."""

import numpy as np

from psd.mechanisms.bernoulli import invert, unit_geometric
from psd.mechanisms.certified_thresholds import Survival, thresholds
from support.noise_paths import Tape

LAW = Survival(10, 1, two_sided=True)
M = thresholds(LAW).size
DIGIT = 2**64


def words(*values):
    return np.array(values, dtype=np.uint64)


def threshold(k):
    return int(thresholds(LAW)[M - k])


def digit(k, place):
    """The 64 bits of P(X >= k) that follow the first 63 + 64 * place."""
    return LAW.floor(k, 63 + 64 * (place + 1)) % DIGIT


def test_a_word_beside_a_threshold_is_decided_at_once_and_a_tie_by_the_next_word(monkeypatch):
    for k in (1, 2, 40, M - 1, M):
        Tape(monkeypatch)
        assert invert(words(threshold(k) - 1, threshold(k) + 1), LAW).tolist() == [k, k - 1]
        for more, drawn in ((-1, k), (1, k - 1)):
            tape = Tape(monkeypatch, digit(k, 0) + more)
            assert invert(words(threshold(k)), LAW).tolist() == [drawn]
            assert not tape.left
    assert invert(words(0, 2**63 - 1), LAW).tolist() == [M, 0]


def test_a_tie_may_last_for_words_and_goes_no_further_than_its_table(monkeypatch):
    for more, drawn in ((-1, 7), (1, 6)):
        tape = Tape(monkeypatch, digit(7, 0), digit(7, 1), digit(7, 2) + more)
        assert invert(words(threshold(7)), LAW).tolist() == [drawn]
        assert not tape.left
    tape = Tape(monkeypatch, digit(3, 0) - 1, digit(1, 0) + 1)
    drawn = invert(words(0, threshold(3), 2**62, threshold(1), 2**63 - 1), LAW)
    assert drawn.tolist() == [M, 3, int((thresholds(LAW) > 2**62).sum()), 0, 0]
    assert not tape.left
    # P(X >= 1) = 2 exp(-10**12) has far more than 127 zeros in front: R is above it. 2 exp(-50) has
    # 70 zeros in front: the geometric excess beyond the table is drawn later.
    for scale, following, drawn in ((10**12, [0, 1], 0), (50, [0], 1)):
        tape = Tape(monkeypatch, *following)
        assert invert(words(0), Survival(1, scale, two_sided=True)).tolist() == [drawn]
        assert not tape.left


def test_unit_geometric_goes_on_where_its_table_ends(monkeypatch):
    table = thresholds(Survival(1, 1, two_sided=False))
    tape = Tape(monkeypatch, 0, 2**64 - 1, 1, 2 * (int(table[-2]) - 1))
    # the first element ends the table twice (words 0 and 1 of 64 bits) and then adds 2
    assert unit_geometric(2).tolist() == [2 * table.size + 2, 0]
    assert not tape.left
    assert unit_geometric(0).shape == (0,)
