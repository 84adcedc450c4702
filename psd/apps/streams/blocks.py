"""Exact tallies of blocks of steps, and their answers, as the state stores them. Private side."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd.apps.streams.state import Block
from psd.ingest.tally import Tally, add_tallies

__all__ = ["add_blocks", "empty_tally", "numbers_of", "packed", "tally_of"]


def packed(tally: Tally, answer: NDArray[Any]) -> Block:
    """Block of a tally without slices and regions, and of the numbers of its nodes."""
    cells = np.stack([tally.columns, tally.rows, tally.counts]).astype("<i8")
    return Block(zlib.compress(cells.tobytes()), zlib.compress(answer.astype("<f8").tobytes()))


def tally_of(block: Block, contributions: int) -> Tally:
    """Tally of a block. Private."""
    cells = np.frombuffer(zlib.decompress(block.tally), "<i8").reshape(3, -1)
    columns, rows, counts = cells
    return Tally(
        columns=columns.astype(np.int32),
        rows=rows.astype(np.int32),
        counts=counts.astype(np.int64),
        contributions=contributions,
    )


def numbers_of(block: Block) -> NDArray[np.float64]:
    """Numbers of the nodes of a block."""
    return np.frombuffer(zlib.decompress(block.answer), "<f8").astype(np.float64)


def empty_tally(contributions: int) -> Tally:
    """Tally of a step that was left out."""
    nothing = np.zeros(0, np.int32)
    counts = np.zeros(0, np.int64)
    return Tally(columns=nothing, rows=nothing, counts=counts, contributions=contributions)


def add_blocks(tallies: Iterable[Tally], weights: Iterable[int], contributions: int) -> Tally:
    """Sum of tallies, private, of different steps, each times a public whole number.

    P1. A unit that lies in one of the steps changes the sum by at most k times the weight of this
    step.
    """
    weighted = [
        replace(tally, counts=tally.counts * weight)
        for tally, weight in zip(tallies, weights, strict=True)
    ]
    return replace(add_tallies(weighted), contributions=contributions)
