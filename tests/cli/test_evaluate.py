"""psd evaluate: PRIVATE on screen and in files, parts, tally, refusals."""

import pandas as pd
import pytest

from psd_cli.main import run

BOUNDS = ["--bounds", "0", "0", "10", "10"]


@pytest.fixture
def visits(tmp_path):
    path = tmp_path / "visits.csv"
    rows = "".join(f"u{i % 7},{i % 97 / 10},{i % 89 / 9}\n" for i in range(2_000))
    path.write_text("user_id,lon,lat\n" + rows)
    return path


def build(visits, release, *words):
    assert run(["build", str(visits), "-o", str(release), "--epsilon", "1", *BOUNDS, *words]) == 0


def test_eight_classes_with_files(visits, tmp_path, capsys):
    release, csv, plot = (tmp_path / name for name in ("r.parquet", "e.csv", "e.png"))
    build(visits, release)
    words = ["evaluate", str(release), str(visits), "-o", str(csv), "--plot", str(plot)]
    assert run(words) == 0
    said = capsys.readouterr()
    assert "PRIVATE" in said.out
    assert "reveals something about the data that epsilon does not cover" in said.out
    assert said.out.count("uniform") == 5  # four classes and the heading of a part
    assert csv.read_text().startswith("# PRIVATE")
    assert len(pd.read_csv(csv, comment="#")) == 4_000
    assert {path.stat().st_mode & 0o777 for path in (csv, plot)} == {0o600}
    assert run(words) == 6
    assert "exists" in capsys.readouterr().err


def test_own_boxes(visits, tmp_path, capsys):
    release, boxes = tmp_path / "r.parquet", tmp_path / "boxes.csv"
    boxes.write_text("id,west,south,east,north\na,0,0,10,10\n")
    build(visits, release)
    assert run(["evaluate", str(release), str(visits), "--boxes", str(boxes)]) == 0
    assert "given" in capsys.readouterr().out


def test_bounded_users_need_the_tally_of_the_build(visits, tmp_path, capsys):
    release, tally = tmp_path / "r.parquet", tmp_path / "tally.private.parquet"
    words = ["--user", "user_id", "--max-contributions", "50", "--keep-tally", str(tally)]
    build(visits, release, *words)
    assert tally.stat().st_mode & 0o777 == 0o600
    assert run(["evaluate", str(release), str(visits)]) == 2
    assert "needs --tally, the private tally of its build" in capsys.readouterr().err
    assert run(["evaluate", str(release), str(visits), "--tally", str(tally)]) == 0
    assert "bounding" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(["evaluate", "absent", "absent"], 5, id="no release"),
        pytest.param(["evaluate", "{release}", "absent.csv"], 8, id="no input"),
        pytest.param(["evaluate", "{release}", "{visits}", "--read", "x=east"], 8, id="no column"),
        pytest.param(
            ["evaluate", "{release}", "{visits}", "--tally", "{visits}"], 8, id="no tally"
        ),
        pytest.param(["evaluate", "{release}", "{visits}", "--boxes", "absent"], 8, id="no boxes"),
        pytest.param(["evaluate", "{release}", "{visits}", "--plot", "p.pdf"], 2, id="plot ending"),
        pytest.param(["evaluate", "{release}", "{visits}", "-o", "{visits}"], 6, id="own input"),
    ],
)
def test_refusals(words, code, visits, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    release = tmp_path / "r.parquet"
    build(visits, release)
    capsys.readouterr()
    assert run([word.format(release=release, visits=visits) for word in words]) == code
    assert capsys.readouterr().err.count("\n") == 1


def test_outputs_never_take_the_place_of_each_other_or_of_inputs(visits, tmp_path, capsys):
    release, both = tmp_path / "r.parquet", tmp_path / "both.parquet"
    words = ["build", str(visits), "-o", str(both), "--epsilon", "1", *BOUNDS]
    assert run([*words, "--keep-tally", str(tmp_path / "." / "both.parquet"), "--overwrite"]) == 6
    assert not both.exists()
    tally = tmp_path / "tally.parquet"
    user = ["--user", "user_id", "--max-contributions", "50", "--keep-tally", str(tally)]
    build(visits, release, *user)
    before = tally.read_bytes()
    words = ["evaluate", str(release), str(visits), "--tally", str(tally), "--overwrite"]
    assert run([*words, "-o", str(tally)]) == 6
    assert run([*words, "-o", str(tmp_path / "x.png"), "--plot", str(tmp_path / "x.png")]) == 6
    assert tally.read_bytes() == before
    assert "two outputs have the same path" in capsys.readouterr().err
