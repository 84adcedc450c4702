"""Campaigns of named regions: the device's region is that of the library, point by point."""

import json
from functools import cache

import numpy as np
import pytest
import shapely

import psd
from psd.apps.local.campaign_design import design_regions, read_regions, regions_of_campaign
from psd.apps.local.campaigns import campaign_of, encode_campaign
from psd.apps.local.collection import collect
from psd.apps.local.device import NANO, Campaign, Store, Words, answer_place
from psd.apps.local.randomization import (
    ManyWords,
    draw_groups,
    find_answers,
    format_reports,
    randomise_group,
)
from psd.apps.local.rounds import next_round
from psd.errors import DomainError, ParameterError
from psd.regions.files import CellRegions, RegionFiles
from psd.regions.polygon_hierarchy import hierarchy_from_polygons
from support.local_regions import BOXES, region_campaign, wards


def hard_points(campaign):
    """Points in and around the bounds, and on outlines: ends, middles, and floats beside them."""
    west, south, east, north = campaign.bounds
    rings = [ring for cell in campaign.groups[0].partition.cells for ring in cell.split("|")[2:]]
    flat = [list(map(float, ring.split())) for ring in rings]
    sides = np.array([ring[i : i + 4] for ring in flat for i in range(0, len(ring) - 2, 2)])
    x0, y0, x1, y1 = sides.T
    random = np.random.default_rng(3)
    x = [random.uniform(west - 1, east + 1, 3000), x0, (x0 + x1) / 2, np.nextafter(x0, 999), x0, x1]
    y = [random.uniform(south - 1, north + 1, 3000), y0, (y0 + y1) / 2, y0, np.nextafter(y0, 999)]
    y.append(y0)
    edges = [(east, north), (west, south), (east, south), (np.nan, south), (west, np.inf)]
    more = np.array([*edges, *((east, v) for v in y0[:50]), *((v, north) for v in x0[:50])])
    return np.concatenate([*x, more[:, 0]]), np.concatenate([*y, more[:, 1]])


@pytest.mark.deep
@pytest.mark.parametrize("bounds", BOXES)
def test_the_device_has_the_region_of_the_library(bounds):
    one = Campaign.parse(encode_campaign(region_campaign(bounds)))
    x, y = hard_points(one)
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    regions = regions_of_campaign(one)
    assert [level.name for level in regions.levels] == ["district", "ward"]
    for group in (0, 1):
        answers = find_answers(one, group, x, y)
        assert [one.answer_of(group, *pair) for pair in pairs] == answers.tolist()
        assert set(answers) == set(range(one.groups[group].draw.answers))


def test_regions_are_those_that_were_given():
    given = wards().set_index("ward")
    regions = regions_of_campaign(region_campaign())
    polygons = regions.geometry.polygons
    moved = given.loc[list(regions.levels[1].ids)].geometry.to_numpy()
    assert shapely.equals(polygons, moved).all()
    corners = [
        [set(map(tuple, shapely.get_coordinates(shape))) for shape in shapes]
        for shapes in (moved, polygons)
    ]
    assert corners[0] == corners[1]
    assert (shapely.get_num_interior_rings(polygons) == 1).sum() == 1
    assert (shapely.get_num_geometries(polygons) == 2).sum() == 1
    upper, lower = regions.levels
    parents = dict(zip(lower.ids, np.array(upper.ids)[lower.parent].tolist(), strict=True))
    assert parents == given["district"].to_dict()


def seeded(count, seed):
    """Words of devices that a seed repeats."""
    random = np.random.default_rng(seed)
    return ManyWords(
        count, lambda rows, columns: random.integers(0, 2**64, (rows, columns), np.uint64)
    )


def test_devices_become_a_release_of_named_regions(tmp_path):
    """20,000 devices with fixed words and places, through lines and parts."""
    one, random = region_campaign(), np.random.default_rng(8)
    x, y = random.normal(3, 1.5, 20_000), random.normal(2, 0.8, 20_000)
    (tmp_path / "c.json").write_bytes(encode_campaign(one))
    groups, lines = draw_groups(one, seeded(len(x), 1)), []
    for number in (0, 1):
        mine = np.flatnonzero(groups == number)
        answers = find_answers(one, number, x[mine], y[mine])
        reports = randomise_group(one, number, answers, seeded(len(mine), 2 + number))
        lines += format_reports(one, reports)
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in lines))
    done = collect(str(tmp_path / "c.json"), [str(tmp_path / "lines")], str(tmp_path / "parts"))
    assert done.reports == 20_000
    release = psd.apps.local.aggregate(str(tmp_path / "c.json"), str(tmp_path / "parts"))
    release.save(tmp_path / "r.psd.parquet")
    release = psd.load(tmp_path / "r.psd.parquet")
    assert (release.unit.kind, release.epsilon) == ("report", 2)
    regions = regions_of_campaign(one)
    inside = (x >= 0) & (x <= 8) & (y >= 0) & (y <= 4)
    lowest = regions.assign(x[inside], y[inside])
    for level, parent in (("ward", np.arange(regions.size)), ("district", regions.ancestors(0))):
        answers = release.query(level=level).table.set_index("id")
        true = np.bincount(parent[lowest[lowest >= 0]])
        ids = list(regions.levels[["district", "ward"].index(level)].ids)
        answers = answers.loc[ids]
        covers = (answers["lower"] <= true) & (true <= answers["upper"])
        assert covers.mean() >= 0.9
    total = release.query([(0, 0, 8, 4)]).table.iloc[0]
    assert total["lower"] <= (lowest >= 0).sum() <= total["upper"]


