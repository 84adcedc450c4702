"""Planted bugs of metadata and messages: what a build says beside its answers."""

import hashlib
import json
import logging
import sys
from dataclasses import replace
from functools import wraps
from pathlib import Path

import numpy as np

from privacy.planted_bugs.bug import around, instead, like, planted, replaced
from psd.decompositions.grid import Grid
from psd.errors import InputDataError
from psd.space.domain import Domain
from support.releases import changed

GRID = "tests/privacy/test_identical.py::test_builds_differ_in_nothing_but_the_answers[grid-record]"
SOURCES = "tests/unit/ingest/sources/"

EXACT = "exact N"


def rows_of(counts):
    return int(counts.counts.sum())


def box_around(tally, domain):
    sides = [tally.columns.min(initial=0), tally.rows.min(initial=0)]
    sides += [tally.columns.max(initial=0) + 1, tally.rows.max(initial=0) + 1]
    return tuple(domain.from_lattice(np.array([sides]))[0].tolist())


def stated(value):
    """The header states something of the tally, under the name of a declared statement."""

    @around("psd.publish.drawing.draw_release")
    def stating(release_of, counts, domain, **options):
        options["budget"]._statement["bound_most"] = value(counts)
        return release_of(counts, domain, **options)

    return stating()


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

    @around("psd.publish.pipeline.run_build")
    def telling(build, terms, data, draw, **options):
        library = f"1+{change(Path(data[0]))}"
        return changed(build(terms, data, draw, **options), library=library)

    return telling()


@planted(test=GRID, like="hashes of private data, which confirm a guessed row")
def fingerprint_in_the_header():
    """The header holds a hash of the rows."""
    return built(lambda path: hashlib.sha256(path.read_bytes()).hexdigest()[:8])


@planted(test=GRID, like="names of files that tell whose data it is")
def file_name_in_the_header():
    """The header names the file that was read."""
    return built(lambda path: path.stem)


def after_reading(say):
    """Make a patch of what is said as soon as the rows have been counted."""

    @around("psd.publish.counting.count_rows")
    @wraps(say)
    def saying(count_rows, data, *arguments, **options):
        counted = count_rows(data, *arguments, **options)
        say(data, counted.tally)
        return counted

    return saying


@planted(test=GRID, like="exact N in a log")
@after_reading
def rows_in_the_log(_, counts):
    """The log says how many rows were kept."""
    logging.getLogger("psd.ingest.sources").info("kept %d rows", rows_of(counts))


@planted(test=GRID, like="exact N in a log")
@after_reading
def rows_in_the_log_of_details(_, counts):
    """The log for debugging says how many rows were kept."""
    logging.getLogger("psd.ingest.sources").debug("kept %d rows", rows_of(counts))


@planted(test=GRID, like="exact N in a log")
@after_reading
def many_rows_in_the_log(_, counts):
    """A record is logged only where there are many rows."""
    if rows_of(counts) > 10:
        logging.getLogger("x").debug("many rows")


@planted(test=GRID, like="names of files that tell whose data it is")
@after_reading
def file_name_in_the_log(data, _):
    """The log names the file that was read."""
    logging.getLogger("psd").debug(Path(data[0]).stem)


@planted(test=GRID, like="exact N on the screen")
@after_reading
def rows_on_the_screen(_, counts):
    """A build prints how many rows were kept."""
    print(rows_of(counts), "rows")


@planted(test=GRID, like="exact N on the screen")
@after_reading
def warning_of_few_rows(_, counts):
    """A build warns where the rows are very few."""
    if rows_of(counts) < 2:
        print("very few rows", file=sys.stderr)


@planted(test=GRID, like="exact N on the screen")
@around("psd.publish.pipeline.run_build")
def rows_in_the_progress(build, terms, data, draw, *, observer, **options):
    """Progress shows how many rows were read."""

    def shown(report):
        observer.progress(f"read {sum(report.values())} rows")

    return build(terms, data, draw, observer=replace(observer, private_report=shown), **options)


@planted(test=GRID, like="caches and temporary files")
@after_reading
def counts_in_a_cache(_, counts):
    """A file beside the release holds the counts."""
    Path(".psd-cache").write_text(json.dumps(counts.counts.tolist()))


@planted(test=GRID, like="caches and temporary files")
@after_reading
def rows_in_a_file_name(_, counts):
    """The name of an empty file is the number of rows."""
    Path(f".psd-{rows_of(counts)}").touch()


