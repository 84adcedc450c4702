"""psd evaluate: PRIVATE on screen and in files, parts, tally, refusals."""

import pandas as pd
import pytest

from support.cli_runner import check_refusals, cli, fails, passes

BUILD = "build v.csv --epsilon 1 --method grid --set size=4 --bounds 0 0 10 10 --overwrite -o"
USER = "--user user_id --max-contributions 50 --keep-tally"


@pytest.fixture(autouse=True)
def visits(here):
    rows = "".join(f"u{i % 7},{i % 97 / 10},{i % 89 / 9}\n" for i in range(2_000))
    (here / "v.csv").write_text("user_id,lon,lat\n" + rows)


@pytest.mark.deep
def test_eight_classes_with_files(here):
    passes(BUILD, "r")
    line = "evaluate r v.csv -o e.csv --plot e.png"
    told = passes(line)
    assert "PRIVATE" in told
    assert "reveals something about the data that epsilon does not cover" in told
    assert told.count("uniform") == 5  # four classes and the heading of a part
    assert (here / "e.csv").read_text().startswith("# PRIVATE")
    assert len(pd.read_csv("e.csv", comment="#")) == 4_000
    assert {(here / name).stat().st_mode & 0o777 for name in ("e.csv", "e.png")} == {0o600}
    assert "exists" in fails(6, line)
    (here / "boxes.csv").write_text("id,west,south,east,north\na,0,0,10,10\n")
    assert "given" in passes("evaluate r v.csv --boxes boxes.csv")
    passes(BUILD, "r", *USER.split(), "t.private")
    assert (here / "t.private").stat().st_mode & 0o777 == 0o600
    told = fails(2, "evaluate r v.csv")
    assert "needs --tally, the private tally of its build" in told
    assert "bounding" in passes("evaluate r v.csv --tally t.private --boxes boxes.csv")


REFUSED = [
    (5, "absent absent", "absent"),
    (8, "r absent.csv", "absent.csv"),
    (8, "r v.csv --read x=east", "east"),
    (8, "r v.csv --tally v.csv", "v.csv"),
    (8, "r v.csv --boxes absent", "absent"),
    (2, "r v.csv --plot p.pdf", "p.pdf"),
    (6, "r v.csv -o v.csv", "v.csv"),
]


def test_refusals(here, subtests):
    passes(BUILD, "r")
    check_refusals(subtests, REFUSED, "evaluate")
    assert cli(BUILD, "both", "--keep-tally", here / "." / "both").code == 6
    assert not (here / "both").exists()
    passes(BUILD, "r", *USER.split(), "t.private")
    table = [
        (6, "-o t.private", "t.private"),
        (6, "-o x.png --plot x.png", "two outputs have the same path"),
    ]
    check_refusals(subtests, table, "evaluate r v.csv --tally t.private --overwrite")
