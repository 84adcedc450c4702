"""psd tally of records and of tallies, and builds of them: outcomes, and what is refused."""

import io
import os
import sys

import geopandas as gpd
import numpy as np
import pytest
import shapely

import psd
from support.cli_runner import check_refusals, fails, files, passes

BOUNDS = "--bounds 126.4 37 127.6 38"
USER = "--user user_id --max-contributions 4"
SURE = "--epsilon 1000 --method grid --set size=4"


@pytest.fixture(autouse=True)
def folder(here):
    """Three months of visits, and a folder for tallies."""
    (here / "t").mkdir()
    rng = np.random.default_rng(5)
    for month in (1, 2, 3):
        lines = [
            f"u{u},{x:.4f},{y:.4f},2024-0{month}-1{d}T10:00:00"
            for u, x, y, d in zip(
                rng.integers(0, 9, 80),
                rng.uniform(126.3, 127.7, 80),
                rng.uniform(36.9, 38.1, 80),
                rng.integers(0, 10, 80),
                strict=True,
            )
        ]
        (here / f"v{month}.csv").write_text("user_id,lon,lat,time\n" + "\n".join(lines) + "\n")
    return here


def tally(options="", months=(1, 2, 3)):
    """Tallies of months, each with the number of its month."""
    for month in months:
        told = passes(f"tally v{month}.csv -o {month} {BOUNDS} {options}")
        assert told == f"wrote {month} (PRIVATE)\n"


def counts(path):
    return psd.load(path).tree.count.tolist()


def mode(path):
    return path.stat().st_mode & 0o777


def test_tallies_of_rounded_coordinates():
    rounded = "--coordinate-resolution 1e-4"
    tally(rounded, (1, 2))
    tally(months=[3])
    fails(8, "tally 1 3 -o t/13")
    passes(f"build 1 2 -o r {SURE}")
    assert psd.load("r").domain.coordinate_resolution == "0.0001"
    told = fails(2, f"build 1 -o s {SURE} {rounded}")
    assert "--coordinate-resolution must be left out for tallies" in told


def test_merged_step_by_step(folder, subtests):
    tally(USER)
    told = passes("tally 1 2 -o m")
    assert told == "wrote m (PRIVATE)\n(per user, at most 8 records of each)\n"
    assert mode(folder / "m") == 0o600
    told = passes("build m 3 -o r --epsilon 1")
    assert told == "wrote r: auto, epsilon 1 per user, at most 12 records of each\n"
    assert psd.load("r").unit.max_contributions == 12
    table = [(8, f"{verb} m 1 -o x", "would count twice") for verb in (f"build {SURE}", "tally")]
    check_refusals(subtests, table)


def test_carried_users_keep_the_bound(folder):
    how = f"{BOUNDS} {USER} --key key"
    passes(f"tally v1.csv v2.csv v3.csv -o whole.tally {how}")
    tally(f"{USER} --key key --carry-users")
    passes(f"build whole.tally -o whole {SURE}")
    passes(f"build 1 2 3 -o carried {SURE}")
    assert counts("whole") == counts("carried")
    assert {psd.load(p).unit.max_contributions for p in ("whole", "carried")} == {4}
    assert mode(folder / "key") == 0o600
    release = (folder / "carried").read_bytes()
    secrets = ((folder / "key").read_bytes().strip(), b"blake2b", b"v1.csv", b"u3")
    assert not [secret for secret in secrets if secret in release]


def test_files_that_have_their_tally_are_not_read_again(folder):
    how = f"--into t {BOUNDS} {USER} --key key --carry-users"
    wrote = "wrote t/v{}.csv.tally (PRIVATE)\nwrote t/v{}.csv.tally (PRIVATE)\n"
    assert passes(f"tally v1.csv v2.csv {how}") == wrote.format(1, 2)
    before = (folder / "t" / "v1.csv.tally").read_bytes()
    (folder / "t" / "v2.csv.tally").unlink()
    assert passes(f"tally v?.csv {how}") == wrote.format(2, 3)
    assert (folder / "t" / "v1.csv.tally").read_bytes() == before
    assert passes(f"tally v?.csv {how}") == ""
    for other in (how.removesuffix(" --carry-users"), how.replace("butions 4", "butions 3")):
        assert "other options" in fails(8, f"tally v?.csv {other}")
    with (folder / "v1.csv").open("a") as file:
        file.write("u1,127,37.5,2024-01-01T00:00:00\n")
    told = "does not belong to the present content of v1.csv"
    assert told in fails(8, f"tally v?.csv {how}")
    assert len(files(folder / "t")) == 3


def test_tallies_of_a_pattern_or_a_folder_are_tallies():
    for month in (1, 2):
        passes(f"tally v{month}.csv -o t/{month}.tally {BOUNDS}")
    for number, data in enumerate(("t/*.tally", "t", "t/[1]*")):
        passes(f"build {data} -o r{number} {SURE}")
        fails(2, f"build {data} -o x --epsilon 1 --x count --y row --bounds 0 0 9 9")
    assert "tally the records first" in fails(2, f"build t v3.csv -o x {SURE}")


