"""The Hilbert curve drawn from its definition, and what questions cost at each lattice cell."""

from functools import cache

import numpy as np


@cache
def walk(order: int) -> list[tuple[int, int]]:
    """Cells of 2^order x 2^order as the curve visits them: four smaller curves, two turned."""
    if order == 0:
        return [(0, 0)]
    half, inner = 2 ** (order - 1), walk(order - 1)
    first = [(y, x) for x, y in inner]
    second = [(x, y + half) for x, y in inner]
    third = [(x + half, y + half) for x, y in inner]
    last = [(2 * half - 1 - y, half - 1 - x) for x, y in inner]
    return first + second + third + last


@cache
def codes(side: int, order: int) -> np.ndarray:
    """Code of each lattice cell, indexed by column and row."""
    place = {cell: code for code, cell in enumerate(walk(order))}
    scaled = [c * 2**order // side for c in range(side)]
    return np.array([[place[x, y] for y in scaled] for x in scaled])


def spent(questions, side: int) -> np.ndarray:
    """Nano-epsilon of all questions at each lattice cell, by column and row, from the log alone."""
    plane = np.zeros((side + 1, side + 1), np.int64)
    total = np.zeros((side, side), np.int64)
    for question in questions:
        x0, y0, x1, y1 = question.boxes.T
        if question.curve:
            line = np.zeros(4**question.curve + 1, np.int64)
            np.add.at(line, x0, question.loss)
            np.add.at(line, x1, -question.loss)
            total += line.cumsum()[codes(side, question.curve)]
            continue
        for x, y, sign in ((x0, y0, 1), (x1, y0, -1), (x0, y1, -1), (x1, y1, 1)):
            np.add.at(plane, (x, y), sign * question.loss)
    return total + plane.cumsum(0).cumsum(1)[:-1, :-1]
