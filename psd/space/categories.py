"""A category of records as an axis: a public tree of labels in depth-first order.

Records have labels without labels below them; others span those below. Labels that are not listed
are one more cell, *other*, or are left out.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Integers
from psd._util.instances import shown, type_text
from psd.errors import InputDataError, ParameterError

__all__ = ["OTHER", "CategoryAxis", "labels_from_file", "labels_of"]

OTHER = "other"
"""Name of the cell of all labels that are not listed."""

MAX_LABELS = 1_000
_LONGEST = 100
_LISTED = 20  # labels that a message names
_MAX_FILE = 2**20  # bytes; the labels of a file are shorter
_EXAMPLE = "such as met,city; they are public, never those that the data have"


@dataclass(frozen=True)
class CategoryAxis:
    """The labels of a column of the records, a public list, as an axis; parents: -1 for none.

    P1. A record has the cell of its own label, or *other*, or is dropped: a public function of the
    text of this record, so the axis is a `psd.ingest.tally.Strata` too.
    """

    column: str
    labels: tuple[str, ...]
    parents: tuple[int, ...]
    has_other: bool = True

    def __post_init__(self) -> None:
        """Check the tree of labels."""
        if not _is_short_text(self.column):
            raise ParameterError(
                f"category must be the name of a column of at most {_LONGEST} characters without "
                f"control characters, got {shown(self.column)}",
                name="category",
            )
        if not 1 <= len(self.labels) <= MAX_LABELS:
            raise ParameterError(
                f"labels must be 1 to {MAX_LABELS:,}, got {len(self.labels):,}; list those that "
                "are asked about, and all others count as other",
                name="labels",
            )
        for label in self.labels:
            if not _is_short_text(label):
                raise ParameterError(
                    f"labels must each have 1 to {_LONGEST} characters, no control characters and "
                    f"no space at their ends, got {shown(label)}",
                    name="labels",
                )
        listed: set[str] = set()
        for label in self.labels:
            if label in listed:
                raise ParameterError(
                    f"labels must be different, each with at most one parent, got {label!r} twice",
                    name="labels",
                )
            listed.add(label)
        if self.has_other and OTHER in listed:
            raise ParameterError(
                f"labels must not list {OTHER!r}, which counts labels that are not listed; leave "
                "it out of the list, or drop those records",
                name="labels",
            )
        if len(self.parents) != len(self.labels) or not all(
            type(each) is int and -1 <= each < len(self.labels) for each in self.parents
        ):
            raise ParameterError("parents must be numbers of labels, or -1", name="labels")
        if len(self._depths) < len(self.labels):
            lost = next(n for n in range(len(self.labels)) if n not in self._depths)
            raise ParameterError(
                f"labels must be a tree, got {self.labels[lost]!r}, which lies below itself or "
                "below a label that does",
                name="labels",
            )

    @property
    def name(self) -> str:
        """The word for this axis in texts and files."""
        return "category"

    @property
    def size(self) -> int:
        """Number of cells: labels without labels below them, and other."""
        return len(self.names)

    @cached_property
    def _below(self) -> list[list[int]]:
        """Numbers of the labels directly below each, and in the last place those below none."""
        below: list[list[int]] = [[] for _ in range(len(self.labels) + 1)]
        for number, parent in enumerate(self.parents):
            below[parent].append(number)
        return below

    @cached_property
    def _depths(self) -> dict[int, int]:
        """Depth of the labels that are below no cycle, in depth-first order."""
        depths: dict[int, int] = {}
        left = [(number, 0) for number in reversed(self._below[-1])]
        while left:
            number, depth = left.pop()
            depths[number] = depth
            left += [(each, depth + 1) for each in reversed(self._below[number])]
        return depths

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Labels of the cells, in order."""
        leaves = [self.labels[number] for number in self._depths if not self._below[number]]
        return (*leaves, OTHER) if self.has_other else tuple(leaves)

    @cached_property
    def spans(self) -> dict[str, tuple[int, int]]:
        """First cell of each label, and the one after its last."""
        spans: dict[str, tuple[int, int]] = {}
        next_cell = {name: number for number, name in enumerate(self.names)}
        for number in reversed(self._depths):  # labels below stand behind
            below = [spans[self.labels[each]] for each in self._below[number]]
            cell = next_cell[self.labels[number]] if not below else 0
            spans[self.labels[number]] = (below[0][0], below[-1][1]) if below else (cell, cell + 1)
        return spans | ({OTHER: (self.size - 1, self.size)} if self.has_other else {})

    @cached_property
    def _edges(self) -> NDArray[np.int64]:
        """Depth of the labels that each line between two cells divides, (size + 1,) int64."""
        edges = np.full(self.size + 1, len(self.labels))
        for number, depth in self._depths.items():
            first, _ = self.spans[self.labels[number]]
            edges[first] = min(edges[first], depth)
        edges[self.size - self.has_other] = 0
        return edges

    def lines(self, first: Integers, stop: Integers) -> NDArray[np.int64]:
        """Line that divides each span, (n,) int64; the first cell of a span of one.

        It is a line between the highest labels inside, the nearest to the middle. So a family of
        many labels has parts in between, and each part is two of these or more.
        """
        # Equal spans have one line: a number for each pair of ends.
        keys, at = np.unique(
            np.asarray(first, np.int64) * (self.size + 1) + stop, return_inverse=True
        )
        found = np.empty(len(keys), np.int64)
        for number, (low, high) in enumerate(
            zip(*(each.tolist() for each in np.divmod(keys, self.size + 1)), strict=True)
        ):
            # Of the lines inside that divide the highest labels, the one nearest to the middle.
            inside = np.arange(low + 1, high)
            if not len(inside):
                found[number] = low
                continue
            highest = inside[self._edges[inside] == self._edges[inside].min()]
            found[number] = highest[np.abs(2 * highest - low - high).argmin()]
        lines: NDArray[np.int64] = found[at.ravel()]
        return lines

    def cells_of(self, values: Any) -> Integers:
        """Cell of each label, Arrow texts to (n,) int64, -1 if dropped or missing; all private."""
        import pyarrow as pa
        import pyarrow.compute as pc

        leaves = self.names[: self.size - self.has_other]
        found = pc.index_in(values.cast(pa.large_string()), pa.array(leaves, pa.large_string()))
        # Labels that are not listed are the last cell, if there is one for them; else none.
        other = self.size - 1 if self.has_other else -1
        cells: Integers = found.fill_null(other).to_numpy(zero_copy_only=False).astype(np.int64)
        return cells

    def assign(self, x: Any, y: Any, value: Any = None, /) -> NDArray[np.int32]:
        """Cell of each record by its label, wherever it lies."""
        return self.cells_of(value).astype(np.int32)

    def label(self, first: int, stop: int) -> str:
        """Label of a span, or the first and the last one of it."""
        for name, span in self.spans.items():
            if span == (first, stop):
                return name
        return f"{self.names[first]}..{self.names[stop - 1]}"

    def label_named(self, text: str) -> str:
        """The label of a text; ``column=label`` is read too."""
        label = text.removeprefix(f"{self.column}=")
        for name in (text, label):
            if name in self.spans:
                return name
        names = [*(self.labels[number] for number in self._depths), *[OTHER] * self.has_other]
        listed = names if len(names) <= _LISTED else [*names[:2], f"{len(names) - 2} more"]
        close = get_close_matches(label[:80], names, n=3)
        more = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
        if "=" in label and label.split("=", 1)[1] in self.spans:
            more = f"; the column is {self.column}"
        raise ParameterError(
            f"category must be a label of {self.column} ({', '.join(listed)}), got {label[:80]!r}"
            + ("; several are a list, or one --category each" if "," in label else more),
            name="category",
        )

    def span_of(self, text: str) -> tuple[int, int]:
        """Cells of a label; see `label_named`."""
        return self.spans[self.label_named(text)]


