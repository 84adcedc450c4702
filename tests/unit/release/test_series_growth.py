"""A series that grows: the same bytes and digest as when it is written at once."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
from psd._util.declared_parameters import parameters_from_file
from psd.errors import ParameterError
from psd.privacy.budget import TOTALS_FACTOR
from psd.privacy.loss import NANO
from psd.release import file, series_file
from psd.release.file import encode_release, slice_digest
from psd.release.series import SeriesRecord
from psd.release.series_file import (
    append_slice,
    decode_series,
    digest_of,
    encode_series,
    join_releases,
)
from psd.space.covariate import Covariate
from support.noise import gaussian_record
from support.trees import random_tree, release_of

DAYS = psd.TimeSlices.parse("day", "2024-01-01..2024-01-04")
DOMAIN = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(8, 8))


def same_cells():
    """Releases of one grid with different counts."""
    tree = psd.decompositions.grid_tree(DOMAIN, 8)
    counts = np.random.default_rng(1).integers(-9, 99, (4, 64))
    return [psd.Release.from_counts(tree, row, 1, domain=DOMAIN).record for row in counts]


def other_cells():
    """Releases of trees of different sizes."""
    trees = [random_tree(np.random.default_rng(n), lattice=(32, 32)) for n in range(4)]
    return [replace(release_of(tree).record, epsilon=100 * NANO) for tree in trees]


def some_cells_again():
    """Releases whose cells change and come back."""
    first, second = other_cells()[:2]
    return [first, second, second, first]


def with_covariate():
    """Releases that share a covariate."""
    covariate = Covariate(domain=DOMAIN, raster=np.arange(16, dtype=np.uint16).reshape(4, 4))
    return [replace(record, covariate=covariate) for record in same_cells()]


def with_loss():
    """Releases with a delta, whose losses have a column of another name."""
    return [gaussian_record(parameters=parameters_from_file({"n": n})) for n in range(4)]


def running_totals():
    """Releases of which the first has the noise of a count, and another format."""
    records = []
    for number, record in enumerate(same_cells(), start=1):
        noise = replace(record.tree.noise, factor=Fraction(number))
        parameters = parameters_from_file({TOTALS_FACTOR: str(number)})
        tree = replace(record.tree, noise=noise)
        records.append(replace(record, tree=tree, parameters=parameters))
    return records


MADE = same_cells, other_cells, some_cells_again, with_covariate, with_loss, running_totals


def series_of(records, first=0):
    slices = replace(DAYS, names=DAYS.names[first : first + len(records)])
    return SeriesRecord(slices=slices, releases=tuple(records), scope="slice")


def grown(records):
    """File and digest of a series to which one slice after another is added."""
    content, digest = encode_series(series_of(records[:1])), ""
    digests = [slice_digest(*each) for each in zip(DAYS, trees_of(records), strict=False)]
    for number in range(1, len(records)):
        pair = series_of(records[number - 1 : number + 1], number - 1)
        content, digest = append_slice(content, pair, digests[:number])
    return content, digest


def trees_of(records):
    return [record.tree for record in records]


@pytest.mark.parametrize("made", MADE)
def test_bytes_and_digest_are_those_of_a_series_that_is_written_at_once(made):
    whole = series_of(made())
    content, digest = grown(whole.releases)
    assert content == encode_series(whole)
    assert digest == digest_of(whole) == decode_series(content)[1]
    contents = list(map(encode_release, whole.releases))
    joined = join_releases(lambda: iter(contents), whole.slices, "slice")
    assert joined == (content, digest)


def test_the_nodes_of_earlier_slices_are_not_read(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("an earlier slice was read")

    for name in ("read", "read_row_group", "iter_batches"):
        monkeypatch.setattr(pq.ParquetFile, name, refuse)
    for made in (same_cells, other_cells, with_covariate, with_loss):
        grown(made())


def test_other_digests_than_those_of_the_file_are_not_taken_over():
    whole = series_of(same_cells())
    content, digests = encode_series(series_of(whole.releases[:3])), ["0" * 64] * 3
    found = append_slice(content, series_of(whole.releases[2:], 2), digests)
    assert found == (encode_series(whole), digest_of(whole))


def test_slices_of_several_row_groups(monkeypatch):
    whole, write = series_of(same_cells()), pq.ParquetWriter.write_table
    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", lambda *a: write(*a, row_group_size=50))
        content, digest = grown(whole.releases)
    assert pq.ParquetFile(pa.BufferReader(content)).num_row_groups == 2 * len(whole.slices)
    assert digest == digest_of(whole) == decode_series(content)[1]


def test_only_public_values_are_added_and_a_file_without_compression_stays_one(monkeypatch):
    first, second = same_cells()[:2]
    content = encode_series(series_of([first]))
    replayed = replace(second, source="replayed")
    with pytest.raises(ParameterError):
        append_slice(
            content, series_of([first, replayed]), [slice_digest(DAYS.names[0], first.tree)]
        )
    for module in (file, series_file):
        monkeypatch.setattr(module, "NODES", {"floor": 200, "each": 0.01})
    whole = series_of(same_cells())  # 85 nodes each: the third is too much
    assert grown(whole.releases) == (encode_series(whole), digest_of(whole))
