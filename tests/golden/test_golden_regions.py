"""A release with regions written once, of format 7, still loads, and answers what it did then.

``python tests/golden/test_golden_regions.py`` writes the file and the answers anew.
"""

import json
from itertools import pairwise

import geopandas as gpd
import numpy as np
import shapely

import psd
from psd.api.region_release import RegionRelease
from psd.privacy.epsilon import NANO
from psd.release.post_processing import PostProcessing
from psd.release.record import ReleaseRecord
from psd.space.growing_tree import GrowingTree
from psd.space.polygon_hierarchy import hierarchy_from_polygons
from psd.space.region_frame import region_frame
from support.golden import GOLDEN, check_answers, stored

FILE = GOLDEN / "regions.psd.parquet"
DIGEST = "757d37922056fcec0781a913cc9d64542df3ccd62b55a8ff25bee805aa7b5c22"

COLUMNS = ["id", "estimate", "perturbation_error", "nonuniformity_error", "lower", "upper"]

QUERIES = [("borough", None), ("ward", None), ("ward", [["w0", "w3"], ["w5", "w6", "w1"]])]


def made_once():
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
    return RegionRelease(record)


def tables_of(release):
    """Every number of the answer tables."""
    return [release.query_regions(level, ids, confidence=0.9)[COLUMNS] for level, ids in QUERIES]


def test_the_stored_release_answers_the_stored_numbers():
    for table, answers in zip(tables_of(psd.load(FILE)), stored("regions"), strict=True):
        assert list(table) == list(answers)
        check_answers(table, answers, rel=1e-9)


def test_the_stored_release_is_the_one_that_was_made():
    loaded, made = psd.load(FILE), made_once()
    assert loaded.digest == DIGEST
    for name in ("boxes", "parent", "level", "count", "epsilon"):
        assert np.array_equal(getattr(loaded.tree, name), getattr(made.tree, name))
    assert loaded.tree.regions.digest == made.tree.regions.digest


if __name__ == "__main__":
    release = made_once()
    release.save(FILE, overwrite=True)
    answers = [table.to_dict("list") for table in tables_of(release)]
    (GOLDEN / "regions.answers.json").write_text(json.dumps(answers, indent=1) + "\n")
