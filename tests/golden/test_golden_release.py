"""Release files written once still load, and answer what they answered then.

The files and the answers are kept beside this module. They change only when the file format or
the inference changes on purpose; then ``python tests/golden/test_golden_release.py`` writes
those of Seoul and of regions again, and the change is explained where it is recorded.
"""

import json
from fractions import Fraction
from itertools import pairwise

import geopandas as gpd
import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely

import psd
from psd.api.release import Release
from psd.errors import ReleaseFormatError
from psd.privacy.count_noise import CountNoise
from psd.privacy.epsilon import NANO
from psd.privacy.unit import PrivacyUnit
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.release.post_processing import INFERENCE_VERSION, PostProcessing
from psd.release.record import ReleaseRecord
from psd.space.growing_tree import GrowingTree
from psd.space.region_frame import region_frame
from support.golden import GOLDEN, check_answers, stored
from support.releases import changed

FILE = GOLDEN / "seoul.psd.parquet"

# The same release in format 1, which had no view, in format 2, which had fewer units, and in
# format 3, which had no digest.
FORMAT_1, FORMAT_2, FORMAT_3 = (GOLDEN / f"seoul.format-{n}.psd.parquet" for n in (1, 2, 3))

# An office may have printed it.
DIGEST = "edd0cdbda8bb09590d7e7d8c9b23b59a2283069323f58ee1e15c0082e8eb7eca"

BOXES = [
    (126.4, 37.0, 127.6, 38.0),
    (126.9, 37.4, 127.1, 37.6),
    (126.7, 37.25, 127.3, 37.75),
    (126.41, 37.01, 126.42, 37.02),
    (127.0, 37.5, 127.6, 38.0),
    (120.0, 30.0, 126.8, 37.9),
]


def made_once():
    """Quadtree of 16 x 16 leaves: a hill of counts, with fixed noise of both signs."""
    domain = psd.Domain(bounds=(126.4, 37.0, 127.6, 38.0))
    tree = psd.grid_tree(domain, 16)
    width, height = domain.lattice
    west, south, east, north = (tree.boxes.astype(float) / [width, height, width, height]).T
    share = (east - west) * (north - south)
    away = np.hypot((west + east) / 2 - 0.5, (south + north) / 2 - 0.5)
    noise = np.arange(len(tree)) * 7919 % 23 - 11
    count = np.floor(20_000 * share * np.exp(-4 * away)).astype(int) + noise
    epsilon = np.array(["0.1", "0.1", "0.2", "0.2", "0.4"])[tree.level]
    return psd.Release.from_counts(
        tree, count, epsilon, domain=domain, unit=PrivacyUnit(kind="user", max_contributions=2)
    )


def test_the_stored_release_answers_the_stored_numbers(subtests):
    answers = stored("seoul")
    for path in (FILE, FORMAT_3, FORMAT_2):
        with subtests.test(path.name):
            table = psd.load(path).query(BOXES, confidence=0.9).table
            assert list(table.columns) == ["id", *answers]
            check_answers(table, answers, abs=1e-12)


def test_the_stored_release_is_the_one_that_was_made():
    release, made = psd.load(FILE), made_once()
    for name in ("boxes", "parent", "level", "count", "loss"):
        assert np.array_equal(getattr(release.tree, name), getattr(made.tree, name))
    assert release.domain == made.domain
    assert (release.unit.kind, release.unit.max_contributions) == ("user", 2)
    assert release.record.epsilon == 1_000_000_000
    assert release.post_processing == PostProcessing(
        estimate="least-squares", density="uniform", prune=0
    )
    assert release.digest == changed(release).digest == DIGEST
    assert FILE.stat().st_size < 20_000


def test_what_each_format_added_and_that_older_files_are_written_anew(tmp_path):
    paths = (FORMAT_1, FORMAT_2, FORMAT_3, FILE)
    for path in paths[1:]:
        assert pq.read_table(FORMAT_1).equals(pq.read_table(path))
    footers = [pq.read_metadata(path).metadata for path in paths]
    first, second, third, fourth = (json.loads(footer[b"psd"]) for footer in footers)
    view = {"estimate": "least-squares", "density": "uniform", "prune": 0}
    added = {"format": 2, "view": view, "covariate": None, "library": second["library"]}
    assert second == first | added
    added = {"format": 3, "weight": 0, "time_zone": None, "boundary": False}
    assert third == second | added | {"library": third["library"]}
    assert fourth == third | {"format": 4, "library": fourth["library"]}
    assert [b"psd-digest" in footer for footer in footers] == [False, False, False, True]
    with pytest.raises(ReleaseFormatError, match=r"format version 1 is not known.* reads 2 to 11"):
        psd.load(FORMAT_1)
    for path in (FORMAT_2, FORMAT_3):
        psd.load(path).save(tmp_path / path.name)
        written = pq.read_schema(tmp_path / path.name).metadata[b"psd"]
        assert json.loads(written)["format"] == 4


