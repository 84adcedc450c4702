"""Planted bugs of metadata and messages: what a build says beside its answers."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import sys
from pathlib import Path

import numpy as np

import psd.ingest.sources._arrow
import psd.ingest.sources._csv_header
import psd.ingest.sources.csv
import psd.publish.count_inputs
import psd.publish.pipeline
from privacy.planted_bugs.bug import planted, replaced
from psd.errors import InputDataError
from psd.space.domain import Domain
from support.releases import changed

SAME = "tests/privacy/test_identical.py::test_builds_differ_in_nothing_but_the_answers"
GRID = SAME + "[grid-record]"

NUMBERS = "tests/unit/ingest/sources/test_csv.py::"

EXACT = "exact N"


def rows_of(counts):
    return int(counts.counts.sum())


def around(module, name, wrapper):
    """Wrap a function of a module."""
    return replaced(module, name, wrapper(getattr(module, name)))


def stated(value):
    """The header states something of the tally, under the name of a declared statement."""

    def wrapper(release_of):
        def stating(counts, domain, **options):
            options["budget"]._statement["bound_most"] = value(counts)
            return release_of(counts, domain, **options)

        return stating

    return around(psd.publish.pipeline, "draw_release", wrapper)


@planted(test=GRID, like=EXACT)
def rows_in_the_header():
    """The header states the exact N."""
    return stated(rows_of)


@planted(test=GRID, like=EXACT)
def cells_in_the_header():
    """The header states how many cells are occupied."""
    return stated(lambda counts: len(counts.counts))


@planted(test=GRID, like="bounds from min and max")
def westernmost_point_in_the_header():
    """The header states the westernmost column of a record."""
    return stated(lambda counts: int(counts.columns.min(initial=2**20)))


def built(change):
    """A release is changed after it was built, past its checks."""

    def wrapper(publish):
        def telling(request, data, **options):
            library = f"1+{change(Path(data[0]))}"
            return changed(publish(request, data, **options), library=library)

        return telling

    return around(psd.publish.pipeline, "publish", wrapper)


@planted(test=GRID, like="hashes of private data, which confirm a guessed row")
def fingerprint_in_the_header():
    """The header holds a hash of the rows."""
    return built(lambda path: hashlib.sha256(path.read_bytes()).hexdigest()[:8])


@planted(test=GRID, like="names of files that tell whose data it is")
def file_name_in_the_header():
    """The header names the file that was read."""
    return built(lambda path: path.stem)


def after_reading(say):
    """Something is said as soon as the rows have been counted."""

    def wrapper(count_rows):
        def saying(data, *arguments, **options):
            counted = count_rows(data, *arguments, **options)
            say(data, counted.tally)
            return counted

        return saying

    return around(psd.publish.count_inputs, "count_rows", wrapper)


def logged(text, level=logging.DEBUG):
    log = logging.getLogger("psd.ingest.sources")
    return after_reading(lambda _, counts: log.log(level, text, rows_of(counts)))


@planted(test=GRID, like="exact N in a log")
def rows_in_the_log():
    """The log says how many rows were kept."""
    return logged("kept %d rows", logging.INFO)


@planted(test=GRID, like="exact N in a log")
def rows_in_the_log_of_details():
    """The log for debugging says how many rows were kept."""
    return logged("kept %d rows")


@planted(test=GRID, like="exact N in a log")
def many_rows_in_the_log():
    """A record is logged only where there are many rows."""
    return after_reading(
        lambda _, counts: rows_of(counts) > 10 and logging.getLogger("x").debug("many rows")
    )


@planted(test=GRID, like="names of files that tell whose data it is")
def file_name_in_the_log():
    """The log names the file that was read."""
    return after_reading(lambda data, _: logging.getLogger("psd").debug(Path(data[0]).stem))


@planted(test=GRID, like="exact N on the screen")
def rows_on_the_screen():
    """A build prints how many rows were kept."""
    return after_reading(lambda _, counts: sys.stdout.write(f"{rows_of(counts)} rows\n"))


@planted(test=GRID, like="exact N on the screen")
def warning_of_few_rows():
    """A build warns where the rows are very few."""
    return after_reading(
        lambda _, counts: rows_of(counts) < 2 and sys.stderr.write("very few rows\n")
    )


@planted(test=GRID, like="exact N on the screen")
def rows_in_the_progress():
    """Progress shows how many rows were read."""

    def wrapper(publish):
        def showing(request, data, *, observer, **options):
            def shown(report):
                observer.progress(f"read {sum(report.values())} rows")

            seen = dataclasses.replace(observer, private_report=shown)
            return publish(request, data, observer=seen, **options)

        return showing

    return around(psd.publish.pipeline, "publish", wrapper)


@planted(test=GRID, like="caches and temporary files")
def counts_in_a_cache():
    """A file beside the release holds the counts."""
    return after_reading(
        lambda _, counts: Path(".psd-cache").write_text(json.dumps(counts.counts.tolist()))
    )


@planted(test=GRID, like="caches and temporary files")
def rows_in_a_file_name():
    """The name of an empty file is the number of rows."""
    return after_reading(lambda _, counts: Path(f".psd-{rows_of(counts)}").touch())


@planted(test=GRID, like="caches and temporary files")
def permissions_of_the_rows():
    """The permissions of an empty file follow from the number of rows."""

    def lock(_, counts):
        Path(".psd-lock").touch()
        Path(".psd-lock").chmod(0o600 if rows_of(counts) > 2 else 0o644)

    return after_reading(lock)


@planted(test=GRID, like="bounds from min and max")
def box_of_the_rows():
    """The domain of the release is the box around the rows."""

    def shrunk(counted):
        tally, domain = counted.tally, counted.domain
        sides = [tally.columns.min(initial=0), tally.rows.min(initial=0)]
        sides += [tally.columns.max(initial=0) + 1, tally.rows.max(initial=0) + 1]
        bounds = tuple(domain.from_lattice(np.array([sides]))[0].tolist())
        return dataclasses.replace(counted, domain=dataclasses.replace(domain, bounds=bounds))

    def wrapper(count_rows):
        return lambda *arguments, **options: shrunk(count_rows(*arguments, **options))

    return around(psd.publish.count_inputs, "count_rows", wrapper)


@planted(test=GRID, like="a coordinate resolution that is taken from the data")
def step_of_the_rows():
    """The coordinate resolution of the release is the largest step on which all rows lie."""

    def rounded(counted):
        tally, domain = counted.tally, counted.domain
        x, y = domain.centres(0, tally.columns), domain.centres(1, tally.rows)
        for digits in range(1, 5):
            step = Domain(bounds=domain.bounds, coordinate_resolution=f"1e-{digits}")
            columns, rows, _ = step.quantise(x, y)
            off = np.abs(x - step.centres(0, columns)) + np.abs(y - step.centres(1, rows))
            if (off < 1e-5).all():
                break
        placed = dataclasses.replace(tally, columns=columns, rows=rows)
        return dataclasses.replace(counted, domain=step, tally=placed)

    def wrapper(count_rows):
        return lambda *arguments, **options: rounded(count_rows(*arguments, **options))

    return around(psd.publish.count_inputs, "count_rows", wrapper)


@planted(test=GRID, like="a smallest cell that is taken from the data")
def smallest_cell_of_the_rows():
    """The smallest cell of the release is larger where there are more rows."""

    def limited(counted):
        min_cell = 5 * rows_of(counted.tally)
        domain = dataclasses.replace(counted.domain, min_cell=min_cell)
        return dataclasses.replace(counted, domain=domain)

    def wrapper(count_rows):
        return lambda *arguments, **options: limited(count_rows(*arguments, **options))

    return around(psd.publish.count_inputs, "count_rows", wrapper)


@planted(test=SAME + "[grid-record]", like="a size that is a function of the exact N")
def size_by_the_rows():
    """The grid has as many cells as suits the exact N."""
    from psd.decompositions.grid import Grid

    original = Grid.build

    def build(self, curator):
        return original(Grid(size=2 if rows_of(curator._tally) < 10 else 3), curator)

    return replaced(Grid, "build", build)


@planted(
    test=NUMBERS + "test_text_that_is_no_number_is_refused_and_not_quoted",
    like="rows in messages and tracebacks",
)
def message_quotes_a_value():
    """The message about a text that is no number quotes the text."""
    original = psd.ingest.sources.csv._all_missing

    def all_missing(texts):
        if not original(texts):
            raise InputDataError(f"{texts.drop_null()[0]} must be a number")
        return True

    return replaced(psd.ingest.sources.csv, "_all_missing", all_missing)


HEADER = "a file without a header line, whose first record stood in the message"


@planted(
    test="tests/unit/ingest/sources/test_text_formats.py::"
    "test_a_first_line_that_may_be_a_record_is_not_shown",
    like=HEADER,
)
def message_lists_a_first_line_of_values():
    """The message about a missing column lists the first line, although it may be a record."""
    return replaced(psd.ingest.sources._csv_header, "may_be_values", lambda names: False)


@planted(
    test="tests/unit/ingest/sources/test_xlsx.py::test_cells_and_headers_that_are_refused",
    like=HEADER,
)
def message_lists_a_first_row_of_values():
    """The message about a missing column lists the first row of a workbook or a table."""
    return replaced(psd.ingest.sources._arrow, "may_be_values", lambda names: False)