def test_tallies_of_values_are_built_with_them(folder, subtests):
    for part in "12":
        rows = [f"127.{number},37.5,{number}{part}" for number in range(4)]
        (folder / f"f{part}.csv").write_text("\n".join(["lon,lat,fare", *rows]))
        passes(f"tally f{part}.csv -o {part} {BOUNDS} --value fare 0 60")
    passes(f"build 1 2 -o r {SURE} --keep-tally kept")
    passes(f"build kept -o again {SURE}")
    for name in ("r", "again"):
        answers = psd.load(name).query([(126.4, 37, 127.6, 38)], mean="fare")
        assert answers["mean_fare"].tolist() == pytest.approx([16.5], abs=0.1)
    passes(f"tally f1.csv -o other {BOUNDS} --value fare 0 50")
    table = [
        (2, "build 1 -o x --epsilon 1 --value fare 0 60", "--value must be left out for tallies"),
        (8, "build other 2 -o x --epsilon 1", "different values, or bounds of values"),
    ]
    check_refusals(subtests, table)
    once = passes("query r --box 126.4 37 127.6 38 --mean fare")
    assert passes("query r --box 126.4 37 127.6 38 --mean fare --mean fare") == once


def test_a_kept_tally_is_one_that_merges(folder, subtests):
    passes(f"build v1.csv -o r --epsilon 1 {BOUNDS} {USER} --keep-tally kept")
    tally(USER, (1, 2))
    passes("build kept 2 -o both --epsilon 1 --keep-tally k2")
    assert psd.load("both").unit.max_contributions == 8
    table = [(8, "tally kept k2 -o x", "repeated"), (8, "tally kept 1 -o x", "of the same file")]
    check_refusals(subtests, table)


def prepare(folder):
    """Tallies of many kinds, for the refusals."""
    for name, options in {
        "v1.csv -o a": BOUNDS,
        "v2.csv -o b": BOUNDS,
        "v2.csv -o other": "--bounds 126 37 128 38",
    }.items():
        passes(f"tally {name} {options}")
    gpd.GeoSeries([shapely.box(127, 37, 127.5, 38)], crs="EPSG:4326").to_file("land.gpkg")
    walled = "--boundary land.gpkg --keep-tally walled"
    passes(f"build v2.csv -o r --epsilon 1 --method grid {BOUNDS} {walled}")
    content = (folder / "a").read_bytes()
    for name in ("cut", "cut.tally"):
        (folder / name).write_bytes(content[: len(content) // 2])
    (folder / "broken").write_bytes(content[:8] + bytes([content[8] ^ 255]) + content[9:])
    (folder / "nokey").write_text("secret-8642")
    (folder / "nokey").chmod(0o600)


TALLY = f"tally v1.csv {BOUNDS}"
REFUSED = [
    (2, "tally cut b -o x", "tally the records first"),
    (8, "build cut.tally -o x --epsilon 1", "cut.tally must be a tally, as its name says"),
    (8, "tally broken b -o x", "is damaged"),
    (8, "tally absent b -o x", "does not exist"),
    (2, "tally v1.csv b -o x", "tally the records first"),
    (8, "tally a walled -o x", "different boundaries"),
    (2, "build a -o x --epsilon 1 --bounds 0 0 1 1", "--bounds must be left out"),
    (2, "build a -o x --epsilon 1 --user user_id", "--user must be left out"),
    (2, "build a -o x", "--epsilon"),
    (6, "tally a b -o a --overwrite", "read as an input"),
    (6, "tally a b -o other", "exists"),
    (2, "tally a b", "-o must be given with tallies"),
    (2, "tally a b --into t", "--into must be left out with tallies, which state how"),
    (2, f"tally a b -o x {BOUNDS}", "--bounds must be left out with tallies"),
    (2, "tally v1.csv -o x", "--bounds must be given; only tallies and regions state their own"),
    (2, TALLY, "give -o"),
    (2, f"{TALLY} -o x --into t", "give -o"),
    (6, f"{TALLY} --into y", "does not exist"),
    (2, f"{TALLY} -o x --key k", "--key must be given with"),
    (2, f"{TALLY} -o x {USER} --carry-users", "given with --key"),
    (8, f"{TALLY} -o x {USER} --key nokey", "64 hexadecimal digits"),
    (8, f"{TALLY} -o x {USER} --key v1.csv", "chmod 600"),
    (2, f"{TALLY} -o x --set height=3", "--set must be given with"),
    (2, f"{TALLY} -o x --category c --labels a", "--category must be left out for a tally"),
    (2, f"{TALLY} --into t --part p", "--part names one"),
    (2, f"{TALLY} -o x --slices 2024-01-01", "--time"),
    (2, f"{TALLY} -o x --time time --slices 2024-01-01 --per slice", "--per slice"),
    (2, f"{TALLY} -o x --time time --slices 2024-01-32", "the form 2024-01-31 "),
    # A bound is chosen privately by a build alone; a tally would silently take the largest one.
    (2, f"{TALLY} -o x --user user_id --max-contributions auto", "must be a number for a tally"),
    (2, f"{TALLY} -o x --user user_id --choice-limit 5", "No such option"),
    (2, f"{TALLY} -o x --user user_id --max-contributions 2.5", "must be a whole number"),
]


@pytest.mark.parametrize("half", [0, 1])
def test_refusals(folder, subtests, half):
    prepare(folder)
    check_refusals(subtests, REFUSED[half::2])
    assert "secret" not in fails(8, f"{TALLY} -o x {USER} --key nokey")
    assert files(folder / "t") == []


def test_an_input_of_no_file_needs_a_name(folder, monkeypatch):
    class Stdin:
        buffer = io.BytesIO((folder / "v1.csv").read_bytes())

        def fileno(self):
            return os.open(folder / "v1.csv", os.O_RDONLY)

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert "part must name an input" in fails(2, f"tally - -o x {BOUNDS}")
    passes(f"tally - -o x {BOUNDS} --part January")
    passes(f"tally v2.csv -o y {BOUNDS} --part January")
    assert "of the same name" in fails(8, "tally x y -o z")
