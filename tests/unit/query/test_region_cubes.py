"""Cubes with regions: a ward in an hour is a node, and windows of regions are sums of nodes."""

from dataclasses import replace
from functools import cache

import geopandas
import numpy as np
import pytest
import shapely

import psd
from psd.errors import ParameterError, PsdError, ReleaseFormatError
from psd.query.cube_views import every_node
from psd.release.cube import CubeRecord
from psd.release.cube_file import decode_cube, encode_cube
from psd.space.region_axis import RegionAxis
from support.cubes import DOMAIN, SLICES, cube, town

DAYS = ["2024-01-01", "2024-01-02"]
ERRORS = ("perturbation_error", "nonuniformity_error")


@cache
def wards(side=4, gap=False):
    """Square wards in four districts; with a gap, the north-east corner is in none."""
    step, places = 16 / side, [(i, j) for i in range(side) for j in range(side)]
    places = places[:-1] if gap else places
    return geopandas.GeoDataFrame(
        {
            "ward": [f"w{i}{j}" for i, j in places],
            "district": [f"d{2 * i // side}{2 * j // side}" for i, j in places],
        },
        geometry=[
            shapely.box(i * step, j * step, (i + 1) * step, (j + 1) * step) for i, j in places
        ],
        crs=DOMAIN.crs,
    )


def region_cube(**options):
    """A cube of the town over wards and districts."""
    how = {"regions": wards(), "region_id": "ward", "region_parent": "district", **options}
    return cube(**how)


@pytest.fixture(scope="module")
def release():
    return region_cube(data=town(4_000))


def remade(release, **trees):
    """The cube with other trees of its layers."""
    record = release.record
    layers = {
        name: replace(getattr(record, name), tree=trees.get(name, getattr(record, name).tree))
        for name in ("joint", "plane")
    }
    return CubeRecord(slices=record.slices, **layers)


def estimates(found):
    """Estimates by the ids of regions."""
    return found.table.set_index("id")["estimate"]


def test_a_region_in_a_slice_is_a_node_without_a_shape_error(release):
    assert isinstance(release.record, CubeRecord)
    assert release.levels == ("district", "ward")
    found = release.query(level="ward", each="slice").table
    assert len(found) == 16 * len(SLICES)
    uneven = (found["nonuniformity_error"] > 0).to_numpy().reshape(len(SLICES), 16)
    # It has none exactly where it is no part of a leaf.
    tree = release.record.joint.tree
    leaf = tree.spans[tree.is_leaf]
    is_cut = np.zeros((len(SLICES), 16), bool)
    for begin, end, first, stop in leaf.tolist():
        is_cut[begin:end, first:stop] = (end - begin) * (stop - first) > 1
    assert not uneven[~is_cut].any()
    assert uneven.any()
    assert 100 < (~is_cut).sum() < 16 * len(SLICES)
    everything = release.query([release.domain.bounds]).table
    assert everything["nonuniformity_error"].tolist() == pytest.approx([0], abs=1e-6)


def test_regions_and_windows_add_up(release):
    """Where answers are not held at 0."""
    of_days = [estimates(release.query(level="ward", when=day)) for day in DAYS]
    all_time = estimates(release.query(level="ward"))
    busy = np.logical_and(*[each > 20 for each in of_days])
    assert busy.sum() > 5
    assert sum(of_days)[busy].to_numpy() == pytest.approx(all_time[busy].to_numpy())
    district = wards().set_index("ward")["district"]
    sums = of_days[0].groupby(district).sum()
    above = estimates(release.query(level="district", when=DAYS[0]))
    assert (sums - above).abs().max() < 30


def test_answers_are_near_the_truth(release):
    table = town(4_000)
    inside = (table["lon"] < 4) & (table["lat"] < 4)
    when = table["time"].dt.hour == 8
    found = release.query(["w00"], when=["2024-01-01T08", "2024-01-02T08"]).table
    first = table["time"] < np.datetime64("2024-01-02")
    true = [(inside & when & part).sum() for part in (first, ~first)]
    assert np.abs(found["estimate"] - true).max() < 40


def test_polygons_of_regions_are_answered_as_the_regions(release):
    names = ["w11", "w12"]
    shape = wards().set_index("ward").loc[names].union_all()
    for when in (DAYS[0], "2024-01-01T08"):
        by_name = release.query([names], when=when).table.iloc[0]
        by_shape = release.query(shape, crs=DOMAIN.crs, when=when).table.iloc[0]
        for column in ("estimate", "perturbation_error", "nonuniformity_error"):
            assert by_shape[column] == pytest.approx(by_name[column])


