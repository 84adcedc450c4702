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
import shapely

import psd
from psd.api.release import Release
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import NANO
from psd.privacy.unit import PrivacyUnit
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from psd.release.post_processing import PostProcessing
from psd.release.record import ReleaseRecord
from psd.space.growing_tree import GrowingTree
from psd.space.region_tree import region_frame
from support.golden import GOLDEN, check_answers, stored
from support.releases import changed

FILE = GOLDEN / "seoul.psd.parquet"

# An office may have printed it.
DIGEST = "00c0704605e83ef4d9106eee85bf7f1b570b99a3eb2229c54f477f4063c7d0f0"

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
    tree = psd.decompositions.grid_tree(domain, 16)
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


def test_the_stored_release_answers_the_stored_numbers():
    answers, table = stored("seoul"), psd.Release.load(FILE).query(BOXES, confidence=0.9).table
    assert list(table.columns) == ["id", *answers]
    check_answers(table, answers, abs=1e-12)


def test_the_stored_release_is_the_one_that_was_made():
    release, made = psd.load(FILE), made_once()
    for name in ("boxes", "parent", "level", "count", "loss"):
        assert np.array_equal(getattr(release.tree, name), getattr(made.tree, name))
    assert release.domain == made.domain
    assert (release.unit.kind, release.unit.max_contributions) == ("user", 2)
    assert release.record.epsilon == 1_000_000_000
    assert release.record.post_processing == PostProcessing(
        estimate="least-squares", density="uniform", prune=0
    )
    assert release.digest == changed(release).digest == DIGEST
    assert FILE.stat().st_size < 20_000


def test_statements_of_the_publisher_and_losses_in_rho():
    release = psd.Release.load(GOLDEN / "about.psd.parquet")
    assert release.digest == "f894071cb3cc37ea24809a1996cfc8d6656cd03e7231e4be06300b2294de0553"
    assert release.record.about_texts == {
        "title": "Visits in Seoul, 방문",
        "publisher": "Office of Seoul",
        "licence": "CC-BY-4.0",
        "reference_date": "2024-01/2024-06",
        "language": "ko",
    }
    check_answers(release.query([(126.4, 37, 127, 37.5)]).table, {"estimate": [60.0]})
    series = psd.load(GOLDEN / "gaussian.psd.parquet")
    assert series.digest == "36a7efa8fba18278f2058eae722a8ab83c9a8d8fddff7cd1ca59ffee357b903e"
    assert series.record.guarantee_text == (
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
    """With noise of its own."""
    release, answers = psd.load(GOLDEN / "smallest.psd.parquet"), stored("smallest")
    assert (release.domain.min_cell, release.domain.cell_step) == ("250", (4096, 4096))
    assert release.digest == answers.pop("digest")
    assert {*answers} == {"estimate", "perturbation_error"}
    check_answers(release.query([*BOXES[:2], (126.96, 37.54, 126.97, 37.55)]).table, answers)
    release.save(tmp_path / "r")
    assert psd.load(tmp_path / "r").digest == release.digest


def test_a_local_release():
    release = psd.Release.load(GOLDEN / "local.psd.parquet")
    assert release.digest == "b5898554dc42fc0bb633e0342788d3999858fb699bebf9bc27a53af2fc360192"
    boxes = [(0, 0, 8, 4), (1.3, 0.2, 4.4, 3.1), (2, 1, 3, 2), (6, 2, 8, 4)]
    table, answers = release.query(boxes, confidence=0.9).table, stored("local")
    assert {*table.columns} == {"id", *answers}
    check_answers(table, answers)
    local = release.record.local
    levels = [(level.level, level.protocol) for level in local.levels]
    assert levels == [(2, "subset"), (3, "hashing")]
    assert local.reports == 5000


REGIONS = GOLDEN / "regions.psd.parquet"
REGIONS_DIGEST = "aaf1464939df851362b976c2a997aad4d70426a0428a70b59a0a9d8e17d97be9"

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


def test_a_release_with_regions():
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
