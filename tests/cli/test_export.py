"""psd export: files that other programs open."""

import json

import pandas as pd

from support.cli_runner import check_refusals, fails, files, passes, three_by_three

REFUSED = [
    (2, "cells.xyz", "cells.xyz"),
    (2, "cells", "cells"),
    (6, "there.csv", "there.csv"),
    (6, "folder.csv", "folder.csv"),
    (6, "nowhere/cells.csv", "nowhere"),
    (6, "r.psd.parquet --overwrite", "input"),
    (
        2,
        "r.npy --size 0 5",
        "--size must be two integers above 0, the columns and the rows of the raster, got 0 ",
    ),
    (
        2,
        "r.npy --size 100000 100000",
        "must be at most 16,777,216 cells of the raster, got 100,000 x 100,000; choose fewer",
    ),
]


def test_geojson_leaves_and_targets(release, subtests, monkeypatch):
    passes("export r.psd.parquet cells.geojson")
    content = json.loads((release.parent / "cells.geojson").read_text(encoding="utf-8"))
    assert content["type"] == "FeatureCollection"
    assert "crs" not in content
    passes("export r.psd.parquet a.csv")
    passes("export r.psd.parquet B.CSV --cells leaves")
    assert (release.parent / "a.csv").read_bytes() == (release.parent / "B.CSV").read_bytes()
    for cells, number in (("leaves", 9), ("all", len(three_by_three().tree))):
        assert passes(f"export r.psd.parquet {cells}.csv --cells {cells}") == f"wrote {cells}.csv\n"
        assert len(pd.read_csv(f"{cells}.csv")) == number
    (release.parent / "there.csv").write_text("mine")
    (release.parent / "folder.csv").mkdir()
    check_refusals(subtests, REFUSED, "export r.psd.parquet")
    check_refusals(subtests, [(5, "cells.csv", "there.csv")], "export there.csv")
    passes("export r.psd.parquet there.csv --overwrite")
    assert len(pd.read_csv("there.csv")) == 9

    def full(tables, path):
        path.write_text("half a fi")
        raise OSError(28, "No space left on device")

    there = files(release.parent)
    monkeypatch.setattr("psd.export.csv.write_parts", full)
    assert "No space left" in fails(6, "export r.psd.parquet cells.csv")
    assert files(release.parent) == there


def test_points_of_the_command_are_those_of_python(release, subtests):
    said = passes("export r.psd.parquet p.csv --points --seed 3")
    total = len(three_by_three().to_points())
    assert said == f"wrote p.csv: {total:,} synthetic points, which are no people\n"
    points = three_by_three().to_points(seed=3)
    found = pd.read_csv("p.csv", dtype=str).astype({"x": float, "y": float})
    assert found["x"].tolist() == points.geometry.x.tolist()
    assert found["y"].tolist() == points.geometry.y.tolist()
    passes("export r.psd.parquet few.geojson --points -n 5")
    assert len(json.loads((release.parent / "few.geojson").read_text())["features"]) == 5
    refused = [
        (2, "q.csv --points --size 3 3", "--size must be left out with --points"),
        (2, "q.csv --points --cells all", "--cells must be left out with --points"),
        (2, "q.csv --points --unreliable drop", "--unreliable must be left out with --points"),
        (2, "q.csv -n 5", "--number must be left out without --points"),
        (2, "q.csv --seed 5", "--seed must be left out without --points"),
        (2, "q.npy --points", "output must end in one of .csv, .fgb, .geojson, .gpkg, .parquet"),
        (6, "p.csv --points", "p.csv"),
    ]
    check_refusals(subtests, refused, "export r.psd.parquet")
