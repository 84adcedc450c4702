"""Planted bugs of metadata and messages: what a build says beside its answers."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from contextlib import contextmanager

import numpy as np
import pytest

import psd.publish.build
from privacy.planted_bugs.mutant import Mutant, replaced
from psd._util.fields import parameters_from_file
from psd.errors import DomainError
from psd.ingest.tally_builder import TallyBuilder
from psd.mechanisms.laplace import LaplaceMechanism
from support.cli_runner import BOUNDS, cli, write_points
from support.releases import changed

# Two data sets that differ in size and place, in files whose names should stay unknown.
PLACES = {"d": [(0.5, 0.5), (1.5, -2.5)], "secret-clinic": [(-3.5, 3.5)] * 7}

# Checks


def everything_but_the_answers_is_the_same(_, folder):
    """With the answers of the first build given back: file, output and log, byte by byte."""
    left = [_left_by(folder / name, name, places) for name, places in PLACES.items()]
    assert left[0] == left[1]


def _left_by(folder, name, places):
    folder.mkdir()
    points, target = write_points(folder / f"{name}.csv", places), folder / "out.psd.parquet"
    kept, log = logging.getLogger("psd"), []
    handler = logging.Handler()
    handler.emit = lambda record: log.append(record.getMessage())
    level = kept.level
    kept.addHandler(handler)
    kept.setLevel(logging.DEBUG)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LaplaceMechanism, "sample", lambda self: np.arange(len(self.true)) + 40)
            method = ("--epsilon", 1, "--method", "quadtree", "--set", "height=2")
            outcome = cli("build", points, "-o", target, *BOUNDS, *method)
    finally:
        kept.removeHandler(handler)
        kept.setLevel(level)
    assert outcome.code == 0, outcome.err
    said = outcome.out.replace(str(folder), "")
    return target.read_bytes(), said, outcome.err, log, sorted(p.suffix for p in folder.iterdir())


def messages_quote_no_value(_, folder):
    points = write_points(folder / "points.csv", [(1, 1), (98.7654321, 97.5310864)])
    outcome = cli("build", points, "-o", folder / "out", *BOUNDS, "--epsilon", 1)
    assert outcome.code == 3, outcome
    assert "97.531" not in outcome.err
    assert "98.765" not in outcome.err


# Bugs


def _stated(name, value):
    """Something of the tally among the public parameters of a release."""
    original = psd.publish.build.release_of

    def release_of(counts, *arguments, **options):
        made = original(counts, *arguments, **options)
        return changed(
            made, parameters=parameters_from_file({**made.parameters, name: value(counts)})
        )

    return replaced(psd.publish.build, "release_of", release_of)


def total_stated():
    return _stated("rows", lambda counts: int(counts.counts.sum()))


def fingerprint_stated():
    return _stated("input", lambda counts: hashlib.sha256(counts.rows.tobytes()).hexdigest())


def occupied_cells_stated():
    return _stated("cells", lambda counts: len(counts.counts))


@contextmanager
def file_name_stated():
    """The name of the input stands in the release."""
    original, release_of, seen = psd.publish.build.count_rows, psd.publish.build.release_of, []

    def count_rows(data, *arguments, **options):
        seen.append(data)
        return original(data, *arguments, **options)

    def named(*arguments, **options):
        made = release_of(*arguments, **options)
        name = str(seen[-1][0] if isinstance(seen[-1], list | tuple) else seen[-1])
        stated = {**made.parameters, "source": name.rsplit("/", 1)[-1]}
        return changed(made, parameters=parameters_from_file(stated))

    with (
        replaced(psd.publish.build, "count_rows", count_rows),
        replaced(psd.publish.build, "release_of", named),
    ):
        yield


def _counted(change):
    """What is counted, changed or told."""
    original = psd.publish.build.count_rows

    def count_rows(*arguments, **options):
        return change(original(*arguments, **options))

    return replaced(psd.publish.build, "count_rows", count_rows)


def rows_logged():
    def tell(counted):
        logging.getLogger("psd").info("kept %d rows", int(counted.tally.counts.sum()))
        return counted

    return _counted(tell)


def rows_printed():
    def tell(counted):
        print(f"counted {len(counted.tally.counts)} cells")
        return counted

    return _counted(tell)


def box_of_the_rows():
    """The domain of the release ends where the rows do."""

    def shrink(counted):
        tally, domain = counted.tally, counted.domain
        sides = [[int(tally.columns.min()), int(tally.rows.min())]]
        sides[0] += [int(tally.columns.max()) + 1, int(tally.rows.max()) + 1]
        bounds = tuple(domain.from_lattice(np.array(sides))[0].tolist())
        return dataclasses.replace(counted, domain=dataclasses.replace(domain, bounds=bounds))

    return _counted(shrink)


def value_quoted():
    """The message about a value that is no coordinate quotes it."""

    def check(self, batch):
        for values, limit in ((batch.x, 180), (batch.y, 90)):
            if np.abs(values).max(initial=0) > limit:
                raise DomainError(f"{np.abs(values).max()} is no coordinate")

    return replaced(TallyBuilder, "_check_coordinates", check)


SAME = "tests/privacy/test_identical.py::test_builds_differ_in_nothing_but_the_answers"


def _metadata(id, plant, wrong, like):
    return Mutant(
        id=id,
        wrong=wrong,
        like=like,
        plant=plant,
        check=everything_but_the_answers_is_the_same,
        test=SAME,
    )


MUTANTS = (
    _metadata("rows-in-the-header", total_stated, "the header states the exact N", "exact N"),
    _metadata(
        "cells-in-the-header",
        occupied_cells_stated,
        "the header states how many cells are occupied",
        "exact N",
    ),
    _metadata(
        "fingerprint-in-the-header",
        fingerprint_stated,
        "the header holds a hash of the rows",
        "hashes of private data, which confirm a guessed row",
    ),
    _metadata(
        "file-name-in-the-header",
        file_name_stated,
        "the header names the file that was read",
        "names of files that tell whose data it is",
    ),
    _metadata(
        "rows-in-the-log", rows_logged, "the log says how many rows were kept", "exact N in a log"
    ),
    _metadata(
        "cells-on-the-screen",
        rows_printed,
        "a build prints how many cells are occupied",
        "exact N on the screen",
    ),
    _metadata(
        "box-of-the-rows",
        box_of_the_rows,
        "the domain of the release is the box around the rows",
        "bounds from min and max",
    ),
    Mutant(
        id="message-quotes-a-value",
        wrong="the message about a value that is no coordinate quotes the value",
        like="rows in messages and tracebacks",
        plant=value_quoted,
        check=messages_quote_no_value,
        test="tests/robustness/test_bad_input.py::test_refused",
    ),
)