def test_statements_of_the_publisher_and_losses_in_rho():
    release = psd.load(GOLDEN / "about.format-9.psd.parquet")
    assert release.digest == "5fc305a7cba9d88aa89777c9fbb362707fc064eef23015e2acc01120319d4e0b"
    assert release.about == {
        "title": "Visits in Seoul, 방문",
        "publisher": "Office of Seoul",
        "licence": "CC-BY-4.0",
        "reference_date": "2024-01/2024-06",
        "language": "ko",
    }
    check_answers(release.query([(126.4, 37, 127, 37.5)]).table, {"estimate": [60.0]})
    series = psd.load(GOLDEN / "gaussian.format-11.psd.parquet")
    assert series.digest == "8147b98198bc578686a10493f862de70f664f54c0227b67746e760579383c6b1"
    assert series.guarantee_text == (
        "epsilon 1 and delta 1e-6 (rho 0.024355970359) per user, at most 3 records of each, at "
        "most 1 of them in each time slice; with a probability of at most 1e-6 it may reveal more "
        "than epsilon allows"
    )
    first = series.record.releases[0]
    assert (first.rho, first.delta) == (24_355_970_359, Fraction(1, 10**6))
    assert first.tree.noise == CountNoise.gaussian(3)
    answer = {"estimate": [81.089414], "lower": [59.800292], "upper": [102.378536]}
    check_answers(series["2024-01-02"].query([(126.4, 37, 127, 37.5)]).table, answer, abs=1e-5)


def test_a_smallest_cell(tmp_path):
    """Written in format 7, with noise of its own; intervals of newer versions may be others."""
    release, answers = psd.load(GOLDEN / "smallest.psd.parquet"), stored("smallest")
    assert (release.domain.min_cell, release.domain.cell_step) == ("250", (4096, 4096))
    assert release.digest == answers.pop("digest")
    assert {*answers} == {"estimate", "perturbation_error"}
    check_answers(release.query([*BOXES[:2], (126.96, 37.54, 126.97, 37.55)]).table, answers)
    release.save(tmp_path / "r")
    assert psd.load(tmp_path / "r").digest == release.digest


def test_a_local_release():
    release = psd.load(GOLDEN / "local.format-8.psd.parquet")
    assert release.digest == "9828742659b35bc0008636b1fba85346d72d962472214fbb9351f27dff899e49"
    boxes = [(0, 0, 8, 4), (1.3, 0.2, 4.4, 3.1), (2, 1, 3, 2), (6, 2, 8, 4)]
    table, answers = release.query(boxes, confidence=0.9).table, stored("local")
    assert {*table.columns} == {"id", *answers}
    check_answers(table, answers)
    local = release.record.local
    levels = [(level.level, level.protocol) for level in local.levels]
    assert levels == [(2, "subset"), (3, "hashing")]
    assert local.reports == 5000


VIEWS = [
    PostProcessing(estimate="posterior", density="smooth"),
    PostProcessing(estimate="signed", density="uniform"),
    PostProcessing(estimate="least-squares", density="uniform", prune=20),
]


def test_a_release_of_an_earlier_inference_answers_as_before(tmp_path):
    """Counts of one build by the method cascade, whose estimates version 2 changed."""
    release = psd.load(GOLDEN / "cascade.inference-1.psd.parquet")
    assert release.inference == 1
    answers = stored("cascade.inference-1")
    places = [(126.96, 37.54, 126.97, 37.55), BOXES[3], (127.0, 37.2, 127.6, 37.4), BOXES[5]]
    assert list(answers) == [f"{view.estimate} {view.density}" for view in VIEWS]
    for view, columns in zip(VIEWS, answers.values(), strict=True):
        table = changed(release, post_processing=view).query([*BOXES[:3], *places]).table
        assert list(table.columns) == ["id", *columns]
        check_answers(table, columns)
    release.save(tmp_path / "r")
    again = psd.load(tmp_path / "r")
    assert (again.inference, again.digest) == (1, release.digest)
    present = changed(release, inference=INFERENCE_VERSION)
    assert present.total != release.total
    assert present.total == pytest.approx(release.total, rel=0.01)


