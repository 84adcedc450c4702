"""The filter of records: a small closed language, and its syntax tree.

No part of the text is ever pasted into a query: sources read the columns that it names as any
other column, and `psd.ingest.selection` evaluates the tree on their values::

    filter      part { OR part }, where a part is one or several joined with AND
    comparison  COLUMN  =  <>  !=  <  <=  >  >=  VALUE, in either order
                COLUMN [NOT] IN (VALUE, ...)    COLUMN [NOT] BETWEEN VALUE AND VALUE
                COLUMN [NOT] LIKE 'TEXT'        COLUMN IS [NOT] NULL
    part        a comparison, NOT part, or a filter in brackets
    VALUE       12.5    'text'    DATE '2024-01-31'    TIMESTAMP '2024-01-31 10:00'    TRUE    FALSE
    COLUMN      name    "a name with spaces"
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np

from psd._util.wall_clock import readable_times
from psd.errors import ParameterError

__all__ = [
    "Always",
    "Either",
    "Literal",
    "Membership",
    "Missing",
    "Negation",
    "Pattern",
    "Predicate",
]

MAX_LENGTH: Final = 1_000
"""Limit of the characters of a filter, as its tree writes it; a ledger registers it."""

_MAX_DEPTH = 40


# The tree.


@dataclass(frozen=True, slots=True)
class Literal:
    """A value in a filter."""

    kind: str
    value: float | str | bool  # of a time, its text in ISO 8601

    def __str__(self) -> str:
        if self.kind == "number":
            return repr(self.value).removesuffix(".0")
        if self.kind == "flag":
            return str(self.value).upper()
        text = "'" + str(self.value).replace("'", "''") + "'"
        if self.kind == "text":
            return text
        return f"{'DATE' if len(str(self.value)) == 10 else 'TIMESTAMP'} {text}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with a value: ``=``, ``<>``, ``<``, ``<=``, ``>`` or ``>=``."""

    column: str
    sign: str
    literal: Literal

    def __str__(self) -> str:
        return f"{_quoted(self.column)} {self.sign} {self.literal}"


@dataclass(frozen=True, slots=True)
class Membership:
    """A column that is one of several values."""

    column: str
    literals: tuple[Literal, ...]

    def __str__(self) -> str:
        return f"{_quoted(self.column)} IN ({', '.join(map(str, self.literals))})"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A column whose text has a pattern: ``%`` stands for any text, ``_`` for one character."""

    column: str
    pattern: str

    def __str__(self) -> str:
        return f"{_quoted(self.column)} LIKE {Literal('text', self.pattern)}"


@dataclass(frozen=True, slots=True)
class Missing:
    """A column without a value."""

    column: str

    def __str__(self) -> str:
        return f"{_quoted(self.column)} IS NULL"


@dataclass(frozen=True, slots=True)
class Negation:
    """What is true if a part is false."""

    part: Predicate

    def __str__(self) -> str:
        if isinstance(self.part, Missing):
            return f"{_quoted(self.part.column)} IS NOT NULL"
        return f"NOT ({self.part})"


@dataclass(frozen=True, slots=True)
class Always:
    """What is true if all parts are: AND."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " AND ".join(f"({p})" if isinstance(p, Either) else str(p) for p in self.parts)


@dataclass(frozen=True, slots=True)
class Either:
    """What is true if any part is: OR."""

    parts: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " OR ".join(map(str, self.parts))


Predicate: TypeAlias = Comparison | Membership | Pattern | Missing | Negation | Always | Either

