"""psd query --joint, --nested, --top, --quantiles, --difference, and raster exports."""

import json

import geopandas as gpd
import numpy as np
import pandas as pd
import pytest
import shapely

import psd
from psd_cli.output.tables import _column_texts, write_table
from support.cli_runner import (
    as_json,
    as_table,
    check_refusals,
    cli,
    fails,
    files,
    passes,
    three_by_three,
    write_points,
)
from support.releases import as_drawn

R = "r.psd.parquet"
BOXES = [(-4, -4, -1, 5), (-1, -4, 5, 2), (-1, 2, 5, 5)]
FIRST = "--box -4 -4 -1 5"
THREE = f"{FIRST} --box -1 -4 5 2 --box -1 2 5 5"
JOINT = f"query {R} {THREE} --joint"
SIDES = "west,south,east,north"

pytestmark = pytest.mark.usefixtures("release")


@pytest.fixture
def other():
    domain = three_by_three().domain
    tree = psd.decompositions.grid_tree(domain, 3)
    made = as_drawn(psd.Release.from_counts(tree, np.arange(9) + 40, "0.5", domain=domain))
    made.save("other")
    return made


def loaded():
    return psd.load(R)


def test_joint_csv_and_json_are_the_library_s():
    table = as_table(JOINT)
    joint = loaded().query(BOXES).joint()
    names = [f"covariance_{n}" for n in (1, 2, 3)]
    assert list(table.columns) == [*joint.answers.columns, *names]
    np.testing.assert_allclose(table[names], joint.covariance, rtol=1e-9, atol=1e-9)
    pd.testing.assert_frame_equal(table.drop(columns=names), joint.answers)
    content = as_json(JOINT)
    assert list(content) == ["answers", "covariance", "total", "joint_confidence_level"]
    np.testing.assert_allclose(content["covariance"], joint.covariance)
    assert content["joint_confidence_level"] == joint.level
    assert content["total"]["estimate"] == pytest.approx(22)
    assert content["total"]["error"] == pytest.approx(joint.total().error)
    assert [row["id"] for row in content["answers"]] == [1, 2, 3]
    assert as_json(f"query {R} {FIRST} {FIRST} --joint")["total"] is None


def test_joint_table_has_correlations_and_a_total():
    lines = passes(JOINT).splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("correlation"))
    matrix = [line.split()[1:] for line in lines[start + 1 : start + 4]]
    assert [row[n] for n, row in enumerate(matrix)] == ["1.00"] * 3
    assert lines[-1].startswith("total 22.0, error")
    assert "joint" in " ".join(lines[:start])
    outcome = cli(f"{JOINT} --box -1 -4 5 2")
    assert outcome.code == 0
    assert "total" not in outcome.out
    assert "no total: 2 and 4 overlap" in outcome.err
    outcome = cli(f"query {R} --joint {f'{FIRST} ' * 13}")
    assert "correlation" not in outcome.out
    assert "too many regions" in outcome.err


def test_joint_and_nested_columns_of_every_format(here):
    shapes = [shapely.box(-4, 0, 5, 5), shapely.box(-4, -4, 5, 0)]
    table = gpd.GeoDataFrame({"name": ["north", "남쪽"]}, geometry=shapes, crs="EPSG:4326")
    table.to_file("p.gpkg")
    columns = as_table(f"query {R} --polygons p.gpkg --joint").columns
    assert list(columns[-2:]) == ["covariance_north", "covariance_남쪽"]
    rows = [("all", "", -4, -4, 5, 5), ("west", "all", -4, -4, -1, 5)]
    write_points(here / "b.csv", rows, f"id,parent,{SIDES}")
    table = as_table(f"query {R} --boxes b.csv --nested")
    assert table.ring.sum() == pytest.approx(22)
    assert table.ring[1] == table.estimate[1]
    assert "ring" in passes(f"query {R} --boxes b.csv --nested").split()
    write_points(here / "none.csv", [], SIDES)
    for way, column in (("--joint", "joint_lower"), ("--nested", "ring")):
        features = json.loads(passes(f"query {R} {FIRST} {way} --format geojson"))["features"]
        assert {"joint_lower", "ring"} & {*features[0]["properties"]} == {column}
        for form in ("csv", "json", "table"):
            passes(f"query {R} --boxes none.csv {way} --format {form}")