def _is_short_text(text: object) -> bool:
    """Whether a value is a text that can be a label."""
    return (
        isinstance(text, str)
        and 1 <= len(text) <= _LONGEST
        and text.isprintable()
        and text == text.strip()
    )


def labels_of(given: Any) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Labels and the numbers of their parents, of a list, or of parents by label, "" for none."""
    if isinstance(given, str):
        given = [each.strip() for each in given.split(",")]
    if isinstance(given, Mapping):
        return _with_parents(given.items())
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise ParameterError(
            f"labels must be a list of texts, or parents by label, {_EXAMPLE}, got "
            f"{type_text(given)}",
            name="labels",
        )
    return tuple(given), (-1,) * len(given)


def _with_parents(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Labels and the numbers of their parents, of pairs of texts."""
    listed = list(pairs)
    number = {label: place for place, (label, _) in enumerate(listed)}
    for label, parent in listed:
        if not isinstance(label, str) or not (parent is None or isinstance(parent, str)):
            raise ParameterError(
                "labels must be texts, each with a text or none as its parent", name="labels"
            )
        if parent and parent not in number:
            raise ParameterError(
                f"labels must list every parent, got {label[:80]!r} below {parent[:80]!r}, which "
                "is not listed",
                name="labels",
            )
    parents = tuple(number[parent] if parent else -1 for _, parent in listed)
    return tuple(label for label, _ in listed), parents


def labels_from_file(path: str | os.PathLike[str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Labels of a public CSV file with a column ``label`` and, if there is a tree, ``parent``."""
    name = os.fspath(path)
    try:
        if os.path.getsize(path) > _MAX_FILE:
            raise InputDataError(
                f"labels must be a file of at most {_MAX_FILE:,} bytes, and {name} is larger"
            )
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(io.StringIO(file.read()), strict=True)
            columns = {str(each).strip().lower(): each for each in rows.fieldnames or ()}
            if "label" not in columns:
                raise InputDataError(
                    f"labels must be a CSV file with a column label, and parent if there is a "
                    f"tree; {name} has none"
                )
            pairs = [
                tuple((row.get(columns.get(key)) or "").strip() for key in ("label", "parent"))
                for row in rows
            ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = (
            error.strerror
            if isinstance(error, OSError)
            else "it is no CSV file of short texts in UTF-8"
        )
        raise InputDataError(f"labels cannot be read from {name}: {reason}") from None
    return _with_parents(pairs)  # type: ignore[arg-type] # two texts each