def test_a_box_takes_parts_of_regions_with_an_error(release):
    found = release.query([(0, 0, 8, 8), (1, 1, 7, 7)], when=DAYS[0]).table
    assert found["nonuniformity_error"].is_monotonic_increasing
    assert found["estimate"].is_monotonic_decreasing


def test_joint_answers_are_the_single_ones_and_add_up(release):
    asked = release.query(level="ward", when=DAYS)
    joint = asked.joint()
    matrices = joint.perturbation_covariance, joint.nonuniformity_covariance
    for matrix, name in zip(matrices, ERRORS, strict=True):
        assert np.diagonal(matrix) == pytest.approx(asked.table[name] ** 2, rel=1e-9, abs=1e-9)
        assert np.linalg.eigvalsh(matrix).min() > -1e-9 * matrix.max()
    # The wards of a district on one day have together the errors of the district.
    above = release.query(level="district", when=DAYS[0]).table.set_index("id")
    district = wards().set_index("ward")["district"].loc[asked.table["id"][:16]].to_numpy()
    for name in above.index:
        inside = np.flatnonzero(district == name)
        noise, uneven = (matrix[np.ix_(inside, inside)].sum() for matrix in matrices)
        assert noise == pytest.approx(above.loc[name, ERRORS[0]] ** 2, rel=1e-6)
        # Parts of a district may have more error of unevenness together, and no less.
        assert uneven > 0.99 * above.loc[name, ERRORS[1]] ** 2 - 1e-6


def test_unions_with_a_region_in_common_share_its_errors(release):
    names = [["w00", "w01"], ["w01", "w02"], "w00", "w01", "w02"]
    joint = release.query(names, when="2024-01-01T01..2024-01-01T05").joint()
    noise = joint.perturbation_covariance
    assert noise[0, 1] == pytest.approx(noise[np.ix_([2, 3], [3, 4])].sum(), rel=1e-6)
    for matrix in (noise, joint.nonuniformity_covariance):
        assert matrix == pytest.approx(matrix.T)
        assert np.linalg.eigvalsh(matrix).min() > -1e-9 * matrix.max()


def test_a_view_has_the_answers_to_its_regions(release):
    view = release[DAYS[0]]
    nodes = view.index.fit.tree.named(1)
    found = release.query(level="ward", when=DAYS[0]).table
    assert np.sqrt(view.index.fit.estimates.variance[nodes]) == pytest.approx(
        found["perturbation_error"].to_numpy()
    )
    table = view.to_geopandas(level="ward")
    assert table["estimate"].to_numpy() == pytest.approx(found["estimate"].to_numpy())
    assert table["error"].to_numpy() == pytest.approx(found["error"].to_numpy())
    tree = release.record.plane.tree
    assert len(every_node(tree)) == len(tree)


def test_records_in_no_region_are_left_out():
    data = town(20_000)
    in_gap = (data["lon"] >= 12) & (data["lat"] >= 12)
    release = region_cube(data=data, regions=wards(gap=True), gaps="outside", epsilon=20)
    assert in_gap.sum() > 100
    assert release.total == pytest.approx((~in_gap).sum(), abs=40)


@pytest.mark.parametrize(
    "options",
    [{}, {"user": "user", "max_contributions": 4, "max_per_slice": 1, "delta": "1e-6",
          "noise": "gaussian"}],
    ids=["record", "gaussian"],
)  # fmt: skip
def test_a_file_keeps_regions_and_answers(options, tmp_path):
    made = region_cube(data=town(600), **options)
    made.save(tmp_path / "wards.psd.parquet")
    again = psd.load(tmp_path / "wards.psd.parquet")
    assert again.digest == made.digest
    assert again.record.joint.tree.cap == made.record.joint.tree.cap
    assert encode_cube(again.record) == encode_cube(made.record)
    one, other = (each.query(level="ward", when=DAYS[0]).table for each in (made, again))
    assert one.equals(other)


