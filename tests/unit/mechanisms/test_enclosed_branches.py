"""Branches by weights between integers: what is decided, what is not, and reading on."""

from fractions import Fraction
from itertools import product

from psd.mechanisms.exponential_tables import decided_branch, draw_branch
from support.noise_paths import Tape


def branch_at(weights, u):
    """Branch of a uniform number, with exact weights."""
    below = Fraction(0)
    for number, weight in enumerate(weights):
        below += weight
        if u < below / sum(weights):
            return number
    raise AssertionError


def extremes(weights):
    """All ways to put each weight at one of its ends."""
    if not weights:
        return [[]]
    return [[Fraction(end), *rest] for rest in extremes(weights[1:]) for end in set(weights[0])]


WEIGHTS = [
    [(1, 1), (1, 1)],
    [(1, 2), (5, 6), (3, 3)],
    [(0, 1), (20, 21)],
    [(20, 21), (0, 1)],
    [(0, 1), (9, 9), (0, 1), (4, 5)],
    [(7, 9)] * 5,
]


def test_what_is_decided_is_right_for_all_weights_and_numbers(subtests):
    for weights, bits in product(WEIGHTS, (1, 3, 7)):
        with subtests.test(weights=weights, bits=bits):
            for prefix in range(2**bits):
                ends = [Fraction(prefix + end, 2**bits) for end in (0, 1)]
                ends[1] -= Fraction(1, 10**9)
                branches = {branch_at(exact, u) for exact in extremes(weights) for u in ends}
                branch = decided_branch(weights, prefix, bits)
                assert branches == {branch} if branch is not None else len(branches) > 1


def test_an_undecided_branch_reads_on_at_twice_the_precision_and_one_needs_no_bit(monkeypatch):
    """A branch that may have no weight at all is left undecided where it might be."""
    assert decided_branch([(10**9, 10**9), (0, 1)], 2**64 - 1, 64) is None
    assert decided_branch([(0, 1), (10**9, 10**9)], 0, 64) is None
    assert decided_branch([(0, 1), (0, 1)], 2**63, 64) is None
    tape = Tape(monkeypatch, 2**63 - 1, *[2**64 - 1] * 3)
    precisions = []

    def enclosures(precision):
        precisions.append(precision)
        half = 1 << precision
        return [(half, half), (half, half + (precision < 200))]

    assert draw_branch(enclosures) == 0
    assert precisions == [60, 120, 240]
    assert not tape.left
    assert draw_branch(lambda precision: [(0, 5)]) == 0