_KEYWORDS = ("AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "TRUE", "FALSE")


def _quoted(name: str) -> str:
    """Name of a column as a filter writes it."""
    if re.fullmatch(r"[^\W\d]\w*", name) and name.upper() not in _KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def columns_of(predicate: Predicate) -> tuple[str, ...]:
    """Columns that a filter reads, each once."""
    if isinstance(predicate, Always | Either):
        names = [name for part in predicate.parts for name in columns_of(part)]
        return tuple(dict.fromkeys(names))
    return columns_of(predicate.part) if isinstance(predicate, Negation) else (predicate.column,)


def named_as(predicate: Predicate, names: Mapping[str, str]) -> Predicate:
    """The same filter with the columns as an input spells them."""
    if isinstance(predicate, Always | Either):
        return replace(predicate, parts=tuple(named_as(part, names) for part in predicate.parts))
    if isinstance(predicate, Negation):
        return Negation(named_as(predicate.part, names))
    return replace(predicate, column=names[predicate.column])


# The language.

_SHAPE = "must be comparisons of columns with values, such as diagnosis = 'asthma' AND age >= 18"
_SHOWN = 60

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TOKEN = re.compile(
    rf"""\s*(?:(?P<text>'(?:[^']|'')*')
    |(?P<quoted>"(?:[^"]|"")+")
    |(?P<number>{_NUMBER}(?![\w.]))
    |(?P<word>[^\W\d]\w*)
    |(?P<sign><=|>=|<>|!=|==|=|<|>|\(|\)|,))""",
    re.VERBOSE,
)

# What a reader of SQL may write, and what is said of it.
_CAUSES = {
    "'": "a text needs its closing quote, and a quote in it is written twice",
    '"': "the name of a column needs its closing quote, and text is in single quotes",
    ";": "there is one filter, and it has no statements",
    "--": "a filter has no comments",
    "/*": "a filter has no comments",
    ".": "columns have no table before them; a name with a dot is in double quotes",
    "::": "values are not cast; DATE '2024-01-31' is a date",
}
_SIGNS = ("=", "<>", "<", "<=", ">", ">=")
_SAME = {"!=": "<>", "==": "="}
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _refusal(got: str, cause: str) -> ParameterError:
    """Error about a filter, which quotes a part of it."""
    return ParameterError(f"where {_SHAPE}, got {got[:_SHOWN]!r}; {cause}", name="where")


def parse_where(text: str) -> Predicate:
    """Parse a filter."""
    if not isinstance(text, str):
        raise ParameterError(f"where {_SHAPE}, got a value of type {type(text).__name__}")
    return _parse(text)


@lru_cache(maxsize=64)
def _parse(text: str) -> Predicate:
    """Parse and check a text; sources ask for the tree of each batch."""
    _check_length(text)
    predicate = _Parser(text).parse()
    written = str(predicate)
    _check_length(written)
    _Parser(written).parse()  # its brackets around NOT may be too many, before anything is charged
    if not written.isprintable():
        raise _refusal(text, "names and texts must have no control characters")
    return predicate


def _check_length(text: str) -> None:
    """Refuse a filter that is too long; many values are better a column of the input."""
    if len(text) > MAX_LENGTH:
        raise ParameterError(
            f"where must have at most {MAX_LENGTH:,} characters, got {len(text):,}; state the "
            "choice in a column of the input, and compare that",
            name="where",
        )


class _Parser:
    """Reads a filter from left to right."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0
        self._kind, self._word = "", ""
        self._next()

    def parse(self) -> Predicate:
        """The whole text."""
        predicate = self._either()
        if self._kind:
            raise self._odd("AND, OR or the end was expected")
        return predicate

    def _next(self) -> str:
        """Step to the next word; return the one before."""
        before, start = self._word, self._at
        found = _TOKEN.match(self._text, start)
        if found is None:
            rest = self._text[start:].lstrip()
            if rest:
                causes = (cause for mark, cause in _CAUSES.items() if rest.startswith(mark))
                raise _refusal(rest, next(causes, "this is no part of a filter"))
            self._kind, self._word = "", ""
            return before
        self._at = found.end()
        self._kind, self._word = str(found.lastgroup), found[0].strip()
        return before

    def _is(self, *words: str) -> bool:
        """Whether the next word is one of these."""
        return self._kind in ("word", "sign") and self._word.upper() in words

    def _take(self, *words: str) -> bool:
        """Step over a word if it is the next."""
        is_next = self._is(*words)
        if is_next:
            self._next()
        return is_next

    def _odd(self, cause: str) -> ParameterError:
        """Error about the next word."""
        if not self._kind:
            return _refusal(self._text[-_SHOWN:], f"at its end, {cause}")
        return _refusal(self._word, cause)

    def _either(self) -> Predicate:
        """Parts with OR."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _refusal(self._text, f"it has more than {_MAX_DEPTH} brackets in each other")
        parts = [self._always()]
        while self._take("OR"):
            parts.append(self._always())
        self._depth -= 1
        flat = [each for p in parts for each in (p.parts if isinstance(p, Either) else (p,))]
        return flat[0] if len(flat) == 1 else Either(tuple(flat))

    def _always(self) -> Predicate:
        """Parts with AND."""
        parts = [self._negated()]
        while self._take("AND"):
            parts.append(self._negated())
        flat = [each for p in parts for each in (p.parts if isinstance(p, Always) else (p,))]
        return flat[0] if len(flat) == 1 else Always(tuple(flat))

    def _negated(self) -> Predicate:
        """A part, or NOT of one; an even number of NOT is none."""
        is_negated = False
        while self._take("NOT"):
            is_negated = not is_negated
        part = self._part()
        return Negation(part) if is_negated else part

    def _part(self) -> Predicate:
        """A part in brackets, or a comparison."""
        if self._take("("):
            inner = self._either()
            if not self._take(")"):
                raise self._odd("a bracket needs its closing one")
            return inner
        if self._kind in ("text", "number") or self._is("TRUE", "FALSE") or self._is_time():
            literal, sign = self._literal(), self._sign("a value is compared by = or another sign")
            return self._comparison(self._column(), _FLIPPED.get(sign, sign), literal)
        column = self._column()
        if self._take("IS"):
            is_not = self._take("NOT")
            if not self._take("NULL"):
                raise self._odd("IS is followed by NULL or NOT NULL; for true write = TRUE")
            return Negation(Missing(column)) if is_not else Missing(column)
        is_not = self._take("NOT")
        found = self._listed(column)
        if found is not None:
            return Negation(found) if is_not else found
        if is_not:
            raise self._odd("NOT after a column is followed by IN, LIKE or BETWEEN")
        cause = "a column is compared by =, <, IN, LIKE, BETWEEN or IS NULL"
        if self._kind == "word":
            cause += '; a name with a space is in double quotes, such as "Incident type"'
        sign = self._sign(cause)
        if self._is("NULL"):
            raise self._odd("a comparison with NULL is never true; write IS NULL or IS NOT NULL")
        if self._kind in ("word", "quoted") and not (self._is("TRUE", "FALSE") or self._is_time()):
            raise self._odd("a column is compared with a value, and text is in single quotes")
        return self._comparison(column, sign, self._literal())

    def _listed(self, column: str) -> Predicate | None:
        """IN, LIKE or BETWEEN; None for another word."""
        if self._take("IN"):
            if not self._take("("):
                raise self._odd("IN is followed by values in brackets")
            literals = [self._literal()]
            while self._take(","):
                literals.append(self._literal())
            if not self._take(")"):
                raise self._odd("the values of IN are separated by commas, in brackets")
            self._check_alike(literals)
            return Membership(column, tuple(literals))
        if self._take("LIKE"):
            pattern = self._literal()
            if pattern.kind != "text" or "\\" in str(pattern.value):
                raise _refusal(str(pattern), "LIKE takes a text with % and _, without a backslash")
            return Pattern(column, str(pattern.value))
        if self._take("BETWEEN"):
            low = self._literal()
            if not self._take("AND"):
                raise self._odd("BETWEEN has two values with AND")
            high = self._literal()
            self._check_alike([low, high])
            parts = (self._comparison(column, ">=", low), self._comparison(column, "<=", high))
            return Always(parts)
        return None

    def _check_alike(self, literals: Sequence[Literal]) -> None:
        """Refuse values of several kinds."""
        kinds = list(dict.fromkeys(literal.kind for literal in literals))
        if len(kinds) > 1:
            raise _refusal(
                ", ".join(map(str, literals)),
                f"values of one column are of one kind, and these are {' and '.join(kinds)}",
            )

    def _comparison(self, column: str, sign: str, literal: Literal) -> Comparison:
        """A comparison; TRUE and FALSE have no order, and text orders numbers wrongly."""
        if literal.kind == "flag" and sign not in ("=", "<>"):
            raise _refusal(f"{sign} {literal}", "TRUE and FALSE have no order; write = or <>")
        is_order, text = sign not in ("=", "<>"), str(literal.value)
        if is_order and literal.kind == "text" and re.fullmatch(_NUMBER, text):
            raise _refusal(f"{sign} {literal}", "the order of numbers needs them without quotes")
        return Comparison(column, sign, literal)

    def _sign(self, cause: str) -> str:
        """The sign of a comparison."""
        sign = _SAME.get(self._word, self._word)
        if self._kind != "sign" or sign not in _SIGNS:
            raise self._odd(cause)
        self._next()
        return sign

    def _column(self) -> str:
        """The name of a column."""
        if self._kind == "quoted":
            return self._next()[1:-1].replace('""', '"')
        if self._kind != "word" or self._word.upper() in _KEYWORDS:
            raise self._odd("a column was expected")
        name = self._next()
        if self._is("("):
            raise _refusal(f"{name}(", "a filter has no functions and no queries")
        return name

    def _is_time(self) -> bool:
        """Whether a date or a timestamp is next, and not a column of this name."""
        return self._is("DATE", "TIMESTAMP") and self._text[self._at :].lstrip()[:1] == "'"

    def _literal(self) -> Literal:
        """A value."""
        if self._kind == "number":
            value = float(self._word)
            if not np.isfinite(value):
                raise self._odd("a number must be finite")
            self._next()
            return Literal("number", value)
        if self._kind == "text":
            text = self._next()[1:-1].replace("''", "'").strip(" ")
            if not text:
                raise _refusal("''", "an empty text is a missing value; write IS NULL")
            return Literal("text", text)
        if self._is("TRUE", "FALSE"):
            return Literal("flag", self._next().upper() == "TRUE")
        if self._is_time():
            word, text = self._next().upper(), self._next()[1:-1].strip()
            is_time = not np.isnat(readable_times([text], "UTC")).any()
            if not is_time or (word == "DATE" and len(text) != len("2024-01-31")):
                raise _refusal(f"{word} '{text}'", "times look like 2024-01-31 or 2024-01-31 10:00")
            return Literal("time", f"{text} 00:00" if word != "DATE" and len(text) == 10 else text)
        raise self._odd("a number, a text in single quotes, a DATE '2024-01-31', TRUE or FALSE was "
                        "expected")  # fmt: skip