def test_regions_that_are_divided_elsewhere_are_refused(release):
    """The parts of a family are those of the hierarchy, and each region is in one of them."""
    record, tree = release.record, release.record.joint.tree
    spans = tree.spans.copy()
    parents = np.flatnonzero(tree.children == 2)
    pair = tree.first_child[parents]
    is_pair = (spans[pair, 3] < spans[parents, 3]) & tree.is_leaf[pair] & tree.is_leaf[pair + 1]
    wide = np.flatnonzero(is_pair & (spans[parents, 3] - spans[parents, 2] == 4))
    first = pair[wide[0]]
    spans[first, 3] += 1
    for stop, message in ((1, "divided as their hierarchy"), (0, "do not tile")):
        spans[first + 1, 2] += stop
        moved = replace(tree, spans=spans)
        with pytest.raises(PsdError, match=message):
            remade(release, joint=moved)
        spans[first + 1, 2] -= stop
    quads = replace(record.plane.tree, fan=4)
    with pytest.raises(PsdError, match="those of the hierarchy"):
        remade(release, plane=quads)


@pytest.mark.parametrize("stop", [3, 16])
def test_a_span_that_is_no_node_is_refused(release, stop):
    record = release.record
    axis = record.joint.tree.axes[-1]
    assert isinstance(axis, RegionAxis)
    assert axis.label(0, 2) == "w00..w01"
    assert axis.span_of("d00") == (0, 4)
    with pytest.raises(ParameterError, match="divided as their hierarchy"):
        axis.nodes_of(np.array([1]), np.array([stop]))
    with pytest.raises(ParameterError, match="must be one of the hierarchy"):
        axis.span_of("w99")


def test_a_file_that_is_cut_elsewhere_is_refused(release):
    content = encode_cube(release.record)
    with pytest.raises(ReleaseFormatError):
        decode_cube(content[:-200] + content[-100:])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"slices": None, "time": None}, "slices must be given with regions of method cube"),
        ({"method": "quadtree"}, "method must be one of"),
        (
            {"category": "user", "labels": "u1"},
            "left out with regions; method cube counts categories",
        ),
        ({"estimate": "integer"}, "estimate must not be integer"),
        ({"density": "smooth"}, "density must be uniform or covariate"),
    ],
)
def test_what_a_cube_of_regions_does_not_count_is_refused(change, message):
    how = {
        "domain": DOMAIN, "epsilon": 1, "method": "cube", "slices": SLICES, "time": "time",
        "regions": wards(), "region_id": "ward", **change,
    }  # fmt: skip
    how = {name: value for name, value in how.items() if value is not None}
    with pytest.raises(ParameterError, match=message):
        psd.build(town(100), **how)


def test_the_smallest_loss_is_one_part_for_the_total_and_for_each_layer():
    made = region_cube(data=town(50), epsilon="3e-9")
    assert made.record.plane.tree.max_path_loss + made.record.joint.tree.max_path_loss == 3
    assert len(made.query(level="ward", when=DAYS[0]).table) == 16
    with pytest.raises(ParameterError, match=r"epsilon must be at least 0\.000000003"):
        region_cube(data=town(50), epsilon="2e-9")


@pytest.mark.parametrize("layer", ["joint", "plane"])
def test_cells_inside_a_region_are_refused(release, layer):
    """A region of a cube has no cells, in no layer: halves would be taken for all of it."""
    record = release.record
    tree = getattr(record, layer).tree
    leaf = np.flatnonzero(tree.is_leaf & (tree.level == tree.level.max()))[-1]
    west, south, east, north = tree.boxes[leaf]
    middle = (west + east) // 2
    halves = np.array([[west, south, middle, north], [middle, south, east, north]])
    more = {
        "boxes": halves.astype(tree.boxes.dtype), "parent": [leaf] * 2, "count": [1, 1],
        "loss": [1, 1], "level": [tree.level[leaf] + 1] * 2,
    }  # fmt: skip
    if layer == "joint":
        more["spans"] = tree.spans[[leaf, leaf]]
    divided = replace(
        tree,
        **{
            name: np.concatenate([getattr(tree, name), np.asarray(new, getattr(tree, name).dtype)])
            for name, new in more.items()
        },
    )
    layers = {
        name: replace(
            getattr(record, name),
            epsilon=record.epsilon + 1,
            tree=divided if name == layer else getattr(record, name).tree,
        )
        for name in ("joint", "plane")
    }
    with pytest.raises(ParameterError, match="into slices and regions alone"):
        CubeRecord(slices=record.slices, **layers)