def test_what_is_refused(other, subtests):
    domain = psd.Domain(bounds=(-4, -4, 5, 6), lattice=(3, 3))
    tree = psd.decompositions.grid_tree(domain, 3)
    as_drawn(psd.Release.from_counts(tree, np.ones(9, int), "1", domain=domain)).save("taller")
    table = [
        (2, f"query {R} --box -4 -4 5 5 {FIRST} --nested", "parent"),
        (2, f"{JOINT} --nested", ""),
        (2, f"query {R} --top 10 --size 2 2 --boxes b.csv", ""),
        (2, f"query {R} --top 5 --size 2 2", "--top must be"),
        (2, f"query {R} --difference {R}", ""),
        (2, f"query {R} --top 3 --joint", "at most one of --joint"),
        (2, f"query {R} --top 3 --confidence 0.9", "--confidence must be left out with --top"),
        (2, f"query {R} --quantiles {FIRST}", "--box must be left out with --quantiles"),
        (
            2,
            f"query {R} --difference {R} --all-regions {FIRST}",
            "named regions are answered alone",
        ),
        (2, f"query {R} --top 3 --all-regions", "--all-regions must be left out with --top"),
        (2, f"query {R} {FIRST} --by count", "--by must be left out without --top"),
        (2, f"query {R} {FIRST} --seed 0", "left out without --top or --quantiles"),
        (2, f"query {R} {FIRST} --ratio", "--ratio must be left out without --difference"),
        (2, f"query {R} --top 3 --format geojson", "--format must be table, csv or json with"),
        (3, f"query {R} --difference taller {THREE}", "bounds"),
        (2, f"query {R} --difference {R} {THREE}", "independent"),
        (2, f"export {R} a.csv --size 4 6", "size"),
        (2, f"export {R} b.npy --cells all", "leaves"),
    ]
    check_refusals(subtests, table)


def test_top_of_cells_rasters_and_regions(here):
    expected = loaded().query(top=2).table
    lines = passes(f"query {R} --top 2").splitlines()
    assert lines[-2].split()[0] == "1"
    assert lines[0].split()[-1] == "probability"
    for table in (as_table(f"query {R} --top 2"), pd.DataFrame(as_json(f"query {R} --top 2"))):
        pd.testing.assert_frame_equal(table, expected, check_dtype=False)
    assert as_table(f"query {R} --top 4 --size 2 2").estimate.sum() == pytest.approx(22)
    write_points(here / "b.csv", [("a", *BOXES[0]), ("b", *BOXES[1])], f"id,{SIDES}")
    assert as_table(f"query {R} --top 1 --boxes b.csv").id.tolist() == ["b"]
    shape = gpd.GeoDataFrame({"name": ["x"]}, geometry=[shapely.box(*BOXES[1])], crs="EPSG:4326")
    shape.to_file("p.gpkg")
    assert "x" in passes(f"query {R} --top 1 --polygons p.gpkg")


def test_quantiles_rasters_and_differences(other):
    line = f"query {R} --quantiles --classes 3 --size 3 3"
    expected = loaded().query(quantiles=True, classes=3, size=(3, 3)).table
    assert len(passes(line).splitlines()) == 3
    for table in (as_table(line), pd.DataFrame(as_json(line))):
        pd.testing.assert_frame_equal(table, expected)
    assert passes(f"export {R} a.npy --size 4 6") == "wrote a.npy\n"
    assert np.load("a.npy").shape == (3, 6, 4)
    for name in ("", "--ratio"):
        line = f"query {R} --difference other {THREE} {name}"
        expected = loaded().query(BOXES, difference=other, ratio=bool(name)).table
        pd.testing.assert_frame_equal(as_table(line), expected)
        assert (name.removeprefix("--") or "difference") in passes(line).split()


def test_a_difference_that_rounds_to_0_has_no_sign():
    assert _column_texts(pd.Series([-0.01, 12.0]), "difference") == ["0.0", "12.0"]


def test_ratios_keep_their_digits_beside_a_large_one(capsys):
    values = {"first": [20.0, 3], "second": [2.0, 3], "ratio": [10.0, 1], "upper": [242.6, 1.064]}
    write_table(pd.DataFrame(values), "table", None, overwrite=False)
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[-2:]]
    assert rows == [["20.0", "2.000", "10.000", "242.600"], ["3.0", "3.000", "1.000", "1.064"]]


def test_output_files(release, other, here, subtests):
    (here / "r").write_bytes(release.read_bytes())  # its name says nothing of its format
    for line in ("query r --top 3", "query r --quantiles", f"query r --difference other {THREE}"):
        with subtests.test(line):
            assert passes(f"{line} -o a.csv") == "wrote a.csv\n"
            assert (here / "a.csv").read_text() == passes(f"{line} --format csv")
            assert "exists" in fails(6, f"{line} -o a.csv")
            passes(f"{line} -o a.csv --overwrite")
            table = [
                (2, "a.txt", "format"),
                (6, "r --format csv --overwrite", "input"),
                (2, f"{R} --format csv --overwrite", "another format"),
            ]
            check_refusals(subtests, table, f"{line} -o")
            (here / "a.csv").unlink()
            assert files(here) == ["other", "r", R]
