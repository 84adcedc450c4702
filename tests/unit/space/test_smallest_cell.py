"""The smallest cell is a public function of bounds and CRS, and adaptive methods keep to it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import psd
from psd.decompositions import method, methods
from psd.ingest.tally import Batch
from psd.ingest.tally_builder import tally_batches
from psd.privacy.budget import Budget
from psd.privacy.unit import PrivacyUnit
from psd.publish.counting import coarsest_step
from psd.publish.drawing import draw_release
from psd.release.schema import record_header
from psd.space.domain import Blocks, min_cell_within, parse_min_cell, smallest_blocks
from psd.testing.transcripts import RecordingSampler, ReplayingSampler
from support.privacy.samplers import ExactSampler

LONDON = (-0.55, 51.25, 0.35, 51.72)
METRES = "EPSG:3857"
FEET = "EPSG:2263"
LOCAL = 'LOCAL_CS["hall",UNIT["metre",1]]'
FIXED = {"quadtree"}


def crowd(bounds, records=20_000):
    """Records of which half have one position, so that an adaptive method goes deep there."""
    west, south, east, north = bounds
    random = np.random.default_rng(5)
    share = np.where(np.arange(records)[:, None] % 2, 0.3, random.random((records, 2)))
    x, y = west + share[:, 0] * (east - west), south + share[:, 1] * (north - south)
    return pd.DataFrame({"lon": x, "lat": y})


WORLD, HALL = (-180, -90, 180, 90), (0, 0, 64, 64)
PLANE = {"bounds": (0, 0, 2**10, 2**10), "crs": METRES}
YORK = (980_000, 200_000, 981_000, 201_000)
STEPPED = {"bounds": LONDON, "coordinate_resolution": "0.001"}
COARSE = {"bounds": LONDON, "lattice": (64, 64)}


def test_it_follows_from_bounds_and_crs(subtests):
    for fields, min_cell, step in (
        # 0.9 degrees at 51.72 are 61,650 m, so 2^20 columns of 0.0588 m; 128 of them are 7.5 m.
        ({"bounds": LONDON}, "5", (128, 128)),
        ({"bounds": LONDON, "min_cell": 50}, "50", (1024, 1024)),
        ({"bounds": LONDON, "min_cell": "50.0"}, "50", (1024, 1024)),
        ({"bounds": LONDON, "min_cell": 0}, None, (1, 1)),
        ({"bounds": LONDON, "min_cell": None}, None, (1, 1)),
        (COARSE, None, (1, 1)),
        (COARSE | {"min_cell": 50}, "50", (1, 1)),
        (COARSE | {"min_cell": 1000}, "1000", (2, 2)),
        # In degrees of 0.001 a column is 68.5 m and a row 110.6 m.
        (STEPPED, "5", (1, 1)),
        (STEPPED | {"min_cell": 200}, "200", (4, 2)),
        # The world is measured at 80 degrees: 360 degrees are 6,912 km there.
        ({"bounds": WORLD}, "5", (1, 1)),
        ({"bounds": WORLD, "min_cell": 50}, "50", (8, 4)),
        ({"bounds": (0, 0, 4, 4), "crs": METRES}, None, (1, 1)),
        (PLANE, "5", (2**13, 2**13)),
        (PLANE | {"min_cell": 1024}, "1024", (2**20, 2**20)),
        ({"bounds": YORK, "crs": FEET}, "5", (2**15, 2**15)),
        ({"bounds": HALL, "crs": LOCAL}, None, (1, 1)),
        ({"bounds": HALL, "crs": LOCAL, "min_cell": 1}, "1", (2**14, 2**14)),
    ):
        domain = psd.Domain(**fields)
        with subtests.test(fields=fields):
            assert (domain.min_cell, domain.cell_step) == (min_cell, step)
    # Domains that differ in it alone are equal.
    assert psd.Domain(bounds=LONDON) == psd.Domain(bounds=LONDON, min_cell=500)


def test_other_values_are_refused(subtests):
    sides = r"at most the sides of the bounds on the ground, 61,6\d\d x 51,970 m, got 60000"
    for min_cell, says in (
        (-1, "min_cell must be a decimal number of metres .* got '-1'"),
        (float("nan"), "got 'nan'"),
        (float("inf"), "got 'inf'"),
        ("wide", "got 'wide'"),
        ("1e-7", "got '1e-7'"),
        (True, "got 'True'"),
        ([50], "got a value of type list"),
        (60_000, sides),
    ):
        with subtests.test(min_cell=min_cell):
            with pytest.raises(psd.errors.DomainError, match=says) as raised:
                psd.Domain(bounds=LONDON, min_cell=min_cell)
            assert raised.value.name == "min_cell"


@pytest.mark.parametrize("name", sorted(set(methods()) - FIXED))
@pytest.mark.parametrize("resolution", [None, "7"])
def test_no_cell_of_an_adaptive_method_is_smaller(name, resolution):
    bounds = (0, 0, 3_000, 2_000)
    domain = psd.Domain(bounds=bounds, crs=METRES, coordinate_resolution=resolution, min_cell=100)
    release = psd.build(crowd(bounds), domain=domain, epsilon=100, method=name)
    boxes = domain.from_lattice(release.tree.boxes)
    sides = boxes[:, 2:] - boxes[:, :2]
    # A cell at the edge of the bounds may lack half a step of the resolution.
    assert sides.min() >= 100 - (0 if resolution is None else 3.5)
    assert release.domain.min_cell == "100"
    assert len(release.tree) > 1


def test_sizes_that_the_caller_gives_are_not_limited_and_others_are_stated():
    domain = psd.Domain(bounds=(0, 0, 1_000, 1_000), crs=METRES, min_cell=100)
    table = crowd(domain.bounds, 500)
    for chosen in (method("quadtree", {"height": "4"}), method("grid", {"size": "16"})):
        release = psd.build(table, domain=domain, epsilon=1, method=chosen)
        assert int(release.tree.is_leaf.sum()) == 256
        assert release.domain.min_cell is None
    coarse = psd.build(table, domain=domain, epsilon=1, method=method("quadtree", {"height": "3"}))
    assert coarse.domain.min_cell == "100"
    table = crowd(LONDON, 500)
    release = psd.build(table, domain=psd.Domain(bounds=LONDON, min_cell="1000"), epsilon=1)
    assert record_header(release.record)["min_cell"] == "1000"
    without = psd.build(table, domain=psd.Domain(bounds=LONDON, min_cell=0), epsilon=1)
    assert record_header(without.record)["min_cell"] is None
    domain = psd.Domain(bounds=(0, 0, 1_000, 1_000), crs=METRES, min_cell=100)
    release = psd.Release.from_counts(
        psd.decompositions.grid_tree(domain, 16), range(256), 1, domain=domain
    )
    assert release.domain.min_cell is None
    with pytest.raises(psd.errors.ParameterError, match="a cell of the release is smaller"):
        replace(release.record, domain=domain, method="quadtree")


def test_blocks_tile_the_lattice(subtests):
    for lattice, step in (((8, 8), (2, 4)), ((11, 7), (4, 2)), ((5, 3), (5, 3))):
        blocks = Blocks(lattice=lattice, step=step)
        columns, rows = blocks.coarse_lattice
        boxes = [[i, j, i + 1, j + 1] for j in range(rows) for i in range(columns)]
        fine = blocks.to_fine(np.array(boxes))
        with subtests.test(lattice=lattice):
            assert blocks.keeps(fine)
            assert ((fine[:, 2:] - fine[:, :2]).prod(axis=1)).sum() == np.prod(lattice)
            for axis in (0, 1):
                cells = np.arange(lattice[axis])
                block = blocks.to_blocks(cells, axis)
                low = np.unique(fine[:, [axis, axis + 2]], axis=0)
                assert (cells >= low[block, 0]).all()
                assert (cells < low[block, 1]).all()


def test_a_tally_of_fine_cells_gives_the_blocks_of_one_counted_by_blocks(tmp_path):
    domain = psd.Domain(bounds=LONDON, min_cell=500)
    table = crowd(LONDON, 2_000)
    fine = psd.tally(table, domain=domain, part="a")
    coarse = psd.tally(table, domain=domain, method="auto", part="a")
    assert coarse.rules.step == coarsest_step(method("auto"), domain) == domain.cell_step
    assert len(coarse.counts.counts) < len(fine.counts.counts)
    for tally in (fine, coarse):
        release = psd.build(tally, domain=None, epsilon=50)
        assert release.domain.min_cell == "500"
    again = psd.build(fine, domain=psd.Domain(bounds=LONDON, min_cell=2_000), epsilon=50)
    assert again.domain.min_cell == "2000"
    with pytest.raises(psd.errors.ParameterError, match="must divide no finer than the tally"):
        psd.build(coarse, domain=psd.Domain(bounds=LONDON, min_cell=50), epsilon=50)


ADAPTIVE = "auto", "cascade", "privtree", "kd-standard", "htf", "hilbert-rtree"
ODD = [
    psd.Domain(bounds=(0, 0, 900, 700), crs=METRES, min_cell=50),
    psd.Domain(bounds=(0.5, 0, 900, 700.2), crs=METRES, coordinate_resolution="7", min_cell=40),
    psd.Domain(bounds=(0, 0, 900, 700), crs=METRES, lattice=(1000, 37), min_cell=60),
]


def odd_rows(domain, records=3_000):
    """Records on the lines of blocks, beside them, at the bounds, and anywhere."""
    random, (west, south, east, north) = np.random.default_rng(7), domain.bounds
    x, y = random.uniform(west, east, records), random.uniform(south, north, records)
    steps = [np.arange(0, domain.lattice[a] + 1, domain.cell_step[a]) for a in (0, 1)]
    lines = [domain.edges(a, steps[a]) for a in (0, 1)]
    x[:900] = random.choice(lines[0], 900)
    y[600:1500] = random.choice(lines[1], 900)
    x[1500:1700] = np.nextafter(random.choice(lines[0][1:], 200), -np.inf)
    x[1700:1800], y[1750:1800] = east, north
    return Batch(x=x, y=y)


def drawn(domain, name, counts, sampler):
    how = {"method": method(name), "unit": PrivacyUnit(), "sampler": sampler}
    return draw_release(counts, domain, budget=Budget(10**10), **how).tree


@pytest.mark.parametrize("domain", ODD, ids=["even", "stepped", "odd"])
@pytest.mark.parametrize("name", ADAPTIVE)
def test_counts_are_those_of_the_lattice_cells_in_each_cell(domain, name):
    rows = odd_rows(domain)
    fine = tally_batches([rows], domain)
    tree = drawn(domain, name, fine, ExactSampler())
    if name not in ("kd-standard", "htf"):  # whose lines are drawn at random
        counted = tally_batches([rows], domain, step=domain.cell_step)
        in_blocks = drawn(domain, name, counted, ExactSampler())
        np.testing.assert_array_equal(tree.boxes, in_blocks.boxes)
        np.testing.assert_array_equal(tree.count, in_blocks.count)
    for node in np.flatnonzero(tree.loss):
        west, south, east, north = tree.boxes[node]
        inside = (fine.columns >= west) & (fine.columns < east)
        inside &= (fine.rows >= south) & (fine.rows < north)
        assert tree.count[node] == fine.counts[inside].sum()


@pytest.mark.parametrize("domain", ODD, ids=["even", "stepped", "odd"])
@pytest.mark.parametrize("name", sorted(set(methods()) - FIXED))
def test_the_same_answers_give_the_same_cells_on_other_data(domain, name):
    recorder = RecordingSampler()
    first = drawn(domain, name, tally_batches([odd_rows(domain)], domain), recorder)
    other = Batch(x=np.array([domain.bounds[0]]), y=np.array([domain.bounds[3]]))
    again = drawn(domain, name, tally_batches([other], domain), ReplayingSampler(recorder.draws))
    for field in ("boxes", "parent", "level", "count", "loss"):
        np.testing.assert_array_equal(getattr(first, field), getattr(again, field))


def test_a_smallest_cell_is_a_length_within_the_bounds():
    assert [parse_min_cell(given) for given in ("50.0", 12.5, 0)] == ["50", "12.5", None]
    assert min_cell_within((120.75, 900.0), "50") == "50"
    assert min_cell_within((120.75, 900.0), "500") == "120.75"


def test_blocks_of_a_smallest_cell_are_powers_of_two():
    assert smallest_blocks((60_000.0, 40_000.0), (2**20, 2**20), "50") == (1024, 2048)
    assert smallest_blocks((60_000.0, 40_000.0), (64, 64), "50") == (1, 1)
