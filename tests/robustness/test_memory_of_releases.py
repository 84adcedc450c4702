"""What a release of a stranger takes: memory of whole processes, and of parts of the work."""

import subprocess
import sys
import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import psd
import psd.estimation.density
import psd.estimation.likelihoods
import psd.estimation.posterior
from psd._util.atomic_write import write_file
from psd.api.release import Release
from psd.estimation.constants import MEDIAN_REACH
from psd.estimation.fit import fit_least_squares
from psd.estimation.posterior import posterior_counts
from psd.release.file import SCHEMA, encode_release
from psd.release.node_reader import MAX_NODES
from psd.release.post_processing import PostProcessing
from psd.release.record import ReleaseRecord
from psd.space.box_tree import Tree
from psd.space.covariate import Covariate
from robustness.test_bad_input import MEASURED
from support.forged_releases import stamped

pytestmark = pytest.mark.deep

DOMAIN = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(2**20, 2**20))
BOX = ("--box", "0.1", "0.1", "3.7", "3.9")


def measured(*args):
    """Exit code, peak in megabytes and stderr of a command in a process of its own."""
    command = [sys.executable, "-c", MEASURED, *map(str, args)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, int(ended.stdout.splitlines()[-1]), ended.stderr


def record(columns, rows, **choice):
    """A release of a grid in which all counts are 0: it shrinks best."""
    tree = psd.decompositions.grid_tree(DOMAIN, (columns, rows))
    zeros = np.zeros(len(tree), np.int64)
    counted = Tree(
        boxes=tree.boxes, parent=tree.parent, level=tree.level, count=zeros, loss=zeros + 10**8
    )
    return ReleaseRecord(
        tree=counted,
        domain=DOMAIN,
        epsilon=counted.max_path_loss,
        method="given",
        post_processing=PostProcessing(**choice),
    )


def test_a_box_on_four_million_nodes_is_answered_within_1_gb(tmp_path):
    made = record(2048, 1360)
    assert 0.95 * MAX_NODES < len(made.tree) <= MAX_NODES
    write_file(tmp_path / "r", encode_release(made))
    code, peak, told = measured("query", tmp_path / "r", *BOX)
    assert (code, "given: psd did not draw" in told) == (0, True), told
    assert peak < 1024


def malformed(rows):
    """Nodes that are those of a tree, and then zeros."""
    tree = psd.decompositions.grid_tree(DOMAIN, 256)
    own = {name: np.zeros(rows, SCHEMA.field(name).type.to_pandas_dtype()) for name in SCHEMA.names}
    for name, side in zip(("x0", "y0", "x1", "y1"), tree.boxes.T, strict=True):
        own[name][: len(tree)] = side
    own["parent"][: len(tree)], own["level"][: len(tree)] = tree.parent, tree.level
    own["loss"][:] = 1
    made = pa.table({name: pa.array(own[name]) for name in SCHEMA.names}, schema=SCHEMA)
    content = encode_release(record(2, 2))
    header = pq.read_metadata(pa.BufferReader(content)).metadata[b"psd"]
    return made.replace_schema_metadata(stamped(made.slice(0, 9), {b"psd": header}))


@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_a_malformed_file_is_refused_in_little_memory(tmp_path, compression):
    path = tmp_path / "r"
    pq.write_table(malformed(MAX_NODES), path, compression=compression)
    code, peak, told = measured("query", path, *BOX)
    assert code == 5
    assert "parent is missing" in told
    assert peak < (250 if compression == "zstd" else 450)


def peak_of(work):
    """Most bytes of arrays at a time."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_posterior_medians_in_parts_take_less_memory(monkeypatch):
    # Cells with equal counts share a likelihood: no two of these have the same count.
    equal = record(200, 200, estimate="posterior")
    counts = 10**6 + np.random.default_rng(0).permutation(len(equal.tree))
    made = replace(equal, tree=replace(equal.tree, count=counts))
    squares = fit_least_squares(made)
    together = peak_of(lambda: posterior_counts(made.tree, squares, reach=MEDIAN_REACH))
    monkeypatch.setattr(psd.estimation.posterior, "_MOST_KEPT", 2**10)
    monkeypatch.setattr(psd.estimation.likelihoods, "_ROWS_PER_BATCH", 2**8)
    in_parts = peak_of(lambda: posterior_counts(made.tree, squares, reach=MEDIAN_REACH))
    assert in_parts < together / 2


def test_a_smooth_density_of_many_leaves_takes_no_more_memory_than_its_raster(monkeypatch):
    made = Release(record(500, 500, density="smooth"))
    _ = made.index.fit.estimates
    raster = 2050**2 * 8
    monkeypatch.setattr(psd.estimation.density, "_MOST_KEPT", 1)
    assert peak_of(lambda: made.index.fit.density) < 4 * raster
    assert peak_of(lambda: made.query([(0.1, 0.1, 3.7, 3.9)]).table) < raster


def test_a_smooth_density_of_few_leaves_takes_much_less_memory_than_a_raster():
    counts = np.random.default_rng(0).integers(1, 99, 32 * 32)
    tree = psd.decompositions.grid_tree(DOMAIN, (32, 32))
    made = Release.from_counts(tree, counts, 1, domain=DOMAIN)
    made = made.replace(post_processing=PostProcessing(density="smooth"))
    _ = made.index.fit.estimates
    assert peak_of(lambda: made.index.fit.density) < 2050**2 * 8 / 8


def hours(number):
    """A series of smooth slices of 400 cells whose counts differ."""
    tree, rng = psd.decompositions.grid_tree(DOMAIN, (20, 20)), np.random.default_rng(0)
    releases = [
        Release.from_counts(tree, rng.poisson(20, 400), 1, domain=DOMAIN) for _ in range(number)
    ]
    last = np.datetime64("2024-01-01T00") + np.timedelta64(number - 1, "h")
    made = Release.from_slices(psd.TimeSlices.parse("hour", f"2024-01-01T00..{last}"), releases)
    smooth = PostProcessing(estimate="posterior", density="smooth")
    return made.replace(post_processing=smooth)


WINDOWS = ["daily 07-08", "2024-01-01T05", "daily"]


@pytest.mark.parametrize("asked", [{}, {"each": "slice"}, {"when": WINDOWS}], ids=str)
def test_memory_of_answers_does_not_grow_with_slices(asked, monkeypatch):
    monkeypatch.setattr(psd.api.publication, "MOST_KEPT", 0)
    monkeypatch.setattr(psd.estimation.fit, "_TOGETHER", 2**12)
    few, many = (
        peak_of(partial(hours(number).query, [(0.1, 0.1, 3.7, 3.9)], **asked))
        for number in (20, 80)
    )
    assert many < 1.3 * few


def test_masses_of_all_cells_are_computed_in_batches():
    tree = psd.decompositions.grid_tree(DOMAIN, 400)
    raster = np.random.default_rng(1).integers(1, 99, (64, 64)).astype(np.uint16)
    covariate = Covariate(domain=DOMAIN, raster=raster)
    mass = covariate.mass(tree.boxes)
    assert np.array_equal(mass, covariate.raster_mass(covariate.to_raster(tree.boxes)))
    few = 2 * peak_of(lambda: covariate.mass(tree.boxes[: 2**15]))
    assert peak_of(lambda: covariate.mass(tree.boxes)) < few


def test_a_box_that_cuts_all_leaves_is_measured_some_leaves_at_a_time():
    domain = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(2**18, 2))
    tree = psd.decompositions.grid_tree(domain, (2**17, 1))
    counts = np.zeros(2**17, int)
    made = psd.Release.from_counts(tree, counts, 1, domain=domain)
    made = made.replace(post_processing=PostProcessing(density="smooth"))
    boxes = [(0.1, 0.1, 3.7, 3.9)]
    made.query(boxes)
    assert peak_of(lambda: made.query(boxes).table) < 2**17 * 600
    assert peak_of(lambda: made.query(boxes * 20).table) < 20 * 2**17 * 60