REGIONS = GOLDEN / "regions.psd.parquet"
REGIONS_DIGEST = "757d37922056fcec0781a913cc9d64542df3ccd62b55a8ff25bee805aa7b5c22"

OF_REGIONS = ["id", "estimate", "perturbation_error", "nonuniformity_error", "lower", "upper"]

QUERIES = [("borough", None), ("ward", None), ("ward", [["w0", "w3"], ["w5", "w6", "w1"]])]


def regions_made_once():
    """Seven wards in two boroughs, quartered, with fixed noise of both signs."""
    domain = psd.Domain(bounds=(0, 0, 8, 8), crs="EPSG:3857", lattice=(1024, 1024))
    corners = [(0, 0), (8, 0), (8, 8), (0, 8), (0, 3)]
    shapes = [shapely.Polygon([(5, 4), a, b]) for a, b in pairwise([*corners, (0, 0)])]
    shapes[0] = shapely.Polygon([(5, 4), (0, 0), (4, 0)])
    shapes += [shapely.Polygon([(5, 4), (4, 0), (6, 0)]), shapely.Polygon([(5, 4), (6, 0), (8, 0)])]
    table = gpd.GeoDataFrame({"ward": [f"w{n}" for n in range(7)]}, geometry=shapes)
    table["borough"] = ["south", "east", "east", "east", "south", "south", "south"]
    regions = hierarchy_from_polygons(
        table.set_crs("EPSG:3857"), domain, ids="ward", parents=["borough"]
    )
    growing = GrowingTree(domain.lattice)
    frame = region_frame(regions, domain.lattice)
    growing.cut_regions(regions, frame)
    cells = growing.cells(frame.lowest)
    cells = growing.cut(cells, x=cells.middle(0), y=cells.middle(1)).cells
    for nodes, nano in (
        (np.r_[0, frame.named(0), frame.lowest], NANO // 5),
        (cells.nodes, NANO // 2),
    ):
        nodes = nodes[growing.may_have_records(nodes)]
        share = (frame.stop - frame.first)[np.minimum(nodes, len(frame) - 1)]
        noise = np.arange(len(nodes)) * 7919 % 23 - 11
        size = np.where(nodes < len(frame), 400 * share, 100)
        growing.measure(nodes, size + noise, np.full(len(nodes), nano))
    record = ReleaseRecord(
        tree=growing.tree(),
        domain=domain,
        epsilon=2 * NANO,
        method="given",
        post_processing=PostProcessing(estimate="posterior"),
    )
    return Release(record)


def tables_of(release):
    """Every number of the answer tables."""
    return [
        release.query(ids, level=level, confidence=0.9).table[OF_REGIONS] for level, ids in QUERIES
    ]


def test_a_release_with_regions_of_format_7():
    for table, answers in zip(tables_of(psd.load(REGIONS)), stored("regions"), strict=True):
        assert list(table) == list(answers)
        check_answers(table, answers, rel=1e-9)
    loaded, made = psd.load(REGIONS), regions_made_once()
    assert loaded.digest == REGIONS_DIGEST
    for name in ("boxes", "parent", "level", "count", "loss"):
        assert np.array_equal(getattr(loaded.tree, name), getattr(made.tree, name))
    assert loaded.tree.regions.digest == made.tree.regions.digest


if __name__ == "__main__":
    made_once().save(FILE, overwrite=True)
    table = made_once().query(BOXES, confidence=0.9).table.drop(columns="id")
    answers = {name: values.tolist() for name, values in table.items()}
    (GOLDEN / "seoul.answers.json").write_text(json.dumps(answers, indent=1) + "\n")
    release = regions_made_once()
    release.save(REGIONS, overwrite=True)
    answers = [table.to_dict("list") for table in tables_of(release)]
    (GOLDEN / "regions.answers.json").write_text(json.dumps(answers, indent=1) + "\n")
