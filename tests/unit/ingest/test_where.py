"""The language of filters: what it means, and what is refused and why."""

import pytest

from psd.errors import ParameterError
from psd.ingest.columns import Columns
from psd.ingest.where import MAX_LENGTH, columns_of, named_as, parse_where

CANONICAL = {
    "age>=18 and not Sex in ('m','x')": "age >= 18 AND NOT (Sex IN ('m', 'x'))",
    "18 <= age": "age >= 18",
    "a == 1 OR a != 2": "a = 1 OR a <> 2",
    "(a = 1 OR b = 2) AND c = 3": "(a = 1 OR b = 2) AND c = 3",
    "a = 1 OR b = 2 AND c = 3": "a = 1 OR b = 2 AND c = 3",
    "((a = 1))": "a = 1",
    "not not a = 1": "a = 1",
    "a is not null": "a IS NOT NULL",
    "a not like 'x%'": "NOT (a LIKE 'x%')",
    "a between 1 and 2 and b = 3": "a >= 1 AND a <= 2 AND b = 3",
    "a NOT BETWEEN 1 AND 2": "NOT (a >= 1 AND a <= 2)",
    "\"IN\" = 'it''s'": "\"IN\" = 'it''s'",
    '"a ""b"".c" = 1.50e3': '"a ""b"".c" = 1500',
    "seen >= DATE '2024-01-31'": "seen >= DATE '2024-01-31'",
    "seen < timestamp '2024-01-31'": "seen < TIMESTAMP '2024-01-31 00:00'",
    "date = DATE '2024-01-31'": "date = DATE '2024-01-31'",
    "ok = true AND NOT no <> False": "ok = TRUE AND NOT (no <> FALSE)",
    "größe > -.5": "größe > -0.5",
    "name = ' ann '": "name = 'ann'",
}


@pytest.mark.parametrize("text", CANONICAL)
def test_a_filter_has_one_canonical_text_which_means_the_same(text):
    predicate = parse_where(text)
    assert str(predicate) == CANONICAL[text]
    assert parse_where(str(predicate)) == predicate
    assert Columns(where=text) == Columns(where=CANONICAL[text])


REFUSED = {
    "": "at its end, a column was expected",
    "a": "a column is compared by",
    "Incident type = 'b'": "a name with a space is in double quotes",
    "a =": "at its end, a number",
    "= 1": "a column was expected",
    "a = b": "text is in single quotes",
    'a = "b"': "text is in single quotes",
    "a = 'b": "closing quote",
    "a = 1; DROP TABLE visits": "no statements",
    "a = 1 -- all": "no comments",
    "a = 1 /* all */": "no comments",
    "a = 1) OR (1 = 1": "AND, OR or the end",
    "1 = 1": "a column was expected",
    "(a = 1": "closing one",
    "a > (SELECT max(a) FROM visits)": "a number, a text",
    "lower(a) = 'b'": "no functions and no queries",
    "count(*) > 3": "no functions and no queries",
    "visits.a = 1": "no table before them",
    "a::date = 1": "not cast",
    "a + 1 = 2": "no part of a filter",
    "a = ''": "write IS NULL",
    "a = NULL": "write IS NULL",
    "a IS TRUE": "for true write = TRUE",
    "a IN ()": "a number, a text",
    "a IN (1, 'b')": "one kind, and these are number and text",
    "a BETWEEN 1": "two values with AND",
    "a > TRUE": "no order",
    "a > '18'": "without quotes",
    "a LIKE 1": "LIKE takes a text",
    r"a LIKE '\%'": "without a backslash",
    "a = DATE '2023-02-30'": "times look like",
    "a = DATE '2024-01-31 10:00'": "times look like",
    "a = 1e999": "finite",
    "a = 'b\x1b[2J'": "no control characters",
    "NOT " * 200 + "a": "a column is compared by",
    "(" * 60 + "a = 1" + ")" * 60: "brackets in each other",
    "NOT (" * 39 + "a = 1 AND NOT b = 2" + ")" * 39: "brackets in each other",  # as it is written
    "a IN (" + "1, " * MAX_LENGTH + "1)": "at most 1,000 characters",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_filter_is_refused_with_its_likely_cause(text):
    for make in (parse_where, lambda where: Columns(where=where)):
        with pytest.raises(ParameterError, match=r"^where must ") as raised:
            make(text)
        assert REFUSED[text] in str(raised.value)
        assert len(str(raised.value)) < 300


def test_a_filter_is_text():
    with pytest.raises(ParameterError, match="a value of type list"):
        parse_where(["a = 1"])


def test_columns_of_a_filter_and_their_spelling():
    predicate = parse_where("b = 1 AND (a IS NULL OR NOT b IN (2, 3)) AND \"c d\" LIKE 'x'")
    assert columns_of(predicate) == ("b", "a", "c d")
    spelled = named_as(predicate, {"a": "A", "b": "B b", "c d": "cd"})
    assert str(spelled) == '"B b" = 1 AND (A IS NULL OR NOT ("B b" IN (2, 3))) AND cd LIKE \'x\''
    assert Columns(x="a", y="b", where="b = 1 OR c = 2").needed == ["a", "b", "c"]