def test_real_devices_answer_and_there_is_one_round(tmp_path):
    one = region_campaign(epsilon=9)
    for number, point in enumerate([(1, 1), (float("nan"), 0), (99, 1), (8, 4)]):
        store = str(tmp_path / f"{number}.store")
        Store.create(store, 9 * NANO)
        report = json.loads(answer_place(store, one, *point, Words()))
        assert report["campaign"] == one.digest
    (tmp_path / "c.json").write_bytes(encode_campaign(one))
    with pytest.raises(ParameterError, match="asked together"):
        next_round(str(tmp_path / "c.json"), str(tmp_path))


@cache
def encoded():
    return encode_campaign(region_campaign())


def with_cells(*columns):
    content = json.loads(encoded())
    group = {**content["groups"][0], "protocol": {"name": "k-ary"}}
    shares = [1_000_000 - 1000 * (len(columns) - 1), *[1000] * (len(columns) - 1)]
    groups = zip(columns, shares, strict=True)
    content["groups"] = [{**group, "cells": list(cells), "share": part} for cells, part in groups]
    return campaign_of(content)


BOX, NEXT = "0 0 1 0 1 1 0 1 0 0", "1 0 2 0 2 1 1 1 1 0"
NO_CELLS = [
    "", "a", "a|ward", "a|ward|", "|ward|" + BOX, "a||" + BOX, "a|ward|0 0 1 1 0 0",
    "a|ward|0 0 1 0 1 1 0 1 0", "a|ward|0 0 1e9 0 1 1 0 0", "a|ward|0 0 nan 0 1 1 0 0",
    "a|ward|0 0  1 0 1 1 0 0", "a|ward|" + BOX + "|", "a|ward|0 0 .5 0 1 1 0 0",
]  # fmt: skip
NO_HIERARCHIES = {
    "outlines": [["a|ward|" + BOX], ["a|block|" + NEXT]],
    "twice": [["a|ward|" + BOX, "b|ward|" + NEXT, "a|ward|2 0 3 0 3 1 2 1 2 0"]],
    "names": [["a|ward|" + BOX, "b|block|" + NEXT]],
    "parts": [["a|ward|" + BOX, "a|ward|" + NEXT]],
    "parents": [["a|ward|" + BOX, "b|ward|" + NEXT], ["c|block|" + BOX, "c|block|" + NEXT]],
    "open": [["a|ward|0 0 1 0 1 1 0 1 0 2"]],
}


def test_cells_that_are_no_regions_are_refused_and_overlaps_decided_by_the_first(subtests):
    for cell in NO_CELLS:
        words = r"a region must be spelled|number of answers"
        with subtests.test(cell), pytest.raises(ParameterError, match=words):
            with_cells([cell])
    for name, columns in NO_HIERARCHIES.items():
        with subtests.test(name), pytest.raises(ParameterError, match="it is damaged"):
            regions_of_campaign(with_cells(*columns))
    for ring in ("0 0 3 3 3 0 0 3 0 0", "90 0 91 0 91 1 90 1 90 0"):
        with pytest.raises(ParameterError, match="must be a valid polygon"):
            regions_of_campaign(with_cells(["a|ward|" + ring]))
    one = with_cells(["a|ward|0 0 2 0 2 1 0 1 0 0", "b|ward|" + NEXT])
    points = np.array([[1.5, 0.5], [0.5, 0.5], [2, 0.5], [2.5, 0.5], [1, 1]])
    assert [one.answer_of(0, *point) for point in points.tolist()] == [0, 0, 2, 2, 2]
    assert find_answers(one, 0, *points.T).tolist() == [0, 0, 2, 2, 2]


def test_regions_that_a_device_cannot_decide_are_refused(monkeypatch):
    table, domain = wards(), psd.Domain(bounds=BOXES[0])

    def refused(words, table=table, gaps="outside"):
        regions = hierarchy_from_polygons(table, domain, ids="ward", gaps=gaps)
        with pytest.raises(ParameterError, match=words):
            design_regions(regions, 1, 1000)

    refused("regions must be polygons, with gaps outside", gaps="elsewhere")
    with pytest.raises(ParameterError, match="must be files of polygons, got tiles"):
        read_regions(CellRegions(kind="tiles", cells="8"), "EPSG:4326")
    refused("printable and without", table.assign(ward=table["ward"] + "|"))
    monkeypatch.setattr("psd.apps.local.campaign_design._MAX_VERTICES", 9)
    refused("at most 9 vertices in a campaign")
    monkeypatch.setattr("psd.apps.local.campaign_design.MAX_ANSWERS", 9)
    refused("regions must be at most 8")


def test_files_have_the_extent_of_their_regions(tmp_path):
    table = wards()
    table.to_file(tmp_path / "w.gpkg")
    files = RegionFiles(paths=(str(tmp_path / "w.gpkg"),), ids=("ward",), gaps="outside")
    regions = read_regions(files, "EPSG:4326")
    assert regions.domain.bounds == tuple(table.total_bounds)
    assert read_regions(files, "EPSG:4326", (0, 0, 9, 9)).domain.bounds == (0, 0, 9, 9)
    with pytest.warns(UserWarning, match="crs"):
        table.set_crs(None, allow_override=True).to_file(tmp_path / "n.gpkg")
    with pytest.raises(DomainError, match="no CRS"):
        read_regions(RegionFiles(paths=(str(tmp_path / "n.gpkg"),), ids=("ward",)), "EPSG:4326")