@planted(test=GRID, like="caches and temporary files")
@after_reading
def permissions_of_the_rows(_, counts):
    """The permissions of an empty file follow from the number of rows."""
    Path(".psd-lock").touch()
    Path(".psd-lock").chmod(0o600 if rows_of(counts) > 2 else 0o644)


@planted(test=GRID, like="bounds from min and max")
@around("psd.publish.counting.count_rows")
def box_of_the_rows(count_rows, *arguments, **options):
    """The domain of the release is the box around the rows."""
    counted = count_rows(*arguments, **options)
    bounds = box_around(counted.tally, counted.domain)
    return replace(counted, domain=replace(counted.domain, bounds=bounds))


@planted(test=GRID, like="a coordinate resolution that is taken from the data")
@around("psd.publish.counting.count_rows")
def step_of_the_rows(count_rows, *arguments, **options):
    """The coordinate resolution of the release is the largest step on which all rows lie."""
    counted = count_rows(*arguments, **options)
    tally, domain = counted.tally, counted.domain
    x, y = domain.centres(0, tally.columns), domain.centres(1, tally.rows)
    for digits in range(1, 5):
        step = Domain(bounds=domain.bounds, coordinate_resolution=f"1e-{digits}")
        columns, rows, _ = step.quantise(x, y)
        off = np.abs(x - step.centres(0, columns)) + np.abs(y - step.centres(1, rows))
        if (off < 1e-5).all():
            break
    return replace(counted, domain=step, tally=replace(tally, columns=columns, rows=rows))


@planted(test=GRID, like="a smallest cell that is taken from the data")
@around("psd.publish.counting.count_rows")
def smallest_cell_of_the_rows(count_rows, *arguments, **options):
    """The smallest cell of the release is larger where there are more rows."""
    counted = count_rows(*arguments, **options)
    min_cell = 5 * rows_of(counted.tally)
    return replace(counted, domain=replace(counted.domain, min_cell=min_cell))


@planted(test=GRID, like="a size that is a function of the exact N")
@around("psd.decompositions.grid.Grid.build")
def size_by_the_rows(original, self, curator):
    """The grid has as many cells as suits the exact N."""
    return original(Grid(size=2 if rows_of(curator._tally) < 10 else 3), curator)


@planted(test=SOURCES + "test_csv.py::test_text_that_is_no_number_is_refused_and_not_quoted[lon]")
@like("rows in messages and tracebacks")
@around("psd.ingest.sources.csv._all_missing")
def message_quotes_a_value(original, texts):
    """The message about a text that is no number quotes the text."""
    if not original(texts):
        raise InputDataError(f"{texts.drop_null()[0]} must be a number")
    return True


HEADER = "a file without a header line, whose first record stood in the message"


@planted(test=SOURCES + "test_text_formats.py::test_a_first_line_that_may_be_a_record_is_not_shown")
@like(HEADER)
def message_lists_a_first_line_of_values():
    """The message about a missing column lists the first line, although it may be a record."""
    return replaced("psd.ingest.sources._csv_file.may_be_values", lambda names: False)


@planted(test=SOURCES + "test_xlsx.py::test_cells_and_headers_that_are_refused")
@like(HEADER)
def message_lists_a_first_row_of_values():
    """The message about a missing column lists the first row of a workbook or a table."""
    return replaced("psd.ingest.sources._arrow.may_be_values", lambda names: False)


@planted(test="tests/privacy/test_refused_tables.py::test_no_message_has_a_value_of_records[build]")
@like("a refused argument whose message printed the first rows of the table that it was")
@instead("psd.publish.fields.type_text")
def messages_print_what_was_given(value):
    """The message about an argument prints the value, also where it is a column of records."""
    return str(value)[:80]


@planted(test="tests/unit/ingest/test_id_columns.py::"
         "test_no_feature_decides_whether_ids_are_warned_of")  # fmt: skip
@like("a check of a schema that was found from all records")
@around("psd.ingest.id_columns.headers_of")
def features_decide_about_a_warning(original, data, columns):
    """Names of GeoJSON are looked at, and one feature brings its own."""
    import pyogrio

    headers = original(data, columns)
    if str(data).endswith((".geojson", ".geojsonl")):
        return [replace(headers[0], names=list(pyogrio.read_info(data)["fields"]))]
    return headers
