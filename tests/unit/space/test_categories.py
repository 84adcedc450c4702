"""The axis of a category: the public tree of labels, its cells, spans and lines."""

import numpy as np
import pyarrow as pa
import pytest

from psd.errors import InputDataError, ParameterError
from psd.space.categories import CategoryAxis, labels_from_file, labels_of

TREE = {
    "work": "",
    "home": "",
    "shift": "work",
    "office": "work",
    "late": "shift",
    "early": "shift",
}


def axis(given=TREE, *, other=True):
    return CategoryAxis("purpose", *labels_of(given), other)


def test_cells_are_the_labels_without_labels_below_them_in_depth_first_order():
    made = axis()
    assert made.names == ("late", "early", "office", "home", "other")
    spans = {"work": (0, 3), "shift": (0, 2), "late": (0, 1), "early": (1, 2), "office": (2, 3)}
    assert made.spans == {**spans, "home": (3, 4), "other": (4, 5)}
    for label, span in made.spans.items():
        assert made.span_of(label) == made.span_of(f"purpose={label}") == span
        assert made.label(*span) == label
    assert made.label(2, 4) == "office..home"
    assert axis(other=False).names == made.names[:-1]


def test_each_record_has_the_cell_of_its_label():
    texts = pa.array(["office", "work", "Office", "x", None, "late"], pa.large_string())
    assert axis().cells_of(texts).tolist() == [2, 4, 4, 4, 4, 0]
    assert axis(other=False).cells_of(texts).tolist() == [2, -1, -1, -1, -1, 0]


def spans_below(made):
    """All spans that are reached by cutting at the lines."""
    left, found = [(0, made.size)], []
    while left:
        first, stop = left.pop()
        found.append((first, stop))
        [line] = made.lines(np.array([first]), np.array([stop])).tolist()
        assert first < line < stop if stop - first > 1 else line == first
        left += [(first, line), (line, stop)] if stop - first > 1 else []
    return found


@pytest.mark.parametrize("other", [True, False])
def test_lines_divide_a_label_only_after_the_labels_around_it(other):
    reached = spans_below(axis(other=other))
    assert set(axis(other=other).spans.values()) <= set(reached)


def test_lines_of_a_long_list_halve_it():
    made = axis([f"c{n}" for n in range(999)])
    widths = [stop - first for first, stop in spans_below(made)]
    assert len(widths) == 2 * 1_000 - 1
    first, stop = np.array([0, 0, 500]), np.array([1_000, 3, 501])
    assert made.lines(first, stop).tolist() == [500, 1, 500]


BROKEN = {
    "none": ([], "labels must be 1 to 1,000, got 0"),
    "100,000 labels": ([str(n) for n in range(100_000)], "labels must be 1 to 1,000, got 100,000"),
    "a megabyte": (["x" * 10**6], "labels must each have 1 to 100 characters"),
    "control characters": (["a\nb"], "labels must each have 1 to 100 characters, no control"),
    "a direction of text": (["a\u202eb"], "labels must each have 1 to 100 characters, no control"),
    "white space": ([" a"], "no space at their ends"),
    "empty": ("a,,b", "labels must each have 1 to 100 characters"),
    "two parents": ([("c", "a"), ("c", "b"), ("a", ""), ("b", "")], "got 'c' twice"),
    "a cycle": ({"a": "b", "b": "a", "c": ""}, "labels must be a tree, got 'a'"),
    "its own parent": ({"a": "a"}, "labels must be a tree, got 'a'"),
    "a parent that is not listed": ({"a": "b"}, "labels must list every parent, got 'a' below 'b'"),
    "other": (["a", "other"], "labels must not list 'other'"),
    "numbers": ([1, 2], "labels must be a list of texts"),
    "a set": ({"a", "b"}, "labels must be a list of texts"),
    "a number as parent": ({"a": 1}, "labels must be texts"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_other_lists_are_refused_in_one_short_sentence(case, tmp_path):
    given, told = BROKEN[case]
    path = tmp_path / "labels.csv"
    is_file = isinstance(given, list) and given and isinstance(given[0], tuple)
    if is_file:
        path.write_text("label,parent\n" + "".join(f"{a},{b}\n" for a, b in given))
    with pytest.raises(ParameterError) as caught:
        CategoryAxis("purpose", *(labels_from_file(path) if is_file else labels_of(given)))
    assert told in str(caught.value)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_a_dropped_label_may_be_called_other():
    assert axis(["a", "other"], other=False).names == ("a", "other")


@pytest.mark.parametrize("column", ["", "a\tb", "x" * 101, None, 3])
def test_a_column_has_a_name(column):
    with pytest.raises(ParameterError, match="category must be the name of a column"):
        CategoryAxis(column, ("a",), (-1,))


def test_a_file_has_labels_and_parents(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("\ufeffLabel, Parent ,note\nwork,,x\n\n shift ,work,\nhome\n", "utf-8")
    assert labels_from_file(path) == (("work", "shift", "home"), (-1, 0, -1))
    path.write_text("label\na\nb\n")
    assert labels_from_file(path) == (("a", "b"), (-1, -1))


FILES = {
    "no column": (b"name\na\n", "labels must be a CSV file with a column label"),
    "empty": (b"", "labels must be a CSV file with a column label"),
    "not in UTF-8": (b"label\n\xff\n", "it is no CSV file of short texts in UTF-8"),
    "a megabyte in a label": (b"label\n" + b"x" * 10**6, "it is no CSV file of short texts"),
    "too large": (b"label\n" + b"a\n" * 2**20, "labels must be a file of at most"),
}


@pytest.mark.parametrize("case", FILES)
def test_other_files_are_refused(case, tmp_path):
    content, told = FILES[case]
    path = tmp_path / "labels.csv"
    path.write_bytes(content)
    with pytest.raises(InputDataError, match=told):
        labels_from_file(path)
    with pytest.raises(InputDataError, match="labels cannot be read from"):
        labels_from_file(tmp_path / "none.csv")


def test_of_many_labels_the_nearest_are_named():
    with pytest.raises(ParameterError, match=r"of kind \(met, city, other\), got 'pub'$"):
        CategoryAxis("kind", *labels_of("met,city")).span_of("pub")
    with pytest.raises(ParameterError, match="got 'met,city'; several are a list, or one --categ"):
        CategoryAxis("kind", *labels_of("met,city")).span_of("met,city")
    many = CategoryAxis("kind", *labels_of([f"place {n}" for n in range(40)]))
    told = r"\(place 0, place 1, 39 more\), got 'plac 7'; did you mean 'place 7' or .*\?$"
    with pytest.raises(ParameterError, match=told):
        many.span_of("plac 7")


@pytest.mark.parametrize("label", ["Work", "wrk", "purpose=x", "", "x" * 10**6])
def test_an_unknown_category_is_refused(label):
    told = r"category must be a label of purpose \(.*, other\), got "
    with pytest.raises(ParameterError, match=told) as caught:
        axis().span_of(label)
    assert len(str(caught.value)) < 300
